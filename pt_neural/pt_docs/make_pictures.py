"""Make the pictures of explanations that the documentation shows.

    python pt_neural/pt_docs/make_pictures.py build/pictures

The index and the rankers are kept in the folder. Screenshots need Chromium (``apt install chromium``) and nbconvert
(``pip install nbconvert``).
"""

import argparse
import subprocess
from pathlib import Path

import nbformat
import numpy as np
import pyterrier as pt
from PIL import Image

import pt_neural as pn

PAGES = Path(__file__).parent
QUERY = "pairwise distance between rows"
WIDTHS = (400, 800, 1600)  # of a window, in pixels
HEIGHT = 640  # of a window, of which what is empty is cut off
THEMES = {"light": ("#000000", "#ffffff"), "dark": ("#ffffff", "#111111")}  # text and background
PAGE = """<!DOCTYPE html><html><body style="margin: 16px; color: {}; background: {}; font: 15px/1.4 'DejaVu Sans'">
{}</body></html>"""


def main() -> None:
    """Train small rankers, explain them, and draw, write and photograph the explanations."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path, help="where index, ranker and pages are kept")
    arguments.add_argument("--chromium", default="chromium", help="Chromium's program")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    index, dssm = artifacts(options.folder)
    bm25 = index.bm25() % 20 >> index.text_loader()
    mixture = pn.explain(bm25 >> pn.Mixture(dssm, alpha=0.4, normalise="minmax"), QUERY)
    mixture.plot().figure.savefig(PAGES / "explain-mixture.png")
    pn.explain(index.sdm(base="bm25"), QUERY).plot().figure.savefig(PAGES / "explain-sdm.png")
    trained = knrm(options.folder, bm25)
    pn.explain(bm25 >> trained, QUERY).plot().figure.savefig(PAGES / "explain-knrm.png", dpi=110)
    html = pn.explain(bm25 >> dssm, QUERY)._repr_html_()
    for theme, colours in THEMES.items():
        page = options.folder / f"{theme}.html"
        page.write_text(PAGE.format(*colours, html), encoding="utf-8")
        for width in WIDTHS:
            photograph(options.chromium, page, width, PAGES / f"explain-{theme}-{width}.png")
        page = options.folder / f"notebook-{theme}.html"
        page.write_text(as_notebook(html, theme), encoding="utf-8")
        photograph(options.chromium, page, 900, PAGES / f"explain-notebook-{theme}.png")


def artifacts(folder: Path) -> tuple[pn.LuceneIndex, pn.DSSM]:
    """An index of ``neural:pydocs`` and a ranker trained on it, from the folder if they are there."""
    docs = pt.get_dataset("neural:pydocs")
    index = pn.LuceneIndex(folder / "pydocs.lucene")
    if not index.built():
        index.index(docs.get_corpus_iter())
    path = folder / "pydocs.dssm"
    if path.exists():
        return index, pn.DSSM.load(path)
    dssm = pn.DSSM.small(training=pn.Training(epochs=3, batch_size=64, dev_queries=100))
    bm25 = index.bm25() % 20 >> index.text_loader()
    train, dev = (docs.get_topics(split) for split in ("train", "dev"))
    (bm25 >> dssm).fit(train.head(1000), docs.get_qrels("train"), dev.head(100), docs.get_qrels("dev"))
    dssm.save(path)
    return index, dssm


def knrm(folder: Path, candidates: pt.Transformer) -> pn.KNRM:
    """A KNRM trained on 2,000 queries, from the folder if it is there."""
    path = folder / "pydocs.knrm"
    if path.exists():
        return pn.KNRM.load(path)
    docs = pt.get_dataset("neural:pydocs")
    spaces = pn.EmbeddingSpaces.train(docs.get_corpus_iter(), dim=100)
    train, dev = docs.get_topics("train").head(2000), docs.get_topics("dev").head(100)
    ranker = pn.KNRM.recipe("few", spaces=spaces)
    (candidates >> ranker).fit(train, docs.get_qrels("train"), dev, docs.get_qrels("dev"))
    ranker.save(path)
    return ranker


def as_notebook(html: str, theme: str) -> str:
    """A page as JupyterLab shows a cell that ends with an explanation."""
    from nbconvert import HTMLExporter

    output = nbformat.v4.new_output("execute_result", {"text/html": html}, execution_count=1)
    code = f'pn.explain(bm25 >> dssm, "{QUERY}")'
    cell = nbformat.v4.new_code_cell(code, outputs=[output], execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    return HTMLExporter(theme=theme).from_notebook_node(notebook)[0]


def photograph(chromium: str, page: Path, width: int, picture: Path) -> None:
    """Write a picture of a page in a window of a width, without the empty part below."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{HEIGHT}"]
    command = [chromium, *options, f"--screenshot={picture.absolute()}", page.absolute().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    image = Image.open(picture).convert("RGB")
    rows = np.asarray(image)
    used = np.flatnonzero((rows != rows[-1, -1]).any(axis=(1, 2)))
    image.crop((0, 0, image.width, min(image.height, used[-1] + 17))).quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    main()
