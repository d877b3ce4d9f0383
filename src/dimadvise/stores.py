"""Vector stores by name: what each can hold, how it compares, and what to paste into it.

The records lie in `stores.toml`, a table a store, so that another one is a record more.
"""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from shlex import quote
from string import Template
from typing import Any

from dimadvise.coding import MENU, PRODUCT, Deployment
from repro.types import InputError, one_of

STORES: dict[str, Any] = tomllib.loads(
    (files("dimadvise") / "stores.toml").read_text(encoding="utf-8")
)
NEAREST = 10  # That a query of what is pasted wants


def levels_of(store: str, levels: Sequence[str] = ()) -> list[str]:
    """The levels that a store holds, of those asked for if any are.

    Raises:
        InputError: for a level that it does not hold.
    """
    types = STORES[store]["types"]
    for level in levels:
        if level not in types:
            raise InputError(f"{store} holds no {level}: expected {', '.join(types)}")
    return [level for level in levels or MENU if level in types]


def check_store(store: str, similarity: str, levels: Sequence[str] = ()) -> None:
    """Refuse, before any work, levels that a store does not hold and a similarity that it has no
    word for.
    """
    levels_of(one_of(store, list(STORES), "store"), levels)
    metrics = [name for name in STORES[store]["metrics"] if name != "binary"]
    if similarity not in metrics:
        raise InputError(f"{store} does not rank by {similarity}: expected {', '.join(metrics)}")


def holds(store: str | None, dim: int, level: str) -> bool:
    """Whether a store, if there is one, indexes so many numbers of a level."""
    if not store:
        return True
    kind = PRODUCT if level.startswith(PRODUCT) else level
    record = STORES[store]
    is_whole = level != "binary" or dim % record["whole"] == 0
    return kind in record["types"] and dim <= record["limits"].get(kind, dim) and is_whole


def codes_queries(store: str | None, level: str) -> bool:
    """Whether a store, if there is one, compares codes with codes, not with the numbers of a
    query.
    """
    if not store:
        return False
    return level in STORES[store]["coded"]


def paste(
    store: str,
    deployment: Deployment,
    folder: str = "advice",
    *,
    text_ids: bool = False,
) -> str:
    """What to give the store, as SQL, JSON or code, with as many candidates as were measured.

    Where the store itself does not re-rank, the last line says that its reader does. The advice
    lies in `folder`.
    """
    record, level, times = STORES[store], deployment.level, deployment.rerank
    kind = PRODUCT if level.startswith(PRODUCT) else level
    similarity = deployment.similarity
    compared = "binary" if level == "binary" and "binary" in record["metrics"] else similarity
    operators = record.get("operators", {})
    count, full = NEAREST * max(times, 1), len(deployment.transform.matrix)
    rescored = bool(times and record["again"] and full <= record.get("most_full", full))
    keys = ("again", "load_again") if rescored else ("paste", "load")
    words = dict(
        dim=deployment.transform.dim,
        full=full,
        type=record["types"][kind],
        values=deployment.transform.dim if level != "binary" else deployment.bytes,
        metric=record["metrics"][compared],
        operator=operators.get(compared, ""),
        whole_operator=operators.get(similarity, ""),
        wrapped=record.get("wrapped", {}).get(level, ""),
        imports=record.get("imports", {}).get(level, ""),
        count=count,
        advice=repr(folder),
        # An index of pgvector gives no more rows than it searches, which are 1,000 at most
        searched=min(max(4 * count, 200), 1000),
    )
    words["coded"] = Template(record.get("row", {}).get(level, "")).substitute(words)
    texts = [record[key].strip() for key in keys if key in record]
    pasted = Template("\n\n".join(texts)).substitute(words)
    if text_ids:
        for number, text in record.get("text_ids", {}).items():
            pasted = pasted.replace(number, text)
    if times and not rescored:
        pasted += f"\n# Then order the {count} candidates by the full vectors, and keep {NEAREST}."
    return pasted


def filled_by(store: str, folder: str, vectors: str = "VECTORS") -> str:
    """Which rows and queries go into what is pasted, and what makes them."""
    if STORES[store].get("takes_full"):
        return "it takes full vectors and full queries"
    return (
        f"`dimadvise apply {quote(vectors)} --advice {quote(folder)}` writes its rows to the "
        "folder `vectors`. The Python below loads them from there, with their ids, and puts "
        f"queries through the same map; where candidates are re-scored, {vectors} has to stay "
        "where it is"
    )
