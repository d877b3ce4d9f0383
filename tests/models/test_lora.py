"""Low-rank adapters: only they are trained, they start as nothing, and merging changes no
output.
"""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.models import SentenceEncoder
from repro.models.backbone import load_backbone
from repro.models.lora import adapter_weights, add_lora, targets
from repro.models.sources import identity
from repro.settings import LoraConfig
from repro.types import InputError

SMALL = LoraConfig(rank=4, alpha=8, dropout=0.0)


@pytest.fixture(params=["bert", "qwen2"])
def folder(request, tiny, decoders):
    return tiny if request.param == "bert" else decoders[request.param]


def taught(backbone):
    """Some adapters that do something."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter_weights(backbone).values():
            weight.normal_(0, 0.1, generator=generator)
    return backbone


def states(backbone):
    ids = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 13, 14]])
    with torch.no_grad():
        return torch.stack(backbone(ids, layers=range(backbone.n_layers + 1)))


def test_a_fresh_adapter_changes_no_output_a_taught_one_does_and_their_numbers_are_counted_by_rank(
    folder,
):
    backbone = load_backbone(folder)
    before = states(backbone)
    sizes = [backbone.model.get_submodule(name).weight.shape for name in targets(backbone)]
    assert len(sizes) == backbone.n_layers * (6 if folder.endswith("tiny") else 7)
    assert torch.equal(states(add_lora(backbone, SMALL, seed=0)), before)
    trainable = [p for p in backbone.parameters() if p.requires_grad]
    assert sum(p.numel() for p in trainable) == sum(
        SMALL.rank * (rows + columns) for rows, columns in sizes
    )
    assert not torch.allclose(states(taught(backbone))[1:], before[1:])
    with pytest.raises(InputError, match=r"is called 'c_attn': choose among .*(query|q_proj)"):
        add_lora(load_backbone(folder), LoraConfig(targets=("c_attn",)), seed=0)


def test_the_same_seed_draws_the_same_adapters_and_leaves_other_draws_alone(tiny):
    def drawn(seed):
        return [
            w.clone()
            for w in adapter_weights(add_lora(load_backbone(tiny), SMALL, seed=seed)).values()
        ]

    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    first = drawn(0)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a, b) for a, b in zip(first, drawn(0), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, drawn(1), strict=True))


def test_named_targets_and_their_scale(tiny):
    backbone = add_lora(
        load_backbone(tiny),
        LoraConfig(rank=2, alpha=6, dropout=0.3, targets=("query",)),
        seed=0,
    )
    layers = {name.split(".lora_")[0] for name in adapter_weights(backbone)}
    assert layers == {f"encoder.layer.{n}.attention.self.query" for n in (0, 1)}
    query = taught(backbone).model.get_submodule("encoder.layer.0.attention.self.query")
    x = torch.randn(3, 32)
    A, B = query.lora_A["default"].weight, query.lora_B["default"].weight
    assert (A.shape, B.shape) == ((2, 32), (32, 2))
    torch.testing.assert_close(query(x), query.base_layer(x) + 3 * x @ A.T @ B.T)
    assert query.lora_dropout["default"].p == 0.3


# Folders


@pytest.fixture
def saved(folder, tmp_path):
    encoder = SentenceEncoder.load(folder, pooling="mean", bidirectional=True, final_norm="all")
    taught(add_lora(encoder.backbone, LoraConfig(rank=3, alpha=3), seed=0)).eval()
    encoder.save(tmp_path / "adapted")
    return encoder, tmp_path / "adapted"


def test_only_adapters_are_saved_and_come_back_beside_their_base(saved, sentences):
    encoder, place = saved
    assert sorted(path.name for path in place.iterdir()) == [
        "adapter.safetensors",
        "encoder.json",
        "manifest.json",
    ]
    assert set(load_file(place / "adapter.safetensors")) == set(adapter_weights(encoder.backbone))
    loaded = SentenceEncoder.load(str(place))
    assert (loaded.pooling, loaded.backbone.lora) == ("mean", LoraConfig(rank=3, alpha=3))
    assert (loaded.backbone.bidirectional, loaded.backbone.final_norm) == (True, "all")
    assert loaded.encode(sentences[:9]).tobytes() == encoder.encode(sentences[:9]).tobytes()


def test_a_base_is_found_from_anywhere_cut_again_and_refused_with_other_bytes(
    tiny,
    tmp_path,
    monkeypatch,
):
    base = tmp_path / "base"
    shutil.copytree(tiny, base)
    monkeypatch.chdir(tmp_path)
    encoder = SentenceEncoder.load("./base", dim=4)
    encoder.backbone.keep(1)
    add_lora(encoder.backbone, SMALL, seed=0)
    encoder.save(tmp_path / "adapted")
    monkeypatch.chdir("/")
    loaded = SentenceEncoder.load(str(tmp_path / "adapted"))
    assert (loaded.dim, loaded.n_layers) == (4, 1)
    weights = load_file(base / "model.safetensors")
    name = next(name for name in weights if "intermediate" in name and weights[name].ndim == 2)
    weights[name][0, 0] += 1e-3
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        InputError,
        match=rf"were trained beside {base} with weights [0-9a-f]{{16}}, but those it has",
    ):
        SentenceEncoder.load(str(tmp_path / "adapted"))


def test_adapters_are_known_by_the_network_that_they_stand_beside_too(tiny, tmp_path, sentences):
    base, place = tmp_path / "base", str(tmp_path / "adapted")
    shutil.copytree(tiny, base)
    encoder = SentenceEncoder.load(str(base), pooling="mean")
    add_lora(encoder.backbone, SMALL, seed=0)
    encoder.save(tmp_path / "adapted")
    X, before = encoder.encode(sentences[:9]), identity(place)
    assert before not in (identity(str(base)), identity(tiny))
    # Its weights stay, by which loading knows it
    (base / "manifest.json").unlink(missing_ok=True)
    note = json.loads((base / "config.json").read_text(encoding="utf-8"))
    (base / "config.json").write_text(json.dumps({**note, "hidden_act": "relu"}), "utf-8")
    changed = SentenceEncoder.load(place).encode(sentences[:9])
    assert abs(changed - X).max() > 1e-3
    assert identity(place) != before


def test_damaged_adapters_are_named_and_are_no_backbone(saved):
    _, place = saved
    with pytest.raises(InputError, match="holds adapters, not a network"):
        load_backbone(str(place))
    file = place / "adapter.safetensors"
    save_file(dict(list(load_file(file).items())[1:]), file)
    with pytest.raises(InputError, match=r"adapter\.safetensors has changed since it was written"):
        SentenceEncoder.load(str(place))
    (place / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"adapter\.safetensors does not fit"):
        SentenceEncoder.load(str(place))
    file.write_bytes(b"no weights")
    with pytest.raises(InputError, match=r"adapter\.safetensors cannot be read"):
        SentenceEncoder.load(str(place))
