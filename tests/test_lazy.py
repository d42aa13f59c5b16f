import subprocess
import sys

import pytest

import pt_neural as pn

HEAVY = ["torch", "jnius", "pyserini", "gensim", "sklearn", "matplotlib", "pyterrier_dr", "transformers"]


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    assert fresh(f"import sys, pt_neural; print([m for m in {HEAVY} if m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    ("names", "spared"),
    [
        (["Training", "Mixture", "DESM", "LSA", "ForwardIndex"], [*HEAVY, "lightning"]),
        (["DSSM", "CLSM"], ["lightning", "sklearn", "matplotlib", "pyterrier_dr", "jnius"]),
    ],
)
def test_names_load_only_what_they_need(names, spared):
    code = f"import sys, pt_neural as pn; [getattr(pn, n) for n in {names}]; "
    assert fresh(code + f"print([m for m in {spared} if m in sys.modules])") == "[]"


def test_the_first_search_loads_no_more_than_it_needs(tmp_path):
    code = f"""
import sys, pt_neural as pn
index = pn.LuceneIndex({str(tmp_path / "index")!r}).index([{{"docno": "d1", "text": "a river"}}], verbose=False)
assert len(index.bm25().search("river")) == 1
spared = {[name for name in HEAVY if name != "jnius"] + ["lightning", "scipy.sparse"]}
print([module for module in spared if module in sys.modules])"""
    assert fresh(code) == "[]"


def test_dense_retrieval_from_a_folder_loads_no_more_than_it_needs(tmp_path):
    corpus = [{"docno": "d1", "text": "a river in a city"}, {"docno": "d2", "text": "a city on a river by the sea"}]
    lsa = pn.LSA(dim=1, min_count=1).fit_corpus(corpus, verbose=False)
    lsa.save(tmp_path / "lsa")
    lsa.index(tmp_path / "vectors", corpus, verbose=False)
    code = f"""
import sys, pt_neural as pn
retriever = pn.LSA.load({str(tmp_path / "lsa")!r}).retriever({str(tmp_path / "vectors")!r})
assert len(retriever.search("river")) == 2
print([module for module in {[*HEAVY[1:], "lightning"]} if module in sys.modules])"""
    assert fresh(code) == "[]"


def test_import_is_quick_beyond_pyterrier():
    code = "import time, pyterrier; t = time.process_time(); import pt_neural; print(time.process_time() - t)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.5


def test_reachable_as_pt_neural():
    assert fresh("import pyterrier as pt; print(pt.neural.__name__)") == "pt_neural"


def test_every_public_name_loads():
    names = fresh("import pt_neural as pn; print([n for n in pn.__all__ if not callable(getattr(pn, n))])")
    assert names == "['cluster', 'experiment']", "rooms, the others are classes and functions"


def test_explain_is_callable_whichever_is_imported_first():
    assert fresh("import pt_neural.explain, pt_neural as pn; print(callable(pn.explain))") == "True"


def test_unknown_name_is_an_attribute_error():
    code = "import pt_neural as pn\ntry: pn.BERT\nexcept AttributeError as e: print(e)"
    assert "has no attribute 'BERT'" in fresh(code)
