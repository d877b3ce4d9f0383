from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from repro.config import PROFILES, SCALING, StepTwoConfig, TrainConfig, override, profile
from repro.digests import digest
from repro.models.pretrained import locate
from repro.objectives import ANGLE_PRESETS, ESPRESSO_FORMS, LoraConfig, only_what_is_read
from repro.types import InputError


def test_configurations_are_frozen():
    with pytest.raises(FrozenInstanceError):
        TrainConfig().dim = 3


def test_the_digest_names_every_setting():
    base = digest(TrainConfig())
    assert base == digest(TrainConfig()) and len(base) == 16
    changed = {
        "backbone": "other",
        "dim": 7,
        "pooling": "mean",
        "activation": "identity",
        "temperature": 0.1,
        "batch_size": 32,
        "learning_rate": 1e-4,
        "max_length": 16,
        "epochs": 2.0,
        "sentences": 5,
        "check_every": 1,
        "checkpoint_by": "encoder",
        "mask_duplicates": False,
        "dropout": 0.2,
        "corpus": "c",
        "validation": "v",
        "objective": "nli",
        "layers": 1,
        "warmup": 0.1,
        "difference": "signed",
        "prefixes": (8, 16),
        "examples": "triples",
        "angle": ANGLE_PRESETS["code"],
        "lora": LoraConfig(),
        "espresso": ESPRESSO_FORMS["code"],
        "bidirectional": True,
        "final_norm": "all",
        "source": "local",
        "bf16": True,
        "threads": 2,
        "save_every": 1,
        "seed": 1,
    }
    assert set(changed) == set(TrainConfig.__dataclass_fields__)
    digests = {digest(replace(TrainConfig(), **{name: value})) for name, value in changed.items()}
    assert len(digests | {base}) == len(changed) + 1


def test_the_digest_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": (2, Path("x"))}) == digest({"b": [2, "x"], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest(TrainConfig()) != digest(StepTwoConfig())


def test_a_digest_is_the_same_in_every_process(python):
    code = "from repro.objectives import TrainConfig; from repro.digests import digest; print("
    code += "digest(TrainConfig(dim=3)), digest({'a': {'b': (1.5, None)}}))"
    out, _ = python(code, PYTHONHASHSEED="7").communicate(timeout=60)
    assert out.split() == [digest(TrainConfig(dim=3)), digest({"a": {"b": (1.5, None)}})]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (TrainConfig, {"dim": 0}, "dim is 0"),
        (TrainConfig, {"dim": 2.5}, "dim is 2.5"),
        (TrainConfig, {"sentences": 0}, "sentences is 0"),
        (TrainConfig, {"batch_size": 1}, "batch_size is 1: a contrastive loss needs at least 2"),
        (TrainConfig, {"temperature": 0}, "temperature is 0"),
        (TrainConfig, {"epochs": 0}, "epochs is 0"),
        (TrainConfig, {"prefixes": (8, 0)}, "a prefix is 0"),
        (TrainConfig, {"prefixes": (16, 8)}, r"prefixes are \(16, 8\): expected rising sizes, each once"),
        (TrainConfig, {"prefixes": (8, 8)}, r"prefixes are \(8, 8\)"),
        (StepTwoConfig, {"views": 1}, "views is 1"),
        (StepTwoConfig, {"learning_rates": ()}, "learning_rates is empty"),
        (StepTwoConfig, {"batch_size": 1}, "batch_size is 1"),
        (StepTwoConfig, {"temperature": -1}, "temperature is -1"),
        (StepTwoConfig, {"epochs": float("nan")}, "epochs is nan"),
    ],
)
def test_impossible_settings_are_refused_when_made(kind, change, message):
    with pytest.raises(InputError, match=message):
        kind(**change)


def test_profiles_and_overrides():
    assert set(PROFILES) == {"embedded", "gpu", "paper"}
    for name, chosen in PROFILES.items():
        assert chosen.name == name
        assert list(chosen.dims) == sorted(set(chosen.dims), reverse=True)
        assert set(chosen.candidates) <= set(chosen.dims)
    chosen = profile("embedded", source="local", views=3, seed=4, epochs=None, sentences=77)
    assert (chosen.train.sentences, chosen.train.epochs) == (77, PROFILES["embedded"].train.epochs)
    assert (chosen.train.source, chosen.source) == ("local", "local")
    # the poolers of step 2 see the data in the order of the seed that trained the encoders
    assert (chosen.train.seed, chosen.step_two.seed, chosen.step_two.views) == (4, 4, 3)
    assert profile("embedded", dropout=0.25, source="local").train.dropout == 0.25  # over the recipe's
    assert profile("embedded", backbone="roberta-base").train.batch_size == 512
    nli = profile("embedded", source="local", objective="nli").train
    assert (nli.objective, nli.corpus, nli.warmup, nli.dropout) == ("nli", "nli", 0.1, 0.0)
    assert profile("paper", objective="nli").train.learning_rate == 2e-5
    for objective in SCALING:
        same = profile("embedded", source="local", objective=objective).train
        assert (same.objective, same.corpus) == (objective, "nli")
        # one recipe for the three, or their comparison would not be one
        assert replace(same, objective="angle") == profile("embedded", source="local", objective="angle").train
    assert profile("paper", backbone="BAAI/bge-base-en-v1.5", objective="ese").train.learning_rate == 5e-5
    with pytest.raises(InputError, match="unknown source 'disk'"):
        profile("embedded", source="disk")
    assert override(TrainConfig(), dim=3, seed=None) == TrainConfig(dim=3)
    for ask in (profile, PROFILES.__getitem__):  # pages look up the profile's source before all else
        with pytest.raises(InputError, match="unknown profile 'papr': choose one of embedded, gpu, paper"):
            ask("papr")
    with pytest.raises(InputError, match="unknown field of TrainConfig 'dims': choose one of objective, backbone"):
        override(TrainConfig(), dims=(3,))


def test_the_backbone_of_every_offline_profile_is_there():
    for name in ("embedded", "gpu"):
        assert Path(locate(profile(name).train.backbone)).is_dir()


def test_a_decoder_is_read_at_its_last_token_unless_told_otherwise(decoders, tiny, caplog):
    assert profile("embedded", backbone=decoders["llama"]).train.pooling == "last"
    assert "is a decoder" in caplog.text
    assert profile("embedded", backbone=decoders["qwen2"], pooling="mean").train.pooling == "mean"
    assert profile("embedded", backbone=tiny).train.pooling == "cls"


def test_batches_of_a_small_trial_shrink_with_a_word(caplog):
    trial = profile("paper", sentences=200)
    assert (trial.train.batch_size, trial.step_two.batch_size) == (200, 200)
    assert caplog.messages == ["200 sentences do not fill a batch of 512: one batch of all"] * 2
    assert profile("paper", sentences=200, batch_size=512).train.batch_size == 512  # what is asked for is not changed


def test_settings_that_an_objective_does_not_read_do_not_name_another_training():
    changes = {"dim": 64, "espresso": ESPRESSO_FORMS["code"], "prefixes": (8, 16)}
    for objective, read in (("angle", ()), ("matryoshka", ("prefixes",)), ("ese", ("dim", "espresso"))):
        base = TrainConfig(objective=objective)
        for name, value in changes.items():
            other = only_what_is_read(replace(base, **{name: value}))
            assert (other == only_what_is_read(base)) == (name not in read), (objective, name)
        assert only_what_is_read(replace(base, seed=1)) != only_what_is_read(base)
    assert only_what_is_read(TrainConfig(dim=64)) == TrainConfig(dim=64)


def test_the_paper_profile_takes_each_papers_network():
    assert profile("paper").train.backbone == "roberta-base"
    assert profile("paper", objective="nli").train.backbone == "roberta-base"
    for objective in ("angle", "matryoshka", "ese"):
        chosen = profile("paper", objective=objective).train
        assert (chosen.backbone, chosen.learning_rate) == ("BAAI/bge-base-en-v1.5", 5e-5)
        assert profile("paper", objective=objective, backbone="mine").train.backbone == "mine"
        assert profile("embedded", objective=objective).train.backbone == "repro-tiny"
