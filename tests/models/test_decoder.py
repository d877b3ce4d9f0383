"""Decoders as backbones: who sees whom, on whichever side the padding is, at whichever layer a run stops."""

import logging

import numpy as np
import pytest
import torch
import transformers

from repro.models import SentenceEncoder, pooling
from repro.models.backbone import Backbone, load_backbone
from repro.models.decoder import causal_parts, norm_name, padding_only, positions
from repro.types import InputError

IDS = torch.tensor([[2, 40, 41, 42, 43, 44, 3], [2, 50, 51, 52, 3, 0, 0]])
MASK = (IDS != 0).long()
BOTH = pytest.mark.parametrize("family", ["qwen2", "llama"])
ATTENTION = pytest.mark.parametrize("attention", ["sdpa", "eager"])


@pytest.fixture
def load(decoders):
    def loaded(family, attention="sdpa", **options):
        backbone = load_backbone(decoders[family], device="cpu", **options)
        backbone.model.set_attn_implementation(attention)
        return backbone

    return loaded


def left(ids, mask):
    """The same texts, padded on the left."""
    order = torch.argsort(mask, dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order)


@torch.no_grad()
def run(backbone, ids, mask=None, layers=None):
    return backbone(ids, mask, range(backbone.n_layers + 1) if layers is None else layers)


@BOTH
@ATTENTION
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_editing_the_last_token_changes_the_first_state_iff_bidirectional(
    family, attention, bidirectional, masked, load
):
    backbone = load(family, attention, bidirectional=bidirectional)
    edited = IDS.clone()
    edited[0, 6] = 99
    edited[1, 4] = 99
    mask = MASK if masked else None
    for before, after in zip(run(backbone, IDS, mask)[1:], run(backbone, edited, mask)[1:], strict=True):
        assert (not torch.allclose(before[0, 0], after[0, 0], atol=1e-7)) == bidirectional
        assert (not torch.allclose(before[1, 0], after[1, 0], atol=1e-7)) == bidirectional


@BOTH
@pytest.mark.parametrize("bidirectional", [False, True])
def test_both_kinds_of_attention_agree(family, bidirectional, load):
    fast, plain = (run(load(family, kind, bidirectional=bidirectional), IDS, MASK) for kind in ("sdpa", "eager"))
    for a, b in zip(fast, plain, strict=True):
        torch.testing.assert_close(a[MASK.bool()], b[MASK.bool()], rtol=0, atol=1e-5)


@BOTH
@ATTENTION
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", pooling.POOLINGS)
def test_padding_may_stand_on_either_side_or_be_absent(family, attention, bidirectional, name, load):
    backbone = load(family, attention, bidirectional=bidirectional)
    shifted, moved = left(IDS, MASK)
    alone = [run(backbone, IDS[:1]), run(backbone, IDS[1:, :5])]
    for layer, (right_states, left_states) in enumerate(
        zip(run(backbone, IDS, MASK), run(backbone, shifted, moved), strict=True)
    ):
        h = pooling.pool(right_states, MASK, name)
        for row in (0, 1):
            single = alone[row][layer]
            expected = pooling.pool(single, torch.ones(single.shape[:2], dtype=torch.long), name)[0]
            torch.testing.assert_close(h[row], expected, rtol=0, atol=1e-5)
        if name != "cls":  # the first place is padding there
            torch.testing.assert_close(pooling.pool(left_states, moved, name), h, rtol=0, atol=1e-5)
        torch.testing.assert_close(left_states[moved.bool()], right_states[MASK.bool()], rtol=0, atol=1e-5)


def test_positions_of_absolute_embeddings_come_from_the_mask():
    """A GPT-2 adds a vector per place: on the left of it, padding would shift every text."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=16)
    for bidirectional in (False, True):
        model = transformers.GPT2Model(config).eval()
        backbone = Backbone(model, None, name="gpt2", max_length=16, bidirectional=bidirectional)
        shifted, moved = left(IDS, MASK)
        for a, b in zip(run(backbone, IDS, MASK), run(backbone, shifted, moved), strict=True):
            torch.testing.assert_close(a[MASK.bool()], b[moved.bool()], rtol=0, atol=1e-5)
        edited = IDS.clone()
        edited[1, 4] = 99
        same = torch.allclose(run(backbone, IDS, MASK)[2][1, 0], run(backbone, edited, MASK)[2][1, 0], atol=1e-7)
        assert same != bidirectional


def test_masks_and_positions():
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    assert positions(mask).tolist() == [[0, 0, 0, 1], [0, 1, 2, 2]]
    full = padding_only(mask, torch.float32)
    assert full.shape == (2, 1, 4, 4)
    assert (full[0, 0] == 0).tolist() == [[False, False, True, True]] * 4
    assert full.min() == torch.finfo(torch.float32).min  # not -inf: a row of those is not a number


@BOTH
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("final_norm", ["last", "all", "none"])
def test_an_early_stop_equals_that_layer_of_a_full_run_and_saves_the_rest(family, bidirectional, final_norm, load):
    backbone = load(family, bidirectional=bidirectional, final_norm=final_norm)
    full = run(backbone, IDS, MASK)
    assert backbone.blocks_run == backbone.n_layers
    for layer in range(backbone.n_layers + 1):
        backbone.blocks_run = 0
        torch.testing.assert_close(run(backbone, IDS, MASK, [layer])[0], full[layer], rtol=0, atol=1e-6)
        assert backbone.blocks_run == layer


@BOTH
def test_the_causal_states_are_those_that_transformers_returns(family, load):
    backbone = load(family)
    with torch.no_grad():
        expected = backbone.model(input_ids=IDS, attention_mask=MASK, output_hidden_states=True).hidden_states
    for mine, theirs in zip(run(backbone, IDS, MASK), expected, strict=True):
        torch.testing.assert_close(mine[MASK.bool()], theirs[MASK.bool()], rtol=0, atol=1e-5)


@BOTH
def test_final_norm_says_which_states_pass_it(family, load):
    raw, last, every = (run(load(family, final_norm=form), IDS, MASK) for form in ("none", "last", "all"))
    norm = load(family).model.norm
    with torch.no_grad():
        for layer, states in enumerate(raw):
            torch.testing.assert_close(every[layer], norm(states), rtol=0, atol=1e-5)
            kept = norm(states) if layer == len(raw) - 1 else states
            torch.testing.assert_close(last[layer], kept, rtol=0, atol=1e-5)
            assert not torch.allclose(norm(states), states, atol=1e-3)


def test_an_encoder_without_a_final_norm_or_causal_attention_is_as_before(tiny):
    plain = load_backbone(tiny)
    assert causal_parts(plain.model) == [] and norm_name(plain.model, plain.blocks) is None
    expected = run(plain, IDS, MASK)
    for form in ("all", "none"):
        for mine, theirs in zip(
            run(load_backbone(tiny, final_norm=form, bidirectional=True), IDS, MASK), expected, strict=True
        ):
            assert torch.equal(mine, theirs)


def test_a_network_cut_short_ends_with_its_norm(load):
    backbone = load("qwen2")
    raw = run(backbone, IDS, MASK, [2])[0]
    backbone.keep(2)
    with torch.no_grad():
        torch.testing.assert_close(run(backbone, IDS, MASK)[2], backbone.model.norm(raw), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("qwen2", "norm"),
        ("gpt2", "ln_f"),
        ("opt", "decoder.final_layer_norm"),
        ("phi", "final_layernorm"),
        ("modernbert", "final_norm"),
        ("bert", None),
        ("roberta", None),
    ],
)
def test_the_final_norm_is_found_in_other_families(family, name):
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"num_hidden_layers": 2, "ffn_dim": 24, "word_embed_proj_dim": 16, "pad_token_id": 0}
    config = transformers.AutoConfig.for_model(family, **sizes)
    backbone = Backbone(transformers.AutoModel.from_config(config), None, name=family, max_length=16)
    assert norm_name(backbone.model, backbone.blocks) == name


def test_what_cannot_be_made_bidirectional_is_refused():
    """A Bloom builds its own mask from positions: letting it run causally in silence would be a wrong result."""
    model = transformers.BloomModel(transformers.BloomConfig(vocab_size=50, hidden_size=16, n_layer=2, n_head=2))
    with pytest.raises(InputError, match="BloomModel stays causal under bidirectional=True"):
        Backbone(model, None, name="bloom", max_length=16, bidirectional=True)


def test_an_unknown_final_norm_lists_the_known(decoders):
    with pytest.raises(InputError, match="unknown final_norm 'first': choose one of last, all, none"):
        load_backbone(decoders["llama"], final_norm="first")


def test_dropout_of_the_attention_is_set_too(load):
    backbone = load("qwen2").train()
    assert torch.equal(*(backbone(IDS, MASK)[0] for _ in range(2)))
    backbone.set_dropout(0.5)
    assert not torch.equal(*(backbone(IDS, MASK)[0] for _ in range(2)))


@BOTH
@ATTENTION
@pytest.mark.parametrize("bidirectional", [False, True])
def test_half_precision_gives_finite_states_near_the_full_ones(family, attention, bidirectional, load):
    """Under autocast the mask's lowest single-precision number has no like in bfloat16."""
    backbone = load(family, attention, bidirectional=bidirectional)
    full = run(backbone, IDS, MASK)
    with torch.autocast("cpu", torch.bfloat16):
        half = run(backbone, IDS, MASK)
    for a, b in zip(half, full, strict=True):
        torch.testing.assert_close(a[MASK.bool()].float(), b[MASK.bool()], rtol=0.05, atol=0.05)


# encoders on them


@BOTH
def test_a_causal_decoder_is_read_at_its_last_token_unless_told_otherwise(family, decoders, sentences):
    encoder = SentenceEncoder.load(decoders[family])
    assert encoder.pooling == "last" and len(np.unique(encoder.encode(sentences[:9]), axis=0)) == 9
    assert SentenceEncoder.load(decoders[family], pooling="mean").pooling == "mean"
    assert SentenceEncoder.load(decoders[family], bidirectional=True).pooling == "cls"


def test_cls_pooling_of_a_causal_decoder_is_warned_of(decoders, caplog):
    encoder = SentenceEncoder.load(decoders["llama"], pooling="cls")
    with caplog.at_level(logging.WARNING):
        X = encoder.encode(["the cook", "the driver"])
        encoder.encode(["the cook"])
    assert [record.message[:30] for record in caplog.records] == ["cls pooling of a causal decode"]
    np.testing.assert_allclose(X[0], X[1], atol=1e-6)  # both start with the same token
    caplog.clear()
    both = SentenceEncoder.load(decoders["llama"], bidirectional=True).encode(["the cook", "the driver"])
    assert not caplog.records and not np.allclose(both[0], both[1], atol=1e-4)


@BOTH
@pytest.mark.parametrize("name", pooling.NAMES)
def test_packed_batches_equal_one_by_one(family, name, decoders, sentences):
    encoder = SentenceEncoder.load(decoders[family], pooling=name, bidirectional=True)
    texts = [*sentences[:12], "a word", sentences[0]]
    single = np.vstack([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), single, atol=1e-5)


@BOTH
def test_a_saved_encoder_sees_as_it_did(family, decoders, sentences, tmp_path):
    encoder = SentenceEncoder.load(decoders[family], pooling="mean", bidirectional=True, final_norm="all")
    encoder.save(tmp_path / "saved")
    loaded = SentenceEncoder.load(str(tmp_path / "saved"))
    assert loaded.encode_layers(sentences[:6]).tobytes() == encoder.encode_layers(sentences[:6]).tobytes()
    causal = SentenceEncoder.load(str(tmp_path / "saved"), bidirectional=False, final_norm="last")
    plain = SentenceEncoder.load(decoders[family], pooling="mean")
    assert (plain.backbone.bidirectional, plain.backbone.final_norm) == (False, "last")
    assert causal.encode_layers(sentences[:6]).tobytes() == plain.encode_layers(sentences[:6]).tobytes()
    assert not np.allclose(causal.encode(sentences[:6]), encoder.encode(sentences[:6]), atol=1e-4)
