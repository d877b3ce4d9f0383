"""Answers that a language model writes from the paragraph found first: the paper's prompt, and exact match."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from repro.config import digest
from repro.evaluation.rag import exact_match
from repro.models.pretrained import identity
from repro.papers.ese.rag import Search
from repro.sets import Retrieval
from repro.store import Store
from repro.terminal import progress_bar
from rivals.generator import load_generator

PROMPT = (
    "As an advanced QA system, your role is to provide accurate and straightforward answers based on the provided "
    "context. Utilize the following information to answer the given question, directly output the straightforward "
    "answer, and do not explain it:\n\n"
    "Context: {context}.\n\n"
    "Question: {question}.\n\n"
    "Requirement: For 'yes/no' question, directly output 'yes' or 'no'. For the 'who' question, directly output the "
    "people's names. For the 'when' question, directly output the date or time, so on and so forth.\n\n"
    "Output:"
)
"""Table 4 of the paper, word for word"""
CHUNK = 32
"""prompts whose answers are one entry of the store, so that a killed run goes on where it stopped"""


def with_answers(
    searches: Sequence[Search],
    asked: Retrieval,
    generator: str,
    store: Store,
    *,
    max_new_tokens: int = 32,
    progress: bool = True,
) -> list[Search]:
    """The searches with `exact_match` among their outcomes; every question with one paragraph is answered once.

    Args:
        searches: of any lines and sizes.
        asked: the questions they searched for, with answers.
        generator: causal language model, a folder or a hub id.
        store: where answers are kept.
        max_new_tokens: length of an answer.
        progress: show a progress bar.
    """
    prompts = {
        (i, int(row)): PROMPT.format(context=asked.documents[row], question=asked.queries[i])
        for search in searches
        for i, row in enumerate(search.top)
    }
    distinct = list(dict.fromkeys(prompts.values()))
    said = generate_once(distinct, generator, store, max_new_tokens=max_new_tokens, progress=progress)
    gold = asked.answers or ()
    found = []
    for search in searches:
        right = [float(exact_match(said[prompts[i, int(row)]], gold[i])) for i, row in enumerate(search.top)]
        found.append(replace(search, items={**search.items, "exact_match": np.array(right)}))
    return found


def generate_once(
    prompts: Sequence[str], generator: str, store: Store, *, max_new_tokens: int = 32, progress: bool = True
) -> dict[str, str]:
    """What the generator says to each prompt, first line only, from the store where it is there.

    A model that was told to be brief goes on with a question of its own on the next line; the answer ends before it.
    """
    loaded, said, weights = None, dict[str, str](), identity(generator)
    for start in progress_bar(range(0, len(prompts), CHUNK), desc="answering", show=progress):
        chunk = list(prompts[start : start + CHUNK])
        key = digest({"generator": weights, "prompts": chunk, "tokens": max_new_tokens}, code=("rivals.generator",))

        def make(target: Path, work: Path, chunk: list[str] = chunk) -> None:
            nonlocal loaded
            loaded = loaded or load_generator(generator)
            answers = loaded.generate(chunk, max_new_tokens=max_new_tokens)
            (target / "answers.json").write_text(json.dumps(answers), encoding="utf-8")

        made = store.get_or_make("answers", key, make, config={"generator": generator, "prompts": len(chunk)})
        answers = json.loads((made.folder / "answers.json").read_text(encoding="utf-8"))
        said.update(zip(chunk, (first_line(answer) for answer in answers), strict=True))
    return said


def first_line(answer: str) -> str:
    """The first line that is not blank."""
    return next((line.strip() for line in answer.splitlines() if line.strip()), "")
