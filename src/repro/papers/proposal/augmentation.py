"""Which positives teach most: dropout, synonyms, back-translation, exact paraphrases and their
mixture (method-augmentation in the book).

One training for each way and seed, on the same sentences in the same order for the same number of
steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from repro import data
from repro.config import TrainConfig
from repro.digests import digest
from repro.evaluation.stats import bootstrap_mean, spearman_draws
from repro.methods import UNTRAINED
from repro.models.pretrained import identity
from repro.objectives import columns_of
from repro.papers.proposal.geometry import geometry_of, positives_of
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.encoders import encode_tasks
from repro.runs.lines import Task, TextTable, cosines_of
from repro.sets import DataSet, ScoredPairs, WordVectors
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError, one_of
from rivals import wordings
from rivals.generator import back_translate
from rivals.wordings import Positives, drop_equal, token_overlap

DROPOUT, SYNONYM, BACK_TRANSLATION = "dropout", "synonym", "back-translation"
PARAPHRASE, MIXTURE = "paraphrase", "mixture"
WAYS = (DROPOUT, SYNONYM, BACK_TRANSLATION, PARAPHRASE, MIXTURE)
"""The proposal's three, exact paraphrases where the meaning is known, and each of them in turn."""
LINES = (UNTRAINED, *WAYS)
"""Of figures and tables; each keeps its look from figure to figure, whichever others are at hand.
"""


@dataclass(frozen=True)
class Augmentation:
    """One way to make positives, and what it made; none where what it needs is not at hand."""

    name: str
    positives: Positives | None
    note: str  # where the wordings come from, or what is lacking


def choose_lexicon(source: str, lexicon: str | None = None) -> tuple[wordings.Lexicon | None, str]:
    """The lexicon for a source of data, if it has one, and what it is: the user's, the generator's,
    or neighbours.
    """
    if lexicon is not None:
        return wordings.read_lexicon(lexicon), f"lexicon {Path(lexicon).name}"
    if source == "microworld":
        return wordings.microworld_lexicon(), "the generator's own synonyms"
    if source == "hub":
        return None, "no lexicon at hand: name one as lexicon"
    try:
        vectors = data.load("glove", source=source)
    except InputError:
        return None, "neither a lexicon nor word vectors at hand: name one as lexicon"
    assert isinstance(vectors, WordVectors)
    return wordings.neighbour_lexicon(
        vectors
    ), "nearest GloVe vectors: related words, not always synonyms"


def make_augmentations(
    sentences: Sequence[str],
    source: str,
    store: Store,
    *,
    names: Sequence[str] = WAYS,
    p: float = 0.15,
    lexicon: str | None = None,
    translators: Sequence[str] | None = None,
    beams: int = 1,
    seed: int = 0,
) -> list[Augmentation]:
    """Every way with its positives for the sentences; a wording that says nothing new is dropped.

    The mixture is of all others that are at hand. Of two translators, folders or hub ids, one leads
    there, one back.
    """

    def dropout() -> tuple[Positives | None, str]:
        # Here equality is the method
        return tuple(sentences), "the sentence again, under another dropout mask"

    def synonym() -> tuple[Positives | None, str]:
        words, note = choose_lexicon(source, lexicon)
        if words is None:
            return None, note
        return drop_equal(
            sentences,
            wordings.synonyms(sentences, words, p=p, seed=seed),
        ), f"{note}; p = {p:g}"

    def back_translation() -> tuple[Positives | None, str]:
        if not translators:
            return None, "no pair of translators at hand: name two as translators"
        there, back = translators
        said = back_translate(sentences, there, back, store, beams=beams)
        return drop_equal(sentences, said), f"{Path(there).name}, {Path(back).name}"

    def paraphrase() -> tuple[Positives | None, str]:
        if source != "microworld":
            return None, "only generated sentences have exact paraphrases"
        again = wordings.microworld_paraphrases(sentences, size=len(sentences), seed=seed)
        if not any(again):
            return None, "only the generated wiki has exact paraphrases"
        return drop_equal(sentences, again), "same frame, other template and words"

    for name in names:
        one_of(name, WAYS, "augmentation")
    if translators and len(translators) != 2:
        raise InputError(
            f"translators is {list(translators)}: expected two networks, one there and one back"
        )
    makers = dict(zip(WAYS, (dropout, synonym, back_translation, paraphrase), strict=False))
    ways = [Augmentation(name, *make()) for name, make in makers.items() if name in names]
    if MIXTURE in names:
        made = {way.name: way.positives for way in ways if way.positives is not None}
        mixed = wordings.mixture(made, seed=seed) if len(made) > 1 else None
        ways.append(
            Augmentation(
                MIXTURE,
                mixed,
                f"each of {', '.join(made)}" if mixed else "nothing at hand to mix",
            )
        )
    return ways


def train_augmented(
    config: TrainConfig,
    sentences: Sequence[str],
    augmentation: Augmentation,
    store: Store,
) -> TrainedCell:
    """Train on the positives of an augmentation, or find it in the store; dropout is the SimCSE
    cell of other pages.
    """
    assert augmentation.positives is not None
    if augmentation.name == DROPOUT:
        return train_cell(config, store)
    examples = list(zip(sentences, augmentation.positives, strict=True))
    other = {"augmentation": augmentation.name, "examples": digest(examples)}
    return train_cell(config, store, examples=examples, other=other)


def wording_rows(
    sentences: Sequence[str],
    made: Mapping[int, Sequence[Augmentation]],
    **shared: Any,
) -> pd.DataFrame:
    """Share of the sentences that have a positive, and how many words the two share, by
    augmentation and seed.
    """
    rows: list[dict[str, Any]] = []
    for seed, augmentation in ((s, a) for s, augmentations in made.items() for a in augmentations):
        if augmentation.positives is not None:
            at = {"method": augmentation.name, "seed": seed, "dataset": "training sentences"}
            both = zip(sentences, augmentation.positives, strict=True)
            overlap = [token_overlap(a, b) for a, b in both if b is not None]
            rows.append({**at, "metric": "survivors", "value": len(overlap) / len(sentences)})
            if overlap:
                rows.append(
                    {**at, "metric": "token_overlap", **bootstrap_mean(overlap, seed=seed).columns}
                )
    return make_rows(rows, **shared)


def augmentation_rows(
    config: TrainConfig,
    sentences: Sequence[str],
    made: Mapping[int, Sequence[Augmentation]],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    **shared: Any,
) -> pd.DataFrame:
    """Wordings, geometry and scores of every augmentation and seed, beside the untrained network.

    Metrics: `survivors`, share of the sentences that have a positive; `token_overlap` of these with
    their sentences; `alignment` and `uniformity` of the first task's pairs and sentences, as
    `geometry_rows` has them; `spearman` of every task; `spearman_lead`, that less dropout's, on the
    same resampled pairs. What is not at hand has no rows.
    """
    if not made:
        raise InputError("no seed: make augmentations for at least one")
    tests = {name: Task(name, splits).pairs for name, splits in tasks.items()}
    rows: list[dict[str, Any]] = []
    for seed, augmentations in made.items():
        own = replace(config, seed=seed)
        embedded = {UNTRAINED: _untrained(own, tasks, store)}
        for augmentation in augmentations:
            if augmentation.positives is not None:
                cell = train_augmented(own, sentences, augmentation, store)
                states = encode_tasks(partial(getattr, cell, "encoder"), cell.key, tasks, store)
                embedded[augmentation.name] = states.map(cell.pooler.project)
        rows += [
            {"seed": seed, "readout": "pooler", **row} for row in _measured(embedded, tests, seed)
        ]
    columns = {**columns_of(config), "dim": config.dim, "n_train": len(sentences), **shared}
    return pd.concat(
        [wording_rows(sentences, made, **columns), make_rows(rows, **columns)],
        ignore_index=True,
    )


def _untrained(
    config: TrainConfig,
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
) -> TextTable:
    """What every training starts from: the backbone with its fresh pooler."""
    encoder = fresh_encoder(config)
    assert encoder.pooler is not None
    named = digest(
        {"untrained": identity(config.backbone), "pooling": config.pooling, "layers": config.layers}
    )
    return encode_tasks(lambda: encoder, named, tasks, store).map(encoder.pooler.project)


def _measured(
    embedded: Mapping[str, TextTable],
    tests: Mapping[str, ScoredPairs],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Geometry on the first task, then scores on all; every method's lead over dropout beside its
    score.
    """
    first = next(iter(tests.values()))
    for method, table in embedded.items():
        for row in geometry_of(table, first, positives_of(first), seed)[2]:
            yield {"method": method, "dataset": first.name, **row}
    for name, pairs in tests.items():
        cosines = {method: cosines_of(table, pairs) for method, table in embedded.items()}
        for method, of_one in cosines.items():
            at = {"method": method, "dataset": name}
            both = [of_one, cosines.get(DROPOUT, of_one)]
            score = spearman_draws(both, pairs.scores, subsets=pairs.subsets, seed=seed)
            yield {**at, "metric": "spearman", **score[0].columns}
            if DROPOUT in cosines and method != DROPOUT:
                yield {**at, "metric": "spearman_lead", **(score[0] - score[1]).columns}
