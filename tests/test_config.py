from dataclasses import replace
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from transformers import Gemma3TextConfig, Gemma3TextModel

from repro.config import PROFILES, override, profile
from repro.digests import digest
from repro.models import SentenceEncoder, sources
from repro.objectives import OBJECTIVES, only_what_is_read
from repro.settings import ANGLE_PRESETS, ESPRESSO_FORMS, LoraConfig, StepTwoConfig, TrainConfig
from repro.types import InputError

OTHERS = {
    "angle": ANGLE_PRESETS["code"],
    "espresso": ESPRESSO_FORMS["code"],
    "lora": LoraConfig(),
    "dropout": 0.2,
}
OTHERS |= {"layers": 1, "prefixes": (8, 16)}


def test_the_digest_names_every_setting():
    found = {digest(TrainConfig())}
    for name, kind in get_type_hints(TrainConfig).items():
        now = getattr(TrainConfig(), name)
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        other = OTHERS.get(name) or next((choice for choice in choices if choice != now), None)
        if other is None:
            other = not now if kind is bool else now + ("x" if kind is str else 1)
        found.add(digest(TrainConfig(**{name: other})))
    assert len(found) == len(TrainConfig.__dataclass_fields__) + 1 and {
        len(name) for name in found
    } == {16}
    assert digest(TrainConfig()) in found and digest(TrainConfig()) != digest(StepTwoConfig())


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (TrainConfig, {"dim": 0}, "dim is 0"),
        (TrainConfig, {"batch_size": 1}, "batch_size is 1: a contrastive loss needs at least 2"),
        (TrainConfig, {"temperature": 0}, "temperature is 0"),
        (TrainConfig, {"pooling": "max"}, "unknown pooling 'max': choose one of cls, mean, last"),
        (
            TrainConfig,
            {"prefixes": (16, 8)},
            r"prefixes are \(16, 8\): expected rising sizes, each once",
        ),
        (StepTwoConfig, {"views": 1}, "views is 1"),
        (StepTwoConfig, {"learning_rates": ()}, "learning_rates is empty"),
        (StepTwoConfig, {"epochs": float("nan")}, "epochs is nan"),
        *(
            (TrainConfig, {"learning_rate": rate}, f"learning_rate is {rate}")
            for rate in (0.0, float("inf"))
        ),
        (TrainConfig, {"warmup": 10}, "warmup is 10: expected a share of the steps"),
        (StepTwoConfig, {"patience": 0}, "patience is 0"),
        (TrainConfig, {"dropout": 2.0}, "dropout is 2.0: expected 0 or more, below 1"),
    ],
)
def test_impossible_settings_are_refused_when_made(kind, change, message):
    with pytest.raises(InputError, match=message):
        kind(**change)


def test_profiles_and_overrides():
    assert set(PROFILES) == {"embedded", "gpu", "paper"}
    for name, chosen in PROFILES.items():
        assert chosen.name == name and set(chosen.candidates) <= set(chosen.dims)
        assert list(chosen.dims) == sorted(set(chosen.dims), reverse=True)
    chosen = profile("embedded", source="local", views=3, seed=4, epochs=None, sentences=77)
    assert (chosen.train.sentences, chosen.train.epochs) == (77, PROFILES["embedded"].train.epochs)
    assert (chosen.train.source, chosen.source) == ("local", "local")
    # The poolers of step 2 see the data in the order of the seed that trained the encoders
    assert (chosen.train.seed, chosen.step_two.seed, chosen.step_two.views) == (4, 4, 3)
    # Over the recipe's
    assert profile("embedded", dropout=0.25, source="local").train.dropout == 0.25
    assert profile("embedded", backbone="roberta-base").train.batch_size == 512
    assert (
        profile("embedded", backbone="some/where/e5-small-en", objective="angle").train.sentences
        == 4_800
    )
    assert profile("paper", objective="ese", backbone="/my/Qwen1.5-0.5B").train.lora, (
        "a folder by the name of a recipe's"
    )
    assert override(TrainConfig(), dim=3, seed=None) == TrainConfig(dim=3)
    assert profile("paper", sentences=200).step_two.batch_size == 200  # A batch of all
    # Pages look up the profile's source before all else
    for ask in (profile, PROFILES.__getitem__):
        with pytest.raises(
            InputError,
            match="unknown profile 'papr': choose one of embedded, gpu, paper",
        ):
            ask("papr")


@pytest.mark.parametrize(
    "objective", [name for name, record in OBJECTIVES.items() if not record.pooler]
)
def test_the_objectives_of_a_comparison_share_a_recipe_and_the_papers_network(objective):
    same = profile("embedded", source="local", objective=objective).train
    assert (same.objective, same.corpus, same.backbone) == (objective, "nli", "repro-tiny")
    assert (
        replace(same, objective="angle")
        == profile("embedded", source="local", objective="angle").train
    )
    chosen = profile("paper", objective=objective).train
    assert (chosen.backbone, chosen.learning_rate) == ("BAAI/bge-base-en-v1.5", 5e-5)
    assert profile("paper", objective=objective, backbone="mine").train.backbone == "mine"
    nli = profile("paper", objective="nli").train
    assert (
        profile("paper").train.backbone == nli.backbone == "roberta-base"
        and nli.learning_rate == 2e-5
    )


def test_a_decoder_is_read_at_its_last_token_unless_told_otherwise(decoders, tiny, caplog):
    assert profile("embedded", backbone=decoders["llama"]).train.pooling == "last"
    assert "is a decoder" in caplog.text
    assert profile("embedded", backbone=decoders["qwen2"], pooling="mean").train.pooling == "mean"
    assert profile("embedded", backbone=tiny).train.pooling == "cls"
    assert profile("embedded", backbone="./nosuch").train.pooling == "cls", "loading tells more"


def test_a_decoder_is_known_by_how_it_is_built_also_of_the_hub(decoders, tmp_path, monkeypatch):
    """Gemma3's folder names no language model, and what a folder records of its pooling holds."""
    sizes = {"vocab_size": 60, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    folder, commit = tmp_path / "models--somebody--gemma", 5 * "0123abcd"
    snapshot = folder / "snapshots" / commit
    Gemma3TextModel(Gemma3TextConfig(**sizes, **heads)).save_pretrained(snapshot)
    assert profile("embedded", backbone=str(snapshot)).train.pooling == "last"
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "_hub_answers", lambda: False)
    assert profile("embedded", backbone="somebody/gemma").train.pooling == "last"
    assert profile("embedded", backbone="somebody/gemma", objective="angle").train.pooling == "last"
    (snapshot / "1_Pooling").mkdir()
    (snapshot / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    assert profile("embedded", backbone="somebody/gemma").train.pooling == "mean"
    saved = {"causal": "last", "both": "mean"}
    for name, pooling in saved.items():
        seen = {"pooling": pooling, "bidirectional": name == "both"}
        SentenceEncoder.load(decoders["llama"], **seen).save(tmp_path / name)
    assert profile("embedded", backbone=str(tmp_path / "causal")).train.pooling == "last"
    assert profile("embedded", backbone=str(tmp_path / "both")).train.pooling == "cls"


@pytest.mark.parametrize(
    ("objective", "read"),
    [("angle", ()), ("matryoshka", ("prefixes",)), ("ese", ("dim", "espresso"))],
)
def test_settings_that_an_objective_does_not_read_do_not_name_another_training(objective, read):
    base = TrainConfig(objective=objective)
    for name, value in {"dim": 64, "espresso": ESPRESSO_FORMS["code"], "prefixes": (8, 16)}.items():
        other = only_what_is_read(replace(base, **{name: value}))
        assert (other == only_what_is_read(base)) == (name not in read), name
    assert only_what_is_read(replace(base, seed=1)) != only_what_is_read(base)
    assert only_what_is_read(TrainConfig(dim=64)) == TrainConfig(dim=64)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backbone": ""}, "backbone is empty: expected a name"),
        ({"backbone": " "}, "backbone is empty: expected a name"),
        ({"source": ""}, "unknown source ''"),
    ],
)
def test_what_is_given_empty_is_not_taken_for_the_default(options, said):
    with pytest.raises(InputError, match=said):
        profile("embedded", **options)
