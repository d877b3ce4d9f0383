"""Losses beside each other: value and gradients, alike to many digits."""

import torch


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape,
        generator=torch.Generator().manual_seed(seed),
        dtype=torch.float64,
    ).to(dtype)


def value_and_gradients(loss, *inputs):
    """The loss at copies of the inputs, and its gradient by each; a list of inputs is handed on as
    one.
    """
    inputs = [z.clone().requires_grad_() for z in inputs]
    value = loss(*inputs)
    return [value, *torch.autograd.grad(value, inputs, allow_unused=True, materialize_grads=True)]


def assert_alike(loss, other, *inputs, rtol=1e-10, atol=1e-12):
    """Both losses have the same value and gradients at these inputs."""
    both = value_and_gradients(loss, *inputs), value_and_gradients(other, *inputs)
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol)
