"""Names of methods as the papers print them, so that rows join the transcribed tables; and what
readers are shown.
"""

import re

END_TO_END = "Encoder_d + pooler_d (end-to-end training)"
STEP_1 = "Encoder_opt + pooler_d (After step 1)"
STEP_2 = "Encoder_opt + new-pooler_d (After step 2)"
STAGE_NAMES = {END_TO_END: "end to end", STEP_1: "after step 1", STEP_2: "after step 2"}
"""The three blocks of Wang et al.'s Tables 1 and 2, and what tables and legends call them."""
ENCODER_ALONE = "Encoder_d (pooler_d used only in training)"  # Last block of Table 2
FULL = "SimCSE-RoBERTa_base"
TRAINED_NARROW = "SimCSE-RoBERTa_base w/ end-to-end training"
TWO_STEP = "SimCSE-RoBERTa_base w/ two-step training"
# Rows of Tables 3 and 4 to the reducers that make them
REDUCED = {"PCA": "pca", "Isomap": "isomap", "LLE": "lle"}
FULL_SIZE = "full size"  # An encoder's embeddings as they are, beside reduced ones
# The five methods of Zhang et al.'s Table 1 and figures
ZHANG_METHODS = ("PCA", "SVD", "KPCA", "GRP", "Autoencoder")
TRUNCATE = "Truncate"  # The first columns, beside them
MAJORITY = "majority class"
AVERAGE = "Avg."  # Dataset of the rows that hold the mean of a table's seven
UNTRAINED = "untrained backbone"
RAW, CONTROL, MRL, ESE = "RAW", "RAW + NLI", "MRL", "ESE"
ESE_METHODS = (RAW, CONTROL, MRL, ESE)
"""Lines of ESE's comparison; the second, the same training without any scaling, is the control the
paper lacks.
"""
ESE_CODE = "ESE (code)"  # ESE in the form that its authors released
# Every line keeps its place in tables, and its colour, whichever are shown
ESE_ORDER = (*ESE_METHODS, ESE_CODE)
# Ends of the row names of ESE's tables to the methods here
ESE_PRINTED = {"RAW": RAW, "+ MRL": MRL, "+ ESE": ESE}
ESE_DEFAULT = "default"  # ESE in the printed form, among the variants of Table 2
ESE_VARIANTS = {
    "PCA on dependencies (default)": ESE_DEFAULT,
    "PCA on sentence embeddings": "embeddings",
    "max-k embedding dependencies": "max-k",
    "none (w/o compression)": "no compression",
    "without weight": "uniform weights",
    "dynamic weight": "learned weights",
    "default weight": ESE_DEFAULT,
}
"""Ends of the row names of ESE's Table 2 to the variants here."""
SHALLOW_AVERAGE = "<Avg."
"""Dataset of the rows that hold the mean of a table's seven over the layers below the last, layer 0
aside.
"""

BASELINES = {
    "tfidf": "n-gram TF-IDF",
    "lsa": "LSA",
    "glove": "GloVe",
    "word2vec": "word2vec",
    "fasttext": "fastText",
    "doc2vec": "Doc2Vec",
    "use": "USE (stand-in: distiluse)",
    "sbert": "SBERT",
    "simcse": "SimCSE",
    "minilm": "all-MiniLM-L6-v2",
}
"""What the proposal compares with, and one encoder more: names to what rows call them."""
PRINTED_BASELINES = {
    BASELINES["glove"]: ("sbertlp2021", "table1", "Avg. GloVe embeddings"),
    BASELINES["use"]: ("sbertlp2021", "table1", "Universal Sentence Encoder"),
    BASELINES["sbert"]: ("sbertlp2021", "table1", "SBERTbase"),
    BASELINES["simcse"]: ("wang2023", "table3", "SimCSE-RoBERTa_base"),
}
"""Those to the paper, table and row that print a score of theirs on STS-B and SICK-R."""
TRAINED_PROJECTION = "trained projection"
TWO_STEP_PROJECTION = "two-step projection"
"""Of the proposal's comparison: trained together with its encoder, or afterwards on a frozen one.
"""
# Of the reducers tried at one dim, the one that a dev split prefers
BEST_REDUCED = "best reduction"
TRAIN_OR_REDUCE = (
    FULL_SIZE,
    TRAINED_PROJECTION,
    TWO_STEP_PROJECTION,
    BEST_REDUCED,
)
"""The lines of that comparison in the order of tables and figures; the reducers come after them."""

SHOWN = {
    "Avg. GloVe embeddings": "{words}, mean of words",
    "Avg. fast-text embeddings": "fastText, mean of words",
    "sif": "{words}, SIF",
    "Avg. BERT embeddings": "{backbone}, mean of states",
    "BERT-CLS-TOKEN": "{backbone}, [CLS] state",
    "InferSent-GloVe": "small BiLSTM on {words} after NLI",
    "Universal Sentence Encoder": "{backbone}",
    "SBERT-WK": "{backbone}, layers fused as in SBERT-WK",
    "minilm_wk": "{backbone}, layers fused as in SBERT-WK",
    "sbert_wk": "{backbone} after NLI, layers fused as in SBERT-WK",
    "BERTbase-flow": "{backbone} after NLI, flow",
    "BERTlarge-flow": "{backbone}, flow",
    "bert_flow": "{backbone}, flow",
    "whitening": "{backbone}, whitened",
    "SBERTbase": "{backbone} after NLI",
    "sbert": "{backbone} after NLI",
    "SBERTlarge": "{backbone}",
    "minilm": "{backbone}",
    "GloVe": "{words}",
    BASELINES["use"]: "{backbone}",
    BASELINES["sbert"]: "{backbone} after NLI",
    BASELINES["simcse"]: "{backbone} after SimCSE",
}
"""The keys of rows that name a paper's network, to what stands there where the network is another
one.
"""
OWN_NETWORKS = (
    "bert-base-uncased",
    "bert-large-uncased",
    "bert-base-nli-mean-tokens",
    "bert-large-nli-mean-tokens",
)
"""Those of which the keys above are true."""


def shown(method: str, backbone: str, *, generated: bool = False) -> str:
    """What a reader is told that a line, or a lead of one over another, is: the network that it was
    measured on.

    `generated` says whether word vectors were counted from generated text.
    """
    words = "word vectors of generated text" if generated else "GloVe"
    parts = []
    for part in method.split(" − "):
        key = part.removesuffix("-LP")
        here = SHOWN.get(key, re.sub("-flow$", ", flow", key)).format(
            backbone=backbone,
            words=words,
        )
        name = key if backbone in OWN_NETWORKS else here
        parts.append(f"{name}, mapped" if part != key else name)
    return " − ".join(parts)


def fitted_on(sentences: int) -> str:
    """What the `setting` of a reducer's rows says."""
    return f"fitted on {sentences:,} sentences"


def fitted_sentences(setting: str) -> int | None:
    """The number that `fitted_on` wrote; None for any other setting."""
    words = setting.removeprefix("fitted on ").split(" ")
    return int(words[0].replace(",", "")) if setting.startswith("fitted on ") else None
