"""What follows the pooling in a published folder is part of the encoder, read and written."""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, DistilBertConfig, DistilBertModel

from conftest import saved_network
from repro.config import profile
from repro.models import SentenceEncoder, exported
from repro.models.exported import export_folder
from repro.models.layerless import load_modules
from repro.models.lora import add_lora
from repro.models.pretrained import class_without_head
from repro.models.sources import identity, locate
from repro.reducers import make_reducer
from repro.results import read_rows
from repro.runs.encoders import load_encoders
from repro.settings import LoraConfig
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError, unit_rows

TEXTS = [
    "a dog sleeps on the mat",
    "the cook thanked the driver",
    "why did the teacher leave the old town so early?",
]
PROMPTS = {
    "prompts": {"query": "query: ", "passage": "passage: "},
    "default_prompt_name": "passage",
}
sentence_transformers = pytest.importorskip("sentence_transformers")


def theirs(folder):
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)


def note(folder, name, values):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(values))


def write_modules(folder, *kinds, **notes):
    """`modules.json` with these parts after the network, and the settings of some."""
    parts = [
        ("Transformer", ""),
        *((kind, f"{number}_{kind}") for number, kind in enumerate(kinds, 1)),
    ]
    package = "sentence_transformers.models"
    listed = [
        {"idx": i, "name": str(i), "path": p, "type": f"{package}.{k}"}
        for i, (k, p) in enumerate(parts)
    ]
    note(folder, "modules.json", listed)
    for kind, path in parts[1:]:
        (folder / path).mkdir(exist_ok=True)
        if kind in notes:
            note(folder, f"{path}/config.json", notes[kind])


@pytest.fixture
def copied(tiny, tmp_path):
    """A copy of `tiny` that may be given parts."""
    return Path(shutil.copytree(tiny, tmp_path / "published"))


# Read


@pytest.fixture
def distiluse(copied):
    """A random DistilBERT in the folder form of `distiluse-base-multilingual-cased-v1`: mean, then
    24 → 10, tanh.
    """
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 400,
        "dim": 24,
        "hidden_dim": 48,
        "n_layers": 2,
        "n_heads": 2,
        "max_position_embeddings": 64,
    }
    DistilBertModel(DistilBertConfig(**sizes)).save_pretrained(copied)
    tokens = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
    }
    note(copied, "tokenizer_config.json", tokens)
    note(copied, "sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": False})
    pooling = {
        "word_embedding_dimension": 24,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
    }
    dense = {"in_features": 24, "out_features": 10, "bias": True}
    dense["activation_function"] = "torch.nn.modules.activation.Tanh"
    write_modules(copied, "Pooling", "Dense", Pooling=pooling, Dense=dense)
    weights = {"linear.weight": torch.randn(10, 24), "linear.bias": torch.randn(10)}
    save_file(weights, copied / "2_Dense" / "model.safetensors")
    return copied


def test_the_dense_layer_follows_the_mean(distiluse):
    encoder = load_modules(distiluse)
    linear = load_file(distiluse / "2_Dense" / "model.safetensors")
    h = SentenceEncoder.load(str(distiluse), pooling="mean").encode(TEXTS, readout="encoder")
    expected = np.tanh(h @ linear["linear.weight"].numpy().T + linear["linear.bias"].numpy())
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(distiluse), atol=1e-5)
    assert encoder.encode([]).shape == (0, 10)
    write_modules(distiluse, "Pooling", "Dense", "Normalize")
    np.testing.assert_allclose(
        load_modules(distiluse).encode(TEXTS),
        unit_rows(expected),
        atol=1e-5,
    )
    before = identity(str(distiluse))
    write_modules(distiluse, "Pooling")
    assert (
        isinstance(load_modules(distiluse), SentenceEncoder) and identity(str(distiluse)) != before
    )
    (distiluse / "modules.json").unlink()
    assert load_modules(distiluse).pooling == "mean"


def test_a_part_in_a_folder_of_a_folder_is_read_and_decides_the_identity(distiluse):
    shutil.move(distiluse / "2_Dense", distiluse / "heads" / "2_Dense")
    modules = json.loads((distiluse / "modules.json").read_text(encoding="utf-8"))
    modules[2]["path"] = "heads/2_Dense"
    note(distiluse, "modules.json", modules)
    X, before = load_modules(distiluse).encode(TEXTS), identity(str(distiluse))
    weights = distiluse / "heads" / "2_Dense" / "model.safetensors"
    save_file({name: -value for name, value in load_file(weights).items()}, weights)
    np.testing.assert_allclose(load_modules(distiluse).encode(TEXTS), -X, atol=1e-6)
    assert identity(str(distiluse)) != before


def test_what_is_not_known_is_refused(distiluse):
    weights, dense = (distiluse / "2_Dense" / name for name in ("model.safetensors", "config.json"))
    for spoil, words in (
        (
            lambda: save_file({"linear.weight": torch.randn(10, 20)}, weights),
            "does not fit its config",
        ),
        (weights.unlink, "no safetensors weights"),
        (lambda: dense.write_text(dense.read_text().replace("Tanh", "Swish")), "'Swish'"),
        (lambda: write_modules(distiluse, "Pooling", "LSTM"), "has the part LSTM"),
    ):
        spoil()
        with pytest.raises(InputError, match=words):
            load_modules(distiluse)


@pytest.mark.parametrize(
    ("modes", "pooling"),
    [
        # As bge-base-en-v1.5
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": ["mean", "cls"]}, "mean+cls"),
        ({"pooling_mode": "max", "pooling_mode_mean_tokens": True}, "max"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "cls+mean"),
        ({"pooling_mode": "attention"}, None),
    ],
)
def test_a_published_folder_brings_its_own_pooling_and_an_unknown_one_is_refused(
    modes,
    pooling,
    copied,
    tiny,
):
    write_modules(copied, "Pooling", "Normalize", Pooling={"word_embedding_dimension": 32, **modes})
    note(copied, "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True})
    if pooling is None:
        with pytest.raises(
            InputError,
            match=r"1_Pooling/config\.json of .* asks for pooling attention: expected",
        ):
            SentenceEncoder.load(str(copied))
        assert SentenceEncoder.load(str(copied), pooling="mean").pooling == "mean"
        return
    encoder = SentenceEncoder.load(str(copied))
    assert (encoder.pooling, encoder.backbone.max_length) == (pooling, 24)
    h = SentenceEncoder.load(tiny, pooling=pooling).encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS, readout="encoder"), h)
    np.testing.assert_allclose(encoder.encode(TEXTS), unit_rows(h), rtol=1e-5)
    assert SentenceEncoder.load(str(copied), pooling="avg_first_last").pooler is None


def test_minilm_is_read_as_it_is_published():
    encoder = SentenceEncoder.load("all-MiniLM-L6-v2")
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(locate("all-MiniLM-L6-v2")), atol=1e-5)


def test_of_a_t5_the_encoder_is_read_with_or_without_its_decoder_beside_it(translators, tmp_path):
    """As sentence-t5 and gtr are published: mean, a dense layer without bias, rows of length 1."""
    folder = Path(shutil.copytree(translators["t5"], tmp_path / "t5"))
    dense = {"in_features": 32, "out_features": 10, "bias": False}
    dense["activation_function"] = "torch.nn.modules.linear.Identity"
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    write_modules(folder, "Pooling", "Dense", "Normalize", Pooling=pooling, Dense=dense)
    save_file({"linear.weight": torch.randn(10, 32)}, folder / "2_Dense" / "model.safetensors")
    encoder = SentenceEncoder.load(str(folder))
    assert (encoder.pooling, encoder.dim, encoder.n_layers) == ("mean", 10, 1)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(folder), atol=1e-5)
    exported = export_folder(encoder, tmp_path / "exported")
    assert "decoder." not in "".join(load_file(exported / "model.safetensors"))
    np.testing.assert_allclose(theirs(exported), theirs(folder), atol=1e-5)
    again = SentenceEncoder.load(str(exported))
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.parametrize("parts", [("Pooling",), ("Pooling", "Normalize"), ("Pooling", "Dense")])
def test_the_truncate_dim_of_a_published_folder_holds_and_is_handed_on(parts, distiluse, tmp_path):
    write_modules(distiluse, *parts)
    whole = theirs(distiluse)
    note(distiluse, "config_sentence_transformers.json", {"truncate_dim": 5})
    encoder = SentenceEncoder.load(str(distiluse))
    X = encoder.encode(TEXTS)
    assert encoder.dim == 5 and encoder.hidden_dim == 24 and X.shape == (3, 5)
    np.testing.assert_allclose(X, whole[:, :5], atol=1e-5)
    np.testing.assert_allclose(X, theirs(distiluse), atol=1e-5)
    np.testing.assert_allclose(theirs(export_folder(encoder, tmp_path / "exported")), X, atol=1e-5)
    encoder.save(tmp_path / "saved")
    assert SentenceEncoder.load(str(tmp_path / "saved")).encode(TEXTS).tobytes() == X.tobytes()
    assert SentenceEncoder.load(str(distiluse), dim=7).dim == 7, "a training reads the network"
    note(distiluse, "config_sentence_transformers.json", {"truncate_dim": 500})
    np.testing.assert_allclose(SentenceEncoder.load(str(distiluse)).encode(TEXTS), whole, atol=1e-5)
    note(distiluse, "config_sentence_transformers.json", {"truncate_dim": -1})
    with pytest.raises(InputError, match=r"truncate_dim of .*\.json is -1: expected at least 1"):
        SentenceEncoder.load(str(distiluse))


def test_a_prompt_is_a_name_or_a_text(copied, tiny):
    note(copied, "config_sentence_transformers.json", PROMPTS)
    plain = SentenceEncoder.load(tiny, pooling="mean")
    for asked, prompt in (
        (None, "passage: "),
        ("query", "query: "),
        ("", ""),
        ("search for: ", "search for: "),
    ):
        encoder = SentenceEncoder.load(str(copied), pooling="mean", prompt=asked)
        np.testing.assert_array_equal(
            encoder.encode(TEXTS),
            plain.encode([prompt + text for text in TEXTS]),
        )
    assert SentenceEncoder.load(str(copied)).prompt == "passage: "
    embedded = profile("embedded")
    (named,) = load_encoders([str(copied)], embedded, Store())
    assert named.make().prompt == "", "a page reads the states of the texts alone"
    assert fresh_encoder(replace(embedded.train, backbone=str(copied))).prompt == ""
    with pytest.raises(InputError, match=r"prompt 'qeury': .* names query, passage"):
        SentenceEncoder.load(str(copied), prompt="qeury")


@pytest.mark.parametrize(
    "pooling", ["cls", "max", "mean", "mean_sqrt_len_tokens", ["mean", "cls", "lasttoken"]]
)
@pytest.mark.parametrize("include_prompt", [True, False])
def test_poolings_and_prompts_left_out_are_read_saved_and_exported_as_they_are_published(
    pooling, include_prompt, distiluse, tmp_path
):
    write_modules(
        distiluse, "Pooling", Pooling={"embedding_dimension": 24, "pooling_mode": pooling}
    )
    notes = json.loads((distiluse / "1_Pooling" / "config.json").read_text())
    note(distiluse, "1_Pooling/config.json", {**notes, "include_prompt": include_prompt})
    note(distiluse, "config_sentence_transformers.json", PROMPTS)
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    tokens = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    note(distiluse, "tokenizer_config.json", tokens)
    encoder = SentenceEncoder.load(str(distiluse), prompt=None)
    X = encoder.encode(TEXTS)
    assert X.shape == (3, 72 if isinstance(pooling, list) else 24)
    np.testing.assert_allclose(X, theirs(distiluse), atol=1e-5)
    np.testing.assert_allclose(theirs(export_folder(encoder, tmp_path / "out")), X, atol=1e-5)
    encoder.save(tmp_path / "saved")
    again = SentenceEncoder.load(str(tmp_path / "saved"), prompt="passage: ")
    assert again.encode(TEXTS).tobytes() == X.tobytes()


def test_a_prompt_left_out_leaves_tokens_to_pool_and_weights_by_place_are_refused(copied):
    note(copied, "1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False})
    encoder = SentenceEncoder.load(str(copied), prompt="a word")
    encoder.backbone.tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    with pytest.raises(InputError, match=r"texts\[1\] \(''\) has no token"):
        encoder.encode(["a dog", ""])
    note(copied, "1_Pooling/config.json", {"pooling_mode": "weightedmean", "include_prompt": False})
    with pytest.raises(InputError, match="leaves a prompt's tokens out of a weighted mean"):
        SentenceEncoder.load(str(copied))


def test_a_folder_that_asks_for_lower_case_reads_lower_case(copied):
    tokens = json.loads((copied / "tokenizer.json").read_text())
    (copied / "tokenizer.json").write_text(json.dumps({**tokens, "normalizer": None}))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    note(copied, "tokenizer_config.json", {**kind, "unk_token": "[UNK]"})
    expected = load_modules(copied).encode(TEXTS)
    cased = [text.title() for text in TEXTS]
    assert not np.allclose(load_modules(copied).encode(cased), expected, atol=1e-3)
    note(copied, "sentence_bert_config.json", {"max_seq_length": 32, "do_lower_case": True})
    np.testing.assert_array_equal(load_modules(copied).encode(cased), expected)


def test_the_published_limit_goes_before_the_tokenizers_and_the_other_end_is_told(copied, caplog):
    tokens = json.loads((copied / "tokenizer_config.json").read_text())
    note(copied, "tokenizer_config.json", {**tokens, "model_max_length": 8})
    note(copied, "sentence_bert_config.json", {"max_seq_length": 16})
    assert load_modules(copied).backbone.max_length == 16 and "truncation_side" not in caplog.text
    left = {**tokens, "truncation_side": "left"}
    note(copied, "tokenizer_config.json", left)
    load_modules(copied)
    assert "long texts are cut at their end here" in caplog.text
    assert "padding_side" not in caplog.text
    note(copied, "tokenizer_config.json", {**tokens, "padding_side": "left"})
    load_modules(copied)
    assert "short texts are padded at their end here" in caplog.text
    (copied / "sentence_bert_config.json").unlink()
    note(copied, "tokenizer_config.json", {**tokens, "model_max_length": 8})
    assert load_modules(copied).backbone.max_length == 8


@pytest.mark.parametrize(
    "more", [{"use_residual": True}, {"module_input_name": "token_embeddings"}]
)
def test_a_dense_layer_of_another_kind_is_refused(more, distiluse):
    path = distiluse / "2_Dense" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))
    with pytest.raises(InputError, match=r"2_Dense/config\.json: expected a dense layer of sent"):
        load_modules(distiluse)


SIZES = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "max_position_embeddings": 66,
    "pad_token_id": 0,
}
GROUPED = {**SIZES, "num_key_value_heads": 1, "head_dim": 16}
GPT = {"vocab_size": 400, "n_layer": 2, "n_head": 2}
BART = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "vocab_size": 400}
BART |= {"max_position_embeddings": 66, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
for side in ("encoder", "decoder"):
    BART |= {f"{side}_attention_heads": 2, f"{side}_ffn_dim": 48}
DEBERTA = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "type_vocab_size": 0}
DEBERTA |= {"position_biased_input": False, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
ARCHITECTURES = {
    "albert": {**SIZES, "embedding_size": 16},
    "electra": {**SIZES, "embedding_size": 16},
    "deberta-v2": {**SIZES, **DEBERTA, "position_buckets": 16},
    "modernbert": {**SIZES, "local_attention": 8},
    "nomic_bert": SIZES,
    "longformer": {**SIZES, "attention_window": [8, 8]},
    "big_bird": {**SIZES, "attention_type": "block_sparse", "block_size": 4},
    "mobilebert": {**SIZES, "embedding_size": 16, "intra_bottleneck_size": 16},
    "xlnet": {"vocab_size": 400, "d_model": 32, "n_head": 2, "d_inner": 48, "n_layer": 2},
    "bart": BART,
    "opt": {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "bloom": {**GPT, "hidden_size": 32, "pad_token_id": 0},
    "qwen3": GROUPED,
    "gemma2": {**GROUPED, "sliding_window": 8},
    "mistral": {**GROUPED, "sliding_window": 8},
    "phi": SIZES,
    "mamba": {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "pad_token_id": 0},
}
"""Those that other tests do not read as folders; few of them were listed anywhere when read."""
PADDED_LEFT = ("opt", "bloom", "qwen3", "mistral")


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_a_folder_of_any_architecture_encodes_as_sentence_transformers_does(family, tiny, tmp_path):
    config = AutoConfig.for_model(family, **ARCHITECTURES[family])
    torch.manual_seed(0)
    model = class_without_head(config).from_config(config)
    side = "left" if family in PADDED_LEFT else "right"
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "padding_side": side}
    folder = Path(saved_network(model, tmp_path / family, tiny, model_max_length=64, **kind))
    encoder = SentenceEncoder.load(str(folder), pooling="mean")
    X = encoder.encode(TEXTS)
    np.testing.assert_allclose(X, theirs(folder), atol=1e-5)
    np.testing.assert_allclose(theirs(export_folder(encoder, tmp_path / "out")), X, atol=1e-5)


# Written


@pytest.mark.parametrize(
    ("pooling", "activation"),
    [("cls", "tanh"), ("mean", "identity"), ("last", "tanh")],
)
def test_encoder_and_pooler_give_equal_outputs(tiny, tmp_path, pooling, activation):
    encoder = SentenceEncoder.load(tiny, dim=12, pooling=pooling, activation=activation, seed=1)
    expected = encoder.encode(TEXTS)
    folder = export_folder(encoder, tmp_path / "out")
    np.testing.assert_allclose(theirs(folder), expected, atol=1e-5)
    np.testing.assert_allclose(load_modules(folder).encode(TEXTS), expected, atol=1e-5)
    export_folder(encoder, tmp_path / "short", dim=5)
    np.testing.assert_allclose(theirs(tmp_path / "short"), expected[:, :5], atol=1e-5)


def test_a_shallow_encoder_is_written_without_its_upper_blocks(tiny, decoders, tmp_path):
    expected = SentenceEncoder.load(tiny, pooling="mean").encode(TEXTS, layer=1)
    folder = export_folder(
        SentenceEncoder.load(tiny, pooling="mean", dim=4),
        tmp_path / "out",
        layer=1,
    )
    np.testing.assert_allclose(theirs(folder), expected, atol=1e-5)
    assert SentenceEncoder.load(str(folder)).n_layers == 1
    decoder = SentenceEncoder.load(decoders["llama"], pooling="mean", final_norm="all")
    expected = decoder.encode(TEXTS, layer=1)
    np.testing.assert_allclose(
        theirs(export_folder(decoder, tmp_path / "llama", layer=1)),
        expected,
        atol=1e-5,
    )


def test_what_cannot_be_said_in_a_folder_is_refused(tiny, write, tmp_path, decoders):
    write("full/x", "mine")
    out, qwen, square = tmp_path / "out", decoders["qwen2"], (np.eye(7), np.zeros(7))
    adapted = SentenceEncoder.load(tiny)
    add_lora(adapted.backbone, LoraConfig(), seed=0)
    for encoder, folder, options, words in (
        (SentenceEncoder.load(tiny), tmp_path / "full", {}, "nothing is overwritten"),
        (
            SentenceEncoder.load(tiny, pooling="avg_first_last"),
            out,
            {},
            "no avg_first_last pooling",
        ),
        (SentenceEncoder.load(tiny), out, {"layer": 0}, "at least one block"),
        (SentenceEncoder.load(tiny), out, {"dim": 99}, "dim is 99: expected 1 to 32"),
        (SentenceEncoder.load(tiny), out, {"reducer": square}, "takes 7 numbers"),
        (SentenceEncoder.load(qwen, bidirectional=True, pooling="mean"), out, {}, "both ways"),
        (SentenceEncoder.load(qwen), out, {"layer": 1}, "final norm"),
        (adapted, out, {}, "holds adapters"),
    ):
        with pytest.raises(InputError, match=words):
            export_folder(encoder, folder, **options)
    assert not out.exists()


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, "No space left on device"), InputError),
    ],
    ids=["interrupted", "full disk"],
)
def test_an_export_that_was_stopped_leaves_nothing_and_is_made_by_the_same_call(
    error, raised, tiny, tmp_path, monkeypatch
):
    def stop(*_):
        raise error

    encoder, folder = SentenceEncoder.load(tiny), tmp_path / "out"
    folder.mkdir()
    with monkeypatch.context() as patched, pytest.raises(raised):
        patched.setattr(exported, "_write_parts", stop)
        export_folder(encoder, folder)
    assert list(tmp_path.rglob("*")) == [folder]
    np.testing.assert_allclose(
        theirs(export_folder(encoder, folder)), encoder.encode(TEXTS), atol=1e-5
    )


def test_all_parts_of_an_exported_encoder_are_read(repro, tiny, sentences, tmp_path):
    """A mean-pooled encoder, PCA to 6 and Normalize, with a prompt of its own."""
    states = SentenceEncoder.load(tiny, pooling="mean").encode(sentences[:200])
    reducer = make_reducer("pca", 6).fit(states)
    plain = SentenceEncoder.load(tiny, pooling="mean", prompt="query: ")
    expected = unit_rows(reducer.transform(plain.encode(TEXTS)))
    linear = reducer.components_.T, -reducer.components_ @ reducer.mean_
    exported = str(export_folder(plain, tmp_path / "exported", reducer=linear, normalize=True))
    encoder = SentenceEncoder.load(exported, prompt=None)
    X = encoder.encode(TEXTS)
    assert (encoder.dim, encoder.hidden_dim, encoder.prompt) == (6, 32, "query: ")
    np.testing.assert_allclose(X, expected, atol=1e-5)
    np.testing.assert_allclose(X, theirs(exported), atol=1e-5)
    assert SentenceEncoder.load(exported, dim=5).dim == 5, "a training reads the network"
    assert SentenceEncoder.load(exported, pooling="cls").pooler is None, (
        "nothing was made for these states"
    )
    encoder.save(tmp_path / "saved")
    assert (
        SentenceEncoder.load(str(tmp_path / "saved"), prompt="query: ").encode(TEXTS).tobytes()
        == X.tobytes()
    )
    folder = export_folder(encoder, tmp_path / "again", dim=4, normalize=True)
    np.testing.assert_allclose(theirs(folder), unit_rows(X[:, :4]), atol=1e-5)
    rows = tmp_path / "rows.parquet"
    repro(
        "evaluate",
        "--encoder",
        exported,
        "--source",
        "microworld",
        "--data",
        "stsb",
        "--rows",
        rows,
    )
    (row,) = read_rows(rows).itertuples()
    assert row.dim == 6 and "prompt 'query: '" in row.setting
