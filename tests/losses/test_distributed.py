"""Two processes must train like one with the whole batch: the loss, its gradient, and the weights after many steps."""

import pytest
import torch
from torch import nn

from repro.losses import duplicate_mask, gather_with_grad, info_nce
from repro.training.loop import LoopConfig, train

SHARED = """
import json, sys
import torch
from torch import nn
from repro.losses import duplicate_mask, info_nce
from repro.training.loop import LoopConfig, train
torch.set_num_threads(1)
rank, world = int(sys.argv[1]), 2
from accelerate import PartialState
PartialState(cpu=True)
assert torch.distributed.get_world_size() == world and torch.distributed.get_rank() == rank
generator = torch.Generator().manual_seed(0)
z1, z2, z_neg = torch.randn(3, 6, 4, generator=generator, dtype=torch.float64)
mine = slice(3 * rank, 3 * rank + 3)
inputs = [z[mine].clone().requires_grad_() for z in (z1, z2, z_neg)]
mask = duplicate_mask(torch.tensor([0, 1, 2, 0, 3, 1])[mine])
loss = info_nce(inputs[0], inputs[1], temperature=0.3, z_neg=inputs[2], mask=mask)
gradients = torch.autograd.grad(loss, inputs)

torch.manual_seed(0)
module = nn.Linear(4, 3).double()
def loss_at(step):
    x = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(step), dtype=torch.float64)[:, mine]
    return info_nce(module(x[0]), module(x[1]), temperature=0.3)
train(module, loss_at, LoopConfig(steps=8, learning_rate=0.05), progress=False)
print(json.dumps({
    "mask": mask.tolist(), "loss": loss.item(), "gradients": [g.tolist() for g in gradients],
    "weights": module.weight.tolist(),
}))
"""


def test_two_processes_equal_one_large_batch(two_processes):
    both = two_processes(SHARED)
    z1, z2, z_neg = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = [z.clone().requires_grad_() for z in (z1, z2, z_neg)]
    mask = duplicate_mask(torch.tensor([0, 1, 2, 0, 3, 1]))
    loss = info_nce(inputs[0], inputs[1], temperature=0.3, z_neg=inputs[2], mask=mask)
    gradients = torch.autograd.grad(loss, inputs)

    assert [row for found in both for row in found["mask"]] == mask.tolist()
    assert sum(found["loss"] for found in both) / 2 == pytest.approx(loss.item(), rel=1e-12)
    for i, gradient in enumerate(gradients):
        # every process minimises its own loss; the mean over processes is the large batch's
        parts = torch.cat([torch.tensor(found["gradients"][i], dtype=torch.float64) for found in both]) / 2
        torch.testing.assert_close(parts, gradient, rtol=1e-9, atol=1e-12)

    torch.manual_seed(0)
    module = nn.Linear(4, 3).double()

    def loss_at(step):
        x = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        return info_nce(module(x[0]), module(x[1]), temperature=0.3)

    untrained = module.weight.detach().clone()
    train(module, loss_at, LoopConfig(steps=8, learning_rate=0.05), progress=False)
    assert (module.weight - untrained).abs().max() > 0.05
    for found in both:
        torch.testing.assert_close(torch.tensor(found["weights"], dtype=torch.float64), module.weight.detach())
    assert both[0]["weights"] == both[1]["weights"]


def test_a_process_alone_gathers_nothing():
    rows = torch.randn(3, 2, requires_grad=True)
    assert gather_with_grad(rows) is rows
