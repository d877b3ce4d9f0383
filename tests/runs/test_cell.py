import ast
import json
import shutil
from dataclasses import asdict, replace
from functools import cache
from types import SimpleNamespace

import pytest

from repro import digests
from repro.digests import code_digest
from repro.models import SentenceEncoder
from repro.objectives import OBJECTIVES
from repro.runs import cell as cell_module
from repro.runs.cell import backbone_identity, cell_key, train_all, train_cell
from repro.runs.dev import dev_scorer
from repro.settings import TrainConfig
from repro.store import Store
from repro.training import end_to_end
from repro.types import InputError


def test_a_cell_is_trained_once_and_what_it_remembers(cell_config, weights_of):
    store = Store()
    cell, second = (
        train_cell(cell_config, store, progress=False),
        train_cell(cell_config, store, progress=False),
    )
    assert (cell.hit, second.hit) == (False, True) and second.seconds == cell.seconds
    assert set(weights_of(cell.folder)) == {"model.safetensors", "pooler.safetensors"}
    assert not any(path.suffix in (".pkl", ".pt", ".bin") for path in cell.folder.iterdir())
    assert len(cell.history.losses) == 6
    assert [step for step, _ in cell.history.checks] == [2, 4, 6]
    assert cell.encoder.pooling == cell_config.pooling and cell.encoder.dim == 8
    # The checkpoint that was kept scores what the history says, by the readout that chose it
    score = dev_scorer("sickr", "microworld")
    assert score(cell.encoder, "pooler") == pytest.approx(cell.history.best_score, abs=1e-6)
    assert cell.history.best_score == max(value for _, value in cell.history.checks)
    assert cell.dev_before == score(SentenceEncoder.load(cell_config.backbone), "encoder")
    manifest = json.loads((cell.folder / "manifest.json").read_text())
    assert manifest["config"] == json.loads(json.dumps(asdict(cell_config)))


def test_two_processes_or_one_give_the_same_bytes(
    sweep_config,
    forkserver,
    tmp_path,
    weights_of,
    monkeypatch,
):
    # For new ones would import torch
    monkeypatch.setattr("multiprocessing.get_context", lambda method: forkserver)
    configs = [replace(sweep_config, dim=dim) for dim in (4, 40)]
    apart = train_all(configs, Store(tmp_path / "apart"), workers=2)
    alone = train_all(configs, Store(tmp_path / "alone"), workers=1)
    assert [cell.config.dim for cell in apart] == [4, 40] and not any(
        cell.hit for cell in (*apart, *alone)
    )
    for a, b in zip(apart, alone, strict=True):
        assert a.key == b.key and weights_of(a.folder) == weights_of(b.folder)
    assert weights_of(apart[0].folder) != weights_of(apart[1].folder)
    again = train_all([*configs, configs[0]], Store(tmp_path / "apart"))
    assert [cell.hit for cell in again] == [True] * 3


@pytest.mark.parametrize(
    "objective", [name for name, record in OBJECTIVES.items() if not record.pooler]
)
def test_cells_without_pooler(cell_config, objective):
    config = replace(cell_config, objective=objective, corpus="nli", pooling="mean")
    cell = train_cell(config, Store(), progress=False)
    assert cell.encoder.pooler is None
    score = dev_scorer("sickr", "microworld")
    assert score(cell.encoder, "encoder") == pytest.approx(cell.history.best_score, abs=1e-6)
    assert cell.dev_before == score(
        SentenceEncoder.load(config.backbone, pooling="mean"),
        "encoder",
    )
    assert cell.log_weights is None
    with pytest.raises(InputError, match=f"the {objective} objective trains no pooler"):
        _ = cell.pooler
    # What the objective does not read names no other cell: found, not trained
    other = replace(config, activation="identity", dim=config.dim if objective == "ese" else 4)
    assert train_cell(other, Store(), progress=False).hit
    with pytest.raises(InputError, match="is not a set of scored pairs"):
        dev_scorer("sst2", "microworld")
    with pytest.raises(InputError, match=f"the {objective} objective needs one, such as 'nli'"):
        train_cell(replace(config, corpus="stsb"), Store(), progress=False)


def test_the_key_names_settings_code_weights_and_data(cell_config, tmp_path, monkeypatch):
    base = cell_key(cell_config)
    assert cell_key(TrainConfig(**asdict(cell_config))) == base
    assert cell_key(replace(cell_config, seed=1)) != base
    # Of another module
    monkeypatch.setitem(cell_module.LOSSES, "simcse", dev_scorer)
    assert cell_key(cell_config) != base
    monkeypatch.undo()
    monkeypatch.setattr(cell_module, "fingerprint", lambda name, source: "other bytes")
    assert cell_key(cell_config) != base


# A text that no change has touched is parsed once for all copies
PARSED_ONCE = SimpleNamespace(
    **{**vars(ast), "parse": cache(ast.parse), "dump": cache(ast.dump)},
)


@pytest.fixture
def copied_code(tmp_path, monkeypatch):
    """The code that digests read, as a copy; a function that changes a text wherever it stands."""
    monkeypatch.setattr(digests, "ast", PARSED_ONCE)
    caches = (digests._tree, digests.read_module, digests.import_closure, digests.code_digest)
    source = digests.PACKAGE.parent
    for path in source.rglob("*.py"):
        copy = tmp_path / "src" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())

    def change(before, after):
        changed = [path for path in (tmp_path / "src").rglob("*.py") if before in path.read_text()]
        for path in changed:
            path.write_text(path.read_text().replace(before, after))
        for found in caches:
            found.cache_clear()
        return [path.relative_to(tmp_path / "src").as_posix() for path in changed]

    monkeypatch.setattr(digests, "PACKAGE", tmp_path / "src" / "repro")
    change("nowhere in the code", "")
    yield change
    for found in caches:
        found.cache_clear()


def test_data_that_change_before_they_are_read_give_no_cell_under_the_name_of_what_they_were(
    cell_config, tmp_path, monkeypatch
):
    store = Store(tmp_path / "store")
    known = {"sickr": "before"}
    monkeypatch.setattr(cell_module, "fingerprint", lambda name, _: known.get(name, name))
    whole = store.get_or_make

    def waited(*args, **how):
        if args[0] == "encoders":
            known["sickr"] = "after"
        return whole(*args, **how)

    monkeypatch.setattr(store, "get_or_make", waited)
    with pytest.raises(InputError, match="or sickr was written to while it was read: begin again"):
        train_cell(cell_config, store, progress=False)
    assert not store.folder("encoders", cell_key(cell_config)).exists()


def test_what_a_progress_bar_is_called_lies_under_no_key(cell_config, copied_code):
    def keys():
        configs = [replace(cell_config, objective=name) for name in cell_module.LOSSES]
        others = ("repro.training.two_step", "repro.training.mlm")
        return [*map(cell_key, configs), *map(code_digest, others)]

    before = keys()
    labels = [objective.label for objective in OBJECTIVES.values()]
    for label in (*labels, "step 2, dim {d}", "masked LM"):
        assert copied_code(f'"{label}"', f'"{label}, as it is called"'), f"{label} stands nowhere"
    assert copied_code("OBJECTIVES: dict", "ANOTHER = 1\nOBJECTIVES: dict"), "nor do the records"
    assert keys() == before
    assert copied_code('"cosine_weight"', '"cosine_weights"')
    assert keys() != before, "other texts are code"


@pytest.mark.parametrize(
    ("code", "other"),
    [
        ("line.strip()", "line.strip().lower()"),
        ("return float(sts_spearman(", "return -float(sts_spearman("),
        ("def training_sentences(", "def training_sentences_drawn("),
    ],
)
def test_code_that_reads_data_or_scores_checkpoints_lies_under_the_key(
    code, other, cell_config, copied_code
):
    before = cell_key(cell_config)
    assert copied_code(code, other), f"{code} stands nowhere"
    assert cell_key(cell_config) != before


def test_how_often_a_state_is_saved_lies_under_no_key(cell_config):
    assert cell_key(replace(cell_config, save_every=7)) == cell_key(cell_config)


def test_the_identity_of_a_backbone_is_its_bytes(tiny, tmp_path):
    copy = shutil.copytree(tiny, tmp_path / "copy")
    (copy / "README.md").write_text("a card")
    assert backbone_identity(str(copy)) == backbone_identity(tiny)
    tokenizer = (copy / "tokenizer.json").read_text()
    (copy / "tokenizer.json").write_text(
        tokenizer.replace('"lowercase": true', '"lowercase": false')
    )
    assert backbone_identity(str(copy)) != backbone_identity(tiny)


def test_a_network_that_changes_before_it_is_loaded_gives_no_cell_under_the_name_of_what_it_was(
    cell_config, tmp_path, monkeypatch
):
    store, known, load = Store(tmp_path / "store"), ["before"], end_to_end.fresh_encoder
    monkeypatch.setattr(cell_module, "backbone_identity", lambda _: known[-1])

    def loaded(*args, **how):
        known.append("after")
        return load(*args, **how)

    for module in (cell_module, end_to_end):
        monkeypatch.setattr(module, "fresh_encoder", loaded, raising=False)
    with pytest.raises(InputError, match="was written to while it was read: begin again"):
        train_cell(cell_config, store, progress=False)
    assert not list((tmp_path / "store" / "encoders").glob("*/manifest.json"))
