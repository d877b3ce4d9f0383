import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.losses import angle, angle_pairs, angle_triples, cosent, in_batch_negatives, info_nce
from repro.objectives import ANGLE_PRESETS, AngleConfig
from repro.types import InputError

GRADED = torch.tensor([0.0, 2.5, 2.5, 4.0, 1.0, 5.0])
BINARY = torch.tensor([1, 0, 1, 1, 0, 0])


def waves(rows, dim, shift):
    """Embeddings that any machine computes alike."""
    return torch.sin(torch.arange(rows * dim, dtype=torch.float64).reshape(rows, dim) * 1.7 + shift)


def random_pairs(pairs, dim, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(pairs, dim, generator=generator, dtype=torch.float64) for _ in range(2)]


def value_and_gradients(loss, *inputs):
    inputs = [z.clone().requires_grad_() for z in inputs]
    value = loss(*inputs)
    return [value, *torch.autograd.grad(value, inputs)]


def assert_alike(found, expected, **tolerance):
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, **(tolerance or {"rtol": 1e-10, "atol": 1e-12}))


# the equations of PROTOCOLS §2.3, one pair and one coordinate at a time


def cosine_by_hand(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / (x.norm() * y.norm())


def angle_by_hand(x, y):
    """(a + ib)/(c + ie) coordinate by coordinate, each times |y|/|x|, summed up."""
    if len(x) % 2:
        x, y = torch.cat([x, x.new_zeros(1)]), torch.cat([y, y.new_zeros(1)])
    half = len(x) // 2
    real = imaginary = 0.0
    for i in range(half):
        a, b, c, e = x[i], x[half + i], y[i], y[half + i]
        real = real + a * c + b * e
        imaginary = imaginary + b * c - a * e
    return ((real + imaginary) / (x.norm() * y.norm())).abs()


def ranked_by_hand(scores, labels):
    total = torch.ones((), dtype=torch.float64)
    for i in range(len(labels)):
        for j in range(len(labels)):
            if labels[i] < labels[j]:
                total = total + torch.exp(scores[i] - scores[j])
    return total.log()


def cosent_by_hand(x, y, labels, scale):
    return ranked_by_hand([scale * cosine_by_hand(a, b) for a, b in zip(x, y, strict=True)], labels)


def angle_loss_by_hand(x, y, labels, scale):
    return ranked_by_hand([scale * angle_by_hand(a, b) for a, b in zip(x, y, strict=True)], labels)


def in_batch_by_hand(x, y, labels, scale, keys=None):
    rows = [*x, *y]
    pairs = len(x)
    keys = range(2 * pairs) if keys is None else keys
    total = x.new_zeros(())
    for i, row in enumerate(rows):
        partner = (i + pairs) % (2 * pairs)
        if labels[i % pairs] < 0.5:
            continue
        kept = [j for j in range(2 * pairs) if j != i and (j == partner or keys[j] not in (keys[i], keys[partner]))]
        logits = [scale * cosine_by_hand(row, rows[j]) for j in kept]
        total = total + torch.stack(logits).logsumexp(0) - logits[kept.index(partner)]
    return total / (2 * pairs)


@pytest.mark.parametrize("labels", [BINARY, GRADED, torch.tensor([1, 1, 1, 1, 1, 0]), torch.tensor([True, False] * 3)])
@pytest.mark.parametrize("dim", [1, 4, 5])
@pytest.mark.parametrize(("loss", "by_hand"), [(cosent, cosent_by_hand), (angle, angle_loss_by_hand)])
def test_rankings_equal_a_double_loop(loss, by_hand, dim, labels):
    x, y = random_pairs(6, dim, seed=dim)
    found = value_and_gradients(lambda a, b: loss(a, b, labels, scale=7.0), x, y)
    assert_alike(found, value_and_gradients(lambda a, b: by_hand(a, b, labels, 7.0), x, y))


@settings(max_examples=50, deadline=None)
@given(labels=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=2, max_size=12), seed=st.integers(0, 10**6))
def test_any_grades_with_any_ties(labels, seed):
    x, y = random_pairs(len(labels), 3, seed=seed)
    expected = cosent_by_hand(x, y, labels, 20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cosent(x, y, torch.tensor(labels))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("labels", [BINARY, GRADED / 5, torch.zeros(6)])
@pytest.mark.parametrize("keys", [None, [0, 1, 2, 0, 3, 4, 5, 2, 6, 7, 8, 1]])
def test_in_batch_negatives_equal_a_double_loop(labels, keys):
    x, y = random_pairs(6, 5, seed=3)
    given_keys = None if keys is None else torch.tensor(keys)
    found = value_and_gradients(lambda a, b: in_batch_negatives(a, b, labels, scale=4.0, keys=given_keys), x, y)
    if labels.max() == 0:
        assert all(bool((part == 0).all()) for part in found)
        return
    assert_alike(found, value_and_gradients(lambda a, b: in_batch_by_hand(a, b, labels, 4.0, keys), x, y))


# closed forms


@pytest.mark.parametrize(("zeros", "ones"), [(1, 1), (3, 5), (40, 24)])
def test_equal_scores_count_the_pairs(zeros, ones):
    x = torch.ones(zeros + ones, 4, dtype=torch.float64)
    labels = torch.tensor([0] * zeros + [1] * ones)
    for loss in (cosent, angle):
        assert loss(x, 2 * x, labels).item() == pytest.approx(math.log(1 + zeros * ones), rel=1e-12)


def test_equal_scores_of_three_grades_count_the_ordered_pairs():
    x, labels = torch.ones(9, 4, dtype=torch.float64), torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2])
    assert cosent(x, x, labels).item() == pytest.approx(math.log(1 + 2 * 3 + 2 * 4 + 3 * 4), rel=1e-12)


def test_two_grades_far_apart_do_not_overflow():
    x = torch.tensor([[1.0, 0.0]] * 4)
    y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert cosent(x, y, labels, scale=500.0).item() == pytest.approx(1000 + math.log(4), rel=1e-6)
    assert cosent(x, y, 1 - labels, scale=500.0).item() == pytest.approx(0, abs=1e-6)
    assert cosent(x, y, labels * torch.tensor([1, 1, 1, 2]), scale=500.0).item() == pytest.approx(1000, rel=0.01)


@settings(max_examples=100, deadline=None)
@given(dim=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_the_angle_similarity_lies_between_0_and_root_2(dim, seed):
    x, y = random_pairs(2, dim, seed=seed)
    for a, b in zip(x, y, strict=True):
        assert 0 <= angle_by_hand(a, b) <= math.sqrt(2) + 1e-12
    # two pairs labelled 0 and 1: the loss is ln(1 + e^{v0 - v1}), so the difference of their similarities
    loss = angle(x, y, torch.tensor([0, 1]), scale=1.0).item()
    difference = (angle_by_hand(x[0], y[0]) - angle_by_hand(x[1], y[1])).item()
    assert math.log(math.expm1(loss)) == pytest.approx(difference, abs=1e-9)


def test_the_angle_similarity_is_not_symmetric():
    x, y = random_pairs(6, 4)
    assert angle(x, y, BINARY).item() != pytest.approx(angle(y, x, BINARY).item(), rel=1e-3)
    assert cosent(x, y, BINARY).item() == pytest.approx(cosent(y, x, BINARY).item(), rel=1e-12)
    # the second sum changes its sign: the similarities of (x, y) and (y, x) are |s + t| and |s - t|, s the cosine
    for a, b in zip(x, y, strict=True):
        both = angle_by_hand(a, b) ** 2 + angle_by_hand(b, a) ** 2
        t = sum(a[2 + i] * b[i] - a[i] * b[2 + i] for i in range(2)) / (a.norm() * b.norm())
        assert both.item() == pytest.approx(2 * (cosine_by_hand(a, b) ** 2 + t**2).item())


def test_the_mean_divides_by_the_size():
    x, y = random_pairs(6, 5)
    torch.testing.assert_close(angle(x, y, BINARY, scale=50.0, pooling="mean"), angle(x, y, BINARY, scale=10.0))


def test_a_pair_finds_its_partner_among_orthonormal_texts():
    z = torch.eye(8, dtype=torch.float64)[:4]
    expected = math.log(1 + 6 * math.exp(-5.0))
    assert in_batch_negatives(z, z, torch.ones(4), scale=5.0).item() == pytest.approx(expected, rel=1e-12)
    # all 2P rows count in the mean, those of distant pairs with 0
    half = torch.tensor([1, 1, 0, 0])
    assert in_batch_negatives(z, z, half, scale=5.0).item() == pytest.approx(expected / 2, rel=1e-12)


def test_labels_above_one_mark_the_same_partners():
    # index arithmetic on labels, as in the released code, gives (2, 2, 1, 1) wrong partners and (0, 0.9) none
    x, y = random_pairs(4, 6)
    ones = in_batch_negatives(x, y, torch.ones(4))
    torch.testing.assert_close(in_batch_negatives(x, y, torch.tensor([2, 2, 1, 1])), ones)
    torch.testing.assert_close(in_batch_negatives(x, y, torch.full((4,), 0.9)), ones)


def test_copies_of_a_text_are_no_negatives():
    # (a, b), (a, c): row a must not be pushed from the other a, nor b from it
    a, b, c = torch.eye(3, dtype=torch.float64)
    x, y, labels = torch.stack([a, a]), torch.stack([b, c]), torch.tensor([1, 0])
    keys = torch.tensor([0, 0, 1, 2])
    # rows a and b each keep the partner and c, all at cosine 0: ln 2 twice, over 4 rows
    assert in_batch_negatives(x, y, labels, keys=keys).item() == pytest.approx(2 * math.log(2) / 4)
    # unmasked, row a meets the other a at cosine 1
    worse = math.log(2 + math.exp(20)) + math.log(3)
    assert in_batch_negatives(x, y, labels).item() == pytest.approx(worse / 4)


# oracles


def test_equals_the_loss_module_of_angle():
    # values of cosine_loss, angle_loss, in_batch_negative_loss and contrastive_with_negative_loss of AnglE 0.6.1's
    # loss module (angle_emb/loss.py), run on these inputs in double precision
    x, y = waves(6, 8, 0.0), waves(6, 8, 0.4)
    for scale, expected in ((20.0, 2.5968969825408728), (5.0, 2.3690369776892144)):
        assert cosent(x, y, BINARY, scale=scale).item() == pytest.approx(expected, rel=1e-12)
    for scale, expected in ((1.0, 2.30095785343233), (20.0, 2.2710746421208174)):
        assert angle(x, y, BINARY, scale=scale).item() == pytest.approx(expected, rel=1e-12)
    assert angle(x, y, BINARY, pooling="mean").item() == pytest.approx(2.29852716650268, rel=1e-12)
    for scale, expected in ((20.0, 0.0439270086820818), (3.0, 0.44494293305333793)):
        assert in_batch_negatives(x, y, BINARY, scale=scale).item() == pytest.approx(expected, rel=1e-12)
    assert cosent(x, y, GRADED).item() == pytest.approx(2.656779385312875, rel=1e-12)
    assert angle(x, y, GRADED, scale=1.0).item() == pytest.approx(2.7091533549870483, rel=1e-12)
    query, positive, negative = waves(5, 8, 0.1), waves(5, 8, 0.7), waves(5, 8, 1.9)
    config = AngleConfig(cosine_weight=0, angle_weight=0, in_batch_weight=3.0, negative_weight=0.5)
    expected = (3.0 * 1.384695194969402 + 0.5 * 2.752217311107772) / 2
    assert angle_triples(query, positive, negative, config=config).item() == pytest.approx(expected, rel=1e-12)


def test_equals_sentence_transformers_on_odd_sizes():
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    x, y = random_pairs(6, 5)
    for loss, theirs in ((cosent, losses.CoSENTLoss), (angle, losses.AnglELoss)):
        for labels in (BINARY.double(), GRADED.double()):
            expected = theirs(model=None).compute_loss_from_embeddings([x, y], labels)
            assert loss(x, y, labels).item() == pytest.approx(expected.item(), rel=1e-9)


# weighted sums


@pytest.mark.parametrize("name", ["paper", "code", "ese_readme"])
def test_presets_are_weighted_sums_of_the_terms(name):
    config = ANGLE_PRESETS[name]
    weights = {"paper": (1, 1, 1), "code": (0, 1, 0.02), "ese_readme": (0, 10, 1)}[name]
    scales = {"paper": (20, 20, 1), "code": (20, 20, 20), "ese_readme": (20, 20, 20)}[name]
    x, y = random_pairs(6, 4)
    keys = torch.tensor([0, 1, 2, 0, 3, 4, 5, 2, 6, 7, 8, 1])

    def pairs(a, b):
        return (
            weights[0] * cosent(a, b, BINARY, scale=scales[0])
            + weights[1] * in_batch_negatives(a, b, BINARY, scale=scales[1], keys=keys)
            + weights[2] * angle(a, b, BINARY, scale=scales[2])
        )

    found = value_and_gradients(lambda a, b: angle_pairs(a, b, BINARY, config=config, keys=keys), x, y)
    assert_alike(found, value_and_gradients(pairs, x, y))

    negative = random_pairs(6, 4, seed=9)[0]

    def triples(q, p, n):
        temperature = 1 / scales[1]
        both, labels = (torch.cat([q, q]), torch.cat([p, n])), torch.tensor([1] * 6 + [0] * 6)
        return (
            0.5 * weights[1] * info_nce(q, p, temperature=temperature)
            + 0.5 * info_nce(q, p, z_neg=n, temperature=temperature)
            + weights[2] * angle(*both, labels, scale=scales[2])
            + weights[0] * cosent(*both, labels, scale=scales[0])
        )

    found = value_and_gradients(lambda q, p, n: angle_triples(q, p, n, config=config), x, y, negative)
    assert_alike(found, value_and_gradients(triples, x, y, negative))


def test_the_paper_s_weights_are_the_default():
    x, y = random_pairs(6, 4)
    assert angle_pairs(x, y, BINARY).item() == angle_pairs(x, y, BINARY, config=ANGLE_PRESETS["paper"]).item()


def test_no_weights_no_loss():
    nothing = AngleConfig(cosine_weight=0, in_batch_weight=0, angle_weight=0, negative_weight=0)
    x, y = random_pairs(6, 4)
    for part in value_and_gradients(lambda a, b: angle_pairs(a, b, BINARY, config=nothing), x, y):
        assert bool((part == 0).all())
    for part in value_and_gradients(lambda a, b: angle_triples(a, b, x, config=nothing), x, y):
        assert bool((part == 0).all())


def test_triples_drop_copies_of_the_query_and_the_positive():
    only = AngleConfig(cosine_weight=0, angle_weight=0, in_batch_weight=1, negative_weight=1, in_batch_scale=3.0)
    q, p = random_pairs(3, 4)
    n = random_pairs(3, 4, seed=5)[0]
    p[1] = p[0]  # texts: the second positive repeats the first, the third negative repeats the first query
    n[2] = q[0]
    keys = torch.tensor([0, 1, 2, 3, 3, 4, 5, 6, 0])
    texts = [3, 3, 4, 5, 6, 0]
    expected = 0.0
    for i in range(3):
        logits = [3.0 * cosine_by_hand(q[i], column) for column in (*p, *n)]
        kept = [j for j in range(6) if j == i or texts[j] not in (keys[i], keys[3 + i])]
        for columns in ([j for j in kept if j < 3], kept):
            expected += (torch.stack([logits[j] for j in columns]).logsumexp(0) - logits[i]) / 3 / 2
    found = angle_triples(q, p, n, config=only, keys=keys)
    torch.testing.assert_close(found, expected)
    assert found.item() < angle_triples(q, p, n, config=only).item()


# odd input


LOSSES = {
    "cosent": cosent,
    "angle": angle,
    "in_batch_negatives": in_batch_negatives,
    "angle_pairs": angle_pairs,
    "triples": lambda x, y, labels: angle_triples(x, y, x.flip(0)),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["zero", "one zero row", "constant", "single column", "odd", "tiny", "huge"])
def test_gradients_are_finite_on_odd_input(name, kind):
    x, y = (z.float() for z in random_pairs(6, 4))
    if kind == "zero":
        x, y = torch.zeros(6, 4), torch.zeros(6, 4)
    elif kind == "one zero row":
        x[2] = 0
    elif kind == "constant":
        x, y = torch.ones(6, 4), torch.ones(6, 4)
    elif kind == "single column":
        x, y = x[:, :1], y[:, :1]
    elif kind == "odd":
        x, y = x[:, :3], y[:, :3]
    else:
        factor = 1e-15 if kind == "tiny" else 1e15
        x, y = x * factor, y * factor
    for labels in (BINARY, GRADED):
        found = value_and_gradients(lambda a, b, labels=labels: LOSSES[name](a, b, labels), x, y)
        assert all(bool(torch.isfinite(part).all()) for part in found)
        if kind == "one zero row":  # as if its length were 1
            assert found[1][2].abs().max() <= 40


def test_zero_vectors_have_similarity_zero():
    x, y = random_pairs(3, 4)
    x[0] = 0
    # the zero pair against one of similarity v: ln(1 + e^{0 - v})
    labels = torch.tensor([0, 1])
    for loss, by_hand in ((cosent, cosine_by_hand), (angle, angle_by_hand)):
        expected = math.log1p(math.exp(-by_hand(x[1], y[1]).item()))
        assert loss(x[:2], y[:2], labels, scale=1.0).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("labels", [torch.ones(6), torch.zeros(6, dtype=torch.int64), torch.full((6,), 3.5)])
def test_one_grade_gives_nothing_to_rank(labels):
    x, y = random_pairs(6, 4)
    for loss in (cosent, angle):
        with pytest.warns(UserWarning, match="all labels of a batch are equal") as caught:
            found = value_and_gradients(lambda a, b, loss=loss: loss(a, b, labels), x, y)
        assert len(caught) == 1
        assert all(bool((part == 0).all()) for part in found)
    with pytest.warns(UserWarning, match="nothing to rank") as caught:
        both = angle_pairs(x, y, labels)
    assert len(caught) == 1  # for both rankings together
    assert both.item() == in_batch_negatives(x, y, labels).item()


def test_mixed_precision_leaves_the_scores_exact():
    x, y = (z.float() for z in random_pairs(8, 16))
    labels = torch.tensor([0, 1] * 4)
    for loss in (lambda: angle_pairs(x, y, labels), lambda: angle_triples(x, y, x.flip(0))):
        with torch.autocast("cpu", torch.bfloat16):
            mixed = loss()
        assert mixed.dtype == torch.float32
        torch.testing.assert_close(mixed, loss(), rtol=0, atol=0)
    half = angle_pairs(x.bfloat16(), y.bfloat16(), labels)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, angle_pairs(x.bfloat16().float(), y.bfloat16().float(), labels))


def test_scores_do_not_depend_on_the_length_of_embeddings():
    x, y = random_pairs(6, 4)
    lengths = torch.rand(6, 1, dtype=torch.float64) * 10 + 0.1
    torch.testing.assert_close(angle_pairs(x * lengths, y / lengths, BINARY), angle_pairs(x, y, BINARY))
    unit = F.normalize(x), F.normalize(y)
    torch.testing.assert_close(angle_pairs(*unit, BINARY), angle_pairs(x, y, BINARY))


@pytest.mark.parametrize("name", ["cosent", "angle", "in_batch_negatives", "angle_pairs"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": torch.ones(5, 4)}, r"x has shape \(6, 4\), y \(5, 4\)"),
        ({"x": torch.ones(6), "y": torch.ones(6)}, r"expected the two sides of pairs \(P, d\)"),
        ({"x": torch.ones(0, 4), "y": torch.ones(0, 4)}, r"\(0, 4\)"),
        ({"labels": torch.ones(5)}, r"labels has shape \(5,\): expected \(6,\)"),
        ({"labels": torch.tensor([0, 1, 0, 1, 0, math.nan])}, "label nan of pair 5"),
    ],
)
def test_errors_of_pairs_name_the_numbers(name, change, message):
    arguments = {"x": torch.ones(6, 4), "y": torch.ones(6, 4), "labels": torch.arange(6), **change}
    with pytest.raises(InputError, match=message):
        LOSSES[name](arguments["x"], arguments["y"], arguments["labels"])


def test_errors_of_options_name_the_numbers():
    x, y = random_pairs(6, 4)
    for loss in (cosent, angle, in_batch_negatives):
        for scale in (0.0, -1.0, math.nan):
            with pytest.raises(InputError, match=f"scale is {scale}"):
                loss(x, y, BINARY, scale=scale)
    with pytest.raises(InputError, match="unknown pooling 'max': choose one of sum, mean"):
        angle(x, y, BINARY, pooling="max")
    with pytest.raises(InputError, match=r"keys has shape \(6,\): expected \(12,\)"):
        in_batch_negatives(x, y, BINARY, keys=torch.arange(6))
    with pytest.raises(InputError, match=r"shapes \(6, 4\), \(6, 4\), \(5, 4\)"):
        angle_triples(x, y, x[:5])
    with pytest.raises(InputError, match=r"keys has shape \(6,\): expected \(18,\)"):
        angle_triples(x, y, x, keys=torch.arange(6))
