import copy

import pytest
import torch
import transformers

from repro.models import backbone
from repro.models.backbone import load_backbone
from repro.types import InputError


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
