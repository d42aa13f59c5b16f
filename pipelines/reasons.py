"""What we know of the reasons where an ordering of the papers does not hold here, by what it says."""

REASONS = {
    "the mixture is better than BM25": (
        "raw scores are mixed, as in the paper: BM25 has been tuned on training queries where there are any, "
        "and leaves little to add. With the scores of each query normalised and plain BM25, which the next "
        "line has, DESM adds more."
    ),
    "likewise, with the scores of both normalised by query and plain BM25": (
        "there are few queries, on which both alpha is chosen and the difference is tested."
    ),
    "telescoped, IN-OUT is better than IN-IN": (
        "the paper re-ranks documents that a web search engine found and people judged. Here all candidates "
        "have words of the query, few are judged, and what is relevant repeats the query's words or has words "
        "of the same type, which is what IN-IN measures. Embeddings are trained on the collection itself, "
        "which has millions of words where the paper has hundreds of millions of queries. Windows, epochs, "
        "subsampling, negatives and both algorithms of word2vec were tried by `pipelines.embedding_settings`; "
        "none turned the order."
    ),
    "telescoped, IN-OUT is better than BM25": (
        "candidates are BM25's own, and queries here are to be met in their very words far more often than a "
        "web searcher's. The mixture is what helps."
    ),
    "embeddings trained on queries are better than on documents": (
        "the training queries are a few thousand, too few to learn embeddings from; the paper has hundreds of millions."
    ),
    "on the full collection IN-OUT fails more than IN-IN": (
        "abstracts of a few lines on one subject leave few documents that are only loosely about the query's words."
    ),
    "CLSM is better than DSSM": (
        "the paper learns from tens of millions of clicked titles. From a few thousand queries the "
        "convolution, which has three times the weights to learn from the same words, is behind the sum over "
        "all words. Windows, numbers of negatives, negatives from the batch, one network for both sides and "
        "more epochs were tried (`pipelines.clsm` with `--models` and `--windows`); none turned the order."
    ),
    "CLSM is better than BM25": (
        "there are few training queries, and what was learned from random negatives is not what tells BM25's "
        "candidates apart."
    ),
    "a window of 3 is better than one of 1": (
        "with few training queries letter trigrams of single words are learned more surely than those of "
        "three words together."
    ),
    "more negatives are better for CLSM": ("all were trained for the same few epochs."),
    "more negatives are better for DSSM": ("all were trained for the same few epochs."),
    "DSSM is better than LSA": (
        "training was short: `make demo`, with more steps and negatives from the batch, trains a far better DSSM."
    ),
    "hash kernels are better with αI": (
        "training was short; without αI the weight of a word on itself must be learned with the pairs."
    ),
    "correlated hashing is better than hash kernels": (
        "training was short, and few epochs are left after that of the first embedding."
    ),
    "phrases translate better than words": ("titles are so short that few phrases are learned beside their words."),
    "LDA is better than the unigram model": (
        "the texts are titles of a few words, which hardly tell a document's topics, or the queries are few."
    ),
    "BLTM is better than LDA": ("there are few queries."),
    "term dependencies are better than the unigram model": (
        "queries are lists of keywords and not phrases, or texts are titles, in which windows hardly tell anything."
    ),
    "the Duet is better than its local part": ("the networks and the sample of training queries are small."),
    "the Duet is better than its distributed part": ("the networks and the sample of training queries are small."),
    "the Duet is better than BM25": (
        "the networks and the sample of training queries are small, and a document's words beyond the first "
        "are not read."
    ),
    "judged (here: retrieved) negatives are better than random ones for the Duet": (
        "documents that were retrieved and not judged may be relevant all the same: docstrings of several "
        "packages say the same thing."
    ),
    "judged (here: retrieved) negatives are better than random ones for the distributed model": (
        "documents that were retrieved and not judged may be relevant all the same: docstrings of several "
        "packages say the same thing."
    ),
    "bi-LSTMs are better than convolutions for SSM": (
        "the difference has the paper's sign, but the test queries are few."
    ),
    "Match-Tensor+SSM gains more from BM25 than Match-Tensor": (
        "the hybrid knows as much of exact matches as Match-Tensor does; the paper's difference between the "
        "two is a tenth of a percent."
    ),
    "Match-Tensor is better than BM25": ("it was trained for a few epochs of a small sample of the queries."),
    "low-rank W is better than full W": (
        "W was full over the frequent words only, and links repeat the same pairs of words often enough to "
        "learn their weights."
    ),
    "full W is better than TFIDF": ("a weight for every pair of words asks for more links than there are."),
    "correlated hashing is better than hash kernels with αI": (
        "hash kernels with αI keep the weight of every word on itself apart from those of the pairs, which "
        "favours the average precision of pages with the query's rare words; the paper has many times our "
        "words and links, among which random collisions cost more."
    ),
}
