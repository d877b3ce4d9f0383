import hashlib
import re
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock

import numpy as np
import pandas as pd
import pytest

from repro import paths, provenance, replacement, results, rows
from repro.results import read_rows, record, recorded_rows
from repro.rows import COLUMNS, KEY, make_rows
from repro.types import InputError


def some(value=0.5, **shared):
    options = {
        "experiment": "wang_table1",
        "metric": "spearman",
        "seed": 0,
        "profile": "embedded",
        **shared,
    }
    return make_rows(
        [{"dim": 8, "value": value}, {"dim": 16, "value": value + 0.1, "ci_low": 0.1}],
        **options,
    )


def test_a_row_says_the_form_of_its_texts_by_where_they_come_from():
    said = {
        source: make_rows([{"value": 1.0}], data_source=source)["text"].iloc[0]
        for source in ("local", "hub", "microworld")
    }
    assert said["local"] == "senteval" and said["hub"] == "senteval" and pd.isna(said["microworld"])
    assert make_rows([{"value": 1.0, "text": "raw"}], data_source="local")["text"].iloc[0] == "raw"


def test_rows_recorded_before_a_column_was_kept_are_read_with_none_in_it(tmp_path):
    rows = some()
    rows.drop(columns=["resamples", "text"]).to_parquet(tmp_path / "e.parquet", index=False)
    read = read_rows(tmp_path / "e.parquet")
    assert tuple(read.columns) == COLUMNS
    assert read[["resamples", "text"]].isna().all(axis=None)
    assert read["resamples"].dtype == "Int64"


def test_every_row_has_the_schema_and_its_provenance_whatever_is_there():
    frame = some()
    assert tuple(frame.columns) == COLUMNS and frame["dim"].tolist() == [8, 16]
    assert frame[["hardware", "commit", "versions", "created", "device"]].notna().all(axis=None)
    assert (
        frame["hardware"].str.contains("cores").all()
        and frame["versions"].str.contains("numpy").all()
    )
    assert (frame["peak_mb"] > 10).all() and frame["created"].str.endswith("+00:00").all()
    packages = [named.split()[0] for named in frame["versions"].iloc[0].split(", ")]
    assert packages == ["torch", "transformers", "numpy", "scikit-learn"]
    assert frame["layer"].isna().all() and frame["ci_low"].isna().tolist() == [True, False]
    for values in (
        [],
        [{"value": 1}],
        [{"value": 0.5, "layer": 3, "dim": np.int64(8), "readout": "pooler"}],
    ):
        assert make_rows(values, experiment="e").dtypes.equals(frame.dtypes)
    with pytest.raises(
        InputError,
        match="unknown row column 'dimension': the schema has experiment, paper_table",
    ):
        make_rows([{"dimension": 8}])


def test_the_commit_is_named_by_twelve_digits_of_the_checkouts_own_history(monkeypatch):
    head, asked = "0123456789abcdef" * 2 + "01234567", []

    def git(command, **options):
        asked.append(command)
        return SimpleNamespace(stdout=f"{head}\n")

    monkeypatch.setattr(provenance.subprocess, "run", git)
    assert provenance.commit.__wrapped__() == head[:12]
    assert f"--git-dir={paths.project_root() / '.git'}" in asked[0] and asked[0][-1] == "HEAD"


def test_recording_replaces_the_same_key_and_keeps_the_others(tmp_path):
    (path,) = record(some(0.1), tmp_path)
    assert path == tmp_path / "wang_table1.parquet"
    record(some(0.7, seed=1), tmp_path)
    record(some(0.4), tmp_path)
    frame = read_rows(path)
    assert len(frame) == 4
    assert not frame.duplicated(list(KEY)).any()
    value = frame.set_index(["seed", "dim"])["value"]
    assert value.to_dict() == pytest.approx({(0, 8): 0.4, (0, 16): 0.5, (1, 8): 0.7, (1, 16): 0.8})
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".lock"} == {
        "wang_table1.parquet",
        "SHA256SUMS",
    }
    # Columns outside the key, such as the hardware, do not make another number
    record(some(0.9).assign(hardware="another machine"), tmp_path)
    assert len(read_rows(path)) == 4
    record(some(0.9, n_judged=100), tmp_path)
    with pytest.raises(InputError, match="judged on more items"):
        record(some(0.2, n_judged=99), tmp_path)
    record(some(backbone="BAAI/bge-base-en-v1.5"), tmp_path)
    record(some(backbone=str(tmp_path / "my-network")), tmp_path)
    assert (
        read_rows(path)["backbone"].dropna().tolist()
        == ["BAAI/bge-base-en-v1.5"] * 2 + ["my-network"] * 2
    )
    with pytest.raises(InputError, match="leads outside"):
        record(some(experiment="../../evil"), tmp_path)


def test_every_column_of_the_key_makes_another_number_and_rows_lie_in_its_order(tmp_path):
    base = {**dict.fromkeys(KEY, "a"), "value": 0.5, "n_judged": 100}
    base |= {name: 1 for name in KEY if rows.KINDS[name] == "Int64"}
    changed = {name: "b" if base[name] == "a" else 2 for name in KEY if name != "experiment"}
    others = [{**base, name: other} for name, other in changed.items()]
    for each in (others[::-1], [base]):
        (path,) = record(make_rows(each), tmp_path)
    found = read_rows(path)
    assert len(found) == len(KEY)
    pd.testing.assert_frame_equal(found, found.sort_values(list(KEY), ignore_index=True))
    (path,) = record(make_rows([{**base, "experiment": "b"}]), tmp_path)
    assert path.name == "b.parquet"


def test_rows_of_another_configuration_stand_beside_and_give_way_to_none(tmp_path):
    record(some(0.1), tmp_path)
    # The old ones say of no configuration
    (path,) = record(some(0.2, config="a" * 16, learning_rate=3e-5), tmp_path)
    assert read_rows(path)["config"].tolist() == ["a" * 16] * 2
    record(some(0.3, config="b" * 16), tmp_path)
    record(some(0.4, config="a" * 16), tmp_path)
    frame = read_rows(path).set_index([read_rows(path)["config"].str[0], "dim"])["value"]
    assert frame.to_dict() == pytest.approx(
        {("a", 8): 0.4, ("a", 16): 0.5, ("b", 8): 0.3, ("b", 16): 0.4}
    )


def test_what_settings_say_in_words_is_said_in_columns():
    settings = [
        "2,000 bytes",
        "neighbours = 30",
        "test, select_by=encoder",
        "candidates=3",
        "",
        None,
    ]
    frame = rows.parsed(
        make_rows([{"setting": s, "method": "PCA − GRP" if s == "" else "PCA"} for s in settings])
    )
    assert frame["bytes"].dropna().tolist() == [2000] and frame["neighbours"].dropna().tolist() == [
        30
    ]
    assert frame["select_by"].dropna().tolist() == ["encoder"] and frame[
        "split"
    ].dropna().tolist() == ["test"]
    assert frame["k"].dropna().tolist() == [3]
    assert frame[["winner", "rival"]].dropna().to_numpy().tolist() == [["PCA", "GRP"]]
    told = rows.parsed(make_rows([{"setting": "neighbours = 30", "neighbours": 50}]))
    assert told["neighbours"].tolist() == [50], "what a column says counts"


def test_a_digest_may_stand_twice_as_git_merges_it_but_a_file_without_one_is_refused(tmp_path):
    (path,) = record(some(), tmp_path)
    sums = tmp_path / "SHA256SUMS"
    line = sums.read_text()
    assert line == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  wang_table1.parquet\n"
    sums.write_text(f"{'0' * 64}  wang_table1.parquet\n{line}")
    assert len(read_rows(path)) == 2
    path.rename(tmp_path / "ese_table1.parquet")
    with pytest.raises(InputError, match=r"ese_table1\.parquet is not listed in .* run `sha256sum"):
        read_rows(tmp_path / "ese_table1.parquet")
    (tmp_path / "ese_table1.parquet").rename(path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(InputError) as refused:
        read_rows(path)
    told = str(refused.value)
    assert told.startswith(f"{path} has changed since it was recorded"), "no word of parquet"
    assert "Restore the file and SHA256SUMS with git" in told and "record again" not in told


@pytest.mark.parametrize("line", ["<<<<<<< HEAD", "=======", "", f"{'0' * 64} one_space.parquet"])
def test_a_line_that_is_no_digest_with_a_name_is_refused_and_not_written_back(line, tmp_path):
    (path,) = record(some(), tmp_path)
    sums = tmp_path / "SHA256SUMS"
    merged = f"{sums.read_text()}{line}\n"
    sums.write_text(merged)
    told = rf"SHA256SUMS, line 2 is {line!r}: expected a sha256 .* run `sha256sum \*\.parquet"
    for act in (lambda: read_rows(path), lambda: record(some(0.9), tmp_path)):
        with pytest.raises(InputError, match=told):
            act()
    assert sums.read_text() == merged


def test_recorded_rows_that_nothing_vouches_for_are_not_read_nor_added_to(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "results_folder", lambda: tmp_path)
    assert results.recorded_rows("wang_table1").empty
    (path,) = record(some(), tmp_path)
    sums = tmp_path / "SHA256SUMS"
    listed = sums.read_text()
    assert len(results.recorded_rows("wang_table1")) == 2
    sums.unlink()
    content = path.read_bytes()
    told = r"has no SHA256SUMS, so that nothing vouches for wang_table1\.parquet"
    with pytest.raises(InputError, match=told):
        results.recorded_rows("wang_table1")
    with pytest.raises(InputError, match=told):
        record(some(experiment="other"), tmp_path)
    assert path.read_bytes() == content
    assert not sums.exists() and not (tmp_path / "other.parquet").exists()
    sums.write_text(listed)
    path.unlink()
    told = r"\.parquet is not there, but SHA256SUMS lists it\. .* run `sha256sum \*\.parquet >"
    for act in (lambda: results.recorded_rows("wang_table1"), lambda: record(some(0.3), tmp_path)):
        with pytest.raises(InputError, match=told):
            act()
    assert sums.read_text() == listed and not path.exists()
    sums.write_text("")  # The way out, as `sha256sum` leaves it where no file is left
    record(some(0.3), tmp_path)
    assert len(results.recorded_rows("wang_table1")) == 2


PLACE = {"backbone": "net", "profile": "embedded", "data_source": "local"}


def curve(dims=(8, 16, 32), methods=("PCA", "SVD"), value=0.5, **shared):
    """Scores of some methods by size, and how rough each curve is, as a page of Zhang et al.
    has.
    """
    made = []
    for method in methods:
        made += [{"method": method, "dim": dim, "metric": "accuracy"} for dim in dims]
        made.append({"method": method, "metric": "roughness"})
    options = {
        "setting": "inductive",
        "dataset": "trec",
        "value": value,
        "seed": 0,
        **PLACE,
        **shared,
    }
    return make_rows(made, experiment="zhang_figure3", **options)


@pytest.mark.parametrize("command", [None, "repro run zhang_figure3_trec -p dims '[8, 16, 32]'"])
def test_a_run_of_a_part_of_a_curve_does_not_replace_what_sums_up_the_whole(command, tmp_path):
    (path,) = record(curve(command=command), tmp_path)
    before = path.read_bytes(), (tmp_path / "SHA256SUMS").read_text()
    told = r"numbers of a whole run \(\d\), such as PCA, net, trec, inductive, roughness, made also"
    for part in (curve((8, 16), value=0.9), curve(methods=("PCA",), value=0.9)):
        both = pd.concat([some(), part.assign(command="repro run a_part")])
        with pytest.raises(InputError, match=told) as refused:
            record(both, tmp_path)
        assert "Nothing was recorded: run all of it" in str(refused.value)
        assert not command or f"`{command} -p record True`" in str(refused.value)
        assert (path.read_bytes(), (tmp_path / "SHA256SUMS").read_text()) == before
        assert not (tmp_path / "wang_table1.parquet").exists(), "nothing of a refused write is kept"
    part = curve((8, 16), value=0.9)
    record(part[part["metric"] == "accuracy"], tmp_path)  # Cells say all of themselves
    record(curve((8, 16), seed=1), tmp_path)  # Another run
    more = ("PCA", "SVD", "GRP")
    record(curve((8, 16, 32, 64), more, value=0.7), tmp_path)
    frame = read_rows(path)
    summed = frame[(frame["metric"] == "roughness") & (frame["seed"] == 0)]
    assert summed.set_index("method")["value"].to_dict() == dict.fromkeys(more, 0.7)


def test_a_run_may_be_done_again_and_sizes_of_another_run_are_no_part_of_it(tmp_path):
    record(curve((8, 16, 32), command="first"), tmp_path)
    beside = curve((64,), command="second")
    (path,) = record(beside[beside["metric"] == "accuracy"], tmp_path)
    record(curve((8, 16, 32), value=0.8, command="first"), tmp_path)
    record(curve((8, 16, 32), value=0.9, command="third"), tmp_path)
    frame = read_rows(path)
    assert frame.set_index(["metric", "dim"])["value"]["accuracy", 64].tolist() == [0.5, 0.5]
    assert frame[frame["metric"] == "roughness"]["value"].tolist() == [0.9, 0.9]


def test_what_was_chosen_among_fewer_does_not_replace_what_was_chosen_among_more(tmp_path):
    base = {"seed": 0, "dataset": "stsb", "metric": "spearman", "value": 0.5, **PLACE}

    def stages(dims):
        named = {"method": "Encoder_opt + pooler_d (After step 1)", "experiment": "wang_table1"}
        return make_rows([{"dim": dim} for dim in dims], **named, **base)

    def best(chosen, methods):
        cells = [{"method": method, "setting": "fitted"} for method in methods]
        cells.append({"method": "best reduction", "setting": f"{chosen}, chosen on stsb dev"})
        return make_rows(cells, dim=8, experiment="proposal_train_or_reduce", **base)

    def mapped(grid):
        named = {"method": "SBERTbase-LP", "setting": "transductive, chosen on dev"}
        command = f"repro run sbertlp_table1_sts -p neighbors '{grid}'"
        chosen = [{**named, "dim": len(grid)}]
        return make_rows(chosen, experiment="sbertlp_table1", command=command, **base)

    for whole, part in (
        (stages((8, 16, 64)), stages((8, 16))),
        (best("GRP", ("PCA", "GRP")), best("PCA", ("PCA",))),
        (mapped("[10, 30]"), mapped("[10]")),
    ):
        (path,) = record(whole, tmp_path)
        with pytest.raises(InputError, match="of a part of it and would replace them"):
            record(part, tmp_path)
        assert len(read_rows(path)) == len(whole)
        record(whole, tmp_path)


def run(value=0.5, page="beyond_retrieval_limits", metric="margin", command="", **shared):
    """Rows as a page records them, with the command that made them; None leaves them without."""
    told = None if command is None else f"repro run {page} {command}".strip()
    named = {"experiment": page, "metric": metric, "seed": 0, **PLACE, **shared}
    return make_rows([{"dim": 8, "value": value}], command=told, **named)


@pytest.mark.parametrize(
    ("recorded", "again", "told"),
    [
        ("-p steps 400 -p seed 0", "-p steps 3 -p seed 0", "-p steps 400, not -p steps 3,"),
        ("-p sampled 8000", "-p sampled 60 -p draws 1", "-p sampled 8000, not -p sampled 60,"),
        ("-p perplexity 30.0", "-p perplexity 5.0", "-p perplexity 30.0, not -p perplexity 5.0,"),
        ("", "-p maps 1", "no maps, not -p maps 1,"),
        ("-p vectors glove.txt", "", "-p vectors glove.txt, not no vectors,"),
        ("-p shortlist 40", "-p shortlist 400", "-p shortlist 40, not -p shortlist 400,"),
        ("-p rows 0", "-p rows 1000", "-p rows 0, not -p rows 1000,"),
        ("-p paragraphs 1500", "-p paragraphs 200", "-p paragraphs 1500, not -p paragraphs 200,"),
        (
            "-p starts '[0, 1, 2]'",
            "-p starts '[0]'",
            r"-p starts \[0, 1, 2\], not -p starts \[0\],",
        ),
    ],
)
def test_a_run_of_other_parameters_does_not_replace_recorded_numbers(
    recorded, again, told, tmp_path
):
    (path,) = record(run(command=recorded), tmp_path)
    before = path.read_bytes(), (tmp_path / "SHA256SUMS").read_bytes()
    first = r"holds numbers \(1\), such as net, 8, margin, made with "
    with pytest.raises(InputError, match=f"{first}{told} and these rows would") as refused:
        record(pd.concat([some(), run(0.4, command=again)]), tmp_path)
    assert f"(`repro run beyond_retrieval_limits {recorded}".strip() in str(refused.value)
    assert (path.read_bytes(), (tmp_path / "SHA256SUMS").read_bytes()) == before
    assert not (tmp_path / "wang_table1.parquet").exists()
    record(run(0.4, command=recorded), tmp_path)
    assert read_rows(path)["value"].tolist() == [0.4], "the same run may be done again"
    record(run(0.40001, command=again), tmp_path)
    assert len(read_rows(path)) == 1, "nothing is lost where the number is the same"


@pytest.mark.parametrize("config", [None, "a" * 16])
def test_a_number_that_names_no_command_is_not_replaced_by_another_of_a_page(config, tmp_path):
    (path,) = record(run(command=None), tmp_path)
    told = (
        r"holds numbers \(1\), .* that name no command, and .* move the file away, run `sha256sum"
    )
    with pytest.raises(InputError, match=told):
        record(run(0.4, command="-p steps 3", config=config), tmp_path)
    record(run(command="-p steps 400", config=config), tmp_path)
    assert read_rows(path)["command"].notna().all(), "the same number brings its command"


@pytest.mark.parametrize(
    ("recorded", "again"),
    [
        ("-p rows 1000 -p paragraphs 1200", "-p rows 0 -p paragraphs 1500"),
        ("-p dims '[8, 16]'", "-p dims '[8]'"),
        ("", "-p dims '[8]' -p rows 0 -p folds 0 -p unseen false"),
        ("-p seed 0 -p source local", "-p seed 1"),  # A draw of either
    ],
)
def test_a_run_of_more_or_of_other_rows_replaces_recorded_numbers(recorded, again, tmp_path):
    record(run(command=recorded), tmp_path)
    (path,) = record(run(0.4, command=again), tmp_path)
    assert read_rows(path)["value"].tolist() == [0.4]


def test_every_list_of_a_page_that_records_names_rows_or_is_compared():
    """A new list whose items have no rows of their own must be entered in `NAME_NO_ROWS`."""
    have_rows = {
        *("dims", "autoencoder_dims", "depth_dims", "encode_dims", "free_dims", "identity_dims"),
        *("joint_dims", "switch_dims", "theory_dims", "columns", "sizes", "shares", "budgets"),
        *("encoders", "backbones", "systems", "mapped", "probed", "also", "baselines"),
        *("methods", "reducers", "variants", "augmentations", "levels", "settings"),
        *("datasets", "tasks", "counts", "factors", "searched", "batches", "temperatures"),
        *("depths", "targets", "neighbors", "fit_sentences", "seeds"),
    }
    lists = set()
    for page in (paths.project_root() / "notebooks").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "\nrecord: bool =" in text:
            lists.update(re.findall(r"^(\w+): list\[", text, flags=re.MULTILINE))
    assert lists == have_rows | set(replacement.NAME_NO_ROWS)


def test_every_recorded_number_without_a_size_is_of_a_whole_run_or_says_all_of_itself():
    """A new number that sums up sizes must be entered in `WHOLES`, or here if its key says all."""
    of_a_space = {
        "dimension_99",
        "effective_rank",
        "participation_ratio",
        "mle_dimension",
        "two_nn",
    }
    by_bytes = {"ndcg@10_lead", "neighbours_kept_lead", "spearman_lead"}
    by_layer = {"encode_ratio", "encode_seconds", "layer_weight", "compressed_size"}
    scores = {"accuracy", "majority_floor", "spearman", "cosine"}
    says_all = {*of_a_space, *by_bytes, *by_layer, *scores, "goal", "ratio", "seconds", "trials"}
    for path in sorted(results.results_folder().glob("*.parquet")):
        frame = pd.read_parquet(path, columns=["metric", "method", "setting", "dim"])
        frame = frame[frame["dim"].isna()].drop_duplicates(ignore_index=True)
        of_a_whole = pd.concat([whole.of(frame) for whole in replacement.WHOLES])
        left = set(frame.drop(of_a_whole.index)["metric"]) - says_all
        assert not left, f"{path.name}: {sorted(left)}"


def test_the_recorded_rows_are_whole():
    folder = results.results_folder()
    files = sorted(folder.glob("*.parquet"))
    assert [line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()] == [
        p.name for p in files
    ]
    assert all(len(read_rows(path)) for path in files)


def test_what_is_not_a_file_of_rows(tmp_path):
    with pytest.raises(InputError, match="no rows at"):
        read_rows(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("not parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_rows(tmp_path / "text.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="lacks the column 'experiment': it is not a file of rows"):
        read_rows(tmp_path / "other.parquet")


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("value", ["0.5", "0.6"], "numbers"),
        ("value", [True, False], "numbers"),
        ("seed", ["0", "0"], "whole numbers"),
        ("seed", [0.5, 0.0], "whole numbers"),
        ("dim", [[8], [16]], "whole numbers"),
        ("backbone", [0.5, None], "text"),
        ("setting", [b"a", b"b"], "text"),
        ("command", [1, 2], "text"),
        ("n_judged", ["3", None], "whole numbers"),
    ],
)
def test_a_column_of_another_kind_is_refused_wherever_rows_are_read(
    column,
    values,
    expected,
    tmp_path,
    monkeypatch,
):
    (path,) = record(some(), tmp_path)
    some().assign(**{column: pd.Series(values)}).to_parquet(path, index=False)
    listed = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{listed}  {path.name}\n")
    monkeypatch.setattr(results, "results_folder", lambda: tmp_path)
    found = rf"wang_table1.parquet has .*{re.escape(str(values[0]))}.* in the column '{column}'"
    for read in (
        lambda: read_rows(path),
        lambda: recorded_rows("wang_table1"),
        lambda: record(some(), tmp_path),
    ):
        with pytest.raises(InputError, match=f"{found}: expected {expected}. Correct the file and"):
            read()


def test_a_column_that_no_row_has_is_read_past_and_recording_does_not_lose_it(tmp_path):
    (path,) = record(some(), tmp_path)
    some().assign(notes="checked twice").to_parquet(path, index=False)
    listed = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{listed}  {path.name}\n")
    assert list(read_rows(path).columns) == list(COLUMNS)
    with pytest.raises(InputError, match=r"holds the column 'notes', which is no row's and would"):
        record(some(metric="accuracy"), tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == listed


def test_numbers_that_another_program_wrote_are_read_as_those_of_their_column(tmp_path):
    frame = some().assign(seed=[0.0, 1.0], value=[0, 1], layer=[None, None])
    frame.to_parquet(tmp_path / "e.parquet", index=False)
    read = read_rows(tmp_path / "e.parquet")
    assert {name: str(kind) for name, kind in read.dtypes.items()} == rows.KINDS
    assert read["seed"].tolist() == [0, 1] and read["layer"].isna().all()


def test_a_recorded_command_that_no_shell_reads_is_told_in_a_sentence(tmp_path):
    (path,) = record(run(command="-p steps '3"), tmp_path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"-p steps '3\" of a row cannot be read .*Nothing was"):
        record(run(0.4, command="-p steps 3"), tmp_path)
    assert path.read_bytes() == before
    record(run(metric="other"), tmp_path)


def kill_after_listing(frame, folder, monkeypatch):
    """Record rows, and die once their digest is listed, before the file is there."""
    write = results.write_digests

    def killed(*given):
        write(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(results, "write_digests", killed)
        record(frame, folder)


def test_a_kill_between_digest_and_file_leaves_both_as_they_were(tmp_path, monkeypatch):
    (path,) = record(some(0.1), tmp_path)
    kill_after_listing(some(0.5), tmp_path, monkeypatch)
    assert read_rows(path)["value"].iloc[0] == 0.1


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_while_recording_leaves_rows_that_are_read(writes, tmp_path, monkeypatch):
    (path,) = record(some(0.1), tmp_path)
    write = Mock(wraps=results.write_digests, side_effect=[*[DEFAULT] * writes, KeyboardInterrupt])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(results, "write_digests", write)
        record(some(0.5), tmp_path)
    assert read_rows(path)["value"].iloc[0] == (0.5 if writes else 0.1)
    record(some(0.7), tmp_path)
    assert read_rows(path)["value"].iloc[0] == 0.7


def test_a_kill_between_the_listing_and_the_first_rows_leaves_none(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "results_folder", lambda: tmp_path)
    kill_after_listing(some(), tmp_path, monkeypatch)
    assert results.recorded_rows("wang_table1").empty
    record(some(), tmp_path)
    assert (tmp_path / "SHA256SUMS").read_text().count("\n") == 1
