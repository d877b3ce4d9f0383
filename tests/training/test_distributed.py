"""Two processes must train like one with the whole batch: losses, gradients, and the weights after
a training.
"""

import numpy as np
import pytest
import torch

LOSSES = """
import torch
from dataclasses import replace
from repro.losses import angle_pairs, angle_triples, compress_target, duplicate_mask
from repro.losses import espresso, info_nce
from repro.settings import ESPRESSO_FORMS, EspressoConfig

generator = torch.Generator().manual_seed(0)
# Layers, and queries, positives and negatives below one another
texts = torch.randn(4, 18, 7, generator=generator, dtype=torch.float64) + 0.5
labels = {
    "binary": torch.tensor([1, 0, 0, 0, 1, 1]),
    "graded": torch.tensor([0.0, 2.0, 1.0, 2.0, 5.0, 4.0]),
}
keys = torch.tensor([0, 1, 2, 0, 3, 4, 5, 6, 7, 8, 2, 9, 10, 11, 5, 12, 13, 14])

def losses(layers, keys, labels):
    q, p, n = layers[0].chunk(3)
    pairs = lambda X: angle_pairs(*X.chunk(3)[:2], labels["graded"])
    def ese(config):
        return espresso(layers, pairs, size=3, config=config)
    return {
        "info_nce": info_nce(q, p, temperature=0.3, z_neg=n, mask=duplicate_mask(keys[: len(q)])),
        **{kind: angle_pairs(q, p, labels[kind], keys=keys[: 2 * len(q)]) for kind in labels},
        "triples": angle_triples(q, p, n, keys=keys),
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
    more = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    slopes = {name: torch.autograd.grad(loss, layers, **more) for name, loss in found.items()}
    return {name: (loss.item(), [g.tolist() for g in slopes[name]]) for name, loss in found.items()}
"""
TRAINED = """
torch.set_num_threads(1)
from repro import data
from repro.data.sampling import like_or_unlike
from repro.settings import TrainConfig
from repro.objectives import objective_of
from repro.runs.cell import LOSSES
from repro.training.end_to_end import train_encoder
pairs = like_or_unlike(data.load("nli", split="train", source="microworld"), 96)

def trained(given):
    config = TrainConfig(**given, source="microworld")
    examples = pairs.texts1 if config.objective == "simcse" else pairs
    pooler = objective_of(config).pooler
    loss = LOSSES[config.objective]
    trained = train_encoder(
        config, loss, examples, lambda *_: 0.0, pooler=pooler, progress=False
    )
    return trained.encoder.encode(["a cook", "the driver slept"]).tolist()
"""
RANK = """
from accelerate import PartialState
PartialState(cpu=True)
assert torch.distributed.get_world_size() == 2 and torch.distributed.get_rank() == rank
mine = torch.arange(3) + 3 * rank
found = values_and_gradients(torch.cat([mine, 6 + mine, 12 + mine]))
tells.send((found, [trained(given) for given in trainings]))
"""


def test_two_processes_equal_one(two_processes, tiny):
    shared = {
        "backbone": tiny,
        "dim": 8,
        "pooling": "mean",
        "batch_size": 16,
        "learning_rate": 1e-3,
        "dropout": 0.0,
    }
    given = [
        {**shared, "objective": objective, "check_every": 0}
        for objective in ("simcse", "angle", "ese")
    ]
    (first, first_trained), (second, second_trained) = two_processes(
        LOSSES + TRAINED + RANK,
        trainings=given,
    )
    here: dict = {}
    exec(LOSSES + TRAINED, here)
    one = here["values_and_gradients"](torch.arange(18))
    assert set(one) == set(first) == set(second) and len(one) == 10
    for name, (value, gradients) in one.items():
        # Every process minimises its own loss; the mean over processes is the large batch's
        assert (first[name][0] + second[name][0]) / 2 == pytest.approx(value, rel=1e-9), name
        for layer, gradient in enumerate(gradients):
            parts = [
                torch.tensor(found[name][1][layer], dtype=torch.float64).chunk(3)
                for found in (first, second)
            ]
            whole = torch.cat([torch.cat(both) for both in zip(*parts, strict=True)]) / 2
            expected = torch.tensor(gradient, dtype=torch.float64)
            torch.testing.assert_close(
                whole,
                expected,
                rtol=1e-7,
                atol=1e-9,
                msg=f"{name}, layer {layer}",
            )
    assert first_trained == second_trained
    for settings, found in zip(given, first_trained, strict=True):
        alone, untrained = (
            np.array(here["trained"](settings | more)) for more in ({}, {"learning_rate": 1e-30})
        )
        assert np.abs(found - alone).max() < 0.02 * np.abs(alone - untrained).max(), settings[
            "objective"
        ]
