"""The command line: help, what each verb does with good input, and one line with exit code 2 for a
user's mistake.
"""

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from repro import __version__, cli, verb_options, verbs_doctor, verbs_pretraining
from repro.cli import VERBS
from repro.data import load
from repro.models import SentenceEncoder
from repro.models.backbone import Backbone
from repro.reducers import make_reducer
from repro.results import read_rows
from repro.runs import evaluate
from repro.terminal import QUIET
from repro.types import InputError, unit_rows

pytestmark = pytest.mark.usefixtures("no_data")
WORDS = [
    "cook",
    "driver",
    "horse",
    "lamp",
    "river",
    "stone",
    "cloud",
    "tiger",
    "fiddle",
    "spoon",
    "window",
]


@pytest.fixture
def pairs(write):
    """Graded pairs of one's own: equal sentences score 5, others less."""
    rng = np.random.default_rng(0)
    lines = ["score\tsentence1\tsentence2"]
    for i in range(40):
        a = list(rng.choice(WORDS, 6, replace=False))
        b = a[: 6 - i % 6] + list(rng.choice(WORDS, i % 6))
        lines.append(f"{5 - i % 6}\t{' '.join(a)}\t{' '.join(b)}")
    return write("mine.tsv", *lines)


@pytest.fixture
def evaluated(repro, tmp_path):
    """Evaluate; what was said, and the rows."""

    def run(line):
        out, _ = repro(f"evaluate --rows {tmp_path}/rows.parquet {line}")
        return out, read_rows(tmp_path / "rows.parquet")

    return run


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_speaks_to_a_user_in_120_columns(verb, repro, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out, err = repro(f"{verb} --help")
    assert not err and f"usage: repro {verb}".strip() in out
    lines = out.splitlines()
    # Of no verb, the first lists all of them
    assert max(map(len, lines if verb else lines[1:])) <= 120
    assert not [
        word for word in ("docstring", "None)", "None}", "(default: )", "MISSING") if word in out
    ]
    if not verb:
        examples = [
            shlex.split(line.split("   ")[0])[1] for line in lines if line.startswith("  repro ")
        ]
        assert len(examples) == 3 and set(examples) <= set(VERBS)
        return
    assert ("--quiet" in out) == (VERBS[verb] in cli.SHOW_PROGRESS)
    named = set(inspect.signature(verb_options._record(VERBS[verb]) or VERBS[verb]).parameters)
    named -= {
        "embeddings",
        "notebook",
        "notebooks",
        "verb",
        "name",
        "experiment",
        "scaling",
        "reading",
    }
    assert all(f"--{name.replace('_', '-')}" in out for name in named)


ON_PAIRS = "evaluate --encoder {tiny} --data {pairs}"
TRAIN = (
    "train --backbone {tiny} --sentences 64 --batch-size 16 --pooling mean --workers 1 --output "
    "{tmp}/o --objective"
)
SMALL = "pretrain --source microworld --sentences 200 --layers 1 --batch-size 64 --output {tmp}/o"
ONLY_BY = "is not read by the objective"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate --encoder ./nosuch --data stsb", "no backbone folder './nosuch'"),
        (f"{ON_PAIRS} --dims 16 99", "dim is 99: expected 1 to 32"),
        (f"{ON_PAIRS} --layer 3", "expected 0 (embedding output) to"),
        (f"{ON_PAIRS} --task classification", "has no labels"),
        (f"{ON_PAIRS} --rows {{tmp}}", "is a folder"),
        ("evaluate --encoder {tiny} --data stsb --source local", "REPRO_DATA is not set"),
        (
            "encode --encoder {tiny} --texts {pairs} --output " + "x" * 300,
            "bytes: expected at most 216",
        ),
        ("encode --encoder {tiny} --texts {pairs} --output {tmp}/o --dim 33", "dim is 33"),
        (
            "encode --encoder {tiny} --texts {pairs} --output {pairs}",
            "is an input: expected another file",
        ),
        (
            "encode --encoder {tiny} --texts {pairs} --output {tmp}/o.parquet",
            "o.parquet would be no .parquet file: give a name that ends in .npy",
        ),
        (
            "reduce --method pca --dim 2 --input {pairs} --output {tmp}/Y.CSV",
            "give a name that ends in .npy",
        ),
        (f"{ON_PAIRS} --rows {{tmp}}/o.csv", "give a name that ends in .parquet"),
        ("run playground --output {tmp}/o.html", "give a name that ends in .ipynb"),
        ("encode --encoder {tiny} --texts {tmp}/none.txt --output {tmp}/o.npy", "none.txt"),
        ("export --encoder {tiny} --output {tmp}", "nothing is overwritten"),
        ("export --encoder {tiny} --output {tmp}/o --layer 9", "layer 9"),
        (
            "export --encoder {tiny} --output {tmp}/o --reducer x",
            "expected a folder that `dimadvise advise` wrote",
        ),
        (
            "train --backbone {tiny} --layers 3 --dims 4 --sentences 64 --workers 1",
            "layers is 3: expected 1 to 2",
        ),
        (
            "train --backbone {tiny} --sentences 8 --batch-size 9 --source microworld",
            "do not fill one batch",
        ),
        (
            f"{TRAIN} angle --dims 8",
            f"--dims {ONLY_BY} 'angle', only by simcse, nli, matryoshka, ese",
        ),
        (f"{TRAIN} matryoshka --alpha 0", f"--alpha {ONLY_BY} 'matryoshka', only by ese"),
        (
            f"{TRAIN} simcse --preset paper",
            f"--preset {ONLY_BY} 'simcse', only by angle, matryoshka,",
        ),
        (f"{TRAIN} nli --examples triples", f"--examples {ONLY_BY} 'nli'"),
        (f"{TRAIN} ese --difference abs", f"--difference {ONLY_BY} 'ese', only by nli"),
        (f"{TRAIN} ese --activation tanh", f"--activation {ONLY_BY} 'ese', only by simcse, nli"),
        (
            f"{TRAIN} ese --dims 32 --batch-size 8 --strategy embeddings",
            "size is 32: 16 texts have no more components",
        ),
        (
            f"{TRAIN} ese --examples triples",
            "no premise of nli has both an entailed and a contradicted hypothesis",
        ),
        ("advice", "unknown verb 'advice': choose one of book, run, "),
        ("advice", "(did you mean advise?)"),
        ("train --workers 0", "workers is 0: expected at least 1"),
        (
            "encode --encoder= --texts stsb --output {tmp}/X.npy",
            "the name of a network is empty: expected a name, a folder or a hub id",
        ),
        ("book --only playgroud", "no page 'playgroud' in _toc.yml: did you mean playground?"),
        ("data fetch", "fetch needs a dataset name"),
        ("run beyond_microworld -p target .inf", "parameter target is '.inf': expected float"),
        (
            "run wang_figure2_dimensions -p profile papr",
            "'papr': choose one of embedded, gpu, paper",
        ),
        ("pretrain --corpus stsb --source microworld", "is not a corpus of plain sentences"),
        ("pretrain --output {tiny}", "files that no training wrote: give another --output"),
        (f"{ON_PAIRS} --dims 8 --seed {2**63}", f"seed is {2**63}: expected a whole number below"),
        (f"{SMALL} --seed {2**64}", f"seed is {2**64}: expected"),
    ],
)
def test_a_mistake_ends_with_2_and_one_line(line, message, repro, tiny, pairs, tmp_path):
    out, err = repro(line.format(tiny=tiny, pairs=pairs, tmp=tmp_path), ends=2)
    (complaint,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert message in complaint and "trained in" not in out


def test_evaluate_ones_own_pairs(evaluated, tiny, pairs):
    out, frame = evaluated(f"--encoder {tiny} --data {pairs} --pooling mean --dims 32 8")
    assert frame["dim"].tolist() == [32, 8]
    assert set(frame["metric"]) == {"spearman"} and set(frame["data_source"]) == {"local"}
    assert frame["value"].iloc[0] > 0.5  # It counts shared words at least
    for row in frame.itertuples():
        assert f"dim {row.dim:>5}  spearman  {100 * row.value:.2f}  [{100 * row.ci_low:.2f}" in out


def test_evaluate_at_several_layers_is_one_pass_and_equals_each_alone(
    evaluated,
    repro,
    tiny,
    pairs,
    tmp_path,
):
    folder = tmp_path / "pooled"
    SentenceEncoder.load(tiny, dim=16, pooling="mean").save(folder)
    start = f"--encoder {folder} --data {pairs}"
    _, together = evaluated(f"{start} --layers 2 0 1 1 --dims 16 4")
    assert (
        together["layer"].tolist() == [2, 2, 0, 0, 1, 1] and together["dim"].tolist() == [16, 4] * 3
    )
    # The pooler reads the last layer only
    assert together["readout"].tolist() == ["pooler"] * 2 + ["encoder"] * 4
    alone = []
    for layer in (2, 0, 1):
        for dim in (16, 4):
            out, frame = evaluated(f"{start} --layer {layer} --dim {dim}")
            alone += frame["value"].tolist()
            assert f"layer   {layer}  dim {dim:>5}  spearman  {100 * alone[-1]:.2f}" in out
    assert together["value"].tolist() == pytest.approx(alone, abs=1e-9)
    (last,) = evaluated(start)[1].itertuples()
    assert last.value == pytest.approx(alone[0], abs=1e-9) and last.layer is pd.NA


def test_evaluate_ones_own_labels(evaluated, tiny, write):
    colours = ["red", "red", "blue"] * 20
    lines = [
        f"{colour}\tthe {colour} thing number {i} is {colour}" for i, colour in enumerate(colours)
    ]
    lines = [f"{'train' if i < 42 else 'test'}\t{line}" for i, line in enumerate(lines)]
    labelled = write("labelled.tsv", "split\tlabel\ttext", *lines)
    common = f"--encoder {tiny} --data {labelled} --task classification --pooling mean"
    out, frame = evaluated(common)
    value = frame.set_index("metric")["value"]
    assert value["accuracy"] == 1.0 and value["majority_floor"] == pytest.approx(2 / 3)
    assert "accuracy  100.00" in out and "mean pooling, logreg)" in out
    assert "mean pooling, senteval)" in evaluated(f"{common} --protocol senteval")[0], (
        "which classifier gave it"
    )


@pytest.mark.parametrize("form", ["txt", "txt.gz", "jsonl", "parquet"])
def test_encode_holds_a_block_of_a_file_at_a_time(
    form,
    repro,
    tiny,
    write,
    tmp_path,
    sentences,
    monkeypatch,
):
    texts, path = list(sentences[:10]), tmp_path / f"texts.{form}"
    if form == "parquet":
        pd.DataFrame({"text": texts}).to_parquet(path, row_group_size=4)
    else:
        lines = (
            [json.dumps({"Text": text}) for text in texts] if form == "jsonl" else [*texts, "", ""]
        )
        path = write(f"texts.{form}", *lines)
    line = f"encode --encoder {tiny} --texts {path} --output {tmp_path}/new"
    out, err = repro(f"{line}/whole.npy")
    assert "10 x 32 float32" in out and not err, "a log keeps no bars"
    held, encode_block = [], SentenceEncoder.encode
    monkeypatch.setattr(
        SentenceEncoder, "encode", lambda *a, **k: held.append(len(a[1])) or encode_block(*a, **k)
    )
    for name, value, blocks in (("BLOCK", 4, [4, 4, 2]), ("CHARACTERS", 1, [1] * 10)):
        monkeypatch.setattr(f"repro.verbs_embeddings.{name}", value)
        held.clear()
        assert (
            "10 x 7 float32" in repro(f"{line}/blocks.npy --dim 7 --normalize").out
            and held == blocks
        )
        found, whole = (
            np.load(tmp_path / "new" / f"{name}.npy", mmap_mode="r") for name in ("blocks", "whole")
        )
        np.testing.assert_allclose(found, unit_rows(whole[:, :7]), rtol=1e-5, atol=1e-6)
        assert found.dtype == np.float32


def test_encode_takes_the_texts_of_a_table_with_other_columns(repro, tiny, write, tmp_path):
    plain = write("t.txt", "Bell He was here", "Year It was cold")
    lines = [("d0", "Bell", "He was here"), ("d1", "Year", "It was cold")]
    rows = [
        json.dumps({"_id": name, "title": title, "text": text, "metadata": {}})
        for name, title, text in lines
    ]
    beir, table = (
        write("corpus.jsonl", *rows),
        write("t.csv", "id,Body", *[f"{n},{t} {x}" for n, t, x in lines]),
    )
    line = f"encode --encoder {tiny} --pooling mean --output {tmp_path}/X.npy --texts"
    repro(f"{line} {plain}")
    expected = np.load(tmp_path / "X.npy")
    assert "title and text are read as one" in repro(f"{line} {beir}").err
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), expected)
    assert "fits no kind of set" in repro(f"{line} {table}", ends=2).err
    repro(f"{line} {table} --columns text=Body")
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), expected)


def test_columns_of_what_has_none_are_refused(repro, tiny, write, tmp_path):
    write("t.txt", "a", "b")
    write("beir/corpus.jsonl", '{"_id": "1", "title": "", "text": "a"}')
    line = f"encode --encoder {tiny} --output {tmp_path}/X.npy --columns text=Body --texts"
    for place, told in (("t.txt", "holds lines of text"), ("beir", "is a folder in BEIR's form")):
        assert f"{told}; leave --columns out" in repro(f"{line} {tmp_path}/{place}", ends=2).err
    assert not (tmp_path / "X.npy").exists()


def test_encode_refuses_a_bad_line_before_it_encodes_and_a_file_that_grows(
    repro,
    tiny,
    write,
    tmp_path,
    monkeypatch,
):
    line = f"encode --encoder {tiny} --texts {tmp_path}/t.txt --output {tmp_path}/X.npy"
    encode_block = SentenceEncoder.encode
    monkeypatch.setattr(SentenceEncoder, "encode", lambda *_, **__: pytest.fail("hours of work"))
    write("t.txt", "a", "", "b")
    assert "t.txt line 2 is blank" in repro(line, ends=2).err
    write("t.txt", "")
    assert "is empty: expected at least one text" in repro(line, ends=2).err
    monkeypatch.setattr(
        SentenceEncoder, "encode", lambda *a, **k: write("t.txt", "a") and encode_block(*a, **k)
    )
    monkeypatch.setattr("repro.verbs_embeddings.BLOCK", 1)
    write("t.txt", *["a line that is long" * 50] * 1000)
    assert "has changed while it was read, from 1,000 texts to" in repro(line, ends=2).err
    lines = ["a line that is LONG"] * 20  # As many, and as many bytes
    monkeypatch.setattr(
        SentenceEncoder, "encode", lambda *a, **k: write("t.txt", *lines) and encode_block(*a, **k)
    )
    write("t.txt", *["a line that is long"] * 20)
    assert "has changed while it was read, from 20 texts to 20" in repro(line, ends=2).err
    assert not list(tmp_path.glob("X.npy*"))


def test_encode_and_advise_take_a_baseline_by_its_name(
    repro,
    write,
    tmp_path,
    sentences,
    monkeypatch,
):
    monkeypatch.setenv(QUIET, "")
    texts, advice = write("texts.txt", "the cow sleeps", "the horse sleeps"), tmp_path / "advice"
    start = f"encode --encoder glove --texts {texts} --output {tmp_path}/X.npy"
    out, _ = repro(f"{start} --dim 9 --quiet")
    assert os.environ[QUIET] == "1"  # Which workers inherit
    assert "2 x 9 float32" in out and "mean of words" in out
    assert "pooling is cls: glove is made whole" in repro(f"{start} --pooling cls", ends=2).err
    repro(f"advise --encoder glove --texts {write('many.txt', *sentences[:240])} --output {advice}")
    assert "mean of words" in (advice / "report.html").read_text()
    assert "has no layers" in repro("advise --encoder glove --texts stsb --layers 1", ends=2).err


def test_evaluate_takes_a_baseline_by_its_name(repro, evaluated):
    line = "--encoder glove --data stsb --source microworld"
    out, frame = evaluated(f"{line} --dims 50 9")
    assert "(microworld, test, word vectors counted from generated text" in out
    assert frame["dim"].tolist() == [50, 9]
    assert set(frame["backbone"]) == {"glove"} and frame["value"].iloc[0] > 0.2
    assert frame["setting"].str.endswith(", mean of words").all()
    wrong = {"--layers 1": "glove has no layers", "--pooling cls": "pooling is cls: glove is made"}
    for more, said in wrong.items():
        assert said in repro(f"evaluate {line} {more}", ends=2).err


def test_a_text_without_a_token_is_counted_from_its_block_on(repro, tiny, write, monkeypatch):
    def tokenize(self, texts):
        return [[] if text == "z" else [2, 3, ord(text)] for text in texts], 0

    monkeypatch.setattr("repro.verbs_embeddings.BLOCK", 2)
    monkeypatch.setattr(Backbone, "tokenize", tokenize)
    texts = write("texts.txt", "a", "b", "c", "z")
    said = repro(f"encode --encoder {tiny} --texts {texts} --output {texts}.npy", ends=2).err
    assert "texts[1] ('z') has no token" in said
    assert f"(texts are numbered from text 2 of {texts} on)" in said


def test_pretrain_writes_a_backbone_with_its_card(
    repro,
    write,
    tmp_path,
    sentences,
    monkeypatch,
    repro_home,
):
    corpus, output = write("corpus.txt", *sentences), tmp_path / "mini"
    monkeypatch.setattr(sys, "argv", ["repro", "pretrain", "--corpus", "corpus.txt"])
    sizes = "--layers 1 --hidden-dim 32 --batch-size 64 --epochs 1 --threads 1"
    assert "dev loss" in repro(f"pretrain --corpus {corpus} --output {output} {sizes}").out
    card = json.loads((output / "card.json").read_text())
    assert card["config"]["hidden_dim"] == 32 and card["loss_curve"]
    assert card["command"] == "pretrain --corpus corpus.txt"
    told = (output / "README.md").read_text()
    assert f"{len(sentences):,} sentences" in told
    assert "| licence of the corpus | that of the file, unknown here |" in told
    pieces = json.loads((output / "config.json").read_text())["vocab_size"]
    assert f"{pieces} lower-cased WordPieces" in told and pieces < card["config"]["vocabulary"]
    assert not list(repro_home.glob("work/*"))  # Nothing is left to resume
    before = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    (output / "tokenizer.json").unlink()  # By a kill
    again = repro(f"pretrain --corpus {corpus} --output {output} {sizes}")
    assert "found in the store" in again.out
    del before[output / "tokenizer.json"]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    encode = f"encode --encoder {output} --texts {corpus} --output {tmp_path}/X.npy"
    assert f"{len(sentences)} x 32" in repro(encode).out
    content = (output / "model.safetensors").read_bytes()
    (output / "model.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "model.safetensors has changed since it was written" in repro(encode, ends=2).err


@pytest.fixture
def writers(write, tmp_path, sentences):
    """Of each verb that writes one file, the line without that file's name."""
    np.save(tmp_path / "X.npy", np.eye(8, dtype=np.float32))
    corpus = write("corpus.txt", *sentences)
    return {
        "encode": f"encode --encoder repro-tiny --texts {corpus} --output",
        "reduce": f"reduce --method pca --dim 2 --input {tmp_path}/X.npy --output",
        "evaluate": "evaluate --encoder repro-tiny --data stsb --task sts --rows",
    }


VERBS_OF_A_FILE = ("encode", "reduce", "evaluate")


@pytest.mark.parametrize("verb", VERBS_OF_A_FILE)
def test_an_output_is_written_over_only_as_such_a_verb_wrote_it(verb, writers, repro, tmp_path):
    output = tmp_path / "output"
    line = f"{writers[verb]} {output}"
    output.write_bytes(b"")  # With nothing to lose
    repro(line)
    repro(line)  # Its own output may be made again
    written = output.read_bytes()
    (tmp_path / "link").symlink_to(output)
    repro(f"{writers[verb]} {tmp_path}/link")
    assert (tmp_path / "link").is_symlink() and not (tmp_path / "link.json").exists()
    for edited in (written[:-1] + b"!", b"Three years of work."):
        output.write_bytes(edited)
        assert f"{output} is there, and has changed since" in repro(line, ends=2).err
        assert output.read_bytes() == edited
    output.unlink()
    repro(line)
    note = tmp_path / "output.json"
    note.write_text(note.read_text().replace("was written", "was often written"))
    assert f"{note} is there and is no note of ours" in repro(line, ends=2).err


@pytest.mark.parametrize("verb", VERBS_OF_A_FILE)
def test_an_output_of_the_same_form_that_no_note_proves_ours_is_not_written_over(
    verb, writers, repro, tmp_path
):
    repro(f"{writers[verb]} {tmp_path}/made")
    others = [tmp_path / "made", tmp_path / "X.npy", tmp_path / "corpus.txt"]
    for number, other in enumerate(others):
        output = tmp_path / f"theirs-{number}"
        output.write_bytes(other.read_bytes())
        said = repro(f"{writers[verb]} {output}", ends=2).err
        assert f"{output} is there, and no note proves it ours" in said
        assert output.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("content", ["{}", '{"kind": "output", "sha256": []}', "[1]", "Mine."])
def test_a_file_by_the_name_of_an_outputs_note_is_left_as_it_is(content, writers, repro, tmp_path):
    note = tmp_path / "Y.npy.json"
    note.write_text(content)
    said = repro(f"{writers['reduce']} {tmp_path}/Y.npy", ends=2).err
    assert f"{note} is there and is no note of ours" in said
    assert note.read_text() == content and not (tmp_path / "Y.npy").exists()


def test_what_appears_at_an_outputs_name_in_the_meantime_stays(
    writers, repro, tmp_path, monkeypatch
):
    output, theirs = tmp_path / "Y.npy", b"Three years of work."

    def reducer(method, dim, **more):
        output.write_bytes(theirs)
        return make_reducer(method, dim, **more)

    monkeypatch.setattr("repro.reducers.make_reducer", reducer)
    said = repro(f"{writers['reduce']} {output}", ends=2).err
    assert f"{output} is there, and no note proves it ours" in said
    assert output.read_bytes() == theirs and not (tmp_path / "Y.npy.json").exists()


def test_a_kill_between_an_output_and_its_note_leaves_one_that_may_be_made_again(
    writers, repro, tmp_path, monkeypatch
):
    line, move = f"{writers['reduce']} {tmp_path}/Y.npy", os.replace
    for stop in (0, 1, 2, 0, 1, 2):  # At a new file, then at one that is written anew
        moved = []

        def killed(source, target, moved=moved, stop=stop):
            if len(moved) == stop:
                raise KeyboardInterrupt
            moved.append(target)
            move(source, target)

        with monkeypatch.context() as patched:
            patched.setattr("repro.writing.os.replace", killed)
            repro(line, ends=130)
        assert len(moved) == stop
        repro(line.replace("--dim 2", f"--dim {stop + 3}"))
        assert np.load(tmp_path / "Y.npy").shape == (8, stop + 3)


def test_texts_from_a_pipe_by_its_name_are_refused_as_such(repro, pipe, tmp_path):
    texts = pipe(tmp_path / "texts.txt")
    for line in ("encode --encoder repro-tiny --texts", "evaluate --encoder repro-tiny --data"):
        more = f"--output {tmp_path}/X.npy" if "encode " in line else ""
        said = repro(f"{line} {texts} {more}", ends=2).err
        assert f"{texts} is a pipe or a device: expected a regular file" in said


def test_a_place_for_scores_that_is_no_folder_is_refused_before_the_work(
    repro, write, pairs, monkeypatch
):
    monkeypatch.setattr("repro.runs.evaluate.encoder_rows", Mock(side_effect=AssertionError))
    taken = write("taken", "mine")
    said = repro(f"evaluate --encoder repro-tiny --data {pairs} --mteb {taken}", ends=2).err
    assert f"{taken} is not a folder" in said


def test_more_threads_than_any_machine_has_cores_are_refused(repro, write, sentences, monkeypatch):
    corpus = write("corpus.txt", *sentences)
    said = repro(f"pretrain --corpus {corpus} --output mini --threads 99999", ends=2).err
    assert "threads is 99999: expected 1 to 1024" in said
    monkeypatch.setenv("REPRO_THREADS", "9999")
    said = repro(f"pretrain --corpus {corpus} --output mini", ends=2).err
    assert "threads is 9999: expected 1 to 1024" in said


def test_another_number_of_threads_is_another_network(
    repro, write, tmp_path, sentences, monkeypatch
):
    keys = []
    monkeypatch.setattr(verbs_pretraining, "_make_network", Mock(side_effect=InputError("made")))
    monkeypatch.setattr(
        verbs_pretraining, "refuse_foreign", lambda _, key, **told: keys.append(key)
    )
    corpus = write("corpus.txt", *sentences)
    for threads in (1, 2, 1):
        line = f"pretrain --corpus {corpus} --output {tmp_path}/mini --batch-size 64"
        repro(f"{line} --threads {threads}", ends=2)
    assert keys[0] == keys[2] != keys[1]


def test_a_vocabulary_that_has_no_room_for_the_letters_is_refused(
    repro, write, tmp_path, sentences
):
    line = f"pretrain --corpus {write('corpus.txt', *sentences)} --output {tmp_path}/out"
    sizes = "--layers 1 --hidden-dim 16 --batch-size 64 --threads 1 --vocabulary"
    said = repro(f"{line} {sizes} 5", ends=2).err
    least = int(re.search(r"vocabulary is 5: expected at least (\d+), the letters", said)[1])
    assert 5 + 26 <= least < 100
    assert f"expected at least {least}" in repro(f"{line} {sizes} {least - 1}", ends=2).err
    repro(f"{line} {sizes} {least} --epochs 0.1")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["vocab_size"] == least


def test_pretrain_overwrites_no_other_network_and_no_edited_file(
    repro, write, tmp_path, sentences, monkeypatch
):
    corpus, output = write("corpus.txt", *sentences), tmp_path / "mini"
    line = f"pretrain --corpus {corpus} --output {output} --layers 1 --hidden-dim 32 --threads 1"
    repro(f"{line} --batch-size 64 --epochs 0.2")
    (output / "README.md").write_text("What I found out about it.")
    before = {path: path.read_bytes() for path in output.iterdir()}
    monkeypatch.setattr("repro.training.mlm.pretrain", Mock(side_effect=AssertionError))
    other = repro(f"{line} --batch-size 32 --epochs 0.2", ends=2).err
    assert f"{output} holds a network of other settings: give another --output" in other
    edited = repro(f"{line} --batch-size 64 --epochs 0.2", ends=2).err
    assert "README.md is none of ours, was edited or was left half done: nothing is" in edited
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "another store"))
    edited = repro(f"{line} --batch-size 64 --epochs 0.2", ends=2).err
    assert "README.md was edited: give another --output" in edited, "before hours of work"
    (output / "manifest.json").unlink()
    unknown = repro(f"{line} --batch-size 64 --epochs 0.2", ends=2).err
    assert f"{output} holds files that no training wrote" in unknown
    del before[output / "manifest.json"]
    assert {path: path.read_bytes() for path in output.iterdir()} == before


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--hidden-dim 0", "hidden_dim is 0: expected at least 1"),
        ("--hidden-dim -16", "hidden_dim is -16: expected at least 1"),
        ("--layers 0", "layers is 0: expected at least 1"),
        ("--heads 0", "heads is 0: expected at least 1"),
        ("--threads 0", "threads is 0: expected 1 to 1024"),
        ("--batch-size 0", "batch_size is 0: expected at least 1"),
        ("--layers 1000000", "1000000 layers of hidden_dim 128 need about 3,2"),
        ("--layers 100000000 --hidden-dim 1", "of memory while they are trained and"),
        ("--max-length 100000000000", "give fewer layers, or a smaller hidden_dim, vocabulary or"),
        ("--learning-rate 0", "learning_rate is 0.0: expected a number above 0"),
    ],
)
def test_a_size_of_a_network_that_is_none_is_refused_in_a_sentence(
    option, message, repro, tmp_path
):
    assert message in repro(f"pretrain --output {tmp_path}/out {option}", ends=2).err
    assert not (tmp_path / "out").exists()


def test_version_and_data_list(repro):
    assert repro("--version").out == f"repro {__version__}\n"
    assert {"stsb", "trec", "wiki"} <= {
        line.split()[0] for line in repro("data list").out.splitlines()
    }


@pytest.mark.parametrize("package", ["repro", "dimadvise"])
def test_a_command_runs_as_a_module_too(package):
    command = [sys.executable, "-m", package, "--version"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{package} {__version__}\n", "")


@pytest.mark.parametrize("columns", ["1", "6"])
def test_help_ends_however_narrow_the_terminal_is(columns):
    asked = [sys.executable, "-m", "repro", "export", "--help"]
    narrow = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(asked, env=narrow, capture_output=True, text=True, timeout=60, check=True)
    assert "reducer" in done.stdout


@pytest.mark.parametrize("line", ["data list", "--help"])
def test_a_reader_that_has_gone_is_no_fault(line):
    heard, said = os.pipe()
    os.close(heard)
    ran = subprocess.run(
        [sys.executable, "-m", "repro", *line.split()],
        stdout=said,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(said)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_output_that_has_no_sign_for_a_letter_has_a_question_mark():
    own = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200"}
    for line in ("data list", "--help"):
        command = [sys.executable, "-m", "repro", *line.split()]
        ran = subprocess.run(command, capture_output=True, text=True, env=own)
        assert (ran.returncode, ran.stderr) == (0, ""), line


def test_memory_that_ran_out_is_told_in_one_message(repro, monkeypatch):
    monkeypatch.setattr(
        verbs_doctor, "examine", Mock(side_effect=MemoryError("Unable to allocate 8 TiB"))
    )
    said = repro("doctor", ends=1).err
    assert said.startswith("error: memory ran out (Unable to allocate 8 TiB): ")
    monkeypatch.setattr(verbs_doctor, "examine", Mock(side_effect=RuntimeError("a fault of ours")))
    with pytest.raises(RuntimeError, match="a fault of ours"):
        cli.main(["doctor"])


def test_an_interrupt_says_that_nothing_is_lost(repro, monkeypatch):
    monkeypatch.setattr(verbs_doctor, "examine", Mock(side_effect=KeyboardInterrupt))
    assert "the same command goes on from there" in repro("doctor", ends=130).err
    monkeypatch.setattr(
        verbs_doctor, "examine", lambda repair=False: iter([("datasets absent", True)])
    )
    monkeypatch.setenv("REPRO_LOG", "verbose")  # No level: the usual one
    assert "BAD datasets" in repro("doctor --repair", ends=1).out, (
        "which moving artefacts aside does not mend"
    )


def test_an_interrupt_while_libraries_load_is_told_in_a_sentence(python):
    code = (
        "import builtins, sys\n"
        "from repro import __main__ as begun\n"
        "real = builtins.__import__\n"
        "def stopped(name, *rest):\n"
        "    if name == 'tyro': raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = stopped\n"
        "begun.main()\n"
    )
    ran = python(code)
    assert (ran.returncode, ran.stderr) == (130, "stopped before anything was done\n")


BEIR = {
    "corpus.jsonl": [
        {"_id": "d1", "title": "Horses", "text": "the horse sleeps", "metadata": {}},
        {"_id": "d2", "title": "", "text": "a cook thanked the driver", "metadata": {}},
        {"_id": "d3", "title": "Rain", "text": "it rained in the old town", "metadata": {}},
    ],
    "queries.jsonl": [
        {"_id": "q1", "text": "the horse sleeps", "metadata": {}},
        {"_id": "q2", "text": "a cook thanked the driver", "metadata": {}},
        {"_id": "q3", "text": "judged in another split"},
    ],
}


@pytest.fixture
def beir(tmp_path):
    """A folder in BEIR's form."""
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    for name, records in BEIR.items():
        (folder / name).write_text("\n".join(map(json.dumps, records)))
    header = "query-id\tcorpus-id\tscore"
    (folder / "qrels" / "test.tsv").write_text(f"{header}\nq1\td1\t1\nq2\td2\t2\nq2\td3\t0\n")
    (folder / "qrels" / "dev.tsv").write_text(f"{header}\nq3\td3\t1\n")
    return folder


def test_a_folder_in_beirs_form_is_searched(beir, evaluated, repro, tiny):
    line = f"--encoder {tiny} --data {beir} --task retrieval --pooling mean"
    out, frame = evaluated(f"{line} --dims 32 8")
    assert frame["dim"].tolist() == [32, 32, 8, 8] and set(frame["method"]) == {"retrieval"}
    value = frame[frame["dim"] == 32].set_index("metric")["value"]
    assert value["ndcg@10"] == 1.0 == value["recall@10"] and "ndcg@10  100.00" in out
    assert len(evaluated(f"{line} --split dev")[1]) == 2
    assert (
        "has no split 'train': it has dev, test"
        in repro(f"evaluate {line} --split train", ends=2).err
    )
    judged = beir / "qrels" / "test.tsv"
    judged.write_text("query-id\tcorpus-id\tscore\nq1\td1\t-1\nq1\td2\t1\n")
    assert load(beir, split="test").qrels == {"q1": {"d1": 0, "d2": 1}}, "worse than not relevant"
    judged.write_text("query-id\tcorpus-id\tscore\nq1\td1\t0.9\n")
    with pytest.raises(InputError, match=r"the relevance of 'd1' to 'q1' is 0\.9: expected"):
        load(beir, split="test")
    judged.write_text("query-id\tcorpus-id\tscore\nq9\td1\t1\n")
    assert "judges 'q9', which is no _id of" in repro(f"evaluate {line}", ends=2).err


def test_scores_are_written_as_mtebs_cache_has_them_an_experiment_a_size_and_layer(
    pairs, beir, evaluated, repro, tiny, tmp_path, monkeypatch
):
    line = f"--encoder {tiny} --data {pairs} --pooling mean --layers 1 2 --dims 32 8"
    _, frame = evaluated(f"{line} --mteb {tmp_path}/cache")
    experiments = tmp_path / "cache/results/tiny/no_revision_available/experiments"
    names = {path.name for path in experiments.iterdir()}
    sizes = ("dim_32__layer_1", "dim_8__layer_1", "dim_32__layer_2", "dim_8__layer_2")
    assert names == {f"{size}__reading_mean_pooling" for size in sizes}
    for row in frame.itertuples():
        place = experiments / f"dim_{row.dim}__layer_{row.layer}__reading_mean_pooling"
        result = json.loads((place / "mine.json").read_text())
        (scores,) = result["scores"]["all"]
        assert scores["main_score"] == scores["spearman"] == row.value
        assert scores["spearman_interval"] == [row.ci_low, row.ci_high]
        assert (scores["hf_subset"], scores["languages"]) == ("default", [])
        meta = json.loads((place / "model_meta.json").read_text())
        reading = {"dim": row.dim, "layer": row.layer, "reading": "mean pooling"}
        assert meta["experiment_kwargs"] == reading
    with monkeypatch.context() as patched:
        patched.setattr(SentenceEncoder, "encode_layers", Mock(side_effect=AssertionError))
        again = repro(f"evaluate {line} --mteb {tmp_path}/cache", ends=2)
    assert "mine.json is there already" in again.err, "before the work"
    (place / "mine.json").unlink()
    (place / "model_meta.json").write_text("mine")
    again = repro(f"evaluate {line} --mteb {tmp_path}/cache", ends=2)
    assert "model_meta.json is there already" in again.err or "mine.json is there" in again.err
    assert (place / "model_meta.json").read_text() == "mine"
    repro(f"evaluate {line.replace('mean', 'cls')} --mteb {tmp_path}/cache")
    assert len(list(experiments.iterdir())) == 8, "another reading is another experiment"
    retrieval = f"--encoder {tiny} --data {beir} --task retrieval --mteb {tmp_path}/other"
    repro(f"evaluate {retrieval}")
    (file,) = (tmp_path / "other").rglob("mine.json")
    (scores,) = json.loads(file.read_text())["scores"]["test"]
    assert file.parent.name.startswith("dim_32__reading_")
    assert scores["main_score"] == scores["ndcg@10"]


def test_what_changes_while_it_is_read_is_neither_encoded_nor_judged(
    repro, tiny, write, tmp_path, monkeypatch
):
    """A file of its size and time takes its place; splits are read one after the other."""
    path, encode_block, load = tmp_path / "c.tsv", SentenceEncoder.encode, evaluate.load_task

    def replaced():
        before, other = path.stat(), tmp_path / "other.tsv"
        other.write_bytes(path.read_bytes().replace(b"red", b"big"))
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(path)

    rows = [f"{split}\t{k % 2}\ta red cook {k}" for k in range(4) for split in ("train", "test")]
    write("c.tsv", "split\tlabel\ttext", *rows)
    monkeypatch.setattr(
        SentenceEncoder, "encode", lambda *a, **k: replaced() or encode_block(*a, **k)
    )
    line = f"encode --encoder {tiny} --texts {path} --output {tmp_path}/X.npy"
    assert "has changed while it was read" in repro(line, ends=2).err
    monkeypatch.setattr(SentenceEncoder, "encode", encode_block)
    monkeypatch.setattr(evaluate, "load_task", lambda *a, **k: (load(*a, **k), replaced())[0])
    line = f"evaluate --encoder {tiny} --data {path} --task classification"
    assert "c.tsv was written to while it was read" in repro(line, ends=2).err


def test_a_network_that_changes_while_it_is_loaded_encodes_and_judges_nothing(
    repro, tiny, write, tmp_path, monkeypatch
):
    network = shutil.copytree(tiny, tmp_path / "network")
    load, config, others = SentenceEncoder.load, network / "config.json", iter((0.1, 0.2))

    def loaded_before_it_is_written(name, **how):
        encoder = load(name, **how)
        config.write_text(
            json.dumps(json.loads(config.read_text()) | {"layer_norm_eps": next(others)})
        )
        return encoder

    monkeypatch.setattr(SentenceEncoder, "load", loaded_before_it_is_written)
    write("p.tsv", "score\tsentence1\tsentence2", "1\ta\tb", "2\tc\td", "3\te\tf")
    write("t.txt", "a")
    for line in (
        f"encode --encoder {network} --texts {tmp_path}/t.txt --output {tmp_path}/X.npy",
        f"evaluate --encoder {network} --data {tmp_path}/p.tsv --task sts",
    ):
        assert "was written to while it was read: begin again" in repro(line, ends=2).err
