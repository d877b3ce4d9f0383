"""What a folder must hold to be read: whole, unchanged, and of one model; anything else is one clear error."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from repro.models import SentenceEncoder
from repro.models.intact import check_intact
from repro.models.pretrained import identity
from repro.types import InputError

FAMILIES = {
    "roberta": transformers.RobertaModel,
    "xlm-roberta": transformers.XLMRobertaModel,
    "mpnet": transformers.MPNetModel,
}


@pytest.fixture(scope="module")
def networks(tiny, decoders, tmp_path_factory):
    """A folder of each family, all with the tokenizer of `tiny`."""
    made = {"bert": tiny, **decoders}
    for family, kind in FAMILIES.items():
        sizes = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
        sizes |= {"num_hidden_layers": 2, "max_position_embeddings": 66, "pad_token_id": 0}
        torch.manual_seed(0)
        folder = tmp_path_factory.mktemp("family") / family
        kind(transformers.AutoConfig.for_model(family, **sizes)).save_pretrained(folder)
        shutil.copy(Path(tiny) / "tokenizer.json", folder)
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
        made[family] = str(folder)
    return made


@pytest.fixture
def copy(networks, tmp_path):
    """A copy of a family's folder that may be spoilt."""
    return lambda family="bert": Path(shutil.copytree(networks[family], tmp_path / family))


def refused(folder, words):
    with pytest.raises(InputError, match=words):
        SentenceEncoder.load(str(folder)).encode(["a word"])


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet", "qwen2", "llama"])
def test_a_network_without_its_tokenizer_is_refused_not_read_with_an_empty_one(family, copy, sentences):
    folder = copy(family)
    assert len(np.unique(SentenceEncoder.load(str(folder)).encode(sentences[:20]), axis=0)) == 20
    (folder / "tokenizer.json").unlink()
    refused(folder, r"has no tokenizer\.json")
    (folder / "tokenizer_config.json").unlink()
    refused(folder, r"has no tokenizer\.json")


CONFIG = [
    ({"num_hidden_layers": 0}, "has 0 layers"),
    ({"num_hidden_layers": -1}, "has -1 layers"),
    ({"num_attention_heads": 0}, "ZeroDivisionError"),
    ({"num_attention_heads": 3}, "not a multiple of the number of attention heads"),
    ({"max_position_embeddings": 9}, r"position_embeddings.weight is \(48, 32\), expected \(9, 32\)"),
    ({"max_position_embeddings": "many"}, "expected int, got str"),
    ({"vocab_size": 300}, r"word_embeddings.weight is \(400, 32\), expected \(300, 32\)"),
    ({"hidden_act": "nosuch"}, "nosuch"),
    ({"pad_token_id": 9999}, "Padding_idx"),
]


@pytest.mark.parametrize(("change", "words"), CONFIG, ids=lambda v: str(v)[:40])
def test_values_of_a_config_that_do_not_fit_are_one_error(change, words, copy):
    folder = copy()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    refused(folder, words)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer.json", b"{}", "cannot load tokenizer .*added_tokens"),
        ("model.safetensors", b"", "header too small"),
        ("model.safetensors", b"\xff" * 100, "SafetensorError"),
        ("1_Pooling/config.json", b"[", "not valid JSON"),
        ("1_Pooling/config.json", b"[]", "holds a list: expected a dict"),
        ("sentence_bert_config.json", b'{"max_seq_length": -3}', "reads -3 tokens of a text: expected 3 at least"),
        ("sentence_bert_config.json", b'{"max_seq_length": "x"}', "cannot load tokenizer"),
        ("modules.json", b'["x"]', "expected a list of parts with type and path"),
    ],
)
def test_a_damaged_file_is_one_error(file, content, words, copy):
    folder = copy()
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_bytes(content)
    refused(folder, words)


def test_a_tokenizer_of_another_network_is_refused(copy):
    folder = copy()
    tokens = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokens["model"]["vocab"]
    tokens["model"]["vocab"] = {t: i + 100 * (t == "a") for t, i in vocabulary.items()} | {
        f"x{i}": i for i in range(400, 900)
    }
    tokens["model"]["vocab"]["a"] = 890
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    refused(folder, "gives token 890, its network has 400")
    tokens["model"]["vocab"] = dict(list(vocabulary.items())[:20])
    (folder / "tokenizer.json").write_text(json.dumps(tokens))
    refused(folder, "knows 20 tokens, its network 400")


# bytes


@pytest.mark.parametrize(
    "file", ["model.safetensors", "pooler.safetensors", "encoder.json", "tokenizer.json", "config.json"]
)
def test_a_saved_encoder_whose_bytes_changed_on_the_way_is_refused(file, tiny, tmp_path):
    SentenceEncoder.load(tiny, dim=4, pooling="mean").save(tmp_path / "saved")
    copied = Path(shutil.copytree(tmp_path / "saved", tmp_path / "copied"))
    content = bytearray((copied / file).read_bytes())
    content[-9] ^= 1
    (copied / file).write_bytes(content)
    with pytest.raises(InputError, match=rf"{file} has changed since it was written|{file} is not valid JSON"):
        SentenceEncoder.load(str(copied))
    assert SentenceEncoder.load(str(tmp_path / "saved")).dim == 4


def test_a_lost_pooler_is_one_error(tiny, tmp_path):
    SentenceEncoder.load(tiny, dim=4).save(tmp_path / "saved")
    (tmp_path / "saved" / "pooler.safetensors").unlink()
    refused(tmp_path / "saved", r"pooler\.safetensors cannot be read")


def test_a_manifest_of_others_is_none_of_ours(copy):
    folder = copy()
    for content in ('{"files": ["config.json"]}', "[1]", '{"files": {"config.json": 3}}'):
        (folder / "manifest.json").write_text(content)
        check_intact(folder)
    (folder / "manifest.json").write_text("{")
    refused(folder, r"manifest\.json is not valid JSON")


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_a_changed_blob_of_the_hubs_cache_is_refused(file, copy, tmp_path):
    """Large files are blobs named by their sha256, small ones by git's sha1; the snapshot links to them."""
    snapshot, blobs = copy(), tmp_path / "blobs"
    blobs.mkdir()
    for path in list(snapshot.iterdir()):
        content = path.read_bytes()
        small = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        blob = blobs / (hashlib.sha256(content).hexdigest() if path.suffix == ".safetensors" else small)
        path.rename(blob)
        path.symlink_to(blob)
    SentenceEncoder.load(str(snapshot))
    with (snapshot / file).open("r+b") as blob:
        blob.seek(-9, 2)
        blob.write(b"\x07")
    refused(snapshot, "in the hub's cache has changed since it was downloaded")


def test_a_hub_ids_identity_holds_its_commit(copy, tmp_path, monkeypatch):
    model = tmp_path / "hub" / "models--somebody--tiny"
    shutil.copytree(copy(), model / "snapshots" / "0123abcd")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("0123abcd")
    for module in ("transformers.utils.hub", "huggingface_hub.constants"):
        monkeypatch.setattr(f"{module}.HF_HUB_CACHE", str(tmp_path / "hub"), raising=False)
    monkeypatch.setattr("repro.models.pretrained._hub_answers", lambda: False)
    assert identity("somebody/tiny") == "somebody/tiny@0123abcd"
    assert identity("somebody/other") == "somebody/other"


# numbers


def test_nan_weights_do_not_become_embeddings(repro, copy, tmp_path):
    folder = copy()
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][200:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    encoder = SentenceEncoder.load(str(folder))
    with pytest.raises(InputError, match=r"NaN or infinite embeddings to 2 of 3 distinct texts, first to number 1"):
        encoder.encode(["", "the cook thanked the driver", "a horse", ""])
    output = tmp_path / "X.npy"
    for verb in (
        ("encode", "--texts", "stsb", "--output", output),
        ("evaluate", "--data", "stsb"),
        ("evaluate", "--data", "stsb", "--task", "sts", "--layers", 0, 1),
    ):
        code, out, err = repro(*verb, "--encoder", folder)
        assert code == 2 and "distinct texts" in err and not out and not output.exists()


def test_a_nan_pooler_is_refused_too(tiny):
    encoder = SentenceEncoder.load(tiny, dim=4)
    with torch.no_grad():
        encoder.pooler.linear.bias[2] = float("nan")
    with pytest.raises(InputError, match="to 2 of 2 texts"):
        encoder.encode(["a", "a"])
