"""Which positives teach most: dropout, synonyms, back-translation, exact paraphrases and their
mixture (method-augmentation in the book).

One training for each way and seed, on the same sentences in the same order for the same number of
steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from repro import data
from repro.digests import digest
from repro.evaluation.stats import bootstrap_mean, spearman_draws
from repro.methods import UNTRAINED
from repro.models.sources import identity
from repro.objectives import columns_of
from repro.papers.proposal.geometry import geometry_of, positives_of
from repro.rows import Row, make_rows
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.encoders import as_it_is, encode_tasks
from repro.runs.lines import Task, TextTable
from repro.runs.scorers import cosines_of
from repro.sets import Corpus, DataSet, ScoredPairs, WordVectors
from repro.settings import TrainConfig
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
Made: TypeAlias = tuple[Positives | None, str]
"""Positives, if they can be made, and where they come from or what is lacking."""
LINES = (UNTRAINED, *WAYS)
"""Of figures and tables; each keeps its look from figure to figure, whichever others are at hand.
"""


@dataclass(frozen=True)
class Augmentation:
    """One way to make positives, and what it made; none where what it needs is not at hand."""

    name: str
    positives: Positives | None
    note: str  # Where the wordings come from, or what is lacking


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
    corpus: Corpus,
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
    sentences, source = corpus.texts, corpus.source
    for name in names:
        one_of(name, WAYS, "augmentation")
    if translators and len(translators) != 2:
        raise InputError(
            f"translators is {list(translators)}: expected two networks, one there and one back"
        )
    makers: dict[str, Callable[[], Made]] = {
        # Here equality is the method
        DROPOUT: lambda: (tuple(sentences), "the sentence again, under another dropout mask"),
        SYNONYM: partial(_synonyms, sentences, source, lexicon, p, seed),
        BACK_TRANSLATION: partial(_translated_back, sentences, translators, store, beams),
        PARAPHRASE: partial(_paraphrased, sentences, source, seed),
    }
    ways = [Augmentation(name, *make()) for name, make in makers.items() if name in names]
    if MIXTURE in names:
        at_hand = {way.name: way.positives for way in ways if way.positives is not None}
        mixed = wordings.mixture(at_hand, seed=seed) if len(at_hand) > 1 else None
        note = f"each of {', '.join(at_hand)}" if mixed else "nothing at hand to mix"
        ways.append(Augmentation(MIXTURE, mixed, note))
    return ways


def _synonyms(
    sentences: Sequence[str],
    source: str,
    lexicon: str | None,
    p: float,
    seed: int,
) -> Made:
    """Sentences with each word exchanged for a synonym at chance p."""
    words, note = choose_lexicon(source, lexicon)
    if words is None:
        return None, note
    reworded = wordings.synonyms(sentences, words, p=p, seed=seed)
    return drop_equal(sentences, reworded), f"{note}; p = {p:g}"


def _translated_back(
    sentences: Sequence[str],
    translators: Sequence[str] | None,
    store: Store,
    beams: int,
) -> Made:
    """Sentences in another language and back."""
    if not translators:
        return None, "no pair of translators at hand: name two as translators"
    outward, back = translators
    reworded = back_translate(sentences, outward, back, store, beams=beams)
    return drop_equal(sentences, reworded), f"{Path(outward).name}, {Path(back).name}"


def _paraphrased(sentences: Sequence[str], source: str, seed: int) -> Made:
    """Sentences with the same meaning by the generator, in other words."""
    if source != "microworld":
        return None, "only generated sentences have exact paraphrases"
    reworded = wordings.microworld_paraphrases(sentences, size=len(sentences), seed=seed)
    if not any(reworded):
        return None, "only the generated wiki has exact paraphrases"
    return drop_equal(sentences, reworded), "same frame, other template and words"


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
    augmentations_by_seed: Mapping[int, Sequence[Augmentation]],
    **shared: Any,
) -> pd.DataFrame:
    """Share of the sentences that have a positive, and how many words the two share, by
    augmentation and seed.
    """
    rows: list[Row] = []
    for seed, augmentations in augmentations_by_seed.items():
        for augmentation in augmentations:
            if augmentation.positives is not None:
                measures = _wording_measures(sentences, augmentation.positives, seed)
                rows += [{"method": augmentation.name, "seed": seed, **row} for row in measures]
    return make_rows(rows, **{**shared, "dataset": "training sentences"})


def _wording_measures(
    sentences: Sequence[str],
    positives: Positives,
    seed: int,
) -> Iterator[Row]:
    """The share of sentences with a positive, and the mean share of their words that it has."""
    pairs = zip(sentences, positives, strict=True)
    overlap = [token_overlap(a, b) for a, b in pairs if b is not None]
    yield {"metric": "survivors", "value": len(overlap) / len(sentences)}
    if overlap:
        yield {"metric": "token_overlap", **bootstrap_mean(overlap, seed=seed).columns}


def augmentation_rows(
    config: TrainConfig,
    sentences: Sequence[str],
    augmentations_by_seed: Mapping[int, Sequence[Augmentation]],
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
    if not augmentations_by_seed:
        raise InputError("no seed: make augmentations for at least one")
    tests = {name: Task(name, splits).pairs for name, splits in tasks.items()}
    rows: list[Row] = []
    for seed, augmentations in augmentations_by_seed.items():
        of_seed = replace(config, seed=seed)
        embedded = {UNTRAINED: _untrained(of_seed, tasks, store)}
        for augmentation in augmentations:
            if augmentation.positives is not None:
                cell = train_augmented(of_seed, sentences, augmentation, store)
                states = encode_tasks(partial(getattr, cell, "encoder"), cell.key, tasks, store)
                embedded[augmentation.name] = states.map(cell.pooler.project)
        rows += [
            {"seed": seed, "readout": "pooler", **row} for row in _measured(embedded, tests, seed)
        ]
    columns = {**columns_of(config), "dim": config.dim, "n_train": len(sentences), **shared}
    return pd.concat(
        [wording_rows(sentences, augmentations_by_seed, **columns), make_rows(rows, **columns)],
        ignore_index=True,
    )


def _untrained(
    config: TrainConfig,
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
) -> TextTable:
    """What every training starts from: the backbone with its fresh pooler."""
    load = as_it_is(config.backbone, partial(fresh_encoder, config))
    key = digest(
        {"untrained": identity(config.backbone), "pooling": config.pooling, "layers": config.layers}
    )
    encoder = load()
    assert encoder.pooler is not None
    return encode_tasks(lambda: encoder, key, tasks, store).map(encoder.pooler.project)


def _measured(
    embedded: Mapping[str, TextTable],
    tests: Mapping[str, ScoredPairs],
    seed: int,
) -> Iterator[Row]:
    """Geometry on the first task, then scores on all; every method's lead over dropout beside its
    score.
    """
    first = next(iter(tests.values()))
    for method, table in embedded.items():
        for row in geometry_of(table, first, positives_of(first), seed)[2]:
            yield {"method": method, "dataset": first.name, **row}
    for name, pairs in tests.items():
        cosines = {method: cosines_of(table, pairs) for method, table in embedded.items()}
        for method, of_method in cosines.items():
            line = {"method": method, "dataset": name}
            compared = [of_method, cosines.get(DROPOUT, of_method)]
            score = spearman_draws(compared, pairs.scores, subsets=pairs.subsets, seed=seed)
            yield {**line, "metric": "spearman", **score[0].columns}
            if DROPOUT in cosines and method != DROPOUT:
                yield {**line, "metric": "spearman_lead", **(score[0] - score[1]).columns}
