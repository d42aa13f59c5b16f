"""The Duet and its two parts as rankers: scores from texts and from kept documents, features, and what they learn."""

import pickle

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
import torch
import torch.nn.functional as F

import pt_neural as pn
from pt_neural._files import ArtifactError
from pt_neural.models.duet import duet as module
from pt_neural.models.duet.networks import joint_scores
from pt_neural.rankers.readers.word_pairs import PairTexts
from pt_neural.text import Vocabulary, pack_texts, tokenise

SIZES = {"query_terms": 5, "document_terms": 20, "filters": 16, "hidden": 16}
MODELS = {
    "DuetLocal": lambda **options: pn.DuetLocal(**SIZES, **options),
    "DuetDistributed": lambda **options: pn.DuetDistributed(**SIZES, pooling=7, **options),
    "Duet": lambda **options: pn.Duet(**SIZES, pooling=7, **options),
}
KEEPERS = ("DuetDistributed", "Duet")
WORDS = "the river runs past the old city to sea boys girls boats mississippi mississippi a".split()


def made_up(count: int, longest: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(longest + 1))) for _ in range(count)]


TOPICS = [*made_up(12, 7, seed=0), "", "unknown words"]
TEXTS = [*made_up(25, 30, seed=1), "", "nothing of it"]
CORPUS = [{"docno": f"d{i}", "title": "", "text": text} for i, text in enumerate(TEXTS)]


def pairs(topics=TOPICS, texts=TEXTS) -> pd.DataFrame:
    queries = pd.DataFrame({"qid": [f"q{i}" for i in range(len(topics))], "query": topics})
    return queries.merge(pd.DataFrame({"docno": [f"d{i}" for i in range(len(texts))], "text": texts}), how="cross")


CANDIDATES = pairs().sample(frac=0.9, random_state=0)
BARE = CANDIDATES[["qid", "query", "docno"]]
QRELS = CANDIDATES.drop_duplicates("qid")[["qid", "docno"]].assign(label=1)


def with_random_weights(name: str, seed: int = 5, **options):
    """A model with n-grams of the words above, and weights that nothing has trained."""
    model = MODELS[name](device="cpu", **options)
    reader = model.make_reader()
    sequences, terms = pack_texts([" ".join(WORDS)])
    reader.build([], sequences, Vocabulary(terms))
    network = model.make_network(reader)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.from_numpy(random.normal(scale=0.3, size=weight.shape)))
    model._take(reader, network.eval())
    return model


@pytest.fixture(params=MODELS)
def model(request):
    return with_random_weights(request.param)


@pytest.fixture(params=KEEPERS)
def keeper(request):
    return with_random_weights(request.param)


@pytest.fixture
def duet() -> pn.Duet:
    return with_random_weights("Duet")


def scores(model, frame: pd.DataFrame) -> np.ndarray:
    return model.transform(frame)["score"].to_numpy()


# Scores from texts


def batch_outputs(model, frame: pd.DataFrame) -> torch.Tensor:
    """Outputs before the tanh, all pairs in one batch as in training."""
    rows, topics = pd.factorize(frame["query"])
    columns, texts = pd.factorize(frame["text"])
    documents, terms = pack_texts(texts)
    batch = model.reader.pair(list(topics), documents, Vocabulary(terms)).batch(rows, columns)
    network = model.network
    with torch.no_grad():
        return network.match(batch, network.read_queries(batch.queries), network.read_documents(batch.documents))


@pytest.mark.parametrize(("batch_size", "queries", "rounds"), [(128, 4096, 8), (3, 3, 2)])
def test_scores_of_frames_are_those_of_training_batches(model, batch_size, queries, rounds, monkeypatch):
    monkeypatch.setattr(module, "QUERIES_PER_STEP", queries)
    monkeypatch.setattr(module, "PAIRS_PER_ROUND", rounds)
    model.batch_size = batch_size
    expected = batch_outputs(model, CANDIDATES)
    torch.testing.assert_close(model.part_outputs(CANDIDATES), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(scores(model, CANDIDATES), joint_scores(expected), atol=1e-5)


def test_only_the_first_terms_count(model):
    query, text = "city boys river past the", " ".join(WORDS + WORDS[:5])
    assert (len(tokenise(query)), len(tokenise(text))) == (5, 20)
    found = scores(model, pairs([query, query + " sea"], [text, text + " city sea"]))
    np.testing.assert_allclose(found, found[0], atol=1e-6)
    assert scores(model, pairs([query], [" ".join(tokenise(text)[:12])])) != pytest.approx(found[0], abs=1e-4)


@pytest.mark.parametrize("name", KEEPERS)
def test_a_word_is_projected_once_however_often_it_occurs(name, monkeypatch):
    model = with_random_weights(name)
    hashing = model.reader.hashing
    looked_up = []
    original = F.embedding_bag

    def spy(ngrams, weight, *args, **options):
        if len(weight) == len(hashing):
            looked_up.append(len(ngrams))
        return original(ngrams, weight, *args, **options)

    monkeypatch.setattr(F, "embedding_bag", spy)
    scores(model, pairs(["boys river boys", "river"], ["boys " * 10 + "city", "city boys boys", "boys"]))

    def num_ngrams(*words):
        return int((hashing.bags(words).toarray() > 0).sum())

    assert looked_up == [num_ngrams("boys", "river"), num_ngrams("boys", "city")]


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("documents", [[], [0], [3, 0, 3, 3, 1, 0, 3, 3], [2] * 9])
def test_rounds_have_every_pair_once_and_few_of_any_document(documents, most, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_PER_ROUND", most)
    document_rows = np.array([7, *documents], dtype=np.int64)
    rounds = module._rounds(document_rows, np.arange(1, len(document_rows)))
    assert sorted(np.concatenate(rounds).tolist()) == list(range(1, len(document_rows)))
    counts = np.bincount(documents, minlength=1)
    assert all(np.bincount(document_rows[chosen], minlength=1).max() <= most for chosen in rounds)
    assert len(rounds) == max(1, -(-counts.max() // most))


# Parts as features


def test_parts_are_the_outputs_before_the_tanh(duet):
    frame = pairs()
    outputs = duet.part_outputs(frame)
    np.testing.assert_allclose(scores(duet.local, frame), outputs[:, 0], atol=1e-6)
    np.testing.assert_allclose(scores(duet.distributed, frame), outputs[:, 1], atol=1e-6)
    sums = np.tanh(outputs.double().numpy()).sum(axis=1)
    np.testing.assert_allclose(np.tanh(scores(duet, frame)) * 2, sums, atol=1e-5)  # equation 1
    for _, results in duet.local.transform(frame).groupby("qid"):
        ordered = results.sort_values(["score", "docno"], ascending=False)
        assert ordered["rank"].tolist() == list(range(len(results)))


UNIONS = {
    "parts": lambda duet: duet.local**duet.distributed,
    "turned": lambda duet: duet.distributed**duet.local,
    "all": lambda duet: duet.local**duet.distributed**duet,
    "first": lambda duet: duet**duet.local,
    "twice": lambda duet: duet.local**duet.local,
}


@pytest.mark.parametrize("union", UNIONS.values(), ids=UNIONS)
def test_features_come_from_one_pass_and_are_those_of_each_part(duet, union, monkeypatch):
    passes = []
    original = pn.Duet.part_outputs

    def counting(self, frame):
        passes.append(len(frame))
        return original(self, frame)

    frame = pairs(TOPICS[:4])
    features = union(duet)
    compiled = features.compile()
    apart = features.transform(frame)
    monkeypatch.setattr(pn.Duet, "part_outputs", counting)
    together = compiled.transform(frame)
    assert passes == [len(frame)]
    both = together.merge(apart[["qid", "docno", "features"]], on=["qid", "docno"], suffixes=("", "_apart"))
    np.testing.assert_allclose(np.stack(both["features"]), np.stack(both["features_apart"]), atol=1e-5)
    assert len(both) == len(frame)
    assert together["features"].iloc[0].dtype == np.float64
    none = compiled.transform(frame[:0])
    assert len(none) == 0
    assert "features" in none


def test_other_models_are_not_fused(duet):
    other = with_random_weights("Duet")
    assert duet.local.fuse_feature_union(other.local, True) is None
    assert duet.fuse_feature_union(other.local, True) is None
    assert duet.fuse_feature_union(pn.DuetLocal(), False) is None
    features = (duet.local**other.distributed).compile().transform(pairs())["features"]
    assert np.stack(features).shape == (len(pairs()), 2)


def test_a_part_needs_what_its_model_needs_and_pickles_with_it(duet):
    with pytest.raises(KeyError, match="text"):
        duet.local.transform(BARE)
    with pytest.raises(RuntimeError, match="not fitted yet"):
        pn.Duet().local.transform(pairs())
    copy = pickle.loads(pickle.dumps(duet.distributed))
    pd.testing.assert_frame_equal(copy.transform(CANDIDATES), duet.distributed.transform(CANDIDATES))
    assert repr(copy) == "Duet().distributed"


# Documents that are encoded beforehand


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.005), ("int8", 0.05)])
def test_scores_by_docno_stay_near_those_by_text(keeper, dtype, tolerance, tmp_path, capfd):
    """Trained models, whose scores differ by more, are held below to what the docstring of DuetDistributed says."""
    by_text = scores(keeper, CANDIDATES)
    keeper.representations = keeper.index(tmp_path / "kept", CORPUS, dtype=dtype)
    assert f"{len(CORPUS)}/{len(CORPUS)}" in capfd.readouterr().err
    differences = np.abs(scores(keeper, BARE) - by_text)
    assert 0 < differences.max() < tolerance * by_text.std()
    for row in range(0, len(BARE), 61):
        assert scores(keeper, BARE.iloc[[row]])[0] == pytest.approx(by_text[row], abs=tolerance * by_text.std())
    with pytest.raises(ValueError, match="d99"):
        keeper.transform(BARE.assign(docno="d99"))


def test_what_is_kept_depends_neither_on_the_batch_nor_on_the_kind_of_corpus(keeper, tmp_path):
    forward = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    together = keeper.index(tmp_path / "together", CORPUS, verbose=False)
    same = keeper.index(tmp_path / "same", forward, verbose=False)
    keeper.batch_size = 3
    apart = keeper.index(tmp_path / "apart", iter(CORPUS), verbose=False)
    numbers = np.arange(len(CORPUS))
    rows, offsets = together.read(numbers)
    np.testing.assert_array_equal(same.read(numbers)[0], rows)
    np.testing.assert_allclose(apart.read(numbers)[0], rows, atol=2e-3)
    np.testing.assert_array_equal(offsets, np.arange(0, len(CORPUS) * 16 + 1, 16))
    assert rows.shape == (len(CORPUS) * 16, 16)


def test_kept_documents_are_not_read_again(duet, tmp_path, monkeypatch):
    duet.documents = pn.ForwardIndex.build(tmp_path / "forward", CORPUS, verbose=False)
    kept = duet.representations = duet.index(tmp_path / "kept", duet.documents, verbose=False)
    assert duet.kept_documents() is kept.documents
    monkeypatch.setattr(type(duet.network), "read_documents", None)
    by_docno = duet.part_outputs(BARE).numpy()
    features = np.stack((duet.local**duet.distributed).compile().transform(BARE)["features"])
    np.testing.assert_allclose(features, by_docno, atol=1e-6)


def test_kept_documents_serve_their_own_model_only(keeper, tmp_path):
    keeper.save(tmp_path / "model.pn")
    kept = keeper.representations = keeper.index(tmp_path / "kept", CORPUS, verbose=False)
    loaded = type(keeper).load(tmp_path / "model.pn", representations=kept)
    expected = keeper.transform(BARE)
    for copy in (loaded, pickle.loads(pickle.dumps(keeper))):
        pd.testing.assert_frame_equal(copy.transform(BARE), expected)
    other = with_random_weights(type(keeper).__name__, seed=6)
    other.representations = kept
    with pytest.raises(ValueError, match=r"made by another model than this .*index the collection again: model\.index"):
        other.transform(BARE)
    with pytest.raises(ValueError, match="train without them"):
        keeper.fit(CANDIDATES, QRELS)


def test_what_cannot_be_kept_is_refused_before_anything_is_read(duet, tmp_path):
    titles = pn.ForwardIndex.build(tmp_path / "titles", CORPUS, fields=["title"], verbose=False)
    with pytest.raises(ValueError, match="dtype must be one of 'float16', 'int8', not 'float32'"):
        duet.index(tmp_path / "kept", iter(CORPUS), dtype="float32")
    duet.fields = ["title", "text"]
    with pytest.raises(ValueError, match="holds title"):
        duet.index(tmp_path / "kept", titles)
    with pytest.raises(RuntimeError, match="not fitted yet"):
        pn.Duet().index(tmp_path / "kept", CORPUS)
    with pytest.raises(ValueError, match="together with the query"):
        with_random_weights("DuetLocal").index(tmp_path / "kept", CORPUS)
    assert not (tmp_path / "kept").exists()


def test_kept_documents_in_pipelines(duet, tmp_path):
    duet.representations = duet.index(tmp_path / "kept", CORPUS, verbose=False)
    topics = BARE[["qid", "query"]].drop_duplicates()
    done = (pt.Transformer.from_df(BARE.assign(score=0.0, rank=0)) >> duet).transform(topics)
    assert len(done) == len(BARE)
    assert ["docno", "qid", "query"] in [sorted(columns) for columns in pt.inspect.transformer_inputs(duet)]


# Arguments and files


def test_damaged_files_are_named(model, tmp_path):
    model.save(tmp_path / "model.pn")
    files = [path for path in (tmp_path / "model.pn").rglob("*.*") if path.is_file()]
    assert any(file.name == "ngrams.txt" for file in files) == model.reads_words
    for file in files:
        named = f"{file.name}|does not fit config.json" if file.name == "ngrams.txt" else file.name
        content = file.read_bytes()
        for damaged in (b"", content[: len(content) // 2], None):
            file.unlink() if damaged is None else file.write_bytes(damaged)
            with pytest.raises((ArtifactError, FileNotFoundError), match=named):
                type(model).load(tmp_path / "model.pn")
        file.write_bytes(content)
    pd.testing.assert_frame_equal(
        type(model).load(tmp_path / "model.pn").transform(CANDIDATES), model.transform(CANDIDATES)
    )


WRONG = [
    ({"query_terms": 0}, ValueError, "query_terms must be at least 1"),
    ({"document_terms": "1000"}, TypeError, "document_terms must be an integer"),
    ({"filters": 2.5}, TypeError, "filters must be an integer"),
    ({"hidden": -1}, ValueError, "hidden must be at least 1"),
    ({"dropout": 1}, ValueError, "dropout must be below 1"),
    ({"dropout": -0.1}, ValueError, "dropout must be at least 0"),
    ({"dropout": "a"}, TypeError, "dropout must be a number"),
]
WRONG_WINDOWS = [
    ({"window": 0}, ValueError, "window must be at least 1"),
    ({"window": 11}, ValueError, "window must be at most query_terms, 10"),
    ({"pooling": 999}, ValueError, "pooling must be at most 998"),
    ({"document_terms": 50, "pooling": 49}, ValueError, "pooling must be at most 48"),
    ({"document_terms": 2}, ValueError, "window must be at most document_terms, 2"),
    ({"num_ngrams": 0}, ValueError, "num_ngrams must be at least 1"),
    ({"ngram_sizes": ()}, ValueError, "ngram_sizes must hold at least one"),
    ({"ngram_sizes": 3}, TypeError, "ngram_sizes must be a sequence"),
    ({"representations": "kept.duet"}, TypeError, r"what model\.index\(path, corpus\) gave"),
]


@pytest.mark.parametrize("name", MODELS)
def test_wrong_arguments_are_named(name):
    for wrong, kind, message in WRONG if name == "DuetLocal" else WRONG + WRONG_WINDOWS:
        with pytest.raises(kind, match=message):
            getattr(pn, name)(**wrong)


@pytest.mark.parametrize(
    ("name", "size", "error", "message"),
    [
        ("query_terms", "x", TypeError, "query_terms must be an integer"),
        ("pooling", 400, ValueError, "pooling must be at most 18"),
        ("window", 6, ValueError, "window must be at most query_terms, 5"),
        ("num_ngrams", -1, ValueError, "num_ngrams must be at least 1"),
    ],
)
def test_sizes_set_later_are_checked_by_fit(name, size, error, message):
    model = MODELS["Duet"](training=pn.Training(epochs=1, verbose=False))
    setattr(model, name, size)
    with pytest.raises(error, match=message):
        model.fit(CANDIDATES, QRELS)


@pytest.mark.parametrize("terms", [50, 10, 3])
@pytest.mark.parametrize("name", KEEPERS)
def test_short_documents_need_no_other_size(name, terms, tmp_path):
    model = getattr(pn, name)(
        document_terms=terms, filters=8, hidden=6, device="cpu", training=pn.Training(epochs=1, verbose=False)
    )
    found = scores(model.fit(CANDIDATES, QRELS), CANDIDATES)
    assert np.isfinite(found).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(scores(type(model).load(tmp_path / "model"), CANDIDATES), found)
    model.document_terms = 20
    assert model.make_network(model.reader).distributed.sizes.pooling == 2


def test_sizes_set_before_training_count():
    model = MODELS["Duet"]()
    model.filters = 9
    weights = model.make_network(model.make_reader()).named_parameters()
    assert model.settings()["filters"] == 9
    assert all(9 in weight.shape for name, weight in weights if name.endswith("positions"))


# What they learn


def training(**options) -> pn.Training:
    defaults = {"epochs": 6, "batch_size": 32, "learning_rate": 0.01, "negatives": "judged", "num_negatives": 2}
    return pn.Training(**{**defaults, "verbose": False, "device": "cpu", **options})


LEARNED_SIZES = {"query_terms": 4, "document_terms": 12, "filters": 32, "hidden": 32, "device": "cpu"}
LEARNERS = {
    "DuetLocal": lambda **options: pn.DuetLocal(**LEARNED_SIZES, training=training(**options)),
    "Duet": lambda **options: pn.Duet(**LEARNED_SIZES, pooling=5, num_ngrams=150, training=training(**options)),
}


def made_up_words(letters: str, count: int, random: np.random.Generator) -> list[str]:
    return ["".join(random.choice(list(letters), 7)) for _ in range(count)]


class NamesAndSynonyms:
    """A query is a name that no other query has, and a word of a concept; documents have another word for the concept.

    The relevant document has the name and the concept. One that is not has the name and another concept, one the
    concept and another name. Names are new in the held-out queries, so that only exact matches find them, and concepts
    have no letter in common with their other word, so that only learned representations do.
    """

    def __init__(self, num_queries: int = 600, num_concepts: int = 4, seed: int = 0):
        random = np.random.default_rng(seed)
        asked = made_up_words("abcdefgh", num_concepts, random)
        written = made_up_words("klmnopqr", num_concepts, random)
        names = made_up_words("0123456789", 2 * num_queries, random)
        rows = []
        for number in range(num_queries):
            concept, other = random.permutation(num_concepts)[:2]
            name, stranger = names[2 * number : 2 * number + 2]
            fillers = asked[:concept] + asked[concept + 1 :]
            answers = [(stranger, written[concept]), (name, written[other]), (name, written[concept])]
            for label, pair in enumerate(answers):
                text = " ".join(random.permutation([*random.choice(fillers, 3), *pair]))
                rows.append((f"q{number}", f"{name} {asked[concept]}", f"d{number}-{label}", text, label // 2))
        frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
        self.train, self.held_out = frame[:-300], frame[-300:]

    def accuracies(self, model) -> tuple[float, float]:
        """How often the relevant document is above that with another name, and above that with another concept."""
        found = scores(model, self.held_out).reshape(-1, 3)
        return tuple((found[:, 2] > found[:, other] + 1e-5).mean() for other in (0, 1))


@pytest.fixture(scope="module")
def collection() -> NamesAndSynonyms:
    return NamesAndSynonyms()


@pytest.fixture(scope="module")
def trained(collection) -> pn.Duet:
    return LEARNERS["Duet"]().fit(collection.train, collection.train[["qid", "docno", "label"]])


def test_each_part_learns_what_it_can_see_and_both_together_learn_all(trained, collection):
    """Of names and of concepts; where a part cannot learn, chance has a half."""
    for model, learns in (
        (trained, (True, True)),
        (trained.local, (True, False)),
        (trained.distributed, (False, True)),
    ):
        for accuracy, learned in zip(collection.accuracies(model), learns, strict=True):
            assert accuracy > 0.8 if learned else accuracy < 0.65
    start = LEARNERS["Duet"](epochs=1, learning_rate=1e-12)
    start.fit(collection.train, collection.train[["qid", "docno", "label"]])
    assert np.mean(collection.accuracies(trained)) > np.mean(collection.accuracies(start)) + 0.1


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.001), ("int8", 0.02)])
def test_kept_documents_of_a_trained_model_score_as_the_docstring_says(trained, collection, dtype, tolerance, tmp_path):
    by_text = scores(trained, collection.held_out)
    kept = trained.index(tmp_path / "kept", collection.held_out.to_dict("records"), dtype=dtype, verbose=False)
    trained.representations = kept
    by_docno = scores(trained, collection.held_out[["qid", "query", "docno"]])
    trained.representations = None
    assert np.abs(by_docno - by_text).max() < tolerance * by_text.std()


def test_the_local_model_learns_where_matches_occur():
    """Both documents have the query's words; they stand together near the beginning in the relevant one (Figure 2)."""
    random = np.random.default_rng(0)
    words = made_up_words("abcdefgh", 40, random)
    rows = []
    for number in range(300):
        query, others = random.choice(words[:20], 2, replace=False), random.choice(words[20:], 9)
        for label, places in enumerate([(5, 9), (random.integers(0, 3),) * 2]):
            text = " ".join(np.insert(others, places, query))
            rows.append((f"q{number}", " ".join(query), f"d{number}-{label}", text, label))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    model = LEARNERS["DuetLocal"]().fit(frame[:500], frame[:500][["qid", "docno", "label"]])
    found = scores(model, frame[500:]).reshape(-1, 2)
    assert (found[:, 1] > found[:, 0]).mean() > 0.9


def test_the_papers_recipe_teaches_where_in_the_document_a_word_matters():
    """It stands in the first half of the relevant document, which only the match layer can tell: SGD must move it."""
    random = np.random.default_rng(0)
    words, rows = made_up_words("abcdefgh", 4, random), []
    for number in range(160):
        query = words[number % 4]
        for grade, half in ((3, 0), (1, 1), (0, 1), (0, 1), (0, 1)):
            text = random.choice([word for word in words if word != query], (2, 30))
            text[half, random.choice(30, 25, replace=False)] = query
            rows.append((f"q{number}", query, f"d{len(rows)}", " ".join(text.ravel()), grade))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    paper = {"grades": {3: [1, 0], 2: [0]}, "optimiser": "sgd", "learning_rate": 0.01, "batch_size": 8, "gamma": 1}
    model = pn.DuetDistributed(
        query_terms=3,
        document_terms=60,
        window=1,
        pooling=1,
        filters=128,
        hidden=16,
        device="cpu",
        training=training(num_negatives=4, epochs=15, **paper),
    )
    model.fit(frame[:500], frame[:500][["qid", "docno", "label"]])
    found = scores(model, frame[500:]).reshape(-1, 5)
    assert (found.argmax(1) == 0).mean() > 0.9


def test_the_papers_grades_tell_who_is_trained_against_whom(monkeypatch):
    """Excellent against fair and bad, good against bad, perfect not at all (section 4.2)."""
    words = [f"w{number}" for number in range(30)]
    rows = []
    for number in range(10):
        query = words[number : number + 4]
        for grade in (4, 3, 2, 1, 1, 0, 0, 0):  # so many words of the query
            text = " ".join([*query[:grade], *words[number + 5 : number + 10]])
            rows.append((f"q{number}", " ".join(query), f"d{len(rows)}", text, grade))
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "label"])
    grades = frame["label"].to_numpy()
    trained_on = []
    original = PairTexts.batch

    def spy(self, queries, documents):
        trained_on.extend(map(tuple, grades[documents]))
        return original(self, queries, documents)

    monkeypatch.setattr(PairTexts, "batch", spy)
    paper = {"grades": {3: [1, 0], 2: [0]}, "optimiser": "sgd", "learning_rate": 0.01, "batch_size": 8, "epochs": 3}
    model = LEARNERS["Duet"](**paper).fit(frame, frame[["qid", "docno", "label"]])
    assert model.report.groups == 10 * 2
    groups = {(positive, negative) for positive, *negatives in trained_on for negative in negatives}
    assert groups == {(3, 1), (3, 0), (2, 0)}
    assert len(trained_on) == 3 * 20


def test_the_same_seed_gives_the_same_model_also_in_mixed_precision(collection):
    few = collection.train[:60]
    models = [LEARNERS["Duet"](epochs=2, precision="bf16-mixed") for _ in range(2)]
    found = [scores(model.fit(few, few[["qid", "docno", "label"]]), few) for model in models]
    np.testing.assert_array_equal(*found)
    assert np.isfinite(models[0].history["loss"]).all()
    assert all(weight.dtype == torch.float32 for weight in models[0].network.parameters())
