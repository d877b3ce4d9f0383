"""Questions with answers and the paragraphs that are searched for them, as many as a page has time for."""

from dataclasses import replace

import numpy as np

from repro import data
from repro.data.limit import take
from repro.evaluation.retrieve import is_yes_no
from repro.seeding import make_rng
from repro.sets import Retrieval
from repro.types import InputError, check_dim


def load_questions(
    source: str, *, questions: int | None = None, paragraphs: int | None = None, seed: int = 0
) -> Retrieval:
    """HotpotQA's questions and paragraphs; fewer of either are drawn at random, and every gold paragraph is kept.

    Args:
        source: local, hub or microworld.
        questions: how many; None keeps all.
        paragraphs: how many at least the corpus has besides what the questions need; None keeps all.
        seed: of the draws.

    Raises:
        InputError: for a number below 1, or a set without answers.
    """
    whole = data.load("hotpotqa", source=source)
    assert isinstance(whole, Retrieval)
    if whole.answers is None:
        raise InputError(f"hotpotqa from {source} has no answers: they are what is looked for")
    asked = take(whole, questions, seed=seed)
    assert isinstance(asked, Retrieval)
    gold = gold_paragraphs(asked)
    order = make_rng(seed, "paragraphs", whole.name).permutation(len(whole.documents))
    size = len(order) if paragraphs is None else max(check_dim(paragraphs, what="paragraphs"), len(gold))
    others = [row for row in order if whole.document_ids[row] not in gold][: size - len(gold)]
    kept = np.sort([*others, *(row for row in order if whole.document_ids[row] in gold)]).astype(int)
    ids = tuple(whole.document_ids[row] for row in kept)
    here = set(ids)
    qrels = {query: {d: r for d, r in judged.items() if d in here} for query, judged in asked.qrels.items()}
    return replace(asked, document_ids=ids, documents=tuple(whole.documents[row] for row in kept), qrels=qrels)


def gold_paragraphs(asked: Retrieval) -> set[str]:
    """Ids of the paragraphs that support an answer."""
    return {document for judged in asked.qrels.values() for document, relevance in judged.items() if relevance > 0}


def as_many(number: int | None, default: int | None) -> int | None:
    """A page's parameter for "how many": nothing given is the default, 0 is all, which is None."""
    return default if number is None else number or None


def describe(asked: Retrieval) -> str:
    """How many questions, paragraphs and gold paragraphs, in a line."""
    judgements = sum(map(is_yes_no, asked.answers or ()))
    return (
        f"{len(asked.queries):,} questions, {judgements} of them answered by yes or no; {len(asked.documents):,} "
        f"paragraphs, {len(gold_paragraphs(asked)):,} of them supporting ({asked.source})"
    )
