"""The score on a dev split that picks the checkpoint of a training, and so lies under its key."""

from repro import data
from repro.evaluation.sts import sts_spearman
from repro.models.encoder import SentenceEncoder
from repro.training.end_to_end import DevScore
from repro.types import InputError


def dev_scorer(name: str, source: str) -> DevScore:
    """A function that scores an encoder's readout on the dev split of scored pairs."""
    dev = data.load(name, split="dev", source=source)
    if not isinstance(dev, data.ScoredPairs):
        raise InputError(f"{name!r} is not a set of scored pairs: it cannot choose checkpoints")
    return scorer_on(dev)


def scorer_on(dev: data.ScoredPairs) -> DevScore:
    """The same for pairs at hand."""
    texts = data.texts_of(dev)

    def score(encoder: SentenceEncoder, readout: str) -> float:
        X = encoder.encode(texts, readout=readout)
        return float(sts_spearman(X[: len(dev)], X[len(dev) :], dev.scores))

    return score
