"""Learned sparse retrieval, on an impact index that Anserini builds."""

import pandas as pd
import pytest


@pytest.mark.parametrize("count", [1, 300])  # in one call of Java, and in several
def test_a_score_is_the_sum_of_products_of_weights_and_impacts(impacts, impact_index, count):
    weights = {"okapi": 2, "giraffe": 1.5, "the": 3, "##pi": 0.0, "unknown": 7}
    topics = pd.DataFrame({"qid": range(count), "query_toks": [weights] * count})
    found = impact_index.impact()(topics)
    expected = {
        docno: sum(weights.get(term, 0) * impact for term, impact in vector.items())
        for docno, vector in impacts.items()
    }
    assert found["qid"].nunique() == count
    for _, rows in found.groupby("qid"):
        assert dict(zip(rows["docno"], rows["score"], strict=True)) == expected
    again = impact_index.impact()(found.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(again.sort_index(), found)


def test_a_text_is_cut_at_white_space(impact_index):
    found = impact_index.impact(num_results=2).search(" okapi\tokapi ##pi Giraffe ")
    assert found["docno"].tolist() == ["d1", "d2"]
    assert found["score"].tolist() == [2 * 7 + 2, 2 * 3]  # no stemmer, no lower case


def test_queries_that_find_nothing(impact_index):
    topics = pd.DataFrame({"qid": range(4), "query": ["", None, "zebra", "neck"]})
    assert impact_index.impact()(topics)["qid"].tolist() == [3]
    weights = pd.DataFrame({"qid": range(3), "query_toks": [{}, None, {"neck": 0.5}]})
    assert impact_index.impact()(weights)["score"].tolist() == [60.0]
    with pytest.raises(ValueError, match=r"Impact.*weight of 'neck' is -1"):
        impact_index.impact()(weights.assign(query_toks=[{"neck": -1}] * 3))


def test_its_name(impact_index):
    assert repr(impact_index.impact(num_results=7)) == f"Impact('{impact_index.path.name}', num_results=7)"
    with pytest.raises(ValueError, match="no field 'title'"):
        impact_index.impact(field="title").search("okapi")
