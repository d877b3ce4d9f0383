import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import DistilBertConfig, DistilBertModel

from repro.models import SentenceEncoder
from repro.models.backbone import load_backbone
from repro.models.st_modules import hub_folder, load_modules
from repro.types import InputError

TEXTS = ["the cat sat on the mat", "a dog", "the cat sat on the mat", "why did the farmer sell the old horse?"]


def modules(folder, *kinds):
    parts = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, kind in enumerate(kinds, 1):
        parts.append(
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{kind}",
                "type": f"sentence_transformers.models.{kind}",
            }
        )
    (folder / "modules.json").write_text(json.dumps(parts))


@pytest.fixture
def distiluse(tiny, tmp_path):
    """A random DistilBERT in the folder form of `distiluse-base-multilingual-cased-v1`: mean, then 24 → 10, tanh."""
    folder = tmp_path / "distiluse"
    tokenizer = load_backbone(tiny).tokenizer
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=tokenizer.get_vocab_size(), dim=24, hidden_dim=48, n_layers=2, n_heads=2, max_position_embeddings=64
    )
    DistilBertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]"}'
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 32, "do_lower_case": false}')
    modules(folder, "Pooling", "Dense")
    pooling = {"word_embedding_dimension": 24, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    dense = {"in_features": 24, "out_features": 10, "bias": True}
    dense["activation_function"] = "torch.nn.modules.activation.Tanh"
    for name, note in (("1_Pooling", pooling), ("2_Dense", dense)):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(note))
    weights = {"linear.weight": torch.randn(10, 24), "linear.bias": torch.randn(10)}
    save_file(weights, folder / "2_Dense" / "model.safetensors")
    return folder


def test_the_dense_layer_follows_the_mean(distiluse):
    encoder = load_modules(distiluse)
    linear = load_file(distiluse / "2_Dense" / "model.safetensors")
    h = SentenceEncoder.load(str(distiluse), pooling="mean").encode(TEXTS, readout="encoder")
    expected = np.tanh(h @ linear["linear.weight"].numpy().T + linear["linear.bias"].numpy())
    X = encoder.encode(TEXTS)
    np.testing.assert_allclose(X, expected, atol=1e-5)
    assert X.shape == (4, 10) and encoder.encode([]).shape == (0, 10)


def test_sentence_transformers_agrees(distiluse):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(distiluse), device="cpu")
    np.testing.assert_allclose(load_modules(distiluse).encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def test_a_folder_without_dense_is_a_plain_encoder(distiluse):
    modules(distiluse, "Pooling")
    assert isinstance(load_modules(distiluse), SentenceEncoder)
    (distiluse / "modules.json").unlink()
    assert load_modules(distiluse).pooling == "mean"


def test_normalising_is_a_part_like_others(distiluse):
    (distiluse / "3_Normalize").mkdir()
    modules(distiluse, "Pooling", "Dense", "Normalize")
    X = load_modules(distiluse).encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-6)


def test_what_is_not_known_is_refused(distiluse):
    modules(distiluse, "Pooling", "Dense", "LSTM")
    with pytest.raises(InputError, match="has the part LSTM"):
        load_modules(distiluse)
    modules(distiluse, "Pooling", "Dense")
    dense = distiluse / "2_Dense" / "config.json"
    dense.write_text(dense.read_text().replace("Tanh", "Swish"))
    with pytest.raises(InputError, match="'Swish'"):
        load_modules(distiluse)
    (distiluse / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(InputError, match="pooling_mode_max_tokens"):
        load_modules(distiluse)
    (distiluse / "modules.json").write_text("[")
    with pytest.raises(InputError, match="not valid JSON"):
        load_modules(distiluse)


def test_weights_that_are_missing_or_do_not_fit_are_named(distiluse):
    weights = distiluse / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.randn(10, 20)}, weights)
    with pytest.raises(InputError, match="does not fit its config"):
        load_modules(distiluse)
    weights.unlink()
    with pytest.raises(InputError, match="no safetensors weights"):
        load_modules(distiluse)


def test_the_hub_cache_is_looked_into_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="nobody/nothing is not in the hub's cache"):
        hub_folder("nobody/nothing")
