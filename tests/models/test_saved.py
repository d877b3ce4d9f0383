"""An encoder in a folder that holds more: what is not ours stays as it is, what was saved before
does not come back, and what is read is what was saved.
"""

import json
import shutil
from contextlib import suppress

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from repro import manifests
from repro.manifests import MANIFEST, sealed, sha256
from repro.models import SentenceEncoder, saved
from repro.models.exported import export_folder
from repro.models.lora import adapter_weights, add_lora
from repro.settings import LoraConfig
from repro.types import InputError

TEXTS = ["one cat sleeps", "two dogs", "three"]


@pytest.fixture
def encoder(tiny):
    return SentenceEncoder.load(tiny, dim=8)


def adapted(tiny):
    """An encoder with adapters that do something, and a pooler."""
    encoder = SentenceEncoder.load(tiny, dim=8, pooling="mean")
    add_lora(encoder.backbone, LoraConfig(rank=2, alpha=4), seed=0)
    with torch.no_grad():
        for weight in adapter_weights(encoder.backbone).values():
            weight.fill_(0.1)
    return encoder.eval()


MAKERS = {
    "with a pooler": lambda tiny: SentenceEncoder.load(tiny, dim=8),
    "without one": SentenceEncoder.load,
    "of adapters": adapted,
}


def mode(path):
    return path.stat().st_mode & 0o777


def test_what_else_lies_in_a_folder_is_neither_opened_up_nor_sealed(encoder, tmp_path):
    folder, outside = tmp_path / "saved", tmp_path / "outside.key"
    (folder / ".git").mkdir(parents=True)
    secrets = [outside, folder / "own.key", folder / ".git" / "index", folder / "notes.txt"]
    for secret in secrets:
        secret.write_text("mine")
        secret.chmod(0o600)
    (folder / "link").symlink_to(outside)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    encoder.save(folder)
    assert {mode(secret) for secret in secrets} == {0o600}
    assert mode(folder / "model.safetensors") == mode(folder / MANIFEST)
    for secret in secrets:
        secret.write_text("edited")
    X = SentenceEncoder.load(folder).encode(TEXTS)
    assert X.tobytes() == encoder.encode(TEXTS).tobytes()
    encoder.save(folder)
    assert {secret.read_text() for secret in secrets} == {"edited"}
    assert not list(folder.glob("*.partial"))


def test_a_private_encoder_stays_so_when_it_is_saved_anew(encoder, tiny, tmp_path):
    encoder.save(tmp_path)
    for path in tmp_path.iterdir():
        path.chmod(0o600)
    SentenceEncoder.load(tiny, dim=4).save(tmp_path)
    assert {mode(path) for path in tmp_path.glob("*.*")} == {0o600}


@pytest.mark.parametrize("before", MAKERS)
@pytest.mark.parametrize("after", MAKERS)
def test_nothing_of_an_earlier_encoder_is_left_beside_the_next(before, after, tiny, tmp_path):
    MAKERS[before](tiny).save(tmp_path / "both")
    encoder = MAKERS[after](tiny)
    encoder.save(tmp_path / "both")
    encoder.save(tmp_path / "alone")
    both, alone = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("both", "alone")
    )
    assert both == alone
    loaded = SentenceEncoder.load(tmp_path / "both")
    assert loaded.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()


def test_what_an_older_manifest_lists_of_others_is_not_removed(encoder, tmp_path):
    encoder.save(tmp_path)
    (tmp_path / "thesis.txt").write_text("mine")
    said = json.loads((tmp_path / MANIFEST).read_text())
    files = {**said["files"], "thesis.txt": sha256(tmp_path / "thesis.txt")}
    note = sealed({"kind": "encoder", "files": files})
    (tmp_path / MANIFEST).write_text(json.dumps(note))
    encoder.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    assert "thesis.txt" not in json.loads((tmp_path / MANIFEST).read_text())["files"]


@pytest.mark.parametrize("name", ["encoder.json", "model.safetensors", "pooler.safetensors"])
def test_what_was_edited_since_is_not_overwritten(encoder, tiny, tmp_path, name):
    encoder.save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=f"{name} is none of ours, was edited"):
        SentenceEncoder.load(tiny, dim=4).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "name",
    [
        "modules.json",
        "config_sentence_transformers.json",
        "adapter_config.json",
        "model.safetensors.index.json",
        "pooler.safetensors",
    ],
)
def test_no_encoder_is_saved_beside_what_would_be_read_with_it(encoder, tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=rf"{name} was written by no .* would be read with this"):
        encoder.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_encoder_is_saved_over_an_exported_one(encoder, tmp_path):
    export_folder(encoder, tmp_path / "exported")
    with pytest.raises(InputError, match=r"was written by no `save` of an encoder"):
        encoder.save(tmp_path / "exported")


def test_a_save_that_fails_leaves_the_earlier_encoder(encoder, tiny, tmp_path, monkeypatch):
    encoder.save(tmp_path)

    def full(*_):
        raise OSError("no space")

    monkeypatch.setattr(saved, "save_file", full)  # Of the pooler, after the network
    other = SentenceEncoder.load(tiny, dim=4)
    torch.nn.init.normal_(next(other.backbone.model.parameters()))
    with pytest.raises(OSError, match="no space"):
        other.save(tmp_path)
    loaded = SentenceEncoder.load(tmp_path)
    assert loaded.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()


def test_a_prompt_set_by_hand_is_saved_and_exported(encoder, tmp_path):
    plain = encoder.encode(TEXTS)
    encoder.prompt = "query: "
    X = encoder.encode(TEXTS)
    encoder.save(tmp_path / "saved")
    export_folder(encoder, tmp_path / "exported")
    for name in ("saved", "exported"):
        np.testing.assert_allclose(
            SentenceEncoder.load(tmp_path / name).encode(TEXTS), X, atol=1e-6
        )
        without = SentenceEncoder.load(tmp_path / name, prompt="")
        np.testing.assert_allclose(without.encode(TEXTS), plain, atol=1e-6)
    assert not np.allclose(X, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt": 3}, "prompt is 3: expected a text"),
        ({"bidirectional": "yes"}, "bidirectional is 'yes': expected True or False"),
        ({"pooling": ""}, "unknown pooling ''"),
    ],
)
def test_options_of_another_kind_are_refused(tiny, options, said):
    with pytest.raises(InputError, match=said):
        SentenceEncoder.load(tiny, **options)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"max_length": "a"}, "max_length is 'a': expected a whole number"),
        ({"max_length": True}, "max_length is True: expected a whole number"),
        ({"bidirectional": "no"}, "bidirectional is 'no': expected true or false"),
        ({"include_prompt": "x"}, "include_prompt is 'x': expected true or false"),
        ({"prompt": 5}, "prompt is 5: expected a name or text"),
        ({"pooling": ""}, "unknown pooling ''"),
        ({"pooler": []}, r"pooler is \[\]: expected names and values"),
        ({"parts": 5}, "parts is 5: expected a list"),
        ({"base": "x"}, "base is 'x': expected names and values"),
        ({"base": {"name": "repro-tiny"}}, "base lacks digest"),
        (
            {"base": {"name": "repro-tiny", "digest": "0", "layers": 2}, "lora": {"targets": None}},
            "lora is not as we write it",
        ),
    ],
)
def test_a_note_edited_into_something_else_is_refused(encoder, tmp_path, edit, said):
    encoder.save(tmp_path)
    (tmp_path / MANIFEST).unlink()
    note = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps({**note, **edit}))
    with pytest.raises(InputError, match=said):
        SentenceEncoder.load(tmp_path)


def test_a_limit_of_no_tokens_is_not_taken_for_none(encoder, tmp_path):
    encoder.backbone.max_length = 0
    encoder.save(tmp_path)
    with pytest.raises(InputError, match="max_length is 0"):
        SentenceEncoder.load(tmp_path).encode(TEXTS)


def test_a_padding_token_of_minus_one_is_none(encoder, tmp_path):
    encoder.save(tmp_path)
    (tmp_path / MANIFEST).unlink()
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "pad_token_id": -1}))
    X = SentenceEncoder.load(tmp_path).encode(TEXTS)
    np.testing.assert_allclose(X, encoder.encode(TEXTS), atol=1e-6)


def test_weights_that_are_not_numbers_are_what_is_said(encoder, tmp_path):
    encoder.save(tmp_path)
    (tmp_path / MANIFEST).unlink()
    weights = load_file(tmp_path / "model.safetensors")
    next(iter(weights.values())).fill_(float("nan"))
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"gives NaN or infinite embeddings to 3 of 3 .* damaged"):
        SentenceEncoder.load(tmp_path).encode(TEXTS)


DENSE, POOLING = "2_Dense/config.json", "1_Pooling/config.json"
PROMPTS, LENGTHS = "config_sentence_transformers.json", "sentence_bert_config.json"


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        (DENSE, {"out_features": None}, "out_features of .* is None: expected a whole number"),
        (DENSE, {"out_features": "x"}, "out_features is 'x': expected a whole number"),
        (DENSE, {"in_features": [1]}, r"in_features is \[1\]: expected a whole number"),
        (DENSE, {"out_features": -1}, "out_features of .* is -1: expected at least 1"),
        (DENSE, {"bias": "no"}, "bias is 'no': expected true or false"),
        (POOLING, {"include_prompt": "no"}, "include_prompt is 'no': expected true or false"),
        (PROMPTS, {"prompts": "x"}, "prompts is 'x': expected names and values"),
        (PROMPTS, {"prompts": {"default": None}}, "prompt 'default' is None: expected a text"),
        (PROMPTS, {"default_prompt_name": ["a"]}, r"default_prompt_name is \['a'\]: expected"),
        (PROMPTS, {"default_prompt_name": "x"}, "default_prompt_name is 'x': expected default"),
        (LENGTHS, {"max_seq_length": 5.5}, "max_seq_length is 5.5: expected a whole number"),
        (LENGTHS, {"max_seq_length": 0}, "reads 0 tokens of a text: expected 3 at least"),
        (LENGTHS, {"do_lower_case": "no"}, "do_lower_case is 'no': expected true or false"),
    ],
)
def test_a_note_of_an_exported_encoder_edited_into_something_else_is_refused(
    encoder, tmp_path, name, edit, said
):
    encoder.prompt = "query: "
    folder = export_folder(encoder, tmp_path / "exported")
    (folder / MANIFEST).unlink()
    note = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**note, **edit}))
    with pytest.raises(InputError, match=said):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("twice", [0, 1])
def test_a_part_that_stands_twice_is_refused_rather_than_read_once(encoder, tmp_path, twice):
    folder = export_folder(encoder, tmp_path / "exported")
    (folder / MANIFEST).unlink()
    modules = json.loads((folder / "modules.json").read_text())
    modules.insert(twice, modules[twice])
    (folder / "modules.json").write_text(json.dumps(modules))
    kind = ("Transformer", "Pooling")[twice]
    with pytest.raises(InputError, match=f"modules.json has the part {kind}"):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.complex64])
@pytest.mark.parametrize("name", ["pooler", "adapter", "dense"])
def test_weights_of_whole_numbers_are_refused_rather_than_misread(name, kind, tiny, tmp_path):
    encoder = adapted(tiny) if name == "adapter" else SentenceEncoder.load(tiny, dim=8)
    if name == "dense":
        file = export_folder(encoder, tmp_path / "folder") / "2_Dense" / "model.safetensors"
    else:
        encoder.save(tmp_path / "folder")
        file = tmp_path / "folder" / f"{name}.safetensors"
    (tmp_path / "folder" / MANIFEST).unlink()
    save_file({key: weight.to(kind) for key, weight in load_file(file).items()}, file)
    called = str(kind).removeprefix("torch.")
    with pytest.raises(InputError, match=rf"{file}: .* is {called}: expected float32"):
        SentenceEncoder.load(tmp_path / "folder")


@pytest.mark.parametrize("before", [None, *MAKERS])
@pytest.mark.parametrize("after", MAKERS)
def test_a_save_killed_between_two_files_leaves_no_mixture_that_can_be_read(
    before, after, tiny, tmp_path, monkeypatch
):
    if before is not None:
        MAKERS[before](tiny).save(tmp_path / "old")
    encoder = MAKERS[after](tiny)
    torch.nn.init.normal_(next(encoder.backbone.model.parameters()))
    encoder.save(tmp_path / "new")
    wholes = [
        {file.name: file.read_bytes() for file in path.iterdir()}
        for path in (tmp_path / "old", tmp_path / "new")
        if path.is_dir()
    ]
    move, moved = manifests.os.replace, []

    def killed(source, target):
        if len(moved) == number:
            raise KeyboardInterrupt
        moved.append(target)
        move(source, target)

    for number in range(len(wholes[-1]) - 1):
        folder = tmp_path / f"killed {number}"
        if before is not None:
            shutil.copytree(tmp_path / "old", folder)
        moved.clear()
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(manifests.os, "replace", killed)
            encoder.save(folder)
        left = {file.name: file.read_bytes() for file in folder.iterdir()}
        if left not in wholes:
            with pytest.raises(InputError):
                SentenceEncoder.load(folder)
        encoder.save(folder)  # The same one goes on where it was stopped
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == wholes[-1]


@pytest.mark.parametrize("before", [None, 4])
def test_another_encoder_than_the_one_whose_save_was_stopped_is_told_the_way_out(
    before, encoder, tiny, tmp_path
):
    folder = tmp_path / "stopped"
    if before is not None:
        SentenceEncoder.load(tiny, dim=before).save(folder)
    encoder.save(tmp_path / "whole")
    folder.mkdir(exist_ok=True)
    shutil.copy(tmp_path / "whole" / "encoder.json", folder)
    with pytest.raises(InputError, match=r"encoder.json .*, or empty this one if what wrote there"):
        SentenceEncoder.load(tiny, dim=6).save(folder)
    encoder.save(folder)
    assert SentenceEncoder.load(folder).dim == encoder.dim
