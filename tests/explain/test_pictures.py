from pt_neural.explain.pictures import Mark, marked


def test_all_that_is_shown_is_escaped():
    html = marked("a<b>c", [Mark(1, 4, "<b>", "color: red", '"x" & y', "<3>")])
    assert html.startswith("a<span ")
    assert html.endswith("</span>c")
    assert "&lt;b&gt;<sup>&lt;3&gt;</sup>" in html
    assert 'title="&quot;x&quot; &amp; y"' in html


def test_a_long_text_is_cut_after_so_many_words_and_loses_their_marks():
    text = "word " * 2000 + "late tail"
    html = marked(text, [Mark(0, 4, "word", "", "early"), Mark(10_000, 10_004, "late", "", "late")])
    assert html.count("<span") == 1
    assert html.endswith("word … (2 more words)")
    assert marked("word " * 2000 + "!", []).endswith("word !")
