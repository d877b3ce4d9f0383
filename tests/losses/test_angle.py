"""AnglE: double loops over the equations (method-angle in the book), closed forms, and the authors'
own code.
"""

import math
from functools import partial
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from gradients import assert_alike, random, value_and_gradients
from repro.losses import angle, angle_pairs, angle_triples, cosent, in_batch_negatives, info_nce
from repro.settings import ANGLE_PRESETS, AngleConfig

GRADED = torch.tensor([0.0, 2.5, 2.5, 4.0, 1.0, 5.0])
BINARY = torch.tensor([1, 0, 1, 1, 0, 0])
KEYS = torch.tensor([0, 1, 2, 0, 3, 4, 5, 2, 6, 7, 8, 1])


def waves(rows, dim, shift):
    """Embeddings that any machine computes alike."""
    return torch.sin(torch.arange(rows * dim, dtype=torch.float64).reshape(rows, dim) * 1.7 + shift)


def pairs(count, dim, *, seed=0):
    return random(2, count, dim, seed=seed).unbind()


def cosine_by_hand(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / (x.norm() * y.norm())


def angle_by_hand(x, y):
    """(a + ib)/(c + ie) coordinate by coordinate, each times |y|/|x|, both parts summed up."""
    z, w = (torch.complex(*F.pad(side, (0, len(side) % 2)).chunk(2)) for side in (x, y))
    quotients = z * w.conj() / (x.norm() * y.norm())
    return (quotients.real + quotients.imag).sum().abs()


def ranked_by_hand(similarity, x, y, labels, scale):
    scores = [scale * similarity(a, b) for a, b in zip(x, y, strict=True)]
    ranked = [(i, j) for i, j in product(range(len(labels)), repeat=2) if labels[i] < labels[j]]
    return (1 + sum(torch.exp(scores[i] - scores[j]) for i, j in ranked)).log()


def in_batch_by_hand(x, y, labels, scale, keys=None):
    rows, count = [*x, *y], len(x)
    keys = range(2 * count) if keys is None else keys.tolist()
    total = 0.0 * x.sum() * y.sum()
    for i, row in enumerate(rows):
        partner = (i + count) % (2 * count)
        if labels[i % count] < 0.5:
            continue
        kept = [
            j
            for j in range(2 * count)
            if j != i and (j == partner or keys[j] not in (keys[i], keys[partner]))
        ]
        logits = [scale * cosine_by_hand(row, rows[j]) for j in kept]
        total = total + torch.stack(logits).logsumexp(0) - logits[kept.index(partner)]
    return total / (2 * count)


@pytest.mark.parametrize(
    "labels",
    [BINARY, GRADED, torch.tensor([1, 1, 1, 1, 1, 0]), torch.tensor([True, False] * 3)],
)
@pytest.mark.parametrize("dim", [4, 5])
@pytest.mark.parametrize(("loss", "similarity"), [(cosent, cosine_by_hand), (angle, angle_by_hand)])
def test_rankings_equal_a_double_loop(loss, similarity, dim, labels):
    given = {"labels": labels, "scale": 7.0}
    assert_alike(
        partial(loss, **given),
        partial(ranked_by_hand, similarity, **given),
        *pairs(6, dim, seed=dim),
    )


@pytest.mark.parametrize(
    "labels",
    [BINARY, 2 * BINARY, 0.9 * torch.ones(6), GRADED / 5, torch.zeros(6)],
)
@pytest.mark.parametrize("keys", [None, KEYS])
def test_in_batch_negatives_equal_a_double_loop(labels, keys):
    given = {"labels": labels, "scale": 4.0, "keys": keys}
    assert_alike(
        partial(in_batch_negatives, **given),
        partial(in_batch_by_hand, **given),
        *pairs(6, 5, seed=3),
    )


def test_scales_are_twenty_unless_told_otherwise():
    x, y = pairs(6, 5)
    for loss in (cosent, angle, in_batch_negatives):
        twenty, ten = (loss(x, y, BINARY, scale=scale).item() for scale in (20.0, 10.0))
        assert loss(x, y, BINARY).item() == twenty != ten


def test_grades_far_apart_do_not_overflow():
    x, y = (
        torch.tensor([[1.0, 0.0]] * 4),
        torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]),
    )
    far = 1000 + math.log(4)
    for labels, expected in (([0, 0, 1, 1], far), ([1, 1, 0, 0], 0.0), ([0, 0, 1, 2], far)):
        assert cosent(x, y, torch.tensor(labels), scale=500.0).item() == pytest.approx(
            expected,
            rel=1e-6,
            abs=1e-6,
        )


def test_the_angle_similarity_is_not_symmetric_and_its_mean_divides_by_the_size():
    x, y = pairs(6, 5)
    assert angle(x, y, BINARY).item() != pytest.approx(angle(y, x, BINARY).item(), rel=1e-3)
    assert cosent(x, y, BINARY).item() == pytest.approx(cosent(y, x, BINARY).item(), rel=1e-12)
    mean = AngleConfig(cosine_weight=0, in_batch_weight=0, angle_scale=50.0, angle_pooling="mean")
    torch.testing.assert_close(
        angle_pairs(x, y, BINARY, config=mean),
        angle(x, y, BINARY, scale=10.0),
    )


def test_triples_drop_copies_of_the_query_and_the_positive():
    only = AngleConfig(
        cosine_weight=0,
        angle_weight=0,
        in_batch_weight=1,
        negative_weight=1,
        in_batch_scale=3.0,
    )
    (q, p), n = pairs(3, 4), random(3, 4, seed=5)
    # The second positive repeats the first, the third negative repeats the first query
    p[1], n[2] = p[0], q[0]
    keys = torch.tensor([0, 1, 2, 3, 3, 4, 5, 6, 0])
    texts, expected = keys[3:].tolist(), 0.0
    for i in range(3):
        logits = [3.0 * cosine_by_hand(q[i], column) for column in (*p, *n)]
        kept = [j for j in range(6) if j == i or texts[j] not in (keys[i], keys[3 + i])]
        for columns in ([j for j in kept if j < 3], kept):
            expected += (torch.stack([logits[j] for j in columns]).logsumexp(0) - logits[i]) / 3 / 2
    torch.testing.assert_close(angle_triples(q, p, n, config=only, keys=keys), expected)


def test_equals_the_loss_module_of_angle():
    # Values of cosine_loss, angle_loss, in_batch_negative_loss and contrastive_with_negative_loss
    # of AnglE 0.6.1's loss module (angle_emb/loss.py), run on these inputs in double precision
    x, y = waves(6, 8, 0.0), waves(6, 8, 0.4)
    triples = [waves(5, 8, shift) for shift in (0.1, 0.7, 1.9)]
    config = AngleConfig(cosine_weight=0, angle_weight=0, in_batch_weight=3.0, negative_weight=0.5)
    for found, expected in (
        (cosent(x, y, BINARY, scale=5.0), 2.3690369776892144),
        (cosent(x, y, GRADED), 2.656779385312875),
        (angle(x, y, BINARY), 2.2710746421208174),
        # Their mean over the 8 coordinates
        (angle(x, y, BINARY, scale=20.0 / 8), 2.29852716650268),
        (angle(x, y, GRADED, scale=1.0), 2.7091533549870483),
        (in_batch_negatives(x, y, BINARY, scale=3.0), 0.44494293305333793),
        (
            angle_triples(*triples, config=config),
            (3.0 * 1.384695194969402 + 0.5 * 2.752217311107772) / 2,
        ),
    ):
        assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "weights", "scales"),
    [
        ("paper", (1, 1, 1, 1), (20, 20, 1)),
        ("code", (0, 1, 0.02, 1), (20, 20, 20)),
        ("ese_readme", (0, 10, 1, 1), (20, 20, 20)),
        (None, (0, 0, 0, 0), (20, 20, 20)),
    ],
)
def test_presets_are_weighted_sums_of_the_terms(name, weights, scales):
    nothing = AngleConfig(cosine_weight=0, in_batch_weight=0, angle_weight=0, negative_weight=0)
    config, (x, y) = nothing if name is None else ANGLE_PRESETS[name], pairs(6, 4)

    def of_pairs(a, b):
        return (
            weights[0] * cosent(a, b, BINARY, scale=scales[0])
            + weights[1] * in_batch_negatives(a, b, BINARY, scale=scales[1], keys=KEYS)
            + weights[2] * angle(a, b, BINARY, scale=scales[2])
        )

    def of_triples(q, p, n):
        both, labels = (torch.cat([q, q]), torch.cat([p, n])), torch.tensor([1] * 6 + [0] * 6)
        return (
            0.5 * weights[1] * info_nce(q, p, temperature=1 / scales[1])
            + 0.5 * weights[3] * info_nce(q, p, z_neg=n, temperature=1 / scales[1])
            + weights[2] * angle(*both, labels, scale=scales[2])
            + weights[0] * cosent(*both, labels, scale=scales[0])
        )

    assert_alike(lambda a, b: angle_pairs(a, b, BINARY, config=config, keys=KEYS), of_pairs, x, y)
    assert_alike(
        lambda *z: angle_triples(*z, config=config), of_triples, x, y, random(6, 4, seed=9)
    )
    if name == "paper":
        assert angle_pairs(x, y, BINARY).item() == angle_pairs(x, y, BINARY, config=config).item()


@pytest.mark.parametrize("change", [0.0, 1e-15, 1e15, "one zero row"])
def test_gradients_are_finite_on_odd_input(change):
    x, y = (z.float() for z in pairs(6, 4))
    if change == "one zero row":
        x[2] = 0
    else:
        x, y = change * x, change * y
    for loss in (
        cosent,
        angle,
        in_batch_negatives,
        lambda a, b, labels: angle_triples(a, b, a.flip(0)),
    ):
        found = value_and_gradients(lambda a, b, loss=loss: loss(a, b, GRADED), x, y)
        assert all(bool(torch.isfinite(part).all()) for part in found)
        assert change != "one zero row" or found[1][2].abs().max() <= 40  # As if its length were 1


def test_one_grade_gives_nothing_to_rank():
    x, y = pairs(6, 4)
    for loss in (cosent, angle):
        with pytest.warns(UserWarning, match="all labels of a batch are equal"):
            found = value_and_gradients(lambda a, b, loss=loss: loss(a, b, torch.ones(6)), x, y)
        assert all(bool((part == 0).all()) for part in found)
    with pytest.warns(UserWarning, match="nothing to rank") as caught:
        assert (
            angle_pairs(x, y, torch.ones(6)).item()
            == in_batch_negatives(x, y, torch.ones(6)).item()
        )
    assert len(caught) == 1  # For both rankings together


def test_scores_depend_on_neither_mixed_precision_nor_length():
    x, y = (z.float() for z in pairs(6, 16))
    for loss in (lambda: angle_pairs(x, y, BINARY), lambda: angle_triples(x, y, x.flip(0))):
        with torch.autocast("cpu", torch.bfloat16):
            mixed = loss()
        assert mixed.dtype == torch.float32
        torch.testing.assert_close(mixed, loss(), rtol=0, atol=0)
    torch.testing.assert_close(
        angle_pairs(7 * x, F.normalize(y), BINARY),
        angle_pairs(x, y, BINARY),
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rows_of_half_precision_are_compared_in_single(dtype):
    x, y, z = (each.to(dtype) for each in random(3, 6, 16))
    for loss in (lambda a, b, c: angle_pairs(a, b, BINARY), lambda a, b, c: angle_triples(a, b, c)):
        found, exact = loss(x, y, z), loss(x.double(), y.double(), z.double())
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1e-9, 1e-3, 1e9])
def test_no_term_knows_the_lengths_of_rows_however_short(length):
    x, y, z = random(3, 6, 5)
    for loss in (cosent, angle, in_batch_negatives):
        torch.testing.assert_close(loss(length * x, y / length, GRADED), loss(x, y, GRADED))
    torch.testing.assert_close(angle_triples(length * x, y, length * z), angle_triples(x, y, z))
