"""`repro reduce`: every method from file to file, and one line with exit code 2 for a user's
mistake.
"""

from unittest.mock import Mock

import numpy as np
import pytest

from repro import verbs_reduce
from repro.reducers import REDUCERS, Truncate, make_reducer

OPTIONS = {"autoencoder": {"epochs": 3}, "sbertlp": {"n_neighbors": 8}}
HEADERS = {
    "tokenizer": "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4",
    "too_much": "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000000, 4), }",
    "stack": "-" * 9000 + "1",  # On which Python says that memory ran out
    "overflow": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**30}, 4), }}",
}
"""Headers of damaged files, by the error that numpy raises."""


@pytest.fixture
def files(tmp_path):
    """Three matrices of twelve columns, of 40, 30 and 20 rows."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{name}.npy" for name in "XFG"]
    for path, n in zip(paths, (40, 30, 20), strict=True):
        np.save(path, rng.standard_normal((n, 12)).astype(np.float32) + 1)
    return paths


def line_of(method, dim=3):
    given = [f"--param {key}={value}" for key, value in OPTIONS.get(method, {}).items()]
    return " ".join([f"reduce --method {method} --dim {dim}", *given])


@pytest.mark.parametrize("method", REDUCERS)
def test_every_method_on_the_input_itself_and_fitted_on_other_rows(method, repro, files, tmp_path):
    (X, F, G), output = files, tmp_path / "new" / "Y.npy"
    line = f"{line_of(method)} --input {X} --output {output}"
    out, err = repro(line)
    assert not err
    expected = make_reducer(method, 3, **OPTIONS.get(method, {})).fit_transform(np.load(X))
    Y = np.load(output, allow_pickle=False)
    np.testing.assert_array_equal(Y, expected)
    assert Y.dtype == np.float32
    assert f"{method} of 40 rows, 12 -> 3 dims, fitted on 40 rows (the input itself) in " in out
    assert ("variance" in out) == (
        method in ("truncate", "centred", "pca", "svd", "kpca", "autoencoder")
    )

    out, err = repro(f"{line} --fit-on {F} {G} --seed 5")
    assert not err
    fitted = make_reducer(method, 3, seed=5, **OPTIONS.get(method, {})).fit(
        np.r_[np.load(F), np.load(G)]
    )
    np.testing.assert_array_equal(np.load(output), fitted.transform(np.load(X)))
    assert f"fitted on 50 rows ({F}, {G}) in " in out and "reduced in" in out


def test_a_reducer_that_is_registered_is_offered_without_another_list(
    repro,
    files,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setitem(REDUCERS, "halves", type("Halves", (Truncate,), {}))
    assert ",sbertlp,halves}" in repro("reduce --help").out
    output = tmp_path / "Y.npy"
    repro(f"reduce --method halves --dim 6 --input {files[0]} --output {output}")
    np.testing.assert_array_equal(np.load(output), np.load(files[0])[:, :6])


def test_a_reduction_that_keeps_no_variance_is_not_told_a_share_of_it(repro, tmp_path, monkeypatch):
    class Worse(Truncate):
        def _learn(self, X):
            super()._learn(X)
            self.explained_variance_ratio_ = np.array([-1.4851])

    monkeypatch.setitem(REDUCERS, "worse", Worse)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((9, 4)))
    out, _ = repro(
        f"reduce --method worse --dim 2 --input {tmp_path}/X.npy --output {tmp_path}/Y.npy"
    )
    assert (
        "none of their variance kept: their mean is nearer to them than" in out and "%" not in out
    )


def test_cutting_says_whether_the_vectors_look_trained_for_it(repro, tmp_path):
    plain = np.random.default_rng(0).standard_normal((300, 24)).astype(np.float32)
    steep = plain * 0.7 ** np.arange(24, dtype=np.float32)
    line = f"reduce --dim 6 --output {tmp_path}/Y.npy --input {tmp_path}/X.npy --method"
    for X, verdict in ((plain, "do not look trained to be cut"), (steep, "look trained to be cut")):
        np.save(tmp_path / "X.npy", X)
        out, err = repro(f"{line} truncate")
        assert (
            not err
            and f"The vectors {verdict} (Matryoshka)" in out
            and "the first 6 of 24 columns find" in out
        )
        assert "trained to be cut" not in repro(f"{line} pca").out
    whole = line.replace("--dim 6", "--dim 24")
    assert "trained to be cut" not in repro(f"{whole} truncate").out, "nothing is cut"


@pytest.mark.parametrize(
    ("method", "pairs", "expected"),
    [
        (
            "pca",
            ["standardize=true", "center_output=False"],
            {"standardize": True, "center_output": False},
        ),
        (
            "autoencoder",
            ["hidden_layers=64,32", "activation=relu"],
            {"hidden_layers": (64, 32), "activation": "relu"},
        ),
        (
            "autoencoder",
            ["hidden_layers=64", "learning_rate=1"],
            {"hidden_layers": (64,), "learning_rate": 1.0},
        ),
        ("kpca", ["gamma=median"], {"gamma": "median"}),
        ("kpca", ["gamma=1e-2"], {"gamma": 0.01}),
    ],
)
def test_parameters_take_the_kind_of_their_defaults(method, pairs, expected):
    found = verbs_reduce.parameters(method, pairs)
    found.pop("progress", None)
    assert found == expected and [type(v) for v in found.values()] == [
        type(v) for v in expected.values()
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sbertlp --dim 3 --fit-on {tmp}/G.npy", "n_neighbors is 30: expected 1 to 19"),
        ("pca --dim 128", "error: --dim is 128: expected 1 to 12 ("),
        ("pca --dim 0 --fit-on {tmp}/G.npy", "error: --dim is 0: expected 1 to 12 ("),
        *(
            (f"{method} --dim 2 --input {{tmp}}/equal.npy", "all 9 rows of X are equal")
            for method in ("isomap", "sbertlp", "kpca")
        ),
        ("pca --dim 3 --param whiten", "--param 'whiten': expected KEY=VALUE"),
        ("lle --dim 3 --param reg=abc", "reg is 'abc': expected float, such as 0.001"),
        ("lle --dim 3 --param reg=1 --param reg=2", "--param reg is given twice"),
        ("lle --dim 3 --param n_neighbors=2.5", "n_neighbors is 2.5: expected int"),
        ("grp --dim 3 --param seed=3", "--param seed=3: expected the option --seed"),
        *(
            (f"pca --dim 3 --input {{tmp}}/{kind}.npy", f"{kind}.npy is not a whole .npy file")
            for kind in HEADERS
        ),
        ("pca --dim 3 --fit-on {tmp}/narrow.npy", "narrow.npy has 5 columns, "),
        ("pca --dim 3 --input {tmp}/none.npy", "no file {tmp}/none.npy"),
        (
            "pca --dim 3 --input {tmp}/nan.npy",
            "nan.npy has NaN or infinite values in 1 of 9 rows, first in row 7",
        ),
        ("pca --dim 3 --input {tmp}/words.npy", "words.npy holds <U2 values"),
        ("pca --dim 3 --input {tmp}/objects.npy", "objects.npy holds Python objects"),
        ("pca --dim 3 --input {tmp}/text.npy", "text.npy is not a whole .npy file"),
        ("pca --dim 3 --input {tmp}/short.npy", "short.npy is not a whole .npy file"),
        ("pca --dim 3 --output {tmp}/X.npy", "X.npy is an input: expected another file"),
        ("pca --dim 3 --fit-on {tmp}/nan.npy --output {tmp}/nan.npy", "nan.npy is an input"),
    ],
)
def test_a_mistake_ends_with_2_and_one_line(options, message, repro, files, tmp_path):
    broken = np.ones((9, 5))
    broken[7, 2] = np.nan
    arrays = {
        "narrow": np.ones((9, 5)),
        "equal": np.ones((9, 5)),
        "nan": broken,
        "words": np.array([["ab"]]),
        "objects": np.array([[{}]]),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
    for kind, header in HEADERS.items():
        line = header.encode() + b"\n"
        head = b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little")
        (tmp_path / f"{kind}.npy").write_bytes(head + line + bytes(48))
    (tmp_path / "text.npy").write_text("1 2 3\n")
    (tmp_path / "short.npy").write_bytes(files[0].read_bytes()[:-50])
    line = f"reduce --method {options}".format(tmp=tmp_path)
    for option, path in (("--input", files[0]), ("--output", tmp_path / "Y.npy")):
        line += "" if option in line else f" {option} {path}"
    out, err = repro(line, ends=2)
    assert (
        not out
        and err.startswith("error: ")
        and err.count("\n") == 1
        and message.format(tmp=tmp_path) in err
    )
    assert not (tmp_path / "Y.npy").exists() and not list(tmp_path.glob("**/*.partial"))


def test_memory_that_runs_out_is_not_told_as_a_damaged_file(repro, files, tmp_path, monkeypatch):
    line = f"{line_of('pca')} --input {files[0]} --output {tmp_path}/Y.npy"
    error = MemoryError("Unable to allocate 58 TiB")
    monkeypatch.setattr(np, "fromfile", Mock(side_effect=error))
    err = repro(line, ends=2).err
    assert f"memory ran out while {files[0]} was read ({error}): " in err and "whole" not in err
    with files[0].open("r+b") as file:  # Its header promises more than there is
        file.truncate(1000)
    assert "X.npy is not a whole .npy file" in repro(line, ends=2).err


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_other_numbers_are_read(dtype, repro, tmp_path):
    X = (np.random.default_rng(0).standard_normal((20, 6)) * 30).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    repro(f"{line_of('pca', 2)} --input {tmp_path}/X.npy --output {tmp_path}/Y.npy")
    expected = make_reducer("pca", 2).fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(np.load(tmp_path / "Y.npy"), expected, rtol=1e-4, atol=1e-3)


def test_an_output_whose_last_bytes_find_no_room_is_refused(repro, files, tmp_path, no_room_above):
    output = tmp_path / "Y.npy"
    with no_room_above(128 + 40 * 3 * 4 - 1):
        repro(f"{line_of('truncate')} --input {files[0]} --output {output}", ends=2)
    assert not output.exists()


@pytest.mark.parametrize("role", ["X", "F"])
@pytest.mark.parametrize("way", ["cut", "rows of another matrix", "another file"])
def test_a_matrix_that_changes_while_it_is_read_is_refused(way, role, files, monkeypatch, repro):
    """Cut short it would be a traceback, else rows of two matrices would be one."""
    X, F, _ = files
    path = files["XF".index(role)]
    content, other = path.read_bytes(), path.with_name("other.npy")
    read = np.lib.format.open_memmap

    def read_before_it_changes(name, **how):
        opened = read(name, **how)
        if name == path:
            match way:
                case "cut":
                    path.write_bytes(content[:-8])
                case "rows of another matrix":
                    path.write_bytes(content[:-8] + content[-16:-8])
                case _:
                    other.write_bytes(content)
                    other.replace(path)
        return opened

    monkeypatch.setattr(np.lib.format, "open_memmap", read_before_it_changes)
    output = path.with_name("Y.npy")
    line = f"reduce --method pca --dim 3 --input {X} --fit-on {F} --output {output}"
    assert f"{path.name} was written to while it was read" in repro(line, ends=2).err
    assert not output.exists()
