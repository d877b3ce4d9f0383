"""ESE's two forms from the equations and from the released code, and what every switch does."""

import inspect
import math
from dataclasses import replace

import pytest
import torch

from gradients import assert_alike, random, value_and_gradients
from repro import losses
from repro.losses import align, angle_pairs, compress_target, espresso, info_nce, shallow_layers
from repro.losses.espresso import initial_log_weights
from repro.seeding import derive_seed
from repro.settings import ANGLE_PRESETS, ESPRESSO_FORMS, EspressoConfig

LABELS = torch.tensor([1, 0, 1, 1, 0, 0])
BLOCKS, TEXTS, DIM, SIZE = 4, 12, 10, 3


def states(blocks=BLOCKS):
    """Pooled states of layers 0 … L, rows with a common part."""
    return list(0.6 * random(blocks + 1, TEXTS, DIM) + random(blocks + 1, 1, DIM, seed=1))


def angle_of(X):
    x, y = X.chunk(2)
    return angle_pairs(x, y, LABELS[: len(x)])


def at(layers, **switches):
    """The loss of the printed form with some switches set otherwise."""
    return espresso(layers, angle_of, size=SIZE, config=EspressoConfig(**switches)).item()


# Targets and alignment have equations of their own in test_compress


def paper_by_hand(layers, loss):
    """Eqs. 2, 6 and 7 with alpha = beta = 1."""
    total, n = 0.0, len(layers) - 1
    for i in range(1, n + 1):
        prefix, weight = layers[i][:, :SIZE], 1.0 if i == n else 1 / (1 + math.log(i))
        target = compress_target(layers[i].detach(), SIZE, dependency="per_sentence")
        total = total + weight * (loss(prefix) + align(prefix, target))
    return total


def code_by_hand(layers, loss, aligned=True):
    """`compute_loss` and `compute_student_loss` of AngleESETrainer in AnglE 0.6.1, its random
    starts ours.
    """
    n_layers = len(layers) - 1

    def slimmed(i):
        prefix, seed = layers[i][:, :SIZE], derive_seed(7, "espresso", i)
        target = compress_target(layers[i].detach(), SIZE, decomposition="randomized", seed=seed)
        return loss(prefix) + (align(prefix, target) if aligned else 0.0)

    student = sum(slimmed(i) / (1.0 + math.log(1 + i)) for i in range(n_layers - 1))
    return loss(layers[-1]) + slimmed(n_layers) + student / (n_layers - 1)


@pytest.mark.parametrize("blocks", [2, BLOCKS])
def test_the_printed_form_is_the_equations_and_the_released_one_the_released_code(blocks):
    plain, layers = replace(ESPRESSO_FORMS["code"], strategy="none"), states(blocks)
    for loss in (angle_of, lambda X: info_nce(*X.chunk(2), temperature=0.2)):
        given = {"loss": loss, "size": SIZE, "seed": 7}
        for options, by_hand in (
            ({"form": "paper"}, lambda *L, loss=loss: paper_by_hand(L, loss)),
            ({"form": "code"}, lambda *L, loss=loss: code_by_hand(L, loss)),
            ({"config": plain}, lambda *L, loss=loss: code_by_hand(L, loss, aligned=False)),
        ):
            found = lambda *L, all_of=given | options: espresso(L, **all_of)  # noqa: E731
            assert_alike(found, by_hand, *layers, rtol=1e-7, atol=1e-7)


def test_equals_the_loss_module_of_angle_and_one_block_has_no_shallow_layers():
    # ESE of two blocks on four pairs without compression, computed with AnglE 0.6.1's AngleLoss
    # (format A, its default weights) as `compute_loss` and `compute_student_loss` put it together
    layers = [
        torch.sin(torch.arange(64, dtype=torch.float64).reshape(8, 8) * (1.3 + i)) for i in range(3)
    ]
    labels = torch.tensor([1, 0, 0, 1])
    config = replace(ESPRESSO_FORMS["code"], strategy="none")
    loss = lambda X: angle_pairs(*X.chunk(2), labels, config=ANGLE_PRESETS["code"])  # noqa: E731
    found = espresso(layers, loss, size=4, config=config)
    assert found.item() == pytest.approx(45.73017898331756, rel=1e-12)
    assert at(states(1), strategy="none") == pytest.approx(angle_of(states(1)[1][:, :SIZE]).item())
    assert list(shallow_layers(7, EspressoConfig(first_layer=2, last_shallow=-3))) == [2, 3]


@pytest.mark.parametrize(
    "changes",
    [{}, {"full_size_loss": True}, {"reduction": "mean"}, {"layer_weights": "uniform"}],
    ids=str,
)
def test_alpha_and_beta_weigh_the_two_processes(changes):
    layers = states()
    express, compress = (
        at(layers, alpha=1, beta=0, **changes),
        at(layers, alpha=0, beta=1, **changes),
    )
    assert at(layers, alpha=0.5, beta=3, **changes) == pytest.approx(0.5 * express + 3 * compress)
    assert (
        at(layers, **changes) != pytest.approx(express)
        and at(layers, alpha=0, beta=0, **changes) == 0
    )


PER_BATCH, EMBEDDINGS = {"dependency": "per_batch"}, {"strategy": "embeddings"}
OF_TARGET = [{}, PER_BATCH, EMBEDDINGS, EMBEDDINGS | {"center": True}, {"strategy": "max_k"}]
OF_TARGET += [PER_BATCH | {"strategy": "max_k"}, PER_BATCH | {"decomposition": "randomized"}]


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("switches", OF_TARGET, ids=str)
def test_every_switch_of_the_target_and_its_temperature_reach_the_loss(switches, temperature):
    layers = states(1)  # Without shallow layers the loss is that of the last one
    prefix, seed = layers[1][:, :SIZE], derive_seed(0, "espresso", 1)
    how = {"dependency": "per_sentence"} | switches
    target = compress_target(layers[1], SIZE, **how, seed=seed)
    expected = angle_of(prefix) + align(prefix, target, temperature=temperature)
    assert at(layers, temperature=temperature, **switches) == pytest.approx(expected.item())


def test_a_target_that_moves_adds_its_gradient():
    layers = states(2)
    options = (
        {"size": SIZE, "config": EspressoConfig(stop_gradient=stop)} for stop in (True, False)
    )
    fixed, moving = (
        value_and_gradients(lambda *L, o=o: espresso(L, angle_of, **o), *layers) for o in options
    )
    torch.testing.assert_close(fixed[0], moving[0])
    # Dimensions beyond k get a gradient through the target only
    assert fixed[2][:, SIZE:].abs().max() == 0 and moving[2][:, SIZE:].abs().max() > 0


def test_learned_weights_settle_and_literal_ones_run_away():
    layers = states()
    config = EspressoConfig(layer_weights="learned", strategy="none")
    *parts, last = (angle_of(layers[i][:, :SIZE]).item() for i in (1, 2, 3, 4))
    s = initial_log_weights(3).double()
    for point, expected in (
        (s, [1 - math.exp(-a) * part for a, part in zip(s.tolist(), parts, strict=True)]),
        # At s = ln(loss) every layer's share is 1
        (torch.tensor(parts, dtype=torch.float64).log(), [0, 0, 0]),
    ):

        def weighed(log_weights):
            return espresso(layers, angle_of, size=SIZE, config=config, log_weights=log_weights)

        _, gradient = value_and_gradients(weighed, point)
        assert gradient.tolist() == pytest.approx(expected, abs=1e-12)
    mean = espresso(
        layers,
        angle_of,
        size=SIZE,
        config=replace(config, reduction="mean"),
        log_weights=s,
    ).item()
    shares = sum(math.exp(-a) * part + a for a, part in zip(s.tolist(), parts, strict=True))
    assert mean == pytest.approx(last + shares / 3)
    # Without the addition less weight is always better
    config = replace(config, layer_weights="learned_literal")
    values = [
        espresso(layers, angle_of, size=SIZE, config=config, log_weights=s + a).item()
        for a in range(5)
    ]
    assert values == sorted(values, reverse=True) and values[-1] > last


def test_constant_embeddings_have_nothing_to_learn():
    # Under `cls` pooling layer 0 is one vector: the contrastive part is stuck at ln B, without
    # gradient
    layers = states()
    layers[0] = layers[0][:1].expand(TEXTS, DIM).contiguous()
    config = replace(ESPRESSO_FORMS["code"], strategy="none")
    with pytest.warns(UserWarning, match="layer 0 is one vector for every text"):
        loss = lambda X: info_nce(*X.chunk(2))  # noqa: E731
        found = value_and_gradients(lambda *L: espresso(L, loss, size=SIZE, config=config), *layers)
    assert found[1].abs().max() < 1e-9


# Matryoshka is the sum of its parts, whatever the loss and its signature


SIZES = (2, 3, 8)
X, Y, Z = random(6, 8), random(6, 8, seed=1), random(6, 8, seed=2)
MASK = torch.arange(36).reshape(6, 6) % 7 == 3


def classified(m, u, v, weight, bias):
    blocks = torch.cat([weight[:, :m], weight[:, 8 : 8 + m], weight[:, 16 : 16 + m]], dim=1)
    return losses.softmax_nli(u[:, :m], v[:, :m], LABELS, blocks, bias)


CASES = {
    "info_nce": (
        lambda loss: lambda a, b, c: loss(info_nce)(a, b, z_neg=c, temperature=0.3, mask=MASK),
        lambda m, a, b, c: info_nce(a[:, :m], b[:, :m], z_neg=c[:, :m], temperature=0.3, mask=MASK),
        (X, Y, Z),
    ),
    "graded labels, which are not cut": (
        lambda loss: lambda a, b: loss(losses.cosent)(a, b, Z[:, 0]),
        lambda m, a, b: losses.cosent(a[:, :m], b[:, :m], Z[:, 0]),
        (X, Y),
    ),
    "a classifier, which is cut in blocks": (
        lambda loss: (
            lambda u, v, weight, bias: loss(losses.softmax_nli)(u, v, LABELS, weight, bias)
        ),
        classified,
        (X, Y, random(3, 24, seed=2), random(3, seed=3)),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weights", [None, (0.5, 0.0, 2.0)])
def test_it_is_the_sum_of_its_parts(case, weights):
    call, part, inputs = CASES[case]
    shares = weights or (1.0,) * len(SIZES)
    assert_alike(
        call(lambda loss: losses.matryoshka(loss, SIZES, weights)),
        lambda *z: sum(c * part(m, *z) for m, c in zip(SIZES, shares, strict=True)),
        *inputs,
    )


def test_the_full_size_alone_is_the_loss_itself():
    assert_alike(losses.matryoshka(info_nce, (8,)), info_nce, X, Y)
    assert inspect.signature(losses.matryoshka(info_nce, (2,))) == inspect.signature(info_nce)
