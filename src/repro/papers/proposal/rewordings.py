"""The ways to make positives that the proposal names, by name: what each needs, and what it made of some sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro import data
from repro.data.augment import (
    Lexicon,
    Positives,
    drop_equal,
    microworld_lexicon,
    microworld_paraphrases,
    mixture,
    neighbour_lexicon,
    read_lexicon,
    synonyms,
)
from repro.sets import WordVectors
from repro.store import Store
from repro.types import InputError, one_of
from rivals.translation import back_translate

DROPOUT, SYNONYM, BACK_TRANSLATION = "dropout", "synonym", "back-translation"
PARAPHRASE, MIXTURE = "paraphrase", "mixture"
WAYS = (DROPOUT, SYNONYM, BACK_TRANSLATION, PARAPHRASE, MIXTURE)
"""the proposal's three, exact paraphrases where the meaning is known, and each of them in turn"""


@dataclass(frozen=True)
class Augmentation:
    """One way to make positives, and what it made; none where what it needs is not at hand."""

    name: str
    positives: Positives | None
    note: str
    """where the wordings come from, or what is lacking"""


def choose_lexicon(source: str, lexicon: str | None = None) -> tuple[Lexicon | None, str]:
    """The lexicon for a source of data and what it is: a file of the user's, the generator's own, or neighbours.

    None where there is none: data from the hub bring neither a lexicon nor word vectors.
    """
    if lexicon is not None:
        return read_lexicon(lexicon), f"lexicon {Path(lexicon).name}"
    if source == "microworld":
        return microworld_lexicon(), "the generator's own synonyms"
    if source == "hub":
        return None, "no lexicon at hand: name one as lexicon"
    try:
        vectors = data.load("glove", source=source)
    except InputError:
        return None, "neither a lexicon nor word vectors at hand: name one as lexicon"
    assert isinstance(vectors, WordVectors)
    return neighbour_lexicon(vectors), "nearest GloVe vectors: related words, not always synonyms"


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
    progress: bool = True,
) -> list[Augmentation]:
    """Every way with its positives for the sentences; a wording that says nothing new is dropped.

    Args:
        sentences: what is to be reworded.
        source: local, hub or microworld.
        store: where translations are kept.
        names: of `WAYS`; the mixture is of all others that are at hand.
        p: chance of a word to be replaced.
        lexicon: path of a lexicon; None takes what `choose_lexicon` finds.
        translators: network there and network back, folders or hub ids; None: none at hand.
        beams: of translation.
        seed: of synonyms, paraphrases and mixture.
        progress: show a progress bar.

    Raises:
        InputError: for an unknown name, translators that are not two, or p outside 0 … 1.
    """

    def dropout() -> tuple[Positives | None, str]:
        return tuple(sentences), "the sentence again, under another dropout mask"  # here equality is the method

    def synonym() -> tuple[Positives | None, str]:
        words, note = choose_lexicon(source, lexicon)
        if words is None:
            return None, note
        return drop_equal(sentences, synonyms(sentences, words, p=p, seed=seed)), f"{note}; p = {p:g}"

    def back_translation() -> tuple[Positives | None, str]:
        if translators is None:
            return None, "no pair of translators at hand: name two as translators"
        there, back = translators
        said = back_translate(sentences, there, back, store, beams=beams, progress=progress)
        return drop_equal(sentences, said), f"{Path(there).name}, {Path(back).name}"

    def paraphrase() -> tuple[Positives | None, str]:
        if source != "microworld":
            return None, "only generated sentences have exact paraphrases"
        again = microworld_paraphrases(sentences, size=len(sentences), seed=seed)
        if not any(again):
            return None, "only the generated wiki has exact paraphrases"
        return drop_equal(sentences, again), "same frame, other template and words"

    for name in names:
        one_of(name, WAYS, "augmentation")
    if translators is not None and len(translators) != 2:
        raise InputError(f"translators is {list(translators)}: expected two networks, one there and one back")
    makers = dict(zip(WAYS, (dropout, synonym, back_translation, paraphrase), strict=False))
    ways = [Augmentation(name, *make()) for name, make in makers.items() if name in names]
    if MIXTURE in names:
        made = {way.name: way.positives for way in ways if way.positives is not None}
        mixed = mixture(made, seed=seed) if len(made) > 1 else None
        ways.append(Augmentation(MIXTURE, mixed, f"each of {', '.join(made)}" if mixed else "nothing at hand to mix"))
    return ways
