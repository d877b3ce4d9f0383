"""`repro train` on AnglE, Matryoshka and ESE: what is written, and what is found again."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from repro.config import PROFILES
from repro.models import SentenceEncoder
from repro.objectives import OBJECTIVES
from repro.results import read_rows
from repro.runs.cell import LOSSES
from repro.settings import ANGLE_PRESETS, ESPRESSO_FORMS

pytestmark = pytest.mark.usefixtures("no_data")


@pytest.fixture
def train(repro, tiny, tmp_path):
    common = f"train --backbone {tiny} --sentences 64 --batch-size 16 --pooling mean --workers 1"
    line = f"{common} --output {tmp_path}/trained --objective"
    return lambda options, ends=0: repro(f"{line} {options}", ends=ends)


def test_what_may_be_chosen_is_what_there_is(repro, monkeypatch):
    monkeypatch.setitem(PROFILES, "night", replace(PROFILES["gpu"], name="night"))
    assert tuple(OBJECTIVES) == tuple(LOSSES)
    told = repro("train --help").out
    for menu in (PROFILES, OBJECTIVES, ANGLE_PRESETS, ESPRESSO_FORMS):
        assert f"{{{','.join(menu)}}}" in told
    assert "{embedded,gpu,paper,night}" in repro("book --help").out
    assert "{embedded,gpu,paper,night}" in repro("sweep --help").out


def test_ese_trains_one_encoder_per_size_that_evaluate_reads_at_any_depth_and_size(
    train,
    repro,
    tmp_path,
):
    options = (
        "ese --dims 16 8 --layers 2 --form code --preset ese_readme --alpha 0.5 --layer-weights "
        "learned --max-length 20 --warmup 0.25"
    )
    out, _ = train(options)
    assert "ESE size 16: trained in" in out and "ESE size 8: trained in" in out
    assert "(encoder, untrained) -> " in out and "(encoder); " in out
    assert train(options).out.count("found in the store") == 2
    history = json.loads((tmp_path / "trained" / "dim16" / "history.json").read_text())
    note = history["config"]
    assert set(history["log_weights"]) != {0}, "learned layer weights are kept beside the encoder"
    assert (note["objective"], note["dim"], note["layers"], note["corpus"]) == ("ese", 16, 2, "nli")
    assert note["espresso"]["alpha"] == 0.5 and note["espresso"]["full_size_loss"]
    assert note["angle"]["in_batch_weight"] == 10
    assert (note["max_length"], note["warmup"]) == (20, 0.25)
    encoder, rows = tmp_path / "trained" / "dim8", tmp_path / "r.pq"
    assert SentenceEncoder.load(str(encoder)).pooler is None
    repro(f"evaluate --encoder {encoder} --data stsb --layer 1 --dims 32 8 --rows {rows}")
    assert read_rows(rows)["dim"].tolist() == [32, 8] and set(read_rows(rows)["layer"]) == {1}


def test_one_encoder_goes_to_the_output_itself_which_is_what_is_told(train, tmp_path):
    output = tmp_path / "trained"
    said = train("matryoshka --dims 16 4").out
    assert "Matryoshka: trained in" in said and said.endswith(f"; {output}\n")
    assert json.loads((output / "history.json").read_text())["config"]["prefixes"] == [4, 16]
    assert SentenceEncoder.load(str(output)).dim == 32
    refused = train("simcse --dims 8", ends=2).err
    assert f"{output} holds a network of other settings: give another --output" in refused
    shutil.rmtree(output)
    assert train("simcse --dims 8").out.endswith(f"(pooler); {output}\n")
    assert SentenceEncoder.load(str(output)).dim == 8


def test_an_output_that_holds_other_files_is_refused_and_a_killed_copy_goes_on(train, tmp_path):
    output = tmp_path / "trained"
    output.mkdir()
    (output / "config.json").write_text("mine")
    refused = train("simcse --dims 8", ends=2).err
    assert f"{output} holds files that no training wrote: give another --output" in refused
    assert [path.name for path in tmp_path.rglob("trained/*")] == ["config.json"]
    assert not list((tmp_path / "home").glob("encoders/*")), "before any work"
    (output / "config.json").rename(output / "config.json.999999999.partial")
    told = train("simcse --dims 8 4").out.splitlines()
    assert [line.rpartition("; ")[2] for line in told] == [
        str(output / "dim8"),
        str(output / "dim4"),
    ]
    for path in (output / "dim8").glob("[!m]*"):
        path.unlink()
    assert "found in the store" in train("simcse --dims 8 4").out
    assert SentenceEncoder.load(str(output / "dim8")).dim == 8


def test_adapters_are_trained_in_place_of_the_weights(train, tmp_path, tiny):
    train("simcse --lora-rank 4 --learning-rate 0.01 --activation identity")
    texts, folder = ["a cook thanked the driver"], tmp_path / "trained"
    trained, before = SentenceEncoder.load(str(folder)), SentenceEncoder.load(tiny, pooling="mean")
    assert trained.encode(texts).shape == (1, 128) and trained.pooler.activation == "identity"
    assert np.abs(trained.encode(texts, readout="encoder") - before.encode(texts)).max() > 1e-3
    assert not (folder / "model.safetensors").exists()
