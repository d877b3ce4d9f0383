"""The command line: help, what each verb does with good input, and one line with exit code 2 for a user's mistake."""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from repro import __version__, cli, data
from repro.cli import VERBS, main
from repro.models import SentenceEncoder
from repro.models.lora import add_lora
from repro.objectives import LoraConfig
from repro.paths import data_folder
from repro.rows import read_rows
from repro.terminal import QUIET

needs_real_data = pytest.mark.skipif(data_folder() is None, reason="REPRO_DATA is not set")


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("REPRO_DATA", raising=False)


@pytest.fixture
def pairs(tmp_path):
    """Graded pairs of one's own: equal sentences score 5, others less."""
    rng = np.random.default_rng(0)
    words = ["cook", "driver", "horse", "lamp", "river", "stone", "cloud", "tiger", "fiddle", "spoon", "window"]
    lines = ["score\tsentence1\tsentence2"]
    for i in range(40):
        a = list(rng.choice(words, 6, replace=False))
        b = a[: 6 - i % 6] + list(rng.choice(words, i % 6))
        lines.append(f"{5 - i % 6}\t{' '.join(a)}\t{' '.join(b)}")
    path = tmp_path / "mine.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def labelled(tmp_path):
    lines = ["split\tlabel\ttext"]
    for i in range(60):
        colour, other = ("red", "warm") if i % 3 else ("blue", "cold")
        lines.append(f"{'train' if i < 42 else 'test'}\t{other}\tthe {colour} thing number {i} is {colour}")
    path = tmp_path / "labelled.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# help


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)], ids=lambda verb: verb[0] if verb else "repro")
def test_help_speaks_to_a_user_in_120_columns(verb, repro, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = repro(*verb, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 120
    assert not [word for word in ("function", "docstring", "None)", "None}", "(default: )", "MISSING") if word in out]
    assert f"usage: repro {' '.join(verb)}".strip() in out
    described = [verb[0]] if verb else list(VERBS)
    for name in described:
        first = VERBS[name].__doc__.splitlines()[0]
        assert " ".join(first.split()[:3]) in " ".join(out.replace("│", " ").split())


def test_the_first_help_shows_examples_that_run_and_where_the_book_is(repro):
    out = repro("--help")[1]
    examples = [shlex.split(line.split("   ")[0])[1] for line in out.splitlines() if line.startswith("  repro ")]
    assert len(examples) == 3 and set(examples) <= set(VERBS)
    assert "_build/html/index.html" in out and "README.md" in out
    assert repro("--version")[:2] == (0, f"repro {__version__}\n")


def test_every_option_has_a_help_text(repro, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for verb in VERBS:
        out = repro(verb, "--help")[1]
        assert ("--quiet" in out) == (VERBS[verb] in cli.SHOW_PROGRESS)
        named = set(inspect.signature(VERBS[verb]).parameters) - {"notebook", "verb", "name", "experiment", "scaling"}
        assert all(f"--{name.replace('_', '-')}" in out for name in named)
        lines = out.splitlines()
        for i, line in enumerate(lines):
            if line.startswith("│ --"):
                text = (line + lines[i + 1]).replace("│", " ").split("  ")
                assert any(len(part.split()) > 1 and not part.strip().startswith("--") for part in text), line


# a user's mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--encoder", "./nosuch", "--data", "stsb"], "no backbone folder './nosuch'"),
        (["evaluate", "--encoder", "{tiny}", "--data", "stsbb"], "unknown dataset 'stsbb'"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{tmp}/none.tsv"], "none.tsv"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--dims", "16", "99"], "dim is 99: expected 1 to 32"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--dims", "0"], "dim is 0: expected 1 to 32"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--layer", "3"], "expected 0 (embedding output) to"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--task", "classification"], "has no labels"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{labelled}"], "has no scored pairs"),
        (["evaluate", "--encoder", "{tiny}", "--data", "stsb", "--source", "local"], "REPRO_DATA is not set"),
        (["evaluate", "--encoder", "{tiny}", "--data", "stsb", "--split", "nosuch"], "nosuch"),
        (["encode", "--encoder", "{tiny}", "--texts", "{pairs}", "--output", "{tmp}/o", "--dim", "33"], "dim is 33"),
        (["encode", "--encoder", "{tiny}", "--texts", "{tmp}/none.txt", "--output", "{tmp}/o.npy"], "none.txt"),
        (["train", "--dims", "0", "--source", "microworld"], "dim is 0"),
        (["train", "--batch-size", "1", "--source", "microworld"], "batch_size is 1"),
        (
            ["train", "--backbone", "{tiny}", "--sentences", "8", "--batch-size", "9", "--source", "microworld"],
            "do not fill one batch",
        ),
        (["train", "--source", "local"], "REPRO_DATA"),
        (["data", "fetch"], "fetch needs a dataset name"),
        (["run", "nosuch_notebook"], "nosuch_notebook"),
        (["run", "wang_figure2_dimensions", "-p", "profile", "papr"], "'papr': choose one of embedded, gpu, paper"),
        (["run", "beyond_microworld", "-p", "target", ".inf"], "parameter target is '.inf': expected float"),
        (["run", "playground", "--output", "."], ". is a folder: give the name of a file"),
        (["encode", "--encoder", "{tiny}", "--texts", "{pairs}", "--output", "."], ". is a folder"),
        (["encode", "--encoder", "{tiny}", "--texts", "{pairs}", "--output", "x" * 300], "File name too long"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--rows", "{tmp}"], "is a folder"),
        (["evaluate", "--encoder", "{tiny}", "--data", "{pairs}", "--mteb-json", "{tmp}"], "is a folder"),
        (["pretrain", "--corpus", "stsb", "--source", "microworld"], "is not a corpus of plain sentences"),
        (["pretrain", "--source", "microworld", "--sentences", "50"], "50 sentences: expected two batches (512)"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else None,
)
def test_a_mistake_ends_with_2_and_one_line(arguments, message, repro, tiny, pairs, labelled, tmp_path, no_data):
    names = {"tiny": tiny, "pairs": pairs, "labelled": labelled, "tmp": tmp_path}
    code, _, err = repro(*[argument.format(**names) for argument in arguments])
    complaints = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code == 2
    assert len(complaints) == 1 and message in complaints[0], err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "content", "found"),
    [(4, "five\ta\tb", "five"), (3, "2.5\tonly one side", ""), (5, "2.5\t\tb", "sentence1"), (2, "nan\ta\tb", "nan")],
)
def test_a_broken_table_is_named_with_its_line(line, content, found, repro, tiny, pairs, no_data):
    lines = pairs.read_text().splitlines()
    lines[line - 1] = content
    pairs.write_text("\n".join(lines) + "\n")
    code, out, err = repro("evaluate", "--encoder", tiny, "--data", pairs)
    assert (code, out) == (2, "")
    assert f"{pairs} line {line}" in err and found in err


@pytest.mark.parametrize("arguments", [("data", "list"), ("--help",)], ids=" ".join)
def test_a_reader_that_has_gone_is_no_fault(arguments):
    heard, said = os.pipe()
    os.close(heard)
    ran = subprocess.run([sys.executable, "-m", "repro", *arguments], stdout=said, stderr=subprocess.PIPE, text=True)
    os.close(said)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_wrong_option_lists_what_there_is(repro):
    code, _, err = repro("book", "--profile", "papr")
    assert code == 2 and "embedded" in err and "paper" in err and "Traceback" not in err
    code, _, err = repro("evaluate", "--encoder", "repro-tiny", "--data", "stsb", "--task", "sleep")
    assert code == 2 and "sts" in err and "classification" in err
    code, _, err = repro("nosuch")
    assert code == 2 and "evaluate" in err
    assert repro()[0] == 2


def test_an_unknown_name_in_a_process_of_its_own(python):
    process = python(
        "import os, sys\nfor n in ('HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'): os.environ.pop(n, None)\n"
        "from repro.cli import main\nmain(sys.argv[1:])",
        *("evaluate", "--encoder", "nosuch-model", "--data", "stsb", "--source", "microworld"),
        HF_HUB_OFFLINE="1",
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("error: cannot load backbone 'nosuch-model'") and len(err.splitlines()) == 1


# what the verbs do


def test_evaluate_ones_own_pairs(repro, tiny, pairs, tmp_path, no_data):
    rows, result = tmp_path / "out" / "rows.parquet", tmp_path / "out" / "result.json"
    code, out, _ = repro(
        "evaluate",
        "--encoder",
        tiny,
        "--data",
        pairs,
        "--pooling",
        "mean",
        "--dims",
        32,
        8,
        "--rows",
        rows,
        "--mteb-json",
        result,
    )
    assert code == 0
    frame = read_rows(rows)
    assert frame["dim"].tolist() == [32, 8]
    assert set(frame["metric"]) == {"spearman"} and set(frame["data_source"]) == {"local"}
    assert frame["value"].iloc[0] > 0.5  # it counts shared words at least
    for row in frame.itertuples():
        assert f"dim {row.dim:>5}  spearman  {100 * row.value:.2f}  [{100 * row.ci_low:.2f}" in out
    for dim, value in zip((32, 8), frame["value"], strict=True):
        found = json.loads(result.with_stem(f"result-dim{dim}").read_text())
        assert set(found) >= {
            "task_name",
            "dataset_revision",
            "mteb_version",
            "scores",
            "evaluation_time",
            "kg_co2_emissions",
        }
        assert (found["task_name"], found["model_name"]) == ("mine", tiny)
        ((score,),) = found["scores"].values()  # MTEB averages what one file holds
        assert {"main_score", "cosine_spearman", "hf_subset", "languages"} <= set(score)
        assert score["dim"] == dim and score["main_score"] == score["cosine_spearman"] == pytest.approx(value)
        assert (score["hf_subset"], score["languages"]) == ("default", ["eng-Latn"])
    assert not result.exists()


def test_evaluate_at_a_layer_and_a_prefix(repro, tiny, pairs, tmp_path, no_data):
    code, out, _ = repro(
        "evaluate",
        "--encoder",
        tiny,
        "--data",
        pairs,
        "--layer",
        1,
        "--dim",
        8,
        "--pooling",
        "mean",
        "--rows",
        tmp_path / "rows.parquet",
    )
    assert code == 0
    (row,) = read_rows(tmp_path / "rows.parquet").itertuples()
    assert (row.layer, row.dim) == (1, 8)
    assert f"layer   1  dim     8  spearman  {100 * row.value:.2f}" in out


def test_evaluate_at_several_layers_is_one_pass_and_equals_each_alone(repro, tiny, pairs, tmp_path, no_data):
    folder, rows = tmp_path / "pooled", tmp_path / "rows.parquet"
    SentenceEncoder.load(tiny, dim=16, pooling="mean").save(folder)
    start = ("evaluate", "--encoder", folder, "--data", pairs, "--rows", rows)
    assert repro(*start, "--layers", 2, 0, 1, 1, "--dims", 16, 4)[0] == 0
    together = read_rows(rows)
    assert together["layer"].tolist() == [2, 2, 0, 0, 1, 1] and together["dim"].tolist() == [16, 4] * 3
    assert together["readout"].tolist() == ["pooler"] * 2 + ["encoder"] * 4  # the pooler reads the last layer only
    alone = []
    for layer in (2, 0, 1):
        for dim in (16, 4):
            assert repro(*start, "--layer", layer, "--dim", dim)[0] == 0
            alone += read_rows(rows)["value"].tolist()
    assert together["value"].tolist() == pytest.approx(alone, abs=1e-9)
    assert repro(*start)[0] == 0
    (last,) = read_rows(rows).itertuples()
    assert last.value == pytest.approx(alone[0], abs=1e-9) and last.layer is pd.NA
    code, _, err = repro(*start, "--layers", 2, 1, "--dims", 32)
    assert code == 2 and "dim is 32: expected 1 to 16" in err


def test_adapters_are_scored_and_encoded_like_any_encoder(repro, tiny, pairs, tmp_path, no_data):
    encoder = SentenceEncoder.load(tiny, pooling="mean")
    add_lora(encoder.backbone, LoraConfig(rank=2), seed=0)
    encoder.save(tmp_path / "adapted")
    rows = tmp_path / "rows.parquet"
    code, _, err = repro(
        "evaluate", "--encoder", tmp_path / "adapted", "--data", pairs, "--rows", rows, "--mteb-json", tmp_path / "m"
    )
    assert code == 0, err
    adapted = read_rows(rows)["value"].iloc[0]
    assert repro("evaluate", "--encoder", tiny, "--pooling", "mean", "--data", pairs, "--rows", rows)[0] == 0
    assert read_rows(rows)["value"].iloc[0] == adapted  # fresh adapters change nothing
    code, _, err = repro(
        "encode", "--encoder", tmp_path / "adapted", "--texts", pairs, "--output", tmp_path / "X.npy", "--layer", 1
    )
    assert code == 0, err
    np.testing.assert_array_equal(
        np.load(tmp_path / "X.npy"), encoder.encode(data.texts_of(data.load(str(pairs))), layer=1)
    )


def test_a_decoder_is_scored_as_it_is_told_to_see(repro, decoders, pairs, tmp_path, no_data):
    rows = tmp_path / "rows.parquet"
    start = ("evaluate", "--encoder", decoders["qwen2"], "--data", pairs, "--rows", rows, "--pooling", "mean")
    values = []
    for options in ((), ("--bidirectional", "True"), ("--final-norm", "none")):
        assert repro(*start, *options)[0] == 0
        (row,) = read_rows(rows).itertuples()
        values.append((row.value, row.setting))
    assert len({value for value, _ in values}) == 3
    assert [setting for _, setting in values] == [
        "all, mean pooling",
        "all, mean pooling, bidirectional",
        "all, mean pooling, final norm none",
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"3\tword {i}\tword {i + 1}" for i in range(12)], "all 12 pairs of .* have one score"),
        ([f"{i % 3}\tone cook\tone driver" for i in range(12)], "gives all pairs of .* one cosine"),
        (["1\tone cook\tone driver", "2\tone horse\tone lamp"], "2 pairs are too few for a rank correlation"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*constant")
def test_evaluate_refuses_what_cannot_be_ranked(lines, message, repro, tiny, tmp_path, no_data):
    (tmp_path / "few.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    code, _, err = repro("evaluate", "--encoder", tiny, "--data", tmp_path / "few.tsv", "--pooling", "mean")
    assert code == 2 and re.search(message, err) and "Traceback" not in err


def test_a_warning_is_one_sentence(repro, tiny, sentences, tmp_path, no_data):
    lines = [f"{i}\t{sentences[i]}\t{sentences[i + 7]}" for i in range(7)]
    (tmp_path / "few.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *lines]) + "\n", encoding="utf-8")
    code, _, err = repro("evaluate", "--encoder", tiny, "--data", tmp_path / "few.tsv", "--pooling", "mean")
    assert code == 0 and re.fullmatch(r"warning: 7 pairs are too few for an interval.*\n", err)


def test_evaluate_ones_own_labels(repro, tiny, labelled, tmp_path, no_data):
    rows, result = tmp_path / "rows.parquet", tmp_path / "result.json"
    code, out, _ = repro(
        "evaluate",
        "--encoder",
        tiny,
        "--data",
        labelled,
        "--task",
        "classification",
        "--pooling",
        "mean",
        "--rows",
        rows,
        "--mteb-json",
        result,
    )
    assert code == 0
    value = read_rows(rows).set_index("metric")["value"]
    assert value["accuracy"] == 1.0 and value["majority_floor"] == pytest.approx(2 / 3)
    (scores,) = json.loads(result.read_text())["scores"].values()
    assert [score["main_score"] for score in scores] == [1.0]
    assert "accuracy  100.00" in out


def test_evaluate_under_the_original_classifier(repro, tiny, labelled, no_data):
    common = ("evaluate", "--encoder", tiny, "--data", labelled, "--task", "classification", "--pooling", "mean")
    for protocol in ("logreg", "senteval"):
        code, out, err = repro(*common, "--protocol", protocol)
        assert code == 0, err
        assert f"mean pooling, {protocol})" in out, "a number says which classifier gave it"


def test_evaluate_reads_the_microworld_when_there_are_no_files(repro, tiny, no_data):
    code, out, _ = repro("evaluate", "--encoder", tiny, "--data", "stsb")
    assert code == 0 and "(microworld, test" in out


def test_encode_writes_a_matrix(repro, tiny, tmp_path, no_data):
    texts, output = tmp_path / "texts.txt", tmp_path / "new" / "X.npy"
    texts.write_text("one line\nanother\none line\n")
    code, out, err = repro("encode", "--encoder", tiny, "--texts", texts, "--output", output, "--dim", 7, "--normalize")
    assert code == 0 and "3 x 7 float32" in out and not err, "a log keeps no bars"
    X = np.load(output, allow_pickle=False)
    assert (X.shape, X.dtype) == ((3, 7), np.float32)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-6)
    assert (X[0] == X[2]).all()


def test_quiet_is_told_to_workers_too(repro, monkeypatch, no_data):
    monkeypatch.setenv(QUIET, "")
    monkeypatch.setattr("repro.verbs_embeddings.parameters", lambda *_: {})
    assert repro("reduce", "--method", "pca", "--dim", 1, "--input", "none.npy", "--output", "o.npy", "--quiet")[0] == 2
    assert os.environ[QUIET] == "1"


def test_encode_and_advise_take_a_baseline_by_its_name(repro, pairs, tmp_path, no_data):
    texts, output = tmp_path / "texts.txt", tmp_path / "X.npy"
    texts.write_text("the cow sleeps\nthe horse sleeps\n")
    code, out, err = repro("encode", "--encoder", "glove", "--texts", texts, "--output", output, "--dim", 9)
    assert code == 0 and "2 x 9 float32" in out and "mean of words" in out, err
    code, _, err = repro("encode", "--encoder", "glove", "--texts", texts, "--output", output, "--pooling", "cls")
    assert code == 2 and "pooling is cls: glove is made whole" in err
    code, out, err = repro("advise", "--encoder", "glove", "--texts", texts, "--output", tmp_path / "advice")
    assert code == 2 and "2 embeddings" in err
    code, out, err = repro("advise", "--encoder", "glove", "--texts", "stsb", "--output", tmp_path / "advice")
    assert code == 0 and "mean of words" in (tmp_path / "advice" / "report.html").read_text(), err
    code, _, err = repro("advise", "--encoder", "glove", "--texts", "stsb", "--layers", 1)
    assert code == 2 and "has no layers" in err


def test_train_then_find_then_evaluate(repro, tiny, pairs, tmp_path, no_data):
    arguments = (
        "train",
        "--backbone",
        tiny,
        "--dims",
        4,
        "--sentences",
        64,
        "--batch-size",
        16,
        "--workers",
        1,
        "--output",
        tmp_path / "trained",
    )
    code, out, _ = repro(*arguments)
    assert code == 0 and "dim 4: trained in" in out
    assert "dim 4: found in the store" in repro(*arguments)[1]
    code, out, _ = repro("evaluate", "--encoder", tmp_path / "trained" / "dim4", "--data", pairs)
    assert code == 0 and "dim     4  spearman" in out


def test_train_on_entailment_pairs_with_fewer_blocks(repro, tiny, pairs, tmp_path, no_data):
    code, out, err = repro(
        "train",
        "--backbone",
        tiny,
        "--objective",
        "nli",
        "--layers",
        1,
        "--dims",
        4,
        "--sentences",
        64,
        "--batch-size",
        16,
        "--workers",
        1,
        "--output",
        tmp_path / "trained",
    )
    assert code == 0, err
    assert "dim 4: trained in" in out
    encoder = SentenceEncoder.load(str(tmp_path / "trained" / "dim4"))
    assert (encoder.n_layers, encoder.dim) == (1, 4)
    code, _, err = repro("train", "--backbone", tiny, "--layers", 3, "--dims", 4, "--sentences", 64, "--workers", 1)
    assert code == 2 and "layers is 3: expected 1 to 2" in err


def test_pretrain_writes_a_backbone_with_its_card(repro, tmp_path, sentences, no_data, monkeypatch, repro_home):
    corpus, output = tmp_path / "corpus.txt", tmp_path / "mini"
    corpus.write_text("\n".join(sentences) + "\n")
    monkeypatch.setattr(sys, "argv", ["repro", "pretrain", "--corpus", "corpus.txt"])
    arguments = (
        "pretrain",
        "--corpus",
        corpus,
        "--output",
        output,
        "--layers",
        1,
        "--hidden-dim",
        32,
        "--epochs",
        1,
        "--batch-size",
        64,
        "--threads",
        1,
    )
    code, out, _ = repro(*arguments)
    assert code == 0 and "dev loss" in out
    card = json.loads((output / "card.json").read_text())
    assert (
        card["config"]["hidden_dim"] == 32 and card["loss_curve"] and card["command"] == "pretrain --corpus corpus.txt"
    )
    assert f"{len(sentences):,} sentences" in (output / "README.md").read_text()
    assert not list(repro_home.glob("work/*"))  # nothing is left to resume
    before = (output / "model.safetensors").read_bytes(), (output / "tokenizer.json").read_bytes()
    assert repro(*arguments)[0] == 0
    assert ((output / "model.safetensors").read_bytes(), (output / "tokenizer.json").read_bytes()) == before
    code, out, _ = repro("encode", "--encoder", output, "--texts", corpus, "--output", tmp_path / "X.npy")
    assert code == 0 and f"{len(sentences)} x 32" in out


def test_data_list(repro, no_data):
    code, out, _ = repro("data", "list")
    assert code == 0
    assert {"stsb", "trec", "wiki"} <= {line.split()[0] for line in out.splitlines()}


def test_doctor(repro, no_data, monkeypatch):
    from repro import doctor

    monkeypatch.setattr(doctor, "examine", lambda repair: iter([("all well", False), ("broken", not repair)]))
    assert repro("doctor")[:2] == (1, "ok  all well\nBAD broken\n")
    assert repro("doctor", "--repair")[:2] == (0, "ok  all well\nok  broken\n")


def test_an_interrupt_says_that_nothing_is_lost(repro, monkeypatch):
    def interrupted(**options):
        raise KeyboardInterrupt

    from repro import doctor

    monkeypatch.setattr(doctor, "examine", interrupted)
    code, _, err = repro("doctor")
    assert code == 130 and "the same command goes on from there" in err


def test_a_fault_of_ours_is_not_dressed_up_as_the_users(monkeypatch):
    def broken(**options):
        raise TypeError("unsupported operand")

    from repro import doctor

    monkeypatch.setattr(doctor, "examine", broken)
    with pytest.raises(TypeError, match="unsupported operand"):
        main(["doctor"])
    assert cli.VERBS["doctor"] is cli.doctor


@pytest.mark.real_data
@needs_real_data
def test_minilm_on_the_sts_benchmark(repro):
    code, out, _ = repro(
        "evaluate",
        "--encoder",
        "all-MiniLM-L6-v2",
        "--data",
        "stsb",
        "--task",
        "sts",
        "--text",
        "raw",
        "--source",
        "local",
    )
    assert code == 0
    assert float(out.split("spearman  ")[1].split()[0]) == pytest.approx(82.0, abs=0.1)
