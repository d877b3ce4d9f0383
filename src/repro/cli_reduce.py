"""The verb `reduce`: from one `.npy` matrix of embeddings to a narrower one."""

import ast
import inspect
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from repro.terminal import say
from repro.types import InputError

if TYPE_CHECKING:
    from repro.types import Array

Parameters = Annotated[tyro.conf.UseAppendAction[list[str]], tyro.conf.arg(metavar="KEY=VALUE")]
OPTIONS = {"name": "--method", "n_components": "--dim", "seed": "--seed"}
"""parameters of every reducer that have an option of their own"""
WORDS = {"true": True, "false": False, "none": None}


def reduce(
    method: Literal["truncate", "pca", "svd", "grp", "kpca", "autoencoder", "isomap", "lle", "sbertlp"],
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

    from repro.reducers import make_reducer
    from repro.writing import replacing, writable_file

    if writable_file(output).exists() and output.samefile(input):
        raise InputError(f"the output {output} is the input: expected another file")
    options = parameters(method, param)
    reducer = make_reducer(method, dim, seed=seed, **options)
    X = read_matrix(input)
    fitted = [read_matrix(path) for path in fit_on]
    for path, matrix in zip(fit_on, fitted, strict=True):
        if matrix.shape[1] != X.shape[1]:
            raise InputError(f"{path} has {matrix.shape[1]} columns, {input} has {X.shape[1]}: expected the same")
    started = time.perf_counter()
    if fitted:
        rows = np.concatenate(fitted)
        reducer.fit(rows)
        between = time.perf_counter()
        Y = reducer.transform(X)
        seconds = f"in {between - started:.2f} s, reduced in {time.perf_counter() - between:.2f} s"
    else:
        rows = X
        Y = reducer.fit_transform(X)
        seconds = f"in {time.perf_counter() - started:.2f} s"
    with replacing(output) as partial, partial.open("wb") as file:
        np.save(file, Y, allow_pickle=False)
    source = ", ".join(map(str, fit_on)) if fit_on else "the input itself"
    say(
        f"{method} of {len(X):,} rows, {X.shape[1]} -> {Y.shape[1]} dims, fitted on {len(rows):,} rows ({source}) "
        f"{seconds}{explained(method, reducer)} -> {output}"
    )
    return 0


def explained(method: str, reducer: Any) -> str:
    """The share of variance that the output keeps, for methods that have one."""
    shares = getattr(reducer, "explained_variance_ratio_", None)
    if shares is None:
        return ""
    where = "of the variance in the kernel's feature space" if method == "kpca" else "of their variance"
    return f", {100 * float(shares.sum()):.2f} % {where} kept"


def parameters(method: str, pairs: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs as parameters of the reducer, which shows its progress.

    Raises:
        InputError: for a pair without `=`, a key given twice or that has an option of its own, or a value of another
            kind than the default's.
    """
    from repro.reducers import REDUCERS

    signature = inspect.signature(REDUCERS[method]).parameters
    values: dict[str, Any] = {"progress": True} if "progress" in signature else {}
    given = set[str]()
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign:
            raise InputError(f"--param {pair!r}: expected KEY=VALUE, such as n_neighbors=30")
        if key in OPTIONS:
            raise InputError(f"--param {pair}: expected the option {OPTIONS[key]} in its place")
        if key in given:
            raise InputError(f"--param {key} is given twice: expected one value")
        given.add(key)
        value = WORDS[text.lower()] if text.lower() in WORDS else _literal(text)
        values[key] = _like(key, value, signature[key].default) if key in signature else value
    return values


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _like(key: str, value: Any, default: Any) -> Any:
    """The value if it is of the default's kind; whole numbers pass for others, and one number for a tuple."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, tuple) and isinstance(value, int):
        return (value,)
    if default is not None and type(value) is not type(default):
        raise InputError(f"{key} is {value!r}: expected {type(default).__name__}, such as {default!r}")
    return value


def read_matrix(path: Path) -> "Array":
    """The finite matrix (n, dim) in a `.npy` file, as float32 or float64; nothing is unpickled.

    Raises:
        InputError: for a file that is absent or no `.npy`, or holds anything but a finite matrix of numbers.
    """
    import numpy as np

    from repro.types import check_embeddings

    if not path.is_file():
        raise InputError(f"no file {path}: expected a .npy matrix, such as `repro encode` writes")
    try:
        with path.open("rb") as file:
            X = np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # the header is parsed as Python, which fails in more ways than numpy's errors tell
        if "object" in str(error).lower():
            raise InputError(f"{path} holds Python objects: save plain numbers, np.save(path, X)") from error
        raise InputError(f"{path} is not a whole .npy file ({error}): np.save(path, X) writes one") from error
    if not (np.issubdtype(X.dtype, np.floating) or np.issubdtype(X.dtype, np.integer)):
        raise InputError(f"{path} holds {X.dtype} values: expected numbers, such as float32")
    X = check_embeddings(X, str(path))
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float32 if X.dtype == np.float16 else np.float64)
