"""The ground floor: user errors, places, seeds, absent packages, and what `import repro` brings."""

import errno
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from dimadvise.transform import unchanged
from dimadvise.vectors import in_memory
from repro import paths, reading, writing
from repro.book import notebook
from repro.manifests import sha256
from repro.reducers import PCA
from repro.seeding import cpu_count, derive_seed, make_rng
from repro.types import (
    InputError,
    check_dim,
    check_embeddings,
    check_same_length,
    finite_vector,
    one_of,
    told_as,
    unit_rows,
)

HEAVY = {"torch", "transformers", "accelerate", "datasets"}
SLOW = {"pandas", "scipy", "sklearn", "matplotlib", "torch"}


def test_what_needs_no_network_brings_no_torch(python):
    """One process says what it has loaded after each statement."""
    absent = {
        "import repro": SLOW | {"numpy"},
        "import repro.cli": SLOW,
        "import repro.config, repro.store, repro.results": HEAVY,
        "import repro.evaluation, repro.evaluation.retention, repro.report, repro.theory, "
        "repro.reducers": HEAVY,
        "import repro.data; repro.data.load('stsb', split='dev', source='microworld')": HEAVY,
    }
    code = "\n".join(f"{statement}\nsaid.append(sorted(sys.modules))" for statement in absent)
    ran = python(f"import json, sys\nsaid = []\n{code}\nprint(json.dumps(said))")
    for (statement, unwanted), loaded in zip(
        absent.items(),
        json.loads(ran.stdout or "[]"),
        strict=True,
    ):
        assert not set(loaded) & unwanted, (statement, ran.stderr)


def test_checks():
    check_same_length(a=[1], b="x")
    with pytest.raises(InputError, match="a has 1, b has 2"):
        check_same_length(a=[1], b=[1, 2])
    assert check_dim(np.int64(3)) == 3 and isinstance(check_dim(np.int64(3)), int)
    for wrong in (0, -1, 2.0, True, "3", None):
        with pytest.raises(InputError, match="size is"):
            check_dim(wrong, what="size")
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        check_dim(9, limit=8)


def test_an_unknown_name_is_told_with_the_one_that_is_like_it():
    with pytest.raises(InputError, match=r"unknown fruit 'aple': choose one of apple, plum \(did"):
        one_of("aple", ["apple", "plum"], "fruit")
    with pytest.raises(InputError, match=r"unknown fruit 'x': choose one of apple, plum$"):
        one_of("x", ["apple", "plum"], "fruit")
    with pytest.raises(InputError, match=r"unknown fruit 'PLUM': .* \(did you mean plum\?\)"):
        one_of("PLUM", ["apple", "plum"], "fruit")
    many = [f"{number} apples" for number in range(100)]
    with pytest.raises(
        InputError, match=r"^unknown fruit '7 aples': did you mean 7 apples or .*\?$"
    ):
        one_of("7 aples", many, "fruit")


def test_embeddings():
    assert check_embeddings([[1, 2]]).dtype == np.float64
    X = np.ones((2, 3), np.float32)
    assert check_embeddings(X) is X
    with pytest.raises(
        InputError,
        match=r"Q has NaN or infinite values in 2 of 4 rows, first in row 1",
    ):
        check_embeddings([[1.0], [np.nan], [2.0], [-np.inf]], "Q")
    for shape in ((3,), (0, 2), (2, 0), (1, 2, 3)):
        with pytest.raises(InputError, match="X has shape"):
            check_embeddings(np.zeros(shape))


MASKED = np.ma.masked_greater(np.arange(8.0).reshape(4, 2), 6)
UNREAD = {
    "masked": (MASKED, "1 masked entries: drop those rows, or fill them"),
    "sparse": (csr_matrix(np.eye(3)), r"sparse matrix: expected a plain one, .*toarray\(\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "no matrix that numpy can read .* expected an array"),
}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_numpy_cannot_take_as_a_matrix_is_refused_and_no_mask_is_dropped(kind):
    given, said = UNREAD[kind]
    with pytest.raises(InputError, match=f"^X .*{said}"):
        check_embeddings(given)
    with pytest.raises(InputError, match=f"^embeddings .*{said}"):
        in_memory(given)


def test_a_mask_is_dropped_by_no_reducer_vector_or_map_and_an_empty_one_hides_nothing():
    with pytest.raises(InputError, match="1 masked entries"):
        PCA(1).fit(MASKED)
    with pytest.raises(InputError, match="scores has 1 masked"):
        finite_vector(MASKED[3], "scores")
    with pytest.raises(InputError, match="1 masked entries"):
        unchanged(2).apply(MASKED)
    whole = np.ma.masked_greater(MASKED.data, 9)
    assert np.array_equal(check_embeddings(whole), MASKED.data)


def test_a_seed_belongs_to_its_component_and_keys_on_every_machine():
    # The strings are the results: these numbers are what every recorded row stands on
    assert derive_seed(0, "pooler", 8) == 105_164_170_514_625_125
    keys = [
        (1, "pooler", 8),
        (0, "pooler", 16),
        (0, "step", 8),
        (0, "pooler"),
        (0, "pooler", 8, 0),
        (0, "pooler8"),
    ]
    assert len({derive_seed(0, "pooler", 8), *(derive_seed(*key) for key in keys)}) == 7
    assert make_rng(0, "a").random() == make_rng(0, "a").random() != make_rng(0, "b").random()


def test_a_negative_seed_serves_wherever_a_page_or_the_code_draws():
    """NumPy refuses one: what draws without `make_rng` gives it a seed that is at least zero."""
    root = paths.project_root()
    folders = {"notebooks": "*.md", "book": "*.md", "src": "*.py"}
    bare = []
    for folder, ending in folders.items():
        for path in (root / folder).rglob(ending):
            found = re.findall(r"default_rng\(\w*seed\)", path.read_text(encoding="utf-8"))
            bare += [(path.name, call) for call in found]
    assert bare == []
    draws = [np.random.default_rng(seed % 2**64).random() for seed in (-1, 0, 7)]
    assert len(set(draws)) == 3 and draws[2] == np.random.default_rng(7).random()


@pytest.mark.parametrize("seed", [2**63, 10**30, -(2**63) - 1])
def test_a_seed_that_no_row_could_hold_is_refused(seed):
    assert derive_seed(2**63 - 1, "pooler") != derive_seed(-(2**63), "pooler")
    with pytest.raises(InputError, match=f"seed is {seed}: expected a whole number below 2"):
        make_rng(seed, "pooler")


@pytest.mark.parametrize("given", ["²", "٣²", "many", "-1", "1.5", "10000", "9" * 5000, "4 cores"])
def test_threads_that_are_no_number_are_refused(given, monkeypatch):
    for number, count in (("0", 1), ("3", 3), (" 16 ", 16)):
        monkeypatch.setenv("REPRO_THREADS", number)
        assert cpu_count() == count
    monkeypatch.setenv("REPRO_THREADS", given)
    with pytest.raises(InputError, match=r"REPRO_THREADS is .*: expected a number of cores"):
        cpu_count()
    monkeypatch.setenv("REPRO_THREADS", "")
    assert cpu_count() >= 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"a": 1', "delimiter"),
        (b"\xff{}", "can't decode byte 0xff"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 300 + b"]" * 300, "nested too deeply"),  # Python reads it, but cannot walk through
        (b'{"a": ' * 120 + b"1" + b"}" * 120, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "4300 digits"),
    ],
)
def test_json_that_cannot_be_read_is_one_error_that_names_the_file(content, reason, tmp_path):
    path = tmp_path / "note.json"
    path.write_bytes(content)
    said = rf"note\.json is not valid JSON \(.*{reason}.*\): write or copy it again"
    with pytest.raises(InputError, match=said):
        reading.read_json(path)
    path.write_text('{"a": [[[1.5, null]]], "é": -Infinity}', encoding="utf-8")
    assert reading.read_json(path) == {"a": [[[1.5, None]]], "é": -np.inf}
    with pytest.raises(FileNotFoundError):
        reading.read_json(tmp_path / "none.json")


@pytest.mark.parametrize("below", ["", "/folder"])
@pytest.mark.parametrize("variable", ["REPRO_HOME", "REPRO_DATA", "REPRO_HUB"])
def test_a_place_that_is_a_link_in_a_circle_is_refused_in_a_sentence(
    variable, below, tmp_path, monkeypatch
):
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv(variable, f"{tmp_path}/loop{below}")
    places = {"REPRO_HOME": paths.home, "REPRO_DATA": paths.data_folder}
    with pytest.raises(InputError, match=f"loop{below} is a link that leads in a circle"):
        places.get(variable, paths.hub_folder)()
    with pytest.raises(InputError, match=f"loop{below} is a link that leads in a circle"):
        writing.writable_folder(tmp_path / f"loop{below}")


@pytest.mark.parametrize("read", [reading.read_json, sha256, notebook.read])
def test_a_pipe_where_a_file_is_read_is_refused_and_not_waited_for(read, pipe, tmp_path):
    with pytest.raises(InputError, match=r"note\.json .*is a pipe or a device"):
        read(pipe(tmp_path / "note.json"))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.lib.ArrowMemoryError("malloc of size 64 failed"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_memory_that_ran_out_is_known_whoever_says_so(error):
    assert reading.is_out_of_memory(error)
    said = r"memory ran out while X was read \(.+\): "
    with pytest.raises(InputError, match=said), reading.memory_explained("X"):
        raise error


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), RuntimeError("size mismatch")])
def test_another_error_is_not_taken_for_memory_that_ran_out(error):
    assert not reading.is_out_of_memory(error)
    with pytest.raises(type(error)), reading.memory_explained("X"):
        raise error


def test_inside(tmp_path):
    assert paths.inside(tmp_path, "a/b") == tmp_path / "a" / "b"
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link").symlink_to(tmp_path)
    for wrong in ("../x", "a/../../x", "/etc/passwd", "link/x"):
        with pytest.raises(InputError, match="leads outside"):
            paths.inside(tmp_path / "inner", wrong)


def test_rows_are_brought_to_length_one_however_short_they_are_and_zeros_stay():
    X = np.array([[3e-15, 4e-15], [0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]], rtol=1e-12)


def test_a_parameter_is_told_as_its_giver_calls_it_and_a_word_stays():
    for said, told in (
        (
            "size is 5: expected 1 to 3 (the size of X)",
            "--dim is 5: expected 1 to 3 (the size of X)",
        ),
        ("size are [5]: no size fits", "--dim are [5]: no size fits"),
        ("size[1] is 2", "--dim[1] is 2"),
        ("fit one with size=3, of any size", "fit one with --dim=3, of any size"),
        ("of a size above 1, resize is 3", "of a size above 1, resize is 3"),
    ):
        with pytest.raises(InputError) as refused, told_as(size="--dim"):
            raise InputError(said)
        assert str(refused.value) == told
