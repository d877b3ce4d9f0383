import inspect

import pytest
import torch
import torch.nn.functional as F

from repro.losses import angle_pairs, angle_triples, cosent, info_nce, matryoshka, softmax_nli
from repro.types import InputError

DIMS = (2, 3, 8)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def value_and_gradients(loss, *inputs):
    inputs = [z.clone().requires_grad_() for z in inputs]
    value = loss(*inputs)
    return [value, *torch.autograd.grad(value, inputs)]


def assert_alike(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def assert_sum_of_parts(loss, cut, *inputs):
    """The wrapped loss against the parts written out, `cut(m, *inputs)` being the part of size m."""
    for weights in (None, (0.5, 0.0, 2.0)):
        nested = matryoshka(loss, DIMS, weights)
        shares = weights or (1.0,) * len(DIMS)
        expected = value_and_gradients(
            lambda *z, shares=shares: sum(c * cut(m, *z) for m, c in zip(DIMS, shares, strict=True)), *inputs
        )
        assert_alike(value_and_gradients(nested, *inputs), expected)


# the sum of its parts, over losses of every signature


def test_info_nce_with_negatives_and_a_mask():
    z1, z2, z_neg = random(5, 8), random(5, 8, seed=1), random(3, 8, seed=2)
    mask = torch.zeros(5, 5, dtype=torch.bool)
    mask[0, 3] = mask[3, 0] = True
    options = {"temperature": 0.3, "mask": mask}
    nested = matryoshka(info_nce, DIMS)
    found = value_and_gradients(lambda a, b, c: nested(a, b, z_neg=c, **options), z1, z2, z_neg)
    expected = value_and_gradients(
        lambda a, b, c: sum(info_nce(a[:, :m], b[:, :m], z_neg=c[:, :m], **options) for m in DIMS), z1, z2, z_neg
    )
    assert_alike(found, expected)


def test_angle_on_pairs_and_triples():
    x, y, labels = random(6, 8), random(6, 8, seed=1), torch.tensor([0, 1, 1, 0, 1, 0])
    keys = torch.arange(12)
    nested = matryoshka(angle_pairs, DIMS)
    found = value_and_gradients(lambda a, b: nested(a, b, labels, keys=keys), x, y)
    expected = value_and_gradients(
        lambda a, b: sum(angle_pairs(a[:, :m], b[:, :m], labels, keys=keys) for m in DIMS), x, y
    )
    assert_alike(found, expected)
    n = random(6, 8, seed=2)
    assert_sum_of_parts(angle_triples, lambda m, q, p, n: angle_triples(q[:, :m], p[:, :m], n[:, :m]), x, y, n)


def test_graded_labels_are_not_cut():
    x, y, labels = random(8, 8), random(8, 8, seed=1), random(8, seed=2)
    nested = matryoshka(cosent, DIMS)
    found = value_and_gradients(lambda a, b: nested(a, b, labels), x, y)
    assert_alike(found, value_and_gradients(lambda a, b: sum(cosent(a[:, :m], b[:, :m], labels) for m in DIMS), x, y))


def test_the_classifier_is_cut_in_blocks():
    u, v, weight, bias = random(6, 8), random(6, 8, seed=1), random(3, 24, seed=2), random(3, seed=3)
    labels = torch.tensor([0, 1, 2, 2, 1, 0])
    nested = matryoshka(softmax_nli, DIMS)

    def part(m, u, v, weight, bias):
        blocks = torch.cat([weight[:, :m], weight[:, 8 : 8 + m], weight[:, 16 : 16 + m]], dim=1)
        return softmax_nli(u[:, :m], v[:, :m], labels, blocks, bias)

    inputs = u, v, weight, bias
    found = value_and_gradients(lambda u, v, weight, bias: nested(u, v, labels, weight, bias), *inputs)
    assert_alike(found, value_and_gradients(lambda *z: sum(part(m, *z) for m in DIMS), *inputs))


def test_a_loss_of_one_matrix():
    assert_sum_of_parts(lambda X: X.square().mean(), lambda m, X: X[:, :m].square().mean(), random(4, 8))


# theorems


def test_the_full_size_alone_is_the_loss_itself():
    x, y = random(6, 8), random(6, 8, seed=1)
    assert_alike(value_and_gradients(matryoshka(info_nce, (8,)), x, y), value_and_gradients(info_nce, x, y))


def test_a_coordinate_learns_only_from_prefixes_that_hold_it():
    x, y = random(6, 8), random(6, 8, seed=1)
    _, *gradients = value_and_gradients(matryoshka(info_nce, (3, 5)), x, y)
    for gradient in gradients:
        assert bool((gradient[:, 5:] == 0).all()) and bool((gradient[:, :5] != 0).all())
    # coordinates 3 and 4 learn from the prefix of 5 alone
    _, *alone = value_and_gradients(lambda a, b: info_nce(a[:, :5], b[:, :5]), x, y)
    for gradient, expected in zip(gradients, alone, strict=True):
        torch.testing.assert_close(gradient[:, 3:5], expected[:, 3:5])


def test_every_prefix_is_normalised_anew():
    x, y = random(6, 8), random(6, 8, seed=1)
    scales = torch.logspace(-2, 2, 6, dtype=torch.float64).unsqueeze(1)
    nested = matryoshka(info_nce, DIMS)
    torch.testing.assert_close(nested(x * scales, y), nested(x, y))


def test_keeps_the_signature():
    nested = matryoshka(info_nce, (2,))
    assert inspect.signature(nested) == inspect.signature(info_nce)


# oracle


def test_equals_the_matryoshka_loss_of_sentence_transformers():
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")

    class Embeddings(torch.nn.Module):
        """Stands for a model whose two columns of texts have these embeddings."""

        def __init__(self, *columns):
            super().__init__()
            self.columns = torch.nn.ParameterList([z.clone() for z in columns])

        def forward(self, features):
            return {"sentence_embedding": self.columns[features["column"]]}

        def get_embedding_dimension(self):
            return self.columns[0].shape[1]

    class InBatch(torch.nn.Module):
        """Cross-entropy of cosine/0.05 over the other column."""

        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, features, labels):
            a, b = (F.normalize(self.model(f)["sentence_embedding"]) for f in features)
            return F.cross_entropy(a @ b.T / 0.05, torch.arange(len(a)))

    x, y = random(6, 8), random(6, 8, seed=1)
    model = Embeddings(x, y)
    theirs = losses.MatryoshkaLoss(model, InBatch(model), [8, 3, 2], [1.0, 0.5, 2.0])
    value = theirs([{"column": 0}, {"column": 1}], None)
    expected = [value, *torch.autograd.grad(value, list(model.columns))]
    assert_alike(value_and_gradients(matryoshka(info_nce, (2, 3, 8), (2.0, 0.5, 1.0)), x, y), expected)


# mistakes


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((), r"dims are \[\]: expected at least one"),
        ((2, 2), r"dims are \[2, 2\]: expected .* none twice"),
        ((8, 4), r"dims are \[8, 4\]: expected .* increasing"),
        ((0, 4), "dim is 0: expected at least 1"),
        ((2.5,), "dim is 2.5: expected a whole number"),
    ],
)
def test_errors_of_sizes(dims, message):
    with pytest.raises(InputError, match=message):
        matryoshka(info_nce, dims)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0), (1.0, float("nan"))])
def test_errors_of_weights(weights):
    with pytest.raises(InputError, match="expected 2 numbers of 0 or more"):
        matryoshka(info_nce, (2, 4), weights)


def test_errors_of_a_call():
    nested = matryoshka(info_nce, (2, 9))
    with pytest.raises(InputError, match="dim 9 exceeds the 8 columns"):
        nested(random(4, 8), random(4, 8))
    with pytest.raises(InputError, match="no floating matrix"):
        nested(torch.arange(8).reshape(2, 4))
    # a matrix of another width passes as it is, and the loss says that it does not fit
    with pytest.raises(InputError, match=r"z_neg has shape \(2, 5\)"):
        matryoshka(info_nce, (2,))(random(4, 8), random(4, 8), z_neg=random(2, 5))
