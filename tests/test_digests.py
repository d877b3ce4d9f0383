import numpy as np
import pytest

from repro import digests
from repro.digests import code_digest, digest, import_closure
from repro.runs.cell import OBJECTIVES, training_code
from repro.types import InputError


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
    write("repro.pack.__init__", "from repro.pack.one import name\nfrom repro.pack.two import other\n")
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
    project("repro.b", '"""Says one, in other words."""\n\n\ndef f():\n    from repro import c\n\n    return 1\n')
    assert digest({"a": 1}, code=("repro.a",)) == before
    project("repro.pack.two", "other = 3\n")
    assert digest({"a": 1}, code=("repro.a",)) == before
    project("repro.pack.one", "name = 2\n")
    assert digest({"a": 1}, code=("repro.a",)) != before


def test_what_decides_a_result_is_a_small_part_of_the_package():
    for root in (*training_code(OBJECTIVES["simcse"]), "repro.training.two_step", "repro.evaluation.classify"):
        found = import_closure(root)
        assert len(found) <= 38 and not {"repro.data", "repro.config", "repro.rows"} & set(found), root
        assert not [m for m in found if m.startswith(("repro.papers", "repro.report", "repro.book", "repro.runs"))]


def test_a_loss_is_part_of_its_own_trainings_and_of_no_others_and_numbers_of_arrays_of_a_name():
    losses, steps = {"simcse": "contrastive", "nli": "nli", "ese": "espresso"}, {}
    for name in losses:
        found = {module for root in training_code(OBJECTIVES[name]) for module in import_closure(root)}
        steps[name] = {module for module in found if module.startswith("repro.losses.")}
        assert not [module for module in found if module.startswith("repro.reducers")]
    for name, loss in losses.items():
        assert {other for other, found in steps.items() if f"repro.losses.{loss}" in found} == {name}
    assert "repro.losses.angle" in steps["ese"]
    assert digest({"X": np.eye(2)}) == digest({"X": np.eye(2)})
    assert len({digest({"X": X}) for X in (np.eye(2), np.eye(2)[::-1], np.eye(2, dtype="f4"), np.eye(3))}) == 4
