"""AnglE, Matryoshka and ESE on entailment pairs or triples: what the loss is made of, what moves, and resuming."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.config import TrainConfig
from repro.data.sampling import Triples, like_or_unlike
from repro.losses import angle_pairs, angle_triples, espresso
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.objectives import ANGLE_PRESETS, ESPRESSO_FORMS, EspressoConfig, LoraConfig
from repro.training.angle import angle, matryoshka, prefix_sizes, states_of
from repro.training.end_to_end import batches, fresh_encoder, train_encoder
from repro.training.ese import ese, learned_weights
from repro.types import InputError

OBJECTIVES = {"angle": angle, "matryoshka": matryoshka, "ese": ese}
FORMS = {
    "paper": {},
    "code": {"espresso": ESPRESSO_FORMS["code"]},
    "learned": {"espresso": EspressoConfig(layer_weights="learned")},
}


@pytest.fixture(scope="module")
def pairs():
    return like_or_unlike(data.load("nli", split="train", source="microworld"), 96)


@pytest.fixture(scope="module")
def triples(pairs):
    other = (*pairs.texts2[1:], pairs.texts2[0])
    return Triples("nli", "microworld", "train", pairs.texts1, pairs.texts2, other)


@pytest.fixture
def config(tiny):
    return TrainConfig(
        objective="ese",
        corpus="nli",
        backbone=tiny,
        dim=8,
        pooling="mean",
        batch_size=16,
        learning_rate=1e-3,
        check_every=2,
        sentences=96,
        save_every=0,
        max_length=48,
    )


def spread(encoder, readout):
    """A stand-in for the dev score: any number that the weights decide."""
    return float(encoder.encode(["a cook", "the driver slept"], readout=readout).std())


def train(config, examples, dev_score=spread, **options):
    return train_encoder(config, OBJECTIVES[config.objective], examples, dev_score, progress=False, **options)


def bytes_of(module):
    return b"".join(value.numpy().tobytes() for value in module.state_dict().values())


# the loss


def first_batch(config, examples):
    """Texts of the first step, one side after the other, with their labels and keys."""
    members = batches(config, len(examples))(0)
    if isinstance(examples, Triples):
        sides = [examples.queries, examples.positives, examples.negatives]
    else:
        sides = [examples.texts1, examples.texts2]
    texts = [side[i] for side in sides for i in members]
    labels = [] if isinstance(examples, Triples) else [float(examples.labels[i] == "entailment") for i in members]
    return texts, torch.tensor(labels), torch.from_numpy(merge_equal(texts)[1])


@pytest.mark.parametrize("preset", ANGLE_PRESETS)
def test_the_control_is_angle_on_the_last_layer_at_full_size(config, pairs, preset):
    config = replace(config, objective="angle", dropout=0.0, angle=ANGLE_PRESETS[preset], epochs=1 / 6)
    texts, labels, keys = first_batch(config, pairs)
    X = torch.from_numpy(SentenceEncoder.load(config.backbone, pooling="mean").encode(texts))
    expected = angle_pairs(*X.chunk(2), labels, config=config.angle, keys=keys)
    assert train(config, pairs).history.losses == [pytest.approx(expected.item(), rel=1e-4)]


def test_triples_use_the_contrast_with_hard_negatives(config, triples):
    config = replace(config, objective="angle", dropout=0.0, examples="triples", epochs=1 / 6)
    texts, _, keys = first_batch(config, triples)
    X = torch.from_numpy(SentenceEncoder.load(config.backbone, pooling="mean").encode(texts))
    expected = angle_triples(*X.chunk(3), config=config.angle, keys=keys)
    assert train(config, triples).history.losses == [pytest.approx(expected.item(), rel=1e-4)]


def test_matryoshka_is_the_sum_over_prefixes_of_the_last_layer(config, pairs):
    config = replace(config, objective="matryoshka", dropout=0.0, prefixes=(4, 16, 512), epochs=1 / 6)
    texts, labels, keys = first_batch(config, pairs)
    X = torch.from_numpy(SentenceEncoder.load(config.backbone, pooling="mean").encode(texts))
    parts = [angle_pairs(*X[:, :m].chunk(2), labels, config=config.angle, keys=keys) for m in (4, 16, 32)]
    assert train(config, pairs).history.losses == [pytest.approx(sum(parts).item(), rel=1e-4)]


@pytest.mark.parametrize("form", FORMS)
def test_ese_takes_all_layers(config, pairs, form):
    config = replace(config, dropout=0.0, epochs=1 / 6, **FORMS[form])
    texts, labels, keys = first_batch(config, pairs)
    encoder = SentenceEncoder.load(config.backbone, pooling="mean")
    layers = torch.from_numpy(encoder.encode_layers(texts))

    def loss(X):
        return angle_pairs(*X.chunk(2), labels, config=config.angle, keys=keys)

    # the exact decomposition: the randomised one has a seed of its own
    exact = replace(config, espresso=replace(config.espresso, decomposition="eigh"))
    weights = learned_weights(exact, encoder)
    expected = espresso(list(layers), loss, size=8, config=exact.espresso, log_weights=weights)
    assert train(exact, pairs).history.losses == [pytest.approx(expected.item(), rel=1e-3)]


def test_texts_of_like_length_are_padded_together_and_come_back_in_order(config, pairs):
    encoder = SentenceEncoder.load(config.backbone, pooling="mean")
    texts = [*pairs.texts1[:20], *pairs.texts2[:20]]
    ids, _ = encoder.backbone.tokenize(texts)
    padding = []
    padded = encoder.padded
    encoder.padded = lambda rows: padding.append(len(rows) * max(map(len, rows))) or padded(rows)
    states = states_of(encoder, ids, [0, 2])
    expected = encoder.encode_layers(texts, [0, 2])
    np.testing.assert_allclose(torch.stack(states).detach().numpy(), expected, atol=1e-5)
    assert sum(padding[:4]) < 0.9 * len(ids) * max(map(len, ids))


def test_prefixes_are_cut_at_the_hidden_size_and_hold_it():
    assert prefix_sizes((), 128) == (8, 16, 32, 64, 128)
    assert prefix_sizes((), 384) == (8, 16, 32, 64, 128, 256, 384)
    assert prefix_sizes((2, 32, 64), 32) == (2, 32)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_pass_over_the_texts_of_a_batch_gives_everything(config, pairs, objective, monkeypatch):
    batches_read = []
    pooled = SentenceEncoder.pooled

    def counted(self, ids, mask, layers=None):
        if self.training:
            batches_read.append(len(ids))
        return pooled(self, ids, mask, layers)

    monkeypatch.setattr(SentenceEncoder, "pooled", counted)
    train(replace(config, objective=objective), pairs)
    assert sum(batches_read) == 32 * 6


def test_equal_texts_are_no_negatives_of_each_other(config, pairs):
    config = replace(config, objective="angle", epochs=1 / 6, dropout=0.0)
    same = replace(pairs, texts1=(pairs.texts1[0],) * len(pairs), labels=np.array(["entailment"] * len(pairs)))
    with pytest.warns(UserWarning, match="all labels of a batch are equal"):
        masked, unmasked = (train(replace(config, mask_duplicates=m), same).history.losses[0] for m in (True, False))
    assert masked < unmasked - 0.1


# what is trained


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_training_lowers_the_loss_and_leaves_an_encoder_without_pooler(config, pairs, objective, tmp_path):
    trained = train(replace(config, objective=objective, epochs=4), pairs)
    losses = trained.history.losses
    assert len(losses) == 24
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    encoder = trained.encoder
    assert encoder.pooler is None and encoder.dim == encoder.hidden_dim == 32
    assert bytes_of(encoder.backbone) != bytes_of(SentenceEncoder.load(config.backbone).backbone)
    encoder.save(tmp_path / "saved")
    again = SentenceEncoder.load(str(tmp_path / "saved"))
    texts = ["a cook", "the driver slept"]
    np.testing.assert_array_equal(again.encode_layers(texts), encoder.encode_layers(texts))


def test_a_pooler_of_the_folder_is_left_behind(config, pairs, tmp_path):
    SentenceEncoder.load(config.backbone, dim=4, pooling="mean").save(tmp_path / "pooled")
    trained = train(replace(config, backbone=str(tmp_path / "pooled")), pairs)
    assert trained.encoder.pooler is None


def test_the_checkpoint_is_that_of_the_last_layer_at_full_size(config, pairs):
    asked = []

    def score(encoder, readout):
        asked.append(readout)
        return spread(encoder, readout)

    trained = train(config, pairs, score)
    assert set(asked) == {"encoder"}
    assert spread(trained.encoder, "encoder") == trained.history.best_score
    assert trained.dev_before == spread(SentenceEncoder.load(config.backbone, pooling="mean"), "encoder")


def test_learned_layer_weights_move_at_a_rate_of_their_own(config, pairs):
    config = replace(config, **FORMS["learned"])
    start = learned_weights(config, SentenceEncoder.load(config.backbone))
    trained = train(config, pairs)
    moved = (trained.log_weights - start).abs()
    assert trained.log_weights.shape == (1,) and not trained.log_weights.requires_grad
    # Adam takes steps of about the rate: 0.01, falling to 0 over the six
    assert 0.005 < moved.item() < 0.06
    slow = train(replace(config, learning_rate=1e-5), pairs)
    assert (slow.log_weights - start).abs().item() == pytest.approx(moved.item(), rel=0.5)
    assert train(replace(config, espresso=EspressoConfig(layer_weights="uniform")), pairs).log_weights is None


@pytest.mark.parametrize("network", ["qwen2", "llama"])
def test_decoders_train_adapters_at_every_layer_and_see_both_ways(config, pairs, decoders, network, tmp_path):
    config = replace(
        config,
        backbone=decoders[network],
        bidirectional=True,
        final_norm="all",
        lora=LoraConfig(rank=4),
        epochs=2,
        learning_rate=1e-2,
    )
    trained = train(config, pairs)
    backbone = trained.encoder.backbone
    assert (backbone.bidirectional, backbone.final_norm, backbone.lora) == (True, "all", config.lora)
    assert np.mean(trained.history.losses[-3:]) < np.mean(trained.history.losses[:3])
    fresh = fresh_encoder(config).state_dict()
    moved = {name for name, weight in trained.encoder.state_dict().items() if not torch.equal(weight, fresh[name])}
    assert moved and all(".lora_" in name for name in moved), "the published weights stay as they were"
    assert {int(re.search(r"\.(\d+)\.", name)[1]) for name in moved} == set(range(backbone.n_layers))
    trained.encoder.save(tmp_path / "saved")
    again = SentenceEncoder.load(str(tmp_path / "saved"))
    texts = ["a cook", "the driver slept"]
    np.testing.assert_allclose(again.encode_layers(texts), trained.encoder.encode_layers(texts), atol=1e-6)


# bytes


@pytest.mark.parametrize(
    ("objective", "form"), [("angle", "paper"), ("matryoshka", "paper"), *(("ese", form) for form in FORMS)]
)
def test_the_same_configuration_gives_the_same_bytes(config, pairs, objective, form):
    config = replace(config, objective=objective, **FORMS[form])
    first = train(config, pairs)
    torch.rand(5)
    second = train(config, pairs)
    assert bytes_of(first.encoder) == bytes_of(second.encoder)
    assert first.history.losses == second.history.losses
    assert train(replace(config, seed=1), pairs).history.losses != first.history.losses


@pytest.mark.parametrize(("objective", "form"), [("angle", "paper"), ("ese", "code"), ("ese", "learned")])
def test_a_killed_run_resumes_to_the_same_bytes(config, pairs, objective, form, tmp_path, killed):
    config = replace(config, objective=objective, epochs=4, **FORMS[form])
    whole = train(config, pairs)
    options = {"state_path": tmp_path / "state.safetensors", "save_every": 3}
    with pytest.raises(KeyboardInterrupt):
        train(config, pairs, killed(spread, at=6), **options)
    resumed = train(config, pairs, **options)
    assert resumed.history.resumed_at > 0
    assert bytes_of(resumed.encoder) == bytes_of(whole.encoder)
    if form == "learned":
        assert torch.equal(resumed.log_weights, whole.log_weights)


SHARED = """
import json, sys
import torch
torch.set_num_threads(1)
from accelerate import PartialState
PartialState(cpu=True)
from repro import data
from repro.config import TrainConfig
from repro.data.sampling import like_or_unlike
from repro.objectives import ESPRESSO_FORMS
from repro.training.angle import angle
from repro.training.end_to_end import train_encoder
from repro.training.ese import ese
pairs = like_or_unlike(data.load("nli", split="train", source="microworld"), 96)
found = {}
for name, given in json.loads(sys.argv[2]).items():
    config = TrainConfig(**{**given, "espresso": ESPRESSO_FORMS.get(name, ESPRESSO_FORMS["paper"])})
    objective = ese if config.objective == 'ese' else angle
    trained = train_encoder(config, objective, pairs, lambda *_: 0.0, progress=False)
    found[name] = trained.encoder.encode(["a cook", "the driver slept"]).tolist()
print(json.dumps(found))
"""


def test_two_processes_train_like_one(config, pairs, two_processes):
    shared = {"objective": "ese", "corpus": "nli", "backbone": config.backbone, "dim": 8, "pooling": "mean"}
    shared |= {"batch_size": 16, "learning_rate": 1e-3, "check_every": 0, "save_every": 0, "dropout": 0.0}
    plain = {"angle": {**shared, "objective": "angle"}, "paper": shared, "code": shared}
    first, second = two_processes(SHARED, json.dumps(plain))
    texts = ["a cook", "the driver slept"]
    untrained = SentenceEncoder.load(config.backbone, pooling="mean").encode(texts)
    for name, given in plain.items():
        alone = train(TrainConfig(**given, espresso=ESPRESSO_FORMS.get(name, EspressoConfig())), pairs).encoder
        expected = alone.encode(texts)
        np.testing.assert_array_equal(first[name], second[name])
        gap = np.abs(np.array(first[name]) - expected).max()
        assert gap < 0.02 * np.abs(expected - untrained).max(), name


# mistakes


def test_sizes_that_cannot_be_had(config, pairs, caplog):
    with pytest.raises(InputError, match=r"compressed size 33 of a hidden size of 32 .*expected 1 to 32"):
        train(replace(config, dim=33), pairs)
    small = replace(config, dim=16, batch_size=4, espresso=EspressoConfig(strategy="embeddings"))
    with pytest.raises(InputError, match="a batch has 8 texts and no more principal components"):
        train(small, pairs)
    train(replace(small, dim=8, epochs=0.05), pairs)
    with pytest.raises(InputError, match=r"96 pairs do not fill one batch of 128 in 1 epochs"):
        train(replace(config, batch_size=128), pairs)
    assert not caplog.records
    train(replace(config, pooling="cls", epochs=1 / 6, **FORMS["code"]), pairs)
    assert "layer 0 under cls pooling is one constant vector" in caplog.text
