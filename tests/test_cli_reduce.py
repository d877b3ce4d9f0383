"""`repro reduce`: every method from file to file, and one line with exit code 2 for a user's mistake."""

import inspect
from typing import get_args

import numpy as np
import pytest

from repro import verbs_embeddings
from repro.reducers import REDUCERS, make_reducer

OPTIONS = {"autoencoder": {"epochs": 3}, "sbertlp": {"n_neighbors": 8}, "grp": {}}
HEADERS = {
    "tokenizer": "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4",
    "overflow": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({10**30}, 4), }}",
    "index": "{'descr': ('<f4',), 'fortran_order': False, 'shape': (3, 4), }",
    "type": "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), 3: 1}",
}
"""headers of damaged files, by the error that numpy raises"""


@pytest.fixture
def files(tmp_path):
    """Three matrices of twelve columns, of 40, 30 and 20 rows."""
    rng = np.random.default_rng(0)
    paths = []
    for name, n in (("X", 40), ("F", 30), ("G", 20)):
        paths.append(tmp_path / f"{name}.npy")
        np.save(paths[-1], rng.standard_normal((n, 12)).astype(np.float32) + 1)
    return paths


def test_the_choices_are_the_reducers():
    annotation = inspect.signature(verbs_embeddings.reduce).parameters["method"].annotation
    assert set(get_args(annotation)) == set(REDUCERS)


@pytest.mark.parametrize("method", REDUCERS)
def test_every_method_on_the_input_itself(method, repro, files, tmp_path):
    options = OPTIONS.get(method, {})
    given = [word for key, value in options.items() for word in ("--param", f"{key}={value}")]
    output = tmp_path / "new" / "Y.npy"
    code, out, err = repro("reduce", "--method", method, "--dim", 3, "--input", files[0], "--output", output, *given)
    assert (code, err) == (0, "")
    Y = np.load(output, allow_pickle=False)
    expected = make_reducer(method, 3, **options).fit_transform(np.load(files[0]))
    np.testing.assert_array_equal(Y, expected)
    assert Y.dtype == np.float32
    assert f"{method} of 40 rows, 12 -> 3 dims, fitted on 40 rows (the input itself) in " in out
    assert ("variance" in out) == (method in ("truncate", "pca", "svd", "kpca", "autoencoder"))
    assert not list(tmp_path.glob("**/*.partial"))


@pytest.mark.parametrize("method", REDUCERS)
def test_every_method_fitted_on_other_rows(method, repro, files, tmp_path):
    options = OPTIONS.get(method, {})
    given = [word for key, value in options.items() for word in ("--param", f"{key}={value}")]
    X, F, G = files
    call = ["reduce", "--method", method, "--dim", 3, "--input", X, "--output", tmp_path / "Y.npy", *given]
    code, out, err = repro(*call, "--fit-on", F, G, "--seed", 5)
    assert (code, err) == (0, "")
    fitted = make_reducer(method, 3, seed=5, **options).fit(np.r_[np.load(F), np.load(G)])
    np.testing.assert_array_equal(np.load(tmp_path / "Y.npy"), fitted.transform(np.load(X)))
    assert f"fitted on 50 rows ({F}, {G}) in " in out and "reduced in" in out


def test_the_variance_kept_is_pcas(repro, files, tmp_path):
    _, out, _ = repro("reduce", "--method", "pca", "--dim", 4, "--input", files[0], "--output", tmp_path / "Y.npy")
    share = make_reducer("pca", 4).fit(np.load(files[0])).explained_variance_ratio_.sum()
    assert f", {100 * share:.2f} % of their variance kept -> " in out


def test_parameters_take_the_kind_of_their_defaults():
    pairs = ["standardize=true", "center_output=False"]
    assert verbs_embeddings.parameters("pca", pairs) == {"standardize": True, "center_output": False}
    pairs = ["hidden_layers=64,32", "learning_rate=1", "activation=relu", "progress=no"]
    with pytest.raises(ValueError, match="progress is 'no': expected bool, such as False"):
        verbs_embeddings.parameters("autoencoder", pairs)
    values = verbs_embeddings.parameters("autoencoder", pairs[:3])
    assert values["hidden_layers"] == (64, 32) and values["activation"] == "relu"
    assert isinstance(values["learning_rate"], float)
    assert verbs_embeddings.parameters("autoencoder", ["hidden_layers=64"])["hidden_layers"] == (64,)
    assert verbs_embeddings.parameters("kpca", ["gamma=median"])["gamma"] == "median"
    assert verbs_embeddings.parameters("kpca", ["gamma=none"])["gamma"] is None
    assert verbs_embeddings.parameters("kpca", ["gamma=1e-2"])["gamma"] == 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "pca", "--dim", "0"], "n_components is 0: expected 1 to 12"),
        (["--method", "pca", "--dim", "13"], "n_components is 13: expected 1 to 12 (min(n - 1, D)"),
        (["--method", "sbertlp", "--dim", "3", "--fit-on", "{tmp}/G.npy"], "n_neighbors is 30: expected 1 to 19"),
        (["--method", "pca", "--dim", "3", "--param", "whiten=1"], "pca has no parameter 'whiten': it takes standard"),
        (["--method", "pca", "--dim", "3", "--param", "whiten"], "--param 'whiten': expected KEY=VALUE"),
        (["--method", "lle", "--dim", "3", "--param", "reg=abc"], "reg is 'abc': expected float, such as 0.001"),
        (["--method", "lle", "--dim", "3", "--param", "reg=1", "--param", "reg=2"], "--param reg is given twice"),
        (["--method", "grp", "--dim", "3", "--param", "seed=3"], "--param seed=3: expected the option --seed"),
        (["--method", "grp", "--dim", "3", "--param", "n_components=3"], "expected the option --dim"),
        (["--method", "grp", "--dim", "3", "--param", "name=pca"], "expected the option --method"),
        *(
            (
                ["--method", "pca", "--dim", "3", "--input", f"{{tmp}}/{kind}.npy"],
                f"{kind}.npy is not a whole .npy file",
            )
            for kind in HEADERS
        ),
        (["--method", "lle", "--dim", "3", "--param", "n_neighbors=2.5"], "n_neighbors is 2.5: expected int"),
        (["--method", "kpca", "--dim", "3", "--param", "gamma=wide"], "gamma is 'wide': expected a number above 0"),
        (["--method", "pca", "--dim", "3", "--fit-on", "{tmp}/narrow.npy"], "narrow.npy has 5 columns, "),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/none.npy"], "no file {tmp}/none.npy"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}"], "no file {tmp}"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/flat.npy"], "flat.npy has shape (5,): expected a matrix"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/empty.npy"], "empty.npy has shape (0, 5): expected at"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/nan.npy"], "nan.npy has NaN or infinite values in 1 of"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/nan.npy"], "first in row 7"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/words.npy"], "words.npy holds <U2 values"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/objects.npy"], "objects.npy holds Python objects"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/text.npy"], "text.npy is not a whole .npy file"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/short.npy"], "short.npy is not a whole .npy file"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/huge.npy"], "huge.npy is not a whole .npy file"),
        (["--method", "pca", "--dim", "3", "--input", "{tmp}/zip.npz"], "zip.npz is not a whole .npy file"),
        (["--method", "pca", "--dim", "3", "--output", "{tmp}/X.npy"], "X.npy is the input: expected another file"),
        (["--method", "pca", "--dim", "3", "--output", "{tmp}"], "{tmp}"),
    ],
    ids=lambda value: " ".join(value[3:]) if isinstance(value, list) else None,
)
def test_a_mistake_ends_with_2_and_one_line(arguments, message, repro, files, tmp_path):
    np.save(tmp_path / "narrow.npy", np.ones((9, 5)))
    np.save(tmp_path / "flat.npy", np.ones(5))
    np.save(tmp_path / "empty.npy", np.ones((0, 5)))
    broken = np.ones((9, 5))
    broken[7, 2] = np.nan
    np.save(tmp_path / "nan.npy", broken)
    np.save(tmp_path / "words.npy", np.array([["ab", "c"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    np.savez(tmp_path / "zip.npz", X=np.ones((9, 5)))
    for kind, header in HEADERS.items():
        line = header.encode() + b"\n"
        (tmp_path / f"{kind}.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + bytes(48)
        )
    claim = files[0].read_bytes().replace(b"(40, 12), }" + b" " * 12, b"(40" + b"0" * 12 + b", 12), }")
    (tmp_path / "huge.npy").write_bytes(claim)
    (tmp_path / "text.npy").write_text("1 2 3\n")
    (tmp_path / "short.npy").write_bytes(files[0].read_bytes()[:-50])
    call = [argument.format(tmp=tmp_path) for argument in arguments]
    for name, path in (("--input", files[0]), ("--output", tmp_path / "Y.npy")):
        call += [] if name in call else [name, path]
    code, out, err = repro("reduce", *call)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and message.format(tmp=tmp_path) in err
    assert not (tmp_path / "Y.npy").exists() and not list(tmp_path.glob("**/*.partial"))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_other_numbers_are_read(dtype, repro, tmp_path):
    X = (np.random.default_rng(0).standard_normal((20, 6)) * 30).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    code, _, _ = repro(
        "reduce", "--method", "pca", "--dim", 2, "--input", tmp_path / "X.npy", "--output", tmp_path / "Y.npy"
    )
    assert code == 0
    expected = make_reducer("pca", 2).fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(np.load(tmp_path / "Y.npy"), expected, rtol=1e-4, atol=1e-3)


def test_warnings_are_one_line_each(repro, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", np.r_[rng.standard_normal((20, 4)), rng.standard_normal((20, 4)) + 1000])
    code, _, err = repro(
        "reduce",
        "--method",
        "sbertlp",
        "--dim",
        2,
        "--param",
        "n_neighbors=5",
        "--input",
        tmp_path / "X.npy",
        "--output",
        tmp_path / "Y.npy",
    )
    assert code == 0
    assert err.startswith("warning: 1 eigenvalues below 1e-10") and err.count("\n") == 1


def test_a_full_disk_is_explained_and_leaves_nothing(repro, files, tmp_path, monkeypatch):
    save = np.save

    def on_a_full_disk(file, X, **options):
        with open("/dev/full", "wb", buffering=0) as device:
            save(device, X, **options)

    monkeypatch.setattr(np, "save", on_a_full_disk)
    call = ["reduce", "--method", "truncate", "--dim", 3, "--input", files[0], "--output", tmp_path / "Y.npy"]
    code, out, err = repro(*call)
    assert (code, out) == (2, "") and "is full" in err and err.count("\n") == 1
    assert not (tmp_path / "Y.npy").exists() and not list(tmp_path.glob("**/*.partial"))


def test_the_same_command_writes_the_same_bytes(repro, files, tmp_path):
    for method in ("grp", "autoencoder", "kpca", "sbertlp"):
        given = [word for key, value in OPTIONS.get(method, {}).items() for word in ("--param", f"{key}={value}")]
        written = []
        for name in ("a.npy", "b.npy"):
            repro("reduce", "--method", method, "--dim", 3, "--input", files[0], "--output", tmp_path / name, *given)
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1]
