"""Schematics of PyTerrier's own transformers need no network."""

import time

import pyterrier as pt
import pytest
from pyterrier import documentation

from pt_neural import _links


@pytest.fixture(autouse=True)
def new_session(monkeypatch, tmp_path):
    monkeypatch.setattr(documentation, "_cached_objects_inv", None)
    monkeypatch.setattr(pt.io, "pyterrier_home", lambda: str(tmp_path))  # with no list from an earlier session


def unreachable(*arguments, **options):
    unreachable.calls += 1
    raise OSError("Name or service not known")


def test_without_a_network_a_pipeline_is_drawn_and_says_so_once(monkeypatch, capsys):
    unreachable.calls = 0
    monkeypatch.setattr(pt.io, "download", unreachable)
    for pipeline in (pt.Transformer.identity() % 10, pt.Transformer.identity() ** pt.RankCutoff(3)):
        assert "<svg" in pipeline._repr_html_() or "<div" in pipeline._repr_html_()
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert said.out.count("\n") == 1
    assert "Schematics without links" in said.out
    assert "Name or service not known" in said.out
    assert unreachable.calls == 1


def test_a_network_that_does_not_answer_is_not_waited_for(monkeypatch, capsys):
    monkeypatch.setattr(pt.io, "download", lambda *arguments, **options: time.sleep(1))
    monkeypatch.setattr(_links, "WAIT", 0.05)
    start = time.monotonic()
    assert documentation.url_for_class(pt.RankCutoff) is None
    assert time.monotonic() - start < 0.5
    assert "no answer in 0.05 seconds" in capsys.readouterr().out


def test_with_a_network_there_are_links(monkeypatch):
    url = "https://pyterrier.readthedocs.io/page.html"
    pages = {("py:class", f"{pt.RankCutoff.__module__}.RankCutoff"): (url, "RankCutoff", 1)}
    monkeypatch.setattr(_links, "_download", lambda: setattr(documentation, "_cached_objects_inv", pages))
    assert documentation.url_for_class(pt.RankCutoff) == url
