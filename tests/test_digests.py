import sys
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from repro import data, digests
from repro.data import samples
from repro.digests import code_digest, digest, import_closure, module_of
from repro.models import SentenceEncoder
from repro.models.layerless import LayerlessEncoder, load_modules
from repro.paths import PACKAGE
from repro.report.page import Page
from repro.runs import encoders
from repro.runs.cell import LOSSES, cell_key, training_code
from repro.settings import AngleConfig, EspressoConfig, LoraConfig, StepTwoConfig, TrainConfig
from repro.training.mlm import PretrainConfig
from repro.types import InputError

SOURCE = PACKAGE.parent


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A made-up package in place of this one; returns a function that writes one of its modules."""

    def write(name, text):
        path = tmp_path / "src" / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for found in (digests._tree, digests.read_module, import_closure, code_digest):
            found.cache_clear()

    monkeypatch.setattr(digests, "PACKAGE", tmp_path / "src" / "repro")
    write("repro.__init__", "")
    write("repro.a", "from repro.b import f\nimport numpy\n\ndef g():\n    return f()\n")
    write("repro.b", '"""Says one."""\n\ndef f():\n    from repro import c  # late\n    return 1\n')
    write("repro.c", "from repro.pack import name\n")
    write(
        "repro.pack.__init__",
        "from repro.pack.one import name\nfrom repro.pack.two import other\n",
    )
    write("repro.pack.one", "name = 1\n")
    write("repro.pack.two", "other = 2\n")
    yield write
    for found in (digests._tree, digests.read_module, import_closure, code_digest):
        found.cache_clear()


def test_a_closure_holds_what_is_imported_and_nothing_else(project):
    assert import_closure("repro.a") == ("repro.a", "repro.b", "repro.c", "repro.pack.one")
    with pytest.raises(InputError, match=r"no module 'repro\.nowhere'"):
        import_closure("repro.nowhere")


def test_changed_code_anywhere_in_the_closure_is_another_name_and_changed_words_are_not(project):
    before = digest({"a": 1}, code=("repro.a",))
    project(
        "repro.b",
        '"""Says one, in other words."""\n\n\ndef f():\n    from repro import c\n\n    return 1\n',
    )
    assert digest({"a": 1}, code=("repro.a",)) == before
    project("repro.pack.two", "other = 3\n")
    assert digest({"a": 1}, code=("repro.a",)) == before
    project("repro.pack.one", "name = 2\n")
    assert digest({"a": 1}, code=("repro.a",)) != before


def test_code_of_every_package_that_is_installed_counts(project):
    packages = [path.parent.name for path in sorted(SOURCE.glob("*/__init__.py"))]
    assert {"dimadvise", "microworld", "repro", "rivals"} <= set(packages)
    for name in packages:
        project(f"{name}.part", "size = 1\n")
        project("repro.a", f"from {name}.part import size\n")
        assert import_closure("repro.a") == tuple(sorted(("repro.a", f"{name}.part")))
        before = digest({}, code=("repro.a",))
        project(f"{name}.part", "size = 2\n")
        assert digest({}, code=("repro.a",)) != before


def test_imports_count_wherever_they_stand_and_however_they_are_written(project):
    for number, text in enumerate(
        (
            "import repro.b",
            "import repro.b as b",
            "from repro import b",
            "from repro.b import f as g",
            "if True:\n    pass\nelse:\n    import repro.b",
            "try:\n    pass\nexcept OSError:\n    import repro.b",
            "try:\n    pass\nfinally:\n    import repro.b",
            "class A:\n    def f(self):\n        with open('x'):\n            import repro.b",
            "match 1:\n    case 1:\n        import repro.b",
        )
    ):
        project(f"repro.d{number}", f"{text}\n")
        assert "repro.b" in import_closure(f"repro.d{number}"), text


@pytest.mark.parametrize(
    "code, decides",
    [
        (encoders.CODE, LayerlessEncoder.encode),
        (encoders.CODE, SentenceEncoder.encode),
        (encoders.CODE, load_modules),
        (samples.READERS, data.own.load_file),
        (samples.READERS, data.local.load_local),
    ],
    ids=lambda given: given if isinstance(given, str) else given.__qualname__,
)
def test_what_reads_texts_or_encodes_them_is_part_of_what_is_kept_under_its_code(code, decides):
    assert module_of(decides) in import_closure(code)


def bytes_of(modules):
    """Bytes of the source files of modules."""
    return sum(len(Path(find_spec(name).origin).read_bytes()) for name in modules)


def test_what_decides_a_result_is_a_small_part_of_the_package():
    whole = sum(len(path.read_bytes()) for path in PACKAGE.parent.rglob("*.py"))
    for root in (
        *training_code(TrainConfig()),
        "repro.training.two_step",
        "repro.evaluation.classify",
    ):
        found = set(import_closure(root))
        assert bytes_of(found) <= 0.21 * whole, root
        assert not found & {
            "repro.config",
            "repro.objectives",
            "repro.rows",
            "repro.results",
            "repro.runs.cell",
        }
        others = ("repro.papers", "repro.report", "repro.book", "repro.cli")
        assert not [module for module in found if module.startswith(others)]


def test_a_loss_is_part_of_its_own_trainings_and_of_no_others_and_numbers_of_arrays_of_a_name():
    losses, steps = {"simcse": "contrastive", "nli": "nli", "ese": "espresso"}, {}
    for name in losses:
        found = {
            module
            for root in training_code(TrainConfig(objective=name))
            for module in import_closure(root)
        }
        steps[name] = {module for module in found if module.startswith("repro.losses.")}
        assert not [module for module in found if module.startswith("repro.reducers")]
    for name, loss in losses.items():
        assert {other for other, found in steps.items() if f"repro.losses.{loss}" in found} == {
            name
        }
    assert "repro.losses.angle" in steps["ese"]
    assert digest({"X": np.eye(2)}) == digest({"X": np.eye(2)})
    assert (
        len(
            {
                digest({"X": X})
                for X in (np.eye(2), np.eye(2)[::-1], np.eye(2, dtype="f4"), np.eye(3))
            }
        )
        == 4
    )


def test_of_equal_bytes_shape_and_kind_of_number_make_another_array_and_layout_does_not():
    shapes, kinds = (6, (2, 3), (3, 2), (6, 1)), ("f8", "i8", "u8")
    zeros = [np.zeros(shape, kind) for shape in shapes for kind in kinds]
    assert len({digest({"X": X}) for X in zeros}) == len(zeros)
    X = np.arange(6.0).reshape(2, 3)
    for same in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.copy()):
        assert digest({"X": same}) == digest({"X": X})


@dataclass(frozen=True)
class One:
    x: int = 1


@dataclass(frozen=True)
class Other:
    x: int = 1


def test_configurations_of_two_kinds_that_hold_the_same_have_names_of_their_own():
    assert len({digest(config) for config in (One(), Other(), {"x": 1}, One(2), [1], (1,))}) == 6
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_paths_and_tuples_are_named_by_what_they_say_and_functions_by_their_module():
    held = {"where": (Path("a/b"), np.eye(2)), "kind": One()}
    assert digest(held) == digest({"where": ["a/b", np.eye(2)], "kind": {"x": 1}})
    assert digest(held) != digest({**held, "where": (Path("a/c"), np.eye(2))})
    assert module_of(partial(partial(digest, 1))) == "repro.digests" == module_of(digest)


CONFIGS = [TrainConfig, StepTwoConfig, EspressoConfig, AngleConfig, LoraConfig, PretrainConfig]


@pytest.mark.parametrize("kind", CONFIGS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_configuration_changes_its_name(kind):
    names = {digest(kind())}
    for field in fields(kind):
        changed = copy(kind())
        object.__setattr__(changed, field.name, "something else")
        names.add(digest(changed))
    assert len(names) == 1 + len(fields(kind))


OTHERS = {
    "layers": 1,
    "dim": 7,
    "pooling": "mean",
    "activation": "identity",
    "temperature": 0.1,
    "batch_size": 8,
    "learning_rate": 1e-4,
    "warmup": 0.1,
    "max_length": 16,
    "epochs": 2.0,
    "sentences": 100,
    "check_every": 9,
    "checkpoint_by": "encoder",
    "mask_duplicates": False,
    "prefixes": (4,),
    "examples": "triples",
    "angle": AngleConfig(angle_scale=2.0),
    "espresso": EspressoConfig(alpha=2.0),
    "lora": LoraConfig(),
    "bidirectional": True,
    "final_norm": "all",
    "dropout": 0.2,
    "difference": "signed",
    "corpus": "nli",
    "validation": "sickr",
    "bf16": True,
    "threads": 2,
    "save_every": 9,
    "seed": 1,
}
"""Another value of every setting but objective, backbone and source."""
UNREAD = {"ese": {"activation", "temperature", "difference", "checkpoint_by", "prefixes"}}
UNREAD["matryoshka"] = UNREAD["ese"] - {"prefixes"} | {"dim", "espresso"}
UNREAD["angle"] = UNREAD["ese"] | UNREAD["matryoshka"]


@pytest.mark.parametrize("objective", LOSSES)
def test_every_setting_that_a_training_reads_and_no_other_is_part_of_its_key(tiny, objective):
    base = TrainConfig(objective=objective, backbone=tiny, source="microworld")
    assert {field.name for field in fields(base)} == {*OTHERS, "objective", "backbone", "source"}
    key = cell_key(base)
    unread = UNREAD.get(objective, set()) | {"save_every"}
    keys = {name: cell_key(replace(base, **{name: value})) for name, value in OTHERS.items()}
    assert {name for name, other in keys.items() if other == key} == unread
    assert len(set(keys.values())) == len(OTHERS) - len(unread) + bool(unread)


def test_code_that_is_edited_while_a_page_runs_is_named_as_it_was_imported(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "repro.b", None)
    before = digest({}, code=("repro.b",))
    project("repro.unread", "")  # Forgets what was read
    Page("toy", "toy", parameters={})
    (digests.PACKAGE / "b.py").write_text("def f():\n    return 2\n")
    assert digest({}, code=("repro.b",)) == before
