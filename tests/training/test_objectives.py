"""Every objective: what its loss is made of, what moves, which checkpoint is kept, and resuming to the byte."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.config import TrainConfig
from repro.data.sampling import Triples, epoch_order, like_or_unlike
from repro.losses import angle_pairs, angle_triples, espresso, info_nce
from repro.losses.espresso import initial_log_weights
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.objectives import ANGLE_PRESETS, ESPRESSO_FORMS, EspressoConfig, LoraConfig
from repro.training import end_to_end
from repro.training.end_to_end import batches, fresh_encoder, own_share, train_encoder
from repro.training.objectives import (
    angle,
    contrastive,
    ese,
    label_ids,
    matryoshka,
    nli_head,
    same_text,
    softmax_over_pairs,
    states_of,
    two_views,
)
from repro.types import InputError

OBJECTIVES = {"simcse": contrastive, "nli": softmax_over_pairs, "angle": angle, "matryoshka": matryoshka, "ese": ese}
FORMS = {
    "paper": {},
    "code": {"espresso": ESPRESSO_FORMS["code"]},
    "learned": {"espresso": EspressoConfig(layer_weights="learned")},
}
KINDS = ["simcse", "nli", "angle", "matryoshka", *(f"ese {form}" for form in FORMS)]
TEXTS = ["a cook", "the driver slept"]


@pytest.fixture(scope="module")
def pairs():
    return like_or_unlike(data.load("nli", split="train", source="microworld"), 96)


@pytest.fixture(scope="module")
def examples(pairs, sentences):
    """What every objective learns from."""
    nli = data.load("nli", split="train", source="microworld", limit=96)
    return {"simcse": sentences[:96], "nli": nli, **dict.fromkeys(("angle", "matryoshka", "ese"), pairs)}


@pytest.fixture
def config(tiny):
    return TrainConfig(
        backbone=tiny, dim=8, batch_size=16, learning_rate=1e-3, sentences=96, check_every=2, save_every=0
    )


@pytest.fixture
def scaling(config):
    """ESE's, and with another objective AnglE's and Matryoshka's."""
    return replace(config, objective="ese", corpus="nli", pooling="mean", max_length=48)


@pytest.fixture
def of_kind(config, scaling):
    def make(kind):
        objective, _, form = kind.partition(" ")
        base = scaling if objective in ("angle", "matryoshka", "ese") else config
        return replace(base, objective=objective, corpus="wiki" if kind == "simcse" else "nli", **FORMS.get(form, {}))

    return make


def spread(encoder, readout):
    """A stand-in for the dev score: any number that the weights decide."""
    return float(encoder.encode(TEXTS, readout=readout).std())


def train(config, examples, dev_score=spread, **options):
    return train_encoder(config, OBJECTIVES[config.objective], examples, dev_score, progress=False, **options)


# bytes


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_configuration_gives_the_same_bytes(of_kind, examples, kind, bytes_of):
    config = of_kind(kind)
    first = train(config, examples[config.objective])
    torch.rand(5)
    second = train(config, examples[config.objective])
    assert bytes_of(first.encoder) == bytes_of(second.encoder)
    assert first.history.losses == second.history.losses
    assert train(replace(config, seed=1), examples[config.objective]).history.losses != first.history.losses


@pytest.mark.parametrize("kind", ["nli", "angle", "ese code", "ese learned"])
def test_a_killed_run_resumes_to_the_same_bytes(of_kind, examples, kind, tmp_path, killed, bytes_of):
    config = replace(of_kind(kind), epochs=4)
    whole = train(config, examples[config.objective])
    options = {"state_path": tmp_path / "state.safetensors", "save_every": 3}
    with pytest.raises(KeyboardInterrupt):
        train(config, examples[config.objective], killed(spread, at=6), **options)
    resumed = train(config, examples[config.objective], **options)
    assert resumed.history.resumed_at > 0
    assert bytes_of(resumed.encoder) == bytes_of(whole.encoder)
    if kind == "nli":
        assert bytes_of(resumed.head) == bytes_of(whole.head)
    if kind == "ese learned":
        assert torch.equal(resumed.log_weights, whole.log_weights)


def test_a_dim_does_not_know_which_others_are_trained(config, sentences, bytes_of):
    alone = train(config, sentences[:96])
    sweep = {dim: train(replace(config, dim=dim), sentences[:96]) for dim in (40, 2, 8)}
    assert bytes_of(sweep[8].encoder) == bytes_of(alone.encoder)
    # data order and dropout are shared: all dims start from the same h, so only the pooler tells them apart
    assert len({trained.dev_before for trained in sweep.values()}) == 1


def test_a_sentence_as_its_own_positive_is_simcse_to_the_byte(config, sentences, bytes_of):
    texts = [*sentences[:31], sentences[0]]  # one twice: masked alike
    plain, own = (
        train(replace(config, temperature=0.1), each) for each in (texts, list(zip(texts, texts, strict=True)))
    )
    assert plain.history.losses == own.history.losses and bytes_of(plain.encoder) == bytes_of(own.encoder)


# what is trained


@pytest.mark.parametrize("kind", ["simcse", "nli", "angle", "matryoshka", "ese paper"])
def test_training_lowers_the_loss_and_moves_all_that_it_should(of_kind, examples, kind, bytes_of, tmp_path):
    config, calls = replace(of_kind(kind), epochs=4), iter(range(1000))
    trained = train(config, examples[config.objective], lambda *_: float(next(calls)))
    losses, fresh = trained.history.losses, fresh_encoder(config)
    assert len(losses) == 24
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    assert bytes_of(trained.encoder.backbone) != bytes_of(fresh.backbone)
    if kind in ("simcse", "nli"):
        assert bytes_of(trained.encoder.pooler) != bytes_of(fresh.pooler)
    else:
        assert trained.encoder.pooler is None and trained.encoder.dim == trained.encoder.hidden_dim == 32
    if kind == "nli":
        assert losses[0] == pytest.approx(np.log(3), abs=0.1)
        assert bytes_of(trained.head) != bytes_of(nli_head(8, config.seed))
    trained.encoder.save(tmp_path / "saved")
    again = SentenceEncoder.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(again.encode_layers(TEXTS), trained.encoder.encode_layers(TEXTS))


@pytest.mark.parametrize(("kind", "readout"), [("simcse", "pooler"), ("simcse", "encoder"), ("ese paper", "encoder")])
def test_the_checkpoint_maximises_the_readout_asked_for(of_kind, examples, kind, readout):
    config = of_kind(kind) if kind != "simcse" else replace(of_kind(kind), checkpoint_by=readout)
    trained = train(config, examples[config.objective])
    assert trained.history.best_score == max(score for _, score in trained.history.checks)
    assert spread(trained.encoder, readout) == trained.history.best_score
    assert trained.dev_before == spread(fresh_encoder(config), "encoder")


def test_dropout_none_keeps_the_backbones_own(config, sentences):
    def probabilities(encoder):
        return {m.p for m in encoder.modules() if isinstance(m, torch.nn.Dropout)}

    assert probabilities(train(config, sentences[:16]).encoder) == {0.1}
    assert probabilities(train(replace(config, dropout=0.25), sentences[:16]).encoder) == {0.25}


def test_a_pooler_of_the_folder_is_left_behind(scaling, tmp_path):
    SentenceEncoder.load(scaling.backbone, dim=4, pooling="mean").save(tmp_path / "pooled")
    assert fresh_encoder(replace(scaling, backbone=str(tmp_path / "pooled"))).pooler is None


def test_learned_layer_weights_move_at_a_rate_of_their_own(scaling, pairs):
    config, start = replace(scaling, **FORMS["learned"]), initial_log_weights(1)
    trained = train(config, pairs)
    moved = (trained.log_weights - start).abs()
    assert trained.log_weights.shape == (1,) and not trained.log_weights.requires_grad
    # Adam takes steps of about the rate: 0.01, falling to 0 over the six
    assert 0.005 < moved.item() < 0.06
    slow = train(replace(config, learning_rate=1e-5), pairs)
    assert (slow.log_weights - start).abs().item() == pytest.approx(moved.item(), rel=0.5)
    assert train(replace(scaling, espresso=EspressoConfig(layer_weights="uniform")), pairs).log_weights is None


@pytest.mark.parametrize("network", ["qwen2", "llama"])
def test_decoders_train_adapters_at_every_layer_and_see_both_ways(scaling, pairs, decoders, network, tmp_path):
    adapters = {"bidirectional": True, "final_norm": "all", "lora": LoraConfig(rank=4)}
    config = replace(scaling, backbone=decoders[network], epochs=2, learning_rate=1e-2, **adapters)
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
    np.testing.assert_allclose(again.encode_layers(TEXTS), trained.encoder.encode_layers(TEXTS), atol=1e-6)


# the loss of SimCSE


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_the_first_loss_is_that_of_the_untrained_embeddings(config, sentences, temperature):
    """Without dropout both views are what `encode` gives."""
    config = replace(config, pooling="mean", max_length=48, dropout=0.0, temperature=temperature, epochs=1 / 6)
    texts = [sentences[i] for i in batches(config, 96)(0)]
    z = torch.from_numpy(SentenceEncoder.load(config.backbone, dim=8, pooling="mean").encode(texts))
    equal = torch.tensor([[a == b for b in texts] for a in texts])
    expected = info_nce(z, z, temperature=temperature, mask=equal).item()
    assert train(config, sentences[:96]).history.losses == [pytest.approx(expected, rel=1e-4)]


def test_the_first_loss_asks_each_sentence_for_its_positive(config, sentences):
    config = replace(config, batch_size=8, pooling="mean", max_length=48, dropout=0.0, temperature=0.02)
    texts, others = sentences[:8], sentences[100:108]  # one batch
    encoder = SentenceEncoder.load(config.backbone, dim=8, pooling="mean")
    z1, z2 = (torch.from_numpy(encoder.encode(side)) for side in (texts, others))
    found = train(config, list(zip(texts, others, strict=True))).history.losses
    assert found == [pytest.approx(info_nce(z1, z2, temperature=0.02).item(), rel=1e-4)]


def test_equal_texts_are_not_pushed_apart(config):
    same = ["the cook thanked the driver"] * 32
    assert train(config, same).history.losses == [0.0, 0.0]  # nothing but the diagonal is left
    published = train(replace(config, mask_duplicates=False), same).history.losses
    assert min(published) > math.log(16) - 0.5  # all texts look like the positive


def test_two_views_differ_by_dropout_alone(tiny, sentences):
    encoder = SentenceEncoder.load(tiny, dim=8)
    ids, _ = encoder.backbone.tokenize(sentences[:5], 48)
    z1, z2 = two_views(encoder, ids, ids)
    torch.testing.assert_close(z1, z2)
    np.testing.assert_allclose(z1.detach().numpy(), encoder.encode(sentences[:5]), atol=1e-5)
    encoder.train()
    z1, z2 = two_views(encoder, ids, ids)
    assert (z1 - z2).abs().max() > 1e-4


def test_no_text_is_a_negative_of_itself():
    anchors, positives = torch.tensor([0, 1, 2, 0]), torch.tensor([5, 2, 6, 7])
    mask = same_text(anchors, positives)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    for i in range(4):
        for j in range(4):
            expected[i, j] = anchors[i] == anchors[j] or positives[i] == positives[j] or anchors[i] == positives[j]
    assert torch.equal(mask, expected) and mask[2, 1] and mask[0, 3]


# the loss of the softmax classifier


def test_the_kind_of_difference_and_the_labels_decide_the_classifiers_loss(of_kind, examples):
    config, nli = of_kind("nli"), examples["nli"]
    assert train(replace(config, difference="signed"), nli).history.losses != train(config, nli).history.losses
    assert set(label_ids(nli).tolist()) == {0, 1, 2}
    odd = replace(nli, labels=np.array(["maybe", *nli.labels[1:]]))
    with pytest.raises(InputError, match="has the label 'maybe': expected contradiction, entailment, neutral"):
        train(config, odd)


# the losses of ESE's comparison


def first_batch(config, examples):
    """Embeddings of the untrained network for the first step, and AnglE as a function of embeddings."""
    members = batches(config, len(examples))(0)
    triples = isinstance(examples, Triples)
    sides = (
        [examples.queries, examples.positives, examples.negatives] if triples else [examples.texts1, examples.texts2]
    )
    texts = [side[i] for side in sides for i in members]
    keys = torch.from_numpy(merge_equal(texts)[1])

    def loss(X):
        if triples:
            return angle_triples(*X.chunk(3), config=config.angle, keys=keys)
        labels = torch.tensor([float(examples.labels[i] == "entailment") for i in members])
        return angle_pairs(*X.chunk(2), labels, config=config.angle, keys=keys)

    layers = torch.from_numpy(SentenceEncoder.load(config.backbone, pooling="mean").encode_layers(texts))
    return layers, loss


@pytest.mark.parametrize("preset", ANGLE_PRESETS)
def test_the_control_is_angle_on_the_last_layer_at_full_size(scaling, pairs, preset):
    config = replace(scaling, objective="angle", dropout=0.0, angle=ANGLE_PRESETS[preset], epochs=1 / 6)
    layers, loss = first_batch(config, pairs)
    assert train(config, pairs).history.losses == [pytest.approx(loss(layers[-1]).item(), rel=1e-4)]


def test_triples_use_the_contrast_with_hard_negatives(scaling, pairs):
    triples = Triples("nli", "made", "train", pairs.texts1, pairs.texts2, (*pairs.texts2[1:], pairs.texts2[0]))
    config = replace(scaling, objective="angle", dropout=0.0, examples="triples", epochs=1 / 6)
    layers, loss = first_batch(config, triples)
    assert train(config, triples).history.losses == [pytest.approx(loss(layers[-1]).item(), rel=1e-4)]


@pytest.mark.parametrize(("prefixes", "sizes"), [((4, 16, 512), (4, 16, 32)), ((), (8, 16, 32))])
def test_matryoshka_is_the_sum_over_prefixes_of_the_last_layer(scaling, pairs, prefixes, sizes):
    config = replace(scaling, objective="matryoshka", dropout=0.0, prefixes=prefixes, epochs=1 / 6)
    layers, loss = first_batch(config, pairs)
    expected = sum(loss(layers[-1][:, :m]) for m in sizes)
    assert train(config, pairs).history.losses == [pytest.approx(expected.item(), rel=1e-4)]


@pytest.mark.parametrize("form", FORMS)
def test_ese_takes_all_layers(scaling, pairs, form):
    config = replace(scaling, dropout=0.0, epochs=1 / 6, **FORMS[form])
    # the exact decomposition: the randomised one has a seed of its own
    config = replace(config, espresso=replace(config.espresso, decomposition="eigh"))
    layers, loss = first_batch(config, pairs)
    weights = initial_log_weights(1) if form == "learned" else None
    expected = espresso(list(layers), loss, size=8, config=config.espresso, log_weights=weights)
    assert train(config, pairs).history.losses == [pytest.approx(expected.item(), rel=1e-3)]


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


def test_copies_of_a_text_are_no_negatives_of_each_other(scaling, pairs):
    config = replace(scaling, objective="angle", epochs=1 / 6, dropout=0.0)
    same = replace(pairs, texts1=(pairs.texts1[0],) * len(pairs), labels=np.array(["entailment"] * len(pairs)))
    with pytest.warns(UserWarning, match="all labels of a batch are equal"):
        masked, unmasked = (train(replace(config, mask_duplicates=m), same).history.losses[0] for m in (True, False))
    assert masked < unmasked - 0.1


# batches


def test_every_epoch_has_an_order_of_its_own(config):
    batch = batches(config, 32)
    orders = [np.concatenate([batch(2 * epoch), batch(2 * epoch + 1)]) for epoch in range(3)]
    assert all(sorted(order) == list(range(32)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_those_with_a_positive_keep_their_order_and_each_epoch_meets_each_once(config, sentences):
    config = replace(config, batch_size=8)
    kept = np.array([i % 3 != 0 for i in range(40)])  # 26 of 40: three batches of 8 an epoch
    batch = batches(config, 40, kept)
    for epoch in range(2):
        seen = np.concatenate([batch(3 * epoch + step) for step in range(3)])
        assert seen.tolist() == [i for i in epoch_order(40, seed=0, epoch=epoch) if kept[i]][:24]
    with pytest.raises(InputError, match="7 of 40 sentences have a positive"):
        batches(config, 40, np.arange(40) < 7)
    some = [*sentences[100:112], *[None] * 4, *sentences[116:124]]
    losses = train(config, list(zip(sentences[:24], some, strict=True))).history.losses
    assert len(losses) == 3, "as many steps as all sentences fill"


def test_shares_of_a_batch(monkeypatch):
    members = np.arange(12)
    assert own_share(members).tolist() == members.tolist()
    monkeypatch.setattr(end_to_end, "world_size", lambda: 3)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert own_share(members).tolist() == [4, 5, 6, 7]
    with pytest.raises(InputError, match="batch_size 10 does not divide among 3 processes"):
        own_share(members[:10])


def test_steps_and_sizes_that_cannot_be_had(config, scaling, sentences, pairs, caplog):
    assert len(train(replace(config, epochs=0.5), sentences[:96]).history.losses) == 3
    with pytest.raises(InputError, match=r"15 sentences do not fill one batch of 16 in 1 epochs"):
        train(config, sentences[:15])
    with pytest.raises(InputError, match=r"compressed size 33 of a hidden size of 32 .*expected 1 to 32"):
        train(replace(scaling, dim=33), pairs)
    small = replace(scaling, dim=16, batch_size=4, espresso=EspressoConfig(strategy="embeddings"))
    with pytest.raises(InputError, match="a batch has 8 texts and no more principal components"):
        train(small, pairs)
    train(replace(small, dim=8, epochs=0.05), pairs)
    with pytest.raises(InputError, match=r"96 pairs do not fill one batch of 128 in 1 epochs"):
        train(replace(scaling, batch_size=128), pairs)
    assert not caplog.records
    train(replace(scaling, pooling="cls", epochs=1 / 6, **FORMS["code"]), pairs)
    assert "layer 0 under cls pooling is one constant vector" in caplog.text


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
from repro.training.end_to_end import train_encoder
from repro.training.objectives import angle, ese
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
    untrained = SentenceEncoder.load(config.backbone, pooling="mean").encode(TEXTS)
    for name, given in plain.items():
        alone = train(TrainConfig(**given, espresso=ESPRESSO_FORMS.get(name, EspressoConfig())), pairs).encoder
        expected = alone.encode(TEXTS)
        np.testing.assert_array_equal(first[name], second[name])
        gap = np.abs(np.array(first[name]) - expected).max()
        assert gap < 0.02 * np.abs(expected - untrained).max(), name
