"""What losses are given, checked in one place: matrices that belong together, and one number a row.

Numbers that are not finite pass: the loss is then not finite either, and training says so.
"""

import torch
from torch import Tensor

from repro.types import InputError


def check_rows(expected: str, /, **matrices: Tensor) -> None:
    """Refuse what are no real matrices (B, d) of one shape, of one row and column or more.

    Args:
        expected: what a loss wants, in words that end in a shape, such as `two views (B, d)`.
        matrices: by the names that the loss has for them.

    Raises:
        InputError: with the first of them, and the first that differs from it.
    """
    check_real(**matrices)
    name, first = next(iter(matrices.items()))
    shapes = f"{name} has shape {tuple(first.shape)}"
    others = [other for other in matrices if matrices[other].shape != first.shape]
    if others:
        shapes += f", {others[0]} {tuple(matrices[others[0]].shape)}"
    if others or first.ndim != 2 or 0 in first.shape:
        raise InputError(f"{shapes}: expected {expected}")


def check_real(**tensors: Tensor) -> None:
    """Refuse what are no tensors of floating numbers, or some in double precision beside others.

    Half and single precision go together: losses compute in single precision at least.
    """
    for name, tensor in tensors.items():
        _check_tensor(name, tensor)
        if not tensor.is_floating_point():
            raise InputError(
                f"{name} holds {tensor.dtype}: expected real numbers, such as {name}.float()"
            )
    double = [name for name, tensor in tensors.items() if tensor.dtype == torch.float64]
    single = [name for name in tensors if name not in double]
    if double and single:
        raise InputError(
            f"{double[0]} is in double precision, {single[0]} in {tensors[single[0]].dtype}: "
            f"expected one precision, such as {double[0]}.float()"
        )


def check_column(
    name: str, column: Tensor, count: int | None = None, *, each: str = "text", whole: bool = True
) -> None:
    """Refuse what is no tensor (count,) of one number for `each`, of whole numbers by default."""
    _check_tensor(name, column)
    if column.ndim != 1 or count not in (None, len(column)):
        expected = "(n,)" if count is None else f"({count},)"
        raise InputError(
            f"{name} has shape {tuple(column.shape)}: expected {expected}, one per {each}"
        )
    fractional = column.is_floating_point() or column.dtype == torch.bool
    if column.is_complex() or (whole and fractional):
        kind, way_out = ("whole", "long") if whole else ("real", "float")
        raise InputError(
            f"{name} holds {column.dtype}: expected {kind} numbers, such as {name}.{way_out}()"
        )


def check_mask(mask: Tensor, logits: Tensor) -> None:
    """Refuse what is no tensor with one entry for each of the logits (B, W·B)."""
    _check_tensor("mask", mask)
    if mask.shape != logits.shape:
        raise InputError(f"mask has shape {tuple(mask.shape)}: expected {tuple(logits.shape)}")


def _check_tensor(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise InputError(
            f"{name} is of type {type(value).__name__}: expected a tensor, such as "
            f"torch.as_tensor({name})"
        )
    if value.layout != torch.strided:
        raise InputError(f"{name} is sparse: expected a dense tensor, {name}.to_dense()")
