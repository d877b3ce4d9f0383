"""Every objective: what its loss is made of, what moves, and which checkpoint is kept."""

import functools
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
from repro.models.packing import merge_equal
from repro.objectives import objective_of
from repro.runs.cell import LOSSES
from repro.settings import ANGLE_PRESETS, ESPRESSO_FORMS, EspressoConfig, LoraConfig
from repro.training.end_to_end import batches, fresh_encoder, train_encoder
from repro.training.ese import PREFIXES, states_of, texts_and_labels
from repro.training.loop import LoopConfig
from repro.training.nli import label_ids, nli_head
from repro.training.state import History
from repro.types import InputError

LEARNED = {"espresso": EspressoConfig(layer_weights="learned")}
FORMS = {"paper": {}, "code": {"espresso": ESPRESSO_FORMS["code"]}, "learned": LEARNED}
KINDS = ["simcse", "nli", "angle", "matryoshka", *(f"ese {form}" for form in FORMS)]
TEXTS = ["a cook", "the driver slept"]


@pytest.fixture(scope="module")
def pairs():
    return like_or_unlike(data.load("nli", split="train", source="microworld"), 96)


@pytest.fixture(scope="module")
def examples(pairs, sentences):
    """What every objective learns from."""
    nli = data.load("nli", split="train", source="microworld", limit=96)
    return {
        "simcse": sentences[:96],
        "nli": nli,
        **dict.fromkeys(("angle", "matryoshka", "ese"), pairs),
    }


@pytest.fixture(scope="module")
def config(tiny):
    short = {
        "batch_size": 16,
        "learning_rate": 1e-3,
        "sentences": 96,
        "check_every": 2,
        "save_every": 0,
    }
    return TrainConfig(backbone=tiny, dim=8, **short)


@pytest.fixture(scope="module")
def scaling(config):
    """ESE's, and with another objective AnglE's and Matryoshka's."""
    return replace(config, objective="ese", corpus="nli", pooling="mean", max_length=48)


@pytest.fixture(scope="module")
def trained(config, scaling, examples):
    """A configuration of each kind, and what two epochs of it give."""

    @functools.cache
    def of_kind(kind):
        objective, _, form = kind.partition(" ")
        base = config if kind in ("simcse", "nli") else scaling
        own = {
            "objective": objective,
            "corpus": "wiki" if kind == "simcse" else "nli",
            **FORMS.get(form, {}),
        }
        given = replace(base, **own, epochs=2, learning_rate=3e-3)
        return given, train(given, examples[objective])

    return of_kind


def spread(encoder, readout):
    """A stand-in for the dev score: any number that the weights decide."""
    return float(encoder.encode(TEXTS, readout=readout).std())


def begun(config):
    """The encoder as a training of the configuration begins with it."""
    return fresh_encoder(config, pooler=objective_of(config).pooler)


def train(config, examples, dev_score=spread, **options):
    return train_encoder(
        config,
        LOSSES[config.objective],
        examples,
        dev_score,
        pooler=objective_of(config).pooler,
        progress=False,
        **options,
    )


def first_loss(config, examples):
    """The loss of the untrained network without dropout, when both views are what `encode`
    gives.
    """
    (loss,) = train(
        replace(config, dropout=0.0, epochs=config.batch_size / len(examples)),
        examples,
    ).history.losses
    return loss


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls_all_moves_that_should_and_the_same_gives_the_same_bytes(
    trained,
    examples,
    kind,
    bytes_of,
):
    config, first = trained(kind)
    losses, fresh = first.history.losses, begun(config)
    assert len(losses) == 12
    # Two epochs; the released form's random targets move too much to tell in so few steps
    if kind in KINDS[:5]:
        assert np.mean(losses[6:]) < np.mean(losses[:6])
    assert bytes_of(first.encoder.backbone) != bytes_of(fresh.backbone)
    if kind in ("simcse", "nli"):
        assert bytes_of(first.encoder.pooler) != bytes_of(fresh.pooler)
    else:
        assert first.encoder.pooler is None and first.encoder.dim == first.encoder.hidden_dim == 32
    if kind == "nli":
        assert losses[0] == pytest.approx(np.log(3), abs=0.1)
        assert bytes_of(first.head) != bytes_of(nli_head(8, config.seed))
    torch.rand(5)
    # Another dim of a sweep: data order and dropout are shared, all start from the same h
    if kind == "simcse":
        assert train(replace(config, dim=40), examples["simcse"]).dev_before == first.dev_before
        assert (
            train(replace(config, seed=1), examples["simcse"]).history.losses
            != first.history.losses
        )
    second = train(config, examples[config.objective])
    assert bytes_of(first.encoder) == bytes_of(second.encoder) and losses == second.history.losses


def test_the_checkpoint_maximises_the_readout_asked_for(trained, examples):
    simcse, kept = trained("simcse")
    by_state = train(replace(simcse, checkpoint_by="encoder"), examples["simcse"])
    for found, readout in (
        (kept, "pooler"),
        (by_state, "encoder"),
        (trained("ese paper")[1], "encoder"),
    ):
        assert found.history.best_score == max(score for _, score in found.history.checks)
        assert spread(found.encoder, readout) == found.history.best_score
    assert kept.dev_before == spread(begun(simcse), "encoder")


def test_dropout_none_keeps_the_backbones_own_and_a_pooler_of_the_folder_is_left_behind(
    config,
    scaling,
    tmp_path,
):
    def probabilities(**changes):
        return {
            m.p
            for m in begun(replace(config, **changes)).modules()
            if isinstance(m, torch.nn.Dropout)
        }

    assert probabilities() == {0.1} and probabilities(dropout=0.25) == {0.25}
    SentenceEncoder.load(scaling.backbone, dim=4, pooling="mean").save(tmp_path / "pooled")
    assert begun(replace(scaling, backbone=str(tmp_path / "pooled"))).pooler is None


def test_learned_layer_weights_move_at_a_rate_of_their_own(scaling, pairs, trained):
    config, start = replace(scaling, **FORMS["learned"]), initial_log_weights(1)
    quick, slow = (
        train(replace(config, learning_rate=rate), pairs).log_weights for rate in (1e-3, 1e-5)
    )
    assert quick.shape == (1,) and not quick.requires_grad
    # Adam takes steps of about the rate: 0.01, falling to 0 over the six
    assert 0.005 < (quick - start).abs().item() < 0.06
    assert (slow - start).abs().item() == pytest.approx((quick - start).abs().item(), rel=0.5)
    assert trained("ese paper")[1].log_weights is None


def test_decoders_train_adapters_at_every_layer_and_see_both_ways(scaling, pairs, decoders):
    adapters = {"bidirectional": True, "final_norm": "all", "lora": LoraConfig(rank=4)}
    config = replace(scaling, backbone=decoders["qwen2"], learning_rate=1e-2, **adapters)
    trained = train(config, pairs)
    backbone = trained.encoder.backbone
    assert (backbone.bidirectional, backbone.final_norm, backbone.lora) == (
        True,
        "all",
        config.lora,
    )
    fresh = begun(config).state_dict()
    moved = {
        name
        for name, weight in trained.encoder.state_dict().items()
        if not torch.equal(weight, fresh[name])
    }
    assert moved and all(".lora_" in name for name in moved), (
        "the published weights stay as they were"
    )
    assert {int(re.search(r"\.(\d+)\.", name)[1]) for name in moved} == set(
        range(backbone.n_layers)
    )


@pytest.mark.parametrize("temperature", [0.05, 0.5])
@pytest.mark.parametrize("given", [False, True])
def test_the_first_loss_is_that_of_the_untrained_embeddings(config, sentences, temperature, given):
    config = replace(config, pooling="mean", max_length=48, temperature=temperature)
    encoder, rows = (
        SentenceEncoder.load(config.backbone, dim=8, pooling="mean"),
        batches(config, 96)(0),
    )
    others = list(sentences[100:196] if given else sentences[:96])
    if given:
        others[rows[0]] = sentences[rows[1]]  # Which starts a pair of its own
    sides = [[side[i] for i in rows] for side in (sentences, others)]
    z1, z2 = (torch.from_numpy(encoder.encode(side)) for side in sides)
    rows_of = list(zip(*sides, strict=True))
    equal = torch.tensor([[a in (b, d) or c == d for b, d in rows_of] for a, c in rows_of])
    expected = info_nce(z1, z2, temperature=temperature, mask=equal).item()
    examples = list(zip(sentences[:96], others, strict=True)) if given else sentences[:96]
    assert first_loss(config, examples) == pytest.approx(expected, rel=1e-4)


def test_equal_texts_are_not_pushed_apart(config):
    same = ["the cook thanked the driver"] * 32
    assert train(config, same).history.losses == [0.0, 0.0]  # Nothing but the diagonal is left
    published = train(replace(config, mask_duplicates=False), same).history.losses
    assert min(published) > math.log(16) - 0.5  # All texts look like the positive


def test_the_kind_of_difference_and_the_labels_decide_the_classifiers_loss(trained, examples):
    config, nli = replace(trained("nli")[0], epochs=1 / 6), examples["nli"]
    assert (
        train(replace(config, difference="signed"), nli).history.losses
        != trained("nli")[1].history.losses[:1]
    )
    assert set(label_ids(nli).tolist()) == {0, 1, 2}
    odd = replace(nli, labels=np.array(["maybe", *nli.labels[1:]]))
    with pytest.raises(
        InputError,
        match="has the label 'maybe': expected contradiction, entailment, neutral",
    ):
        train(config, odd)


def first_batch(config, examples):
    """Embeddings of the untrained network for the first step, and AnglE as a function of
    embeddings.
    """
    members = batches(config, len(examples))(0)
    sides, labels = texts_and_labels(examples)
    texts = [side[i] for side in sides for i in members]
    keys = torch.from_numpy(merge_equal(texts)[1])

    def loss(X):
        if len(sides) == 3:
            return angle_triples(*X.chunk(3), config=config.angle, keys=keys)
        return angle_pairs(*X.chunk(2), labels[members], config=config.angle, keys=keys)

    layers = torch.from_numpy(
        SentenceEncoder.load(config.backbone, pooling="mean").encode_layers(texts)
    )
    return layers, loss


def on_sizes(*sizes):
    return lambda layers, loss, config: sum(loss(layers[-1][:, :m]) for m in sizes)


def on_all(layers, loss, config):
    weights = initial_log_weights(1) if config.espresso.layer_weights == "learned" else None
    return espresso(list(layers), loss, size=8, config=config.espresso, log_weights=weights)


TRIPLES = {"objective": "angle", "examples": "triples"}


# ESE with the exact decomposition: the randomised one has a seed of its own
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(
            ({"objective": "angle", "angle": preset}, on_sizes(32))
            for preset in ANGLE_PRESETS.values()
        ),
        (TRIPLES, on_sizes(32)),
        (TRIPLES | {"angle": ANGLE_PRESETS["code"]}, on_sizes(32)),
        ({"objective": "matryoshka", "prefixes": (4, 16, 512)}, on_sizes(4, 16, 32)),
        ({"objective": "matryoshka", "prefixes": (4, 31, 32)}, on_sizes(4, 31, 32)),
        ({"objective": "matryoshka"}, on_sizes(8, 16, 32)),
        ({}, on_all),
        ({"espresso": replace(ESPRESSO_FORMS["code"], decomposition="eigh")}, on_all),
        (FORMS["learned"], on_all),
    ],
)
def test_the_first_loss_of_the_comparison_is_what_the_objective_says(
    scaling,
    pairs,
    changes,
    expected,
):
    config, examples = replace(scaling, **changes), pairs
    if config.examples == "triples":
        examples = Triples(pairs.texts1, pairs.texts2, (*pairs.texts2[1:], pairs.texts2[0]))
    layers, loss = first_batch(config, examples)
    assert first_loss(config, examples) == pytest.approx(
        expected(layers, loss, config).item(),
        rel=1e-3,
    )


def test_labels_and_sides(pairs):
    (one, two), labels = texts_and_labels(pairs)
    assert (one, two) == (pairs.texts1, pairs.texts2)
    assert labels.tolist() == [float(label == "entailment") for label in pairs.labels]


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


def test_a_decomposition_starts_anew_by_step_and_seed_at_its_size(scaling, pairs, monkeypatch):
    config, seen = replace(scaling, dim=5, epochs=0.5, espresso=ESPRESSO_FORMS["code"]), []

    def watched(*given, **options):
        seen.append(options)
        return espresso(*given, **options)

    monkeypatch.setattr("repro.training.ese.espresso", watched)
    for seed in (0, 1):
        train(replace(config, seed=seed), pairs)
    assert len({options["seed"] for options in seen}) == len(seen) == 6
    assert {(options["size"], options["config"]) for options in seen} == {(5, config.espresso)}


def test_an_encoder_begins_as_the_configuration_says(config, scaling, bytes_of):
    said = {"layers": 1, "pooling": "mean", "activation": "identity", "dim": 5}
    encoder = begun(replace(config, **said))
    assert (encoder.n_layers, encoder.pooling, encoder.dim) == (1, "mean", 5)
    assert encoder.pooler.activation == "identity"
    for base in (config, replace(scaling, lora=LoraConfig(rank=2))):
        first, again, other = (begun(replace(base, seed=seed)) for seed in (1, 1, 2))
        assert bytes_of(first) == bytes_of(again) != bytes_of(other)


def test_unless_told_otherwise_prefixes_are_those_of_matryoshka_representation_learning():
    assert PREFIXES == (8, 16, 32, 64, 128, 256, 512, 768)  # As the configuration says


def test_the_settings_of_the_schedule_reach_the_loop(config, sentences, monkeypatch):
    seen = []

    def no_steps(module, loss_at, loop, **told):
        seen.append(loop)
        return History()

    monkeypatch.setattr("repro.training.end_to_end.train", no_steps)
    how = {"warmup": 0.3, "learning_rate": 7e-4, "check_every": 5, "save_every": 9, "seed": 3}
    train(replace(config, bf16=True, epochs=2, **how), sentences[:96])
    assert seen == [LoopConfig(steps=12, bf16=True, **how)]


def test_copies_of_a_text_are_no_negatives_of_each_other(scaling, pairs):
    config = replace(scaling, objective="angle")
    same = replace(
        pairs,
        texts1=(pairs.texts1[0],) * len(pairs),
        labels=np.array(["entailment"] * len(pairs)),
    )
    with pytest.warns(UserWarning, match="all labels of a batch are equal"):
        masked, unmasked = (
            first_loss(replace(config, mask_duplicates=m), same) for m in (True, False)
        )
    assert masked < unmasked - 0.1


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


def test_steps_and_sizes_that_cannot_be_had(config, scaling, sentences, pairs):
    assert len(train(replace(config, epochs=0.5), sentences[:96]).history.losses) == 3
    with pytest.raises(InputError, match=r"15 sentences do not fill one batch of 16 in 1 epochs"):
        train(config, sentences[:15])
    with pytest.raises(InputError, match="compressed size is 33: expected 1 to 32"):
        train(replace(scaling, dim=33), pairs)
