"""The menu: every system by name, and the one function that loads it."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from repro.store import Store
from repro.types import one_of
from rivals.loaders import Loader, after, fasttext, infersent, minilm, published, sbert, sif, states, static, wk
from rivals.material import vectors_name
from rivals.system import Loaded, System, SystemConfig

# fmt: off
_SBERT_BASE, _SBERT_LARGE = (f"sentence-transformers/bert-{size}-nli-mean-tokens" for size in ("base", "large"))
_ENTRIES: tuple[tuple[System, Loader], ...] = (
    (System("glove", "Avg. GloVe embeddings", "{vectors}, mean of words"), static),
    (System("fasttext", "Avg. fast-text embeddings", "fastText, mean of words"), fasttext),
    (System("sif", "", "{vectors}, SIF fitted on {n} sentences"), sif),
    (System("bert_avg", "Avg. BERT embeddings", "{backbone}, mean of states"), partial(states, pooling="mean")),
    (System("bert_cls", "BERT-CLS-TOKEN", "{backbone}, [CLS] state"), partial(states, pooling="cls")),
    (System("infersent", "InferSent-GloVe", "small BiLSTM on {vectors} after {n} NLI pairs"), infersent),
    (System("use", "Universal Sentence Encoder", "{backbone}",
            "sentence-transformers/distiluse-base-multilingual-cased-v1"), published),
    (System("minilm_wk", "SBERT-WK", "{backbone}, layers fused as in SBERT-WK"), partial(wk, of=minilm)),
    (System("sbert_wk", "SBERT-WK", "{backbone} after {n} NLI pairs, layers fused as in SBERT-WK"),
     partial(wk, of=sbert)),
    (System("bert_flow", "BERTbase-flow", "{backbone}, mean of states, flow fitted on {n} sentences"),
     partial(after, of=partial(states, pooling="mean"), fit="flow")),
    (System("sbert_flow", "BERTbase-flow", "{backbone} after NLI, flow fitted on {n} sentences"),
     partial(after, of=sbert, fit="flow")),
    (System("whitening", "", "{backbone}, whitened on {n} sentences"),
     partial(after, of=partial(states, pooling="mean"), fit="whitening")),
    (System("sbert", "SBERTbase", "{backbone} after {n} NLI pairs"), sbert),
    (System("minilm", "SBERTlarge", "{backbone}, as its authors published it"), minilm),
    (System("bert_base", "Avg. BERT embeddings", "{backbone}, mean of states", "bert-base-uncased"),
     partial(published, pooling="mean")),
    (System("bert_base_cls", "BERT-CLS-TOKEN", "{backbone}, [CLS] state", "bert-base-uncased"),
     partial(published, pooling="cls")),
    (System("bert_large", "", "{backbone}, mean of states", "bert-large-uncased"), partial(published, pooling="mean")),
    (System("sbert_base", "SBERTbase", "{backbone}", _SBERT_BASE), published),
    (System("sbert_large", "SBERTlarge", "{backbone}", _SBERT_LARGE), published),
    (System("sbert_base_wk", "SBERT-WK", "SBERT-WK on {backbone}", _SBERT_BASE), partial(wk, of=published)),
    (System("bert_base_flow", "", "{backbone}, mean of states, flow fitted on {n} sentences", "bert-base-uncased"),
     partial(after, of=partial(published, pooling="mean"), fit="flow")),
    (System("bert_large_flow", "", "{backbone}, mean of states, flow fitted on {n} sentences", "bert-large-uncased"),
     partial(after, of=partial(published, pooling="mean"), fit="flow")),
    (System("sbert_base_flow", "BERTbase-flow", "{backbone}, flow fitted on {n} sentences", _SBERT_BASE),
     partial(after, of=published, fit="flow")),
    (System("sbert_large_flow", "BERTlarge-flow", "{backbone}, flow fitted on {n} sentences", _SBERT_LARGE),
     partial(after, of=published, fit="flow")),
)
# fmt: on
SYSTEMS: dict[str, System] = {system.name: system for system, _ in _ENTRIES}
"""by name: this book's in the paper's order, then the paper's own, which need weights from the hub"""
_LOADERS: dict[str, Loader] = {system.name: load for system, load in _ENTRIES}


def load_system(name: str, config: SystemConfig, store: Store, *, progress: bool = True) -> Loaded:
    """Load a system, training or fitting it first where the store does not hold it yet.

    Args:
        name: one of `SYSTEMS`.
        config: what it is made from.
        store: where trained and fitted systems are kept.
        progress: show progress bars.

    Raises:
        Missing: if its weights or vectors are not at hand.
        InputError: for an unknown name or unsuitable data.
    """
    system = SYSTEMS[one_of(name, list(SYSTEMS), "system")]
    loaded = _LOADERS[name](system, config, store, progress)
    count = "" if loaded.n_train is None else f"{loaded.n_train:,}"
    line = system.line.format(backbone=loaded.backbone, n=count, vectors=vectors_name(config))
    return replace(loaded, system=replace(system, line=line))


def system_named(name: str, *, source: str, seed: int = 0) -> Loaded | None:
    """The system that a command line names in place of a network; None where it names a folder or no system.

    Args:
        name: as the user typed it.
        source: where training pairs and word vectors come from.
        seed: of what has to be trained or fitted first.

    Raises:
        Missing: if its weights or vectors are not at hand.
        InputError: for unsuitable data.
    """
    if name not in SYSTEMS or Path(name).is_dir():
        return None
    return load_system(name, SystemConfig(source=source, seed=seed), Store())
