import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from conftest import saved_network
from repro.config import profile
from repro.models import SentenceEncoder
from repro.papers.ese.lines import raw_line
from repro.runs import encoders
from repro.runs.encoders import (
    encode_layers_once,
    encode_once,
    encode_tasks,
    load_encoders,
    states_identity,
)
from repro.sets import LabelledTexts
from repro.settings import TrainConfig
from repro.store import Store
from repro.types import InputError
from rivals.loaders import states
from rivals.system import SystemConfig

NEVER = Mock(side_effect=AssertionError("encoded again"))


def test_texts_are_encoded_once_and_then_looked_up(tiny, sentences):
    encoder, store = SentenceEncoder.load(tiny), Store()
    texts = [*sentences[:20], *sentences[:5]]
    table = encode_once(lambda: encoder, "id", texts, store)
    assert encoder.texts_encoded == 20
    np.testing.assert_array_equal(table[texts], encoder.encode(texts, readout="encoder"))
    again = encode_once(NEVER, "id", reversed(texts[::-1]), store)
    np.testing.assert_array_equal(again[texts[3:7]], table[texts[3:7]])
    with pytest.raises(InputError, match="'c' was not encoded with the others"):
        table[["c"]]
    for identity, wanted in (("other", texts), ("id", texts[:6])):
        with pytest.raises(AssertionError):
            encode_once(NEVER, identity, wanted, store)


def test_a_task_that_was_encoded_before_is_found_again(tiny, sentences):
    def task(*texts):
        return {"test": LabelledTexts("t", "local", "test", texts, np.array(["x"] * len(texts)))}

    encoder, store, made = SentenceEncoder.load(tiny), Store(), []
    first = {"a": task(*sentences[:6])}
    for tasks in (first, first | {"b": task(*sentences[4:9]), "c": task(*sentences[2:5])}):
        both = encode_tasks(lambda: made.append(1) or encoder, "id", tasks, store)
    assert encoder.texts_encoded == 6 + 5 + 3
    assert len(made) == 2  # Once a call, whatever the number of tasks
    assert both.X.shape == (9, encoder.hidden_dim)
    np.testing.assert_array_equal(
        both[sentences[:9]],
        encoder.encode(sentences[:9], readout="encoder"),
    )


def test_all_layers_come_from_one_pass(tiny, sentences):
    encoder, store = SentenceEncoder.load(tiny, pooling="mean"), Store()
    texts = [*sentences[:9], *sentences[:3]]
    table = encode_layers_once(lambda: encoder, "id", texts, store)
    assert (encoder.texts_encoded, len(table.X), table.hidden_dim) == (9, 3, 32)
    again = encode_layers_once(NEVER, "id", texts, store)
    for layer in range(3):
        np.testing.assert_array_equal(
            again.at(layer)[texts],
            encoder.encode(texts, layer=layer, readout="encoder"),
        )
        np.testing.assert_array_equal(table.at(layer, 5)[texts], again.at(layer)[texts][:, :5])
    for layer, dim, message in (
        (3, None, "layer 3 of an encoder of 2"),
        (1, 33, "dim is 33: expected 1 to 32"),
    ):
        with pytest.raises(InputError, match=message):
            table.at(layer, dim)


def test_a_collection_is_encoded_shard_by_shard_and_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(encoders, "SHARD", 3)
    encoded = []

    class Counted:
        def encode(self, texts, readout):
            encoded.append(len(texts))
            return np.array([[len(text), 1.0] for text in texts], np.float32)

    texts = ["a" * length for length in range(1, 9)]
    encoders.encode_in_shards(Counted, "an identity", texts[:6], Store())
    shards = encoders.encode_in_shards(Counted, "an identity", texts, Store())
    assert encoded == [3, 3, 2]
    np.testing.assert_array_equal(np.concatenate(shards)[:, 0], range(1, 9))


def test_sup_simcse_is_read_behind_its_layer_as_its_package_reads_it(tiny, tmp_path, sentences):
    config = BertConfig.from_pretrained(tiny, max_position_embeddings=200)
    torch.manual_seed(0)
    network = BertModel(config).eval()
    folder = saved_network(network, tmp_path / "sup-simcse-tiny", tiny)
    (named,) = load_encoders([folder], profile("embedded"), Store())
    texts = [*sentences[:4], " ".join(sentences[:40])]
    tokens = AutoTokenizer.from_pretrained(folder)
    inputs = tokens(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.no_grad():
        theirs = torch.nn.functional.normalize(network(**inputs).pooler_output).numpy()
    np.testing.assert_allclose(named.make().encode(texts, readout="encoder"), theirs, atol=1e-5)
    assert (named.name, named.identity) != ("", states_identity(folder, None))
    saved_network(BertModel(config, add_pooling_layer=False), Path(folder), tiny)
    (without,) = load_encoders([folder], profile("embedded"), Store())
    with pytest.raises(InputError, match=r"has no layer over \[CLS\]"):
        without.make()


def test_a_network_that_is_written_to_before_it_is_loaded_is_refused(tiny, tmp_path, sentences):
    changed = shutil.copytree(tiny, tmp_path / "changed")
    base = TrainConfig(backbone=str(changed), pooling="mean")
    given = SystemConfig("microworld", backbone=str(changed))
    (named,) = load_encoders([str(changed)], profile("embedded"), Store())
    system = states(Mock(), given, Store(), pooling="mean")
    of_page = [named, raw_line(base), system]
    for each in of_page:
        each.make()  # As it was digested
    config = json.loads((changed / "config.json").read_text())
    (changed / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 0.1}))
    for each in of_page:
        with pytest.raises(InputError, match="changed was written to while it was read"):
            each.make()
