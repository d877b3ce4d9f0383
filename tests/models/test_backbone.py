"""Backbones: whose states are read, who sees whom, on whichever side the padding is, wherever a run
stops.
"""

import copy

import numpy as np
import pytest
import torch
import transformers

from repro.models import SentenceEncoder
from repro.models.backbone import Backbone, load_backbone
from repro.models.pretrained import class_without_head
from repro.types import InputError

IDS = torch.tensor([[2, 40, 41, 42, 43, 44, 3], [2, 50, 51, 52, 3, 0, 0]])
MASK = (IDS != 0).long()
SIZES = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
}
BOTH = pytest.mark.parametrize("family", ["qwen2", "llama"])
ATTENTION = pytest.mark.parametrize("attention", ["sdpa", "eager"])
DIRECTIONS = pytest.mark.parametrize("bidirectional", [False, True])


def random_network(family, sizes=SIZES):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **sizes)
    return class_without_head(config).from_config(config).eval()


@pytest.fixture
def load(decoders):
    def loaded(family, attention="sdpa", **options):
        if family in decoders:
            backbone = load_backbone(decoders[family], device="cpu", **options)
        else:
            backbone = Backbone(random_network(family), None, name=family, max_length=16, **options)
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


def close(mine, theirs, atol=1e-5, rtol=0.0):
    """States of several layers agree wherever there is a token."""
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a[MASK.bool()].float(), b[MASK.bool()], rtol=rtol, atol=atol)


def test_tokens_are_cut_and_counted(tiny, sentences):
    network = load_backbone(tiny)
    long = " ".join(sentences[:10])
    for limit in (8, None):  # An earlier limit does not stick
        ids, cut = network.tokenize([sentences[0], long, long], limit)
        assert (len(ids[1]), cut) == ((8, 3) if limit else (48, 2))
        assert ids[1][-1] == network.tokenizer.token_to_id("[SEP]")


def test_hooks_rest_after_a_run_that_stopped_early_and_a_copy_reads_its_own_network(tiny):
    network = load_backbone(tiny)
    twin = copy.deepcopy(network)
    with torch.no_grad():
        network(IDS, layers=[1])
        network.model(input_ids=IDS)
        assert network.blocks_run == 1
        twin.model.embeddings.word_embeddings.weight.zero_()
        assert not torch.equal(network(IDS, layers=[0])[0], twin(IDS, layers=[0])[0])
        twin(IDS, layers=[1])
    assert (network.blocks_run, twin.blocks_run) == (1, 1)


THREE = {**SIZES, "num_hidden_layers": 3}
GEMMA = {**SIZES, "head_dim": 8, "num_key_value_heads": 1}
FAMILIES = {
    **dict.fromkeys(("bert", "roberta", "mpnet", "llama"), SIZES),
    "distilbert": {"vocab_size": 60, "dim": 16, "n_heads": 2, "hidden_dim": 24, "n_layers": 2},
    "qwen2": {**SIZES, "num_key_value_heads": 2},
    "albert": {**THREE, "embedding_size": 8},  # One block, which runs three times
    "albert, three groups": {**THREE, "embedding_size": 8, "num_hidden_groups": 3},
    "albert, two blocks in one group": {**SIZES, "embedding_size": 8, "inner_group_num": 2},
    "modernbert": {**SIZES, "pad_token_id": 0},
    "electra": {**SIZES, "embedding_size": 8},
    "deberta-v2": SIZES,
    "nomic_bert": SIZES,
    "big_bird": {**SIZES, "attention_type": "original_full"},
    "mobilebert": {
        **SIZES,
        "embedding_size": 8,
        "intra_bottleneck_size": 8,
        "initializer_range": 0.3,
    },
    "opt": {**SIZES, "ffn_dim": 24, "word_embed_proj_dim": 16},
    "phi": SIZES,
    "gpt_neox": SIZES,
    "qwen3": GEMMA,
    "gemma2": GEMMA,
    "mistral": GEMMA,
    "gemma3_text": GEMMA,
    "gemma3_text, both ways": {**GEMMA, "use_bidirectional_attention": True},
    "gpt2": {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2},
    "bloom": {"vocab_size": 60, "hidden_size": 16, "n_layer": 2, "n_head": 2},
    "t5": {"vocab_size": 60, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2},
    "t5, one block": {"vocab_size": 60, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1},
}
CAUSAL = {"llama", "qwen2", "gemma3_text", "gpt2", "bloom", "opt", "phi", "gpt_neox", "qwen3"}
CAUSAL |= {"gemma2", "mistral"}
UNCUT = {"albert, two blocks in one group", "t5, one block"}


@pytest.fixture
def of_family():
    def made(name, **options):
        model = random_network(name.partition(",")[0], FAMILIES[name])
        return Backbone(model, None, name=name, max_length=16, **options)

    return made


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_gives_the_states_that_transformers_returns_alone_or_together(name, of_family):
    network = of_family(name)
    ids = torch.where(MASK.bool(), IDS, network.pad_id)
    with torch.no_grad():
        output = network.model(input_ids=ids, attention_mask=MASK, output_hidden_states=True)
    together = run(network, ids, MASK)
    close(together, output.hidden_states, atol=1e-6)
    for layer, states in enumerate(together):
        network.blocks_run = 0
        close(run(network, ids, MASK, [layer]), [states], atol=1e-6)
        assert network.blocks_run == layer
    alone = run(network, ids[1:, :5])[-1]  # No mask where nothing is padded
    # Rounding grows with the states, and how much there is differs between processors
    scale = max(1.0, float(together[-1].abs().max()))
    torch.testing.assert_close(alone[0], together[-1][1, :5], rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_network_is_causal_where_a_later_token_changes_no_earlier_state(name, of_family):
    assert of_family(name).causal == (name in CAUSAL)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in UNCUT])
def test_a_cut_network_computes_the_layer_it_is_cut_to_also_when_saved(name, of_family, tmp_path):
    network = of_family(name, final_norm="none")
    before = run(network, IDS, MASK)[:2]
    network.keep(1)
    close(run(network, IDS, MASK), before, atol=0)
    network.model.save_pretrained(tmp_path)
    read, found = type(network.model).from_pretrained(tmp_path, output_loading_info=True)
    assert not [key for key in found["missing_keys"] if "pooler." not in key]
    again = Backbone(read.eval(), None, name=name, max_length=16, final_norm="none")
    close(run(again, IDS, MASK), before, atol=1e-6)


def test_a_cut_that_makes_another_network_is_refused(of_family):
    """In this ALBERT two blocks take turns: no configuration stops after the first of them."""
    with pytest.raises(InputError, match="cannot be cut to 1 layers: with fewer of them, Albert"):
        of_family("albert, two blocks in one group").keep(1)


def test_layers_that_transformers_does_not_return_are_refused_and_the_last_is_read():
    """The blocks of an XLNet take states (T, B, D): as they stand they are another text's."""
    sizes = {"vocab_size": 60, "d_model": 16, "n_head": 2, "d_inner": 24, "n_layer": 2}
    network = Backbone(random_network("xlnet", sizes), None, name="mine", max_length=16)
    with torch.no_grad():
        expected = network.model(input_ids=IDS, attention_mask=MASK).last_hidden_state
    close(run(network, IDS, MASK, [2]), [expected], atol=1e-6)
    for ask, asked in (
        (lambda: network(IDS, MASK, [0, 2]), "layer 0 of mine"),
        (lambda: network.keep(1), "a cut to 1 layers of mine"),
        (lambda: SentenceEncoder(network, pooling="avg_first_last"), "layer 1 of mine"),
    ):
        with pytest.raises(InputError, match=f"{asked}: the blocks of XLNetModel do not give"):
            ask()
    with pytest.raises(InputError, match="final_norm is 'all': what follows the last block of XLN"):
        Backbone(network.model, None, name="mine", max_length=16, final_norm="all")


def test_a_network_that_takes_no_text_as_long_as_it_should_is_refused():
    model = random_network("bert", {**SIZES, "max_position_embeddings": 9})
    network = Backbone(model, None, name="mine", max_length=9)
    network.try_longest()
    network.max_length = 10
    words = r"mine takes no text of 10 tokens, .*say fewer as max_seq_length"
    with pytest.raises(InputError, match=words):
        network.try_longest()


def test_memory_that_runs_out_while_a_network_is_tried_is_not_laid_on_the_network(monkeypatch):
    network = Backbone(random_network("bert", SIZES), None, name="mine", max_length=9)

    def exhausted(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")

    monkeypatch.setattr(network, "_states", exhausted)
    for ask in (network.try_longest, network._check_sees_ahead):
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            ask()


# Decoders


@BOTH
@ATTENTION
@DIRECTIONS
def test_editing_the_last_token_changes_the_first_state_iff_bidirectional(
    family,
    attention,
    bidirectional,
    load,
):
    backbone = load(family, attention, bidirectional=bidirectional)
    edited = IDS.clone()
    edited[0, 6] = edited[1, 4] = 99
    for mask in (MASK, None):
        for before, after in zip(
            run(backbone, IDS, mask)[1:],
            run(backbone, edited, mask)[1:],
            strict=True,
        ):
            for row in (0, 1):
                assert (
                    not torch.allclose(before[row, 0], after[row, 0], atol=1e-7)
                ) == bidirectional


@BOTH
@DIRECTIONS
def test_both_kinds_of_attention_and_half_precision_agree(family, bidirectional, load):
    fast, plain = (load(family, kind, bidirectional=bidirectional) for kind in ("sdpa", "eager"))
    expected = run(plain, IDS, MASK)
    # Under autocast the mask's lowest single-precision number has no like in bfloat16
    for backbone in (fast, plain):
        with torch.autocast("cpu", torch.bfloat16):
            close(run(backbone, IDS, MASK), expected, atol=0.05, rtol=0.05)


# The last adds a vector per place, to be shifted too
@pytest.mark.parametrize("family", ["qwen2", "llama", "gpt2"])
@ATTENTION
@DIRECTIONS
def test_padding_may_stand_on_either_side_or_be_absent(family, attention, bidirectional, load):
    backbone = load(family, attention, bidirectional=bidirectional)
    shifted, moved = left(IDS, MASK)
    alone = [run(backbone, IDS[:1]), run(backbone, IDS[1:, :5])]
    layers = zip(run(backbone, IDS, MASK), run(backbone, shifted, moved), strict=True)
    for layer, (right_states, left_states) in enumerate(layers):
        torch.testing.assert_close(
            left_states[moved.bool()],
            right_states[MASK.bool()],
            rtol=0,
            atol=1e-5,
        )
        for row, length in ((0, 7), (1, 5)):
            torch.testing.assert_close(
                right_states[row, :length],
                alone[row][layer][0],
                rtol=0,
                atol=1e-5,
            )


@BOTH
@DIRECTIONS
@pytest.mark.parametrize("final_norm", ["last", "all", "none"])
def test_an_early_stop_equals_that_layer_of_a_full_run_and_saves_the_rest(
    family,
    bidirectional,
    final_norm,
    load,
):
    backbone = load(family, bidirectional=bidirectional, final_norm=final_norm)
    full = run(backbone, IDS, MASK)
    assert backbone.blocks_run == backbone.n_layers
    for layer in range(backbone.n_layers + 1):
        backbone.blocks_run = 0
        torch.testing.assert_close(
            run(backbone, IDS, MASK, [layer])[0],
            full[layer],
            rtol=0,
            atol=1e-6,
        )
        assert backbone.blocks_run == layer


@BOTH
def test_final_norm_says_which_states_pass_it(family, load):
    raw, last, every = (
        run(load(family, final_norm=form), IDS, MASK) for form in ("none", "last", "all")
    )
    backbone = load(family)
    norm = backbone.model.norm
    with torch.no_grad():
        expected = backbone.model(
            input_ids=IDS,
            attention_mask=MASK,
            output_hidden_states=True,
        ).hidden_states
        close(last, expected)
        close(every, [norm(states) for states in raw])
        close(last, [*raw[:-1], norm(raw[-1])])
        assert not any(torch.allclose(norm(states), states, atol=1e-3) for states in raw)
        backbone.keep(1)
        close(run(backbone, IDS, MASK)[1:], [norm(raw[1])], atol=1e-6)


NORMS = {
    "qwen2": "norm",
    "gpt2": "ln_f",
    "opt": "decoder.final_layer_norm",
    "phi": "final_layernorm",
}
NORMS |= {"megatron-bert": "encoder.ln", "esm": "encoder.emb_layer_norm_after"}


@pytest.mark.parametrize(
    ("family", "name"),
    [*NORMS.items(), ("modernbert", "final_norm"), ("roberta", None)],
)
def test_the_final_norm_is_found_in_other_families(family, name):
    more = {"ffn_dim": 24, "word_embed_proj_dim": 16, "num_key_value_heads": 2}
    more |= {"pad_token_id": 0, "mask_token_id": 4}
    model = random_network(family, {**SIZES, **more})
    assert Backbone(model, None, name=family, max_length=16).norm_name == name


def test_what_cannot_be_a_backbone_is_refused(decoders):
    with pytest.raises(
        InputError,
        match="unknown final_norm 'first': choose one of last, all, none",
    ):
        load_backbone(decoders["llama"], final_norm="first")
    # A Bloom builds its own mask from positions: letting it run causally in silence would be a
    # wrong result
    model = transformers.BloomModel(
        transformers.BloomConfig(vocab_size=50, hidden_size=16, n_layer=2, n_head=2)
    )
    with pytest.raises(InputError, match="BloomModel stays causal under bidirectional=True"):
        Backbone(model, None, name="bloom", max_length=16, bidirectional=True)


def test_one_vector_for_all_texts_is_refused_as_the_encoders_fault(decoders, sentences):
    """Every text begins with one special token, of which a causal decoder makes one state."""
    encoder = SentenceEncoder.load(decoders["llama"], pooling="cls")
    with pytest.raises(InputError, match="gives all 9 different texts one vector: cls pooling of"):
        encoder.encode(sentences[:9])
    assert encoder.encode(["a cat", "A CAT"]).shape == (2, 32), "equal tokens have equal states"
    ahead = SentenceEncoder.load(decoders["llama"], pooling="cls", bidirectional=True)
    assert len(np.unique(ahead.encode(sentences[:9]), axis=0)) == 9
    with torch.no_grad():
        for weight in encoder.backbone.model.parameters():
            weight.zero_()
    encoder.pooling = "mean"
    with pytest.raises(InputError, match="one vector: mean pooling reads a state that is the same"):
        encoder.encode(sentences[:9])


@BOTH
def test_a_decoder_is_read_at_its_last_token_and_a_saved_one_sees_as_it_did(
    family,
    decoders,
    sentences,
    tmp_path,
):
    encoder = SentenceEncoder.load(decoders[family])
    assert encoder.pooling == "last" and len(np.unique(encoder.encode(sentences[:9]), axis=0)) == 9
    assert SentenceEncoder.load(decoders[family], bidirectional=True).pooling == "cls"
    encoder = SentenceEncoder.load(
        decoders[family],
        pooling="mean",
        bidirectional=True,
        final_norm="all",
    )
    encoder.save(tmp_path / "saved")
    loaded = SentenceEncoder.load(str(tmp_path / "saved"))
    assert (
        loaded.encode_layers(sentences[:6]).tobytes()
        == encoder.encode_layers(sentences[:6]).tobytes()
    )
    loaded.backbone.keep(1)
    loaded.save(tmp_path / "cut")
    assert SentenceEncoder.load(str(tmp_path / "cut")).n_layers == 1
    causal = SentenceEncoder.load(str(tmp_path / "saved"), bidirectional=False, final_norm="last")
    plain = SentenceEncoder.load(decoders[family], pooling="mean")
    assert (
        causal.encode_layers(sentences[:6]).tobytes()
        == plain.encode_layers(sentences[:6]).tobytes()
    )
    assert not np.allclose(causal.encode(sentences[:6]), encoder.encode(sentences[:6]), atol=1e-4)
