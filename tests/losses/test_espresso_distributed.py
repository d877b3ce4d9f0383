"""AnglE and ESE on two processes must give the loss and the gradient of one large batch."""

import pytest
import torch

LOSSES = """
import torch
from dataclasses import replace
from repro.losses import angle_pairs, angle_triples, compress_target, espresso
from repro.objectives import ESPRESSO_FORMS, EspressoConfig

generator = torch.Generator().manual_seed(0)
texts = torch.randn(4, 18, 7, generator=generator, dtype=torch.float64) + 0.5  # layers, queries | positives | negatives
labels = {"binary": torch.tensor([1, 0, 0, 0, 1, 1]), "graded": torch.tensor([0.0, 2.0, 1.0, 2.0, 5.0, 4.0])}
keys = torch.tensor([0, 1, 2, 0, 3, 4, 5, 6, 7, 8, 2, 9, 10, 11, 5, 12, 13, 14])

def losses(layers, keys, labels):
    pairs = lambda X: angle_pairs(X[: len(X) // 3], X[len(X) // 3 : 2 * (len(X) // 3)], labels["graded"])
    def of_pairs(kind):
        q, p, n = layers[0].chunk(3)
        return angle_pairs(q, p, labels[kind], keys=keys[: 2 * len(q)])
    def ese(config):
        return espresso(layers, pairs, size=3, config=config)
    return {
        "binary pairs": of_pairs("binary"),
        "graded pairs": of_pairs("graded"),
        "triples": angle_triples(*layers[0].chunk(3), keys=keys),
        "paper": ese(ESPRESSO_FORMS["paper"]),
        "code, exact": ese(replace(ESPRESSO_FORMS["code"], decomposition="eigh")),
        "code": ese(ESPRESSO_FORMS["code"]),
        "max_k": ese(EspressoConfig(strategy="max_k", dependency="per_batch")),
        "moving": ese(EspressoConfig(stop_gradient=False, dependency="per_batch")),
        "embeddings": ese(EspressoConfig(strategy="embeddings", center=True, stop_gradient=False)),
    }

def values_and_gradients(rows):
    layers = [X[rows].clone().requires_grad_() for X in texts]
    third = rows[: len(rows) // 3]
    found = losses(layers, keys[rows], {kind: grades[third] for kind, grades in labels.items()})
    return {
        name: (loss.item(), [g.tolist() for g in torch.autograd.grad(loss, layers, retain_graph=True, allow_unused=True,
                                                                       materialize_grads=True)])
        for name, loss in found.items()
    }
"""
SHARED = (
    LOSSES
    + """
import json, sys
torch.set_num_threads(1)
rank = int(sys.argv[1])
from accelerate import PartialState
PartialState(cpu=True)
assert torch.distributed.get_world_size() == 2 and torch.distributed.get_rank() == rank
mine = torch.arange(3) + 3 * rank
print(json.dumps(values_and_gradients(torch.cat([mine, 6 + mine, 12 + mine]))))
"""
)


def test_two_processes_equal_one_large_batch(two_processes):
    two = two_processes(SHARED)
    here: dict = {}
    exec(LOSSES, here)
    one = here["values_and_gradients"](torch.arange(18))
    assert set(one) == set(two[0]) and len(one) == 9
    for name, (value, gradients) in one.items():
        # every process minimises its own loss; the mean over processes is the large batch's
        assert sum(found[name][0] for found in two) / 2 == pytest.approx(value, rel=1e-9), name
        for layer, gradient in enumerate(gradients):
            parts = [torch.tensor(found[name][1][layer], dtype=torch.float64).chunk(3) for found in two]
            whole = torch.cat([torch.cat([first, second]) for first, second in zip(*parts, strict=True)]) / 2
            expected = torch.tensor(gradient, dtype=torch.float64)
            torch.testing.assert_close(whole, expected, rtol=1e-7, atol=1e-9, msg=f"{name}, layer {layer}")
