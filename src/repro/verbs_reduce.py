"""The verb of `repro` on a matrix: `reduce` gives it fewer columns, by a reducer whose parameters
are read as its signature has them.
"""

import ast
import contextlib
import inspect
import time
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from repro.reading import read_matrix
from repro.stamps import unchanged
from repro.terminal import Menu, say
from repro.types import Array, InputError, told_as
from repro.verb_outputs import refuse_others, replacing_own
from repro.writing import writable_file, write_array

Parameters = Annotated[tyro.conf.UseAppendAction[list[str]], tyro.conf.arg(metavar="KEY=VALUE")]
OPTIONS = {"name": "--method", "n_components": "--dim", "seed": "--seed"}  # Of every reducer
FEWEST, DOCUMENTS, QUERIES = 20, 5000, 500
"""Rows from which neighbours tell whether columns were trained to be cut, and the most that are
searched and asked.
"""
WORDS = {"true": True, "false": False, "none": None}


def reduce(
    method: Annotated[str, Menu("repro.reducers", "REDUCERS")],
    dim: int,
    input: Path,
    output: Path,
    param: Parameters,
    fit_on: tuple[Path, ...] = (),
    seed: int = 0,
) -> int:
    """A float32 `.npy` matrix with fewer columns, from a `.npy` matrix of embeddings.

    Args:
        method: the reducer.
        dim: columns of the output.
        input: `.npy` matrix of embeddings, one row per text.
        output: the `.npy` file.
        param: a parameter of the method, such as n_neighbors=30; several times if needed.
        fit_on: `.npy` matrices to fit on, stacked; by default the input itself (transductive).
        seed: of methods that draw at random.
    """
    import numpy as np

    from repro.reducers import Truncate, make_reducer

    writable_file(output, input, *fit_on)
    refuse_others(output, ".npy")
    reducer = make_reducer(method, dim, seed=seed, **parameters(method, param))
    with unchanged(input, *fit_on):
        X = read_matrix(input)
        fitted = [read_matrix(path) for path in fit_on]
    for path, matrix in zip(fit_on, fitted, strict=True):
        if matrix.shape[1] != X.shape[1]:
            raise InputError(
                f"{path} has {matrix.shape[1]} columns, {input} has {X.shape[1]}: expected the same"
            )
    rows = np.concatenate(fitted) if fitted else X
    clock = [time.perf_counter()]
    with told_as(n_components=OPTIONS["n_components"]):
        if fitted:
            reducer.fit(rows)
            clock.append(time.perf_counter())
        Y = reducer.transform(X) if fitted else reducer.fit_transform(X)
    clock.append(time.perf_counter())
    said = ", reduced ".join(f"in {end - start:.2f} s" for start, end in pairwise(clock))
    with replacing_own(output) as partial:
        write_array(partial, Y)
    said += variance_kept(method, reducer)
    source = ", ".join(map(str, fit_on)) or "the input itself"
    say(
        f"{method} of {len(X):,} rows, {X.shape[1]} -> {Y.shape[1]} dims, fitted on {len(rows):,} "
        f"rows ({source}) {said} -> {output}"
    )
    if isinstance(reducer, Truncate) and dim < X.shape[1] and len(X) >= FEWEST:
        say(how_cutting_does(X))
    return 0


def variance_kept(method: str, reducer: Any) -> str:
    """How much variance a fitted reducer keeps; empty where that means nothing."""
    shares = getattr(reducer, "explained_variance_ratio_", None)
    if shares is None:
        return ""
    kept = float(shares.sum())
    if kept < 0:  # Of an autoencoder that was trained on few rows or briefly
        return ", none of their variance kept: their mean is nearer to them than what is rebuilt"
    of_kernel = "of the variance in the kernel's feature space"
    return f", {100 * kept:.2f} % {of_kernel if method == 'kpca' else 'of their variance'} kept"


def how_cutting_does(X: Array) -> str:
    """Whether the rows of X (n, D) look trained to be cut, by the neighbours that the first columns
    find in a sample.

    The share of variance that is kept does not tell: it is high wherever the first columns happen
    to vary most.
    """
    import numpy as np

    from dimadvise.honesty import Sample, nested_or_not
    from repro.seeding import make_rng

    order = make_rng(0, "rows to cut").permutation(len(X))
    documents = X[order[:DOCUMENTS]].astype(np.float32)
    queries = documents[:QUERIES]
    return nested_or_not(Sample(documents, queries, np.arange(len(queries))), "cosine")


def parameters(method: str, pairs: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs as parameters of the reducer, each of its default's kind; the reducer
    shows its progress.
    """
    from repro.reducers import REDUCERS

    signature = inspect.signature(REDUCERS[method]).parameters
    values: dict[str, Any] = {"progress": True} if "progress" in signature else {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign:
            raise InputError(f"--param {pair!r}: expected KEY=VALUE, such as n_neighbors=30")
        if key in OPTIONS:
            raise InputError(f"--param {pair}: expected the option {OPTIONS[key]} in its place")
        if sum(other.startswith(f"{key}=") for other in pairs) > 1:
            raise InputError(f"--param {key} is given twice: expected one value")
        value = WORDS.get(text.lower(), text)
        with contextlib.suppress(ValueError, SyntaxError):  # A word stands for itself
            value = ast.literal_eval(text)
        values[key] = _like(key, value, signature[key].default) if key in signature else value
    return values


def _like(key: str, value: Any, default: Any) -> Any:
    """The value if it is of the default's kind; whole numbers pass for others, and one number for a
    tuple.
    """
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, tuple) and isinstance(value, int):
        return (value,)
    if default is not None and type(value) is not type(default):
        raise InputError(
            f"{key} is {value!r}: expected {type(default).__name__}, such as {default!r}"
        )
    return value
