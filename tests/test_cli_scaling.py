"""`repro train` on AnglE, Matryoshka and ESE: what is written, what is found again, and what is refused."""

import json

import numpy as np
import pytest

from repro.models import SentenceEncoder
from repro.rows import read_rows

pytestmark = pytest.mark.usefixtures("no_data")


@pytest.fixture
def train(repro, tiny, tmp_path):
    common = f"train --backbone {tiny} --sentences 64 --batch-size 16 --pooling mean --workers 1"
    return lambda options: repro(f"{common} --output {tmp_path}/trained --objective {options}")


def test_ese_trains_one_encoder_per_size_that_evaluate_reads_at_any_depth_and_size(train, repro, tmp_path):
    options = "ese --dims 16 8 --layers 2 --form code --preset ese_readme --alpha 0.5 --layer-weights learned"
    code, out, err = train(options)
    assert code == 0, err
    assert "ESE size 16: trained in" in out and "ESE size 8: trained in" in out
    assert "(encoder, untrained) -> " in out and "(encoder); " in out
    assert train(options)[1].count("found in the store") == 2
    history = json.loads((tmp_path / "trained" / "dim16" / "history.json").read_text())
    note = history["config"]
    assert set(history["log_weights"]) != {0}, "learned layer weights are kept beside the encoder"
    assert (note["objective"], note["dim"], note["layers"], note["corpus"]) == ("ese", 16, 2, "nli")
    assert note["espresso"]["alpha"] == 0.5 and note["espresso"]["full_size_loss"]
    assert note["angle"]["in_batch_weight"] == 10
    encoder, rows = tmp_path / "trained" / "dim8", tmp_path / "r.pq"
    assert SentenceEncoder.load(str(encoder)).pooler is None
    code, out, err = repro(f"evaluate --encoder {encoder} --data stsb --layer 1 --dims 32 8 --rows {rows}")
    assert code == 0, err
    assert read_rows(rows)["dim"].tolist() == [32, 8] and set(read_rows(rows)["layer"]) == {1}


def test_one_encoder_goes_to_the_output_itself(train, tmp_path):
    code, out, err = train("matryoshka --dims 16 4")
    assert code == 0 and "Matryoshka: trained in" in out, err
    note = json.loads((tmp_path / "trained" / "history.json").read_text())
    assert note["config"]["prefixes"] == [4, 16]
    assert SentenceEncoder.load(str(tmp_path / "trained")).dim == 32


def test_adapters_are_trained_in_place_of_the_weights(train, tmp_path, tiny):
    code, _, err = train("simcse --lora-rank 4 --learning-rate 0.01 --activation identity")
    assert code == 0, err
    texts, folder = ["a cook thanked the driver"], tmp_path / "trained" / "dim128"
    trained, before = SentenceEncoder.load(str(folder)), SentenceEncoder.load(tiny, pooling="mean")
    assert trained.encode(texts).shape == (1, 128) and trained.pooler.activation == "identity"
    assert np.abs(trained.encode(texts, readout="encoder") - before.encode(texts)).max() > 1e-3
    assert not (folder / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("angle --dims 8", "--dims is not read by the objective 'angle', only by simcse, nli, matryoshka, ese"),
        ("matryoshka --alpha 0", "--alpha is not read by the objective 'matryoshka', only by ese"),
        ("simcse --preset paper", "--preset is not read by the objective 'simcse', only by angle, matryoshka,"),
        ("nli --examples triples", "--examples is not read by the objective 'nli'"),
        ("ese --difference abs", "--difference is not read by the objective 'ese', only by nli"),
        ("ese --activation tanh", "--activation is not read by the objective 'ese', only by simcse, nli"),
        ("ese --dims 32 --batch-size 8 --strategy embeddings", "size is 32: 16 texts have no more components"),
        ("ese --examples triples --dims 8", "no premise of nli has both an entailed and a contradicted hypothesis"),
    ],
)
def test_what_does_not_apply_or_cannot_be_had_is_refused(train, options, message):
    code, out, err = train(options)
    assert code == 2 and "trained in" not in out
    assert message in err.splitlines()[-1], err
