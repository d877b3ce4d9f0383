"""What the microworld knows about wordings of its own sentences: its synonyms as a lexicon, and exact paraphrases.

Not in the generator's folder: the files there name the generated sets, and a change to one makes all of them new.
"""

from collections import defaultdict
from collections.abc import Sequence

from microworld.surface import render
from microworld.texts import BAD, FILM, GOOD, GOODS
from microworld.vocabulary import ACTION, AGENT, FACTORS, OBJECT, inflect, plural
from microworld.world import World, draw_split
from repro.seeding import make_rng


def microworld_lexicon() -> dict[str, tuple[str, ...]]:
    """Every word and phrase of generated sentences with those of the same meaning and form.

    A form with several meanings gets only what fits all of them: "film" is a verb here and a noun there.
    """
    meanings: set[tuple[str, ...]] = set()
    for column, factor in enumerate(FACTORS):
        for alike in factor.synonyms:
            if column == ACTION:
                verbs = [inflect(phrase) for phrase in alike]
                meanings |= {tuple(forms) for forms in zip(*verbs, strict=True)}  # base, past, participle, gerund
            else:
                meanings.add(alike)
            if column in (AGENT, OBJECT):
                meanings.add(tuple(plural(noun) for noun in alike))
    meanings |= {tuple(value.split("|")) for value in (*FILM, *GOODS, *GOOD, *BAD)}
    fitting: dict[str, list[set[str]]] = defaultdict(list)
    for alike in sorted(meanings):
        for form in alike:
            fitting[form.lower()].append(set(alike) - {form})
    common = {form: tuple(sorted(set.intersection(*others))) for form, others in fitting.items()}
    return {form: others for form, others in common.items() if others}


def microworld_paraphrases(texts: Sequence[str], *, size: int, seed: int = 0) -> list[str | None]:
    """Each generated sentence in other words: the same frame, another template, other synonyms where there are any.

    The frames of the corpus are drawn again as the generator drew them. Opinions and questions, a quarter
    and more of the corpus, say more or less than a frame and get None.

    Args:
        texts: sentences of the generated `wiki`.
        size: of that corpus, which decides its draws.
        seed: of the new wording.
    """
    world = World()
    rng = make_rng(0, "microworld set", "wiki", "train", world.seed)
    frames = draw_split(world, size - size // 5, rng, "train", unsaid=0.4)
    wording = render(frames, rng)
    other = render(frames, make_rng(seed, "paraphrases"), other=(frames, wording))
    said = dict(zip(wording.texts, other.texts, strict=True))
    return [said.get(text) for text in texts]
