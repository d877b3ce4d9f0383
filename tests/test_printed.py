"""The profile `paper` on the pages of the five documents: parameters, networks, what it takes."""

import sys

import papermill
import pytest

from repro.book import execution, notebook
from repro.book.parameters import parameters_of, validate
from repro.data import DATASETS
from repro.models import sources
from repro.papers.proposal.augmentation import choose_lexicon
from repro.paths import project_root
from repro.printed import (
    NETWORKS,
    OF_SYSTEMS,
    PROFILE,
    completed,
    cost_of,
    cost_table,
    gated,
    memory_of,
    printed_run,
    printed_runs,
    seconds_of,
    small_run,
    told_before,
)
from repro.report.page import Page
from repro.results import recorded_rows
from repro.settings import ANGLE_PRESETS, LoraConfig
from repro.types import InputError
from rivals import SYSTEMS, SystemConfig

DOCUMENTS = ("wang", "zhang", "sbertlp", "ese", "proposal")
PAGES = sorted(
    page
    for page in (project_root() / "notebooks").glob("*.md")
    if page.stem.startswith(tuple(f"{name}_" for name in DOCUMENTS))
)
SWEPT = {"profile": "paper"}


@pytest.fixture
def online(monkeypatch):
    """The hub has every network's notes, and SentEval's text."""
    monkeypatch.setattr("repro.data.senteval.keep", lambda: [])
    monkeypatch.setattr(sources, "notes_of", lambda name: None)
    monkeypatch.setattr("repro.models.published.notes_of", _absent)


def _absent(name):
    raise InputError(f"{name} is not in the hub's cache on this machine")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_of_a_document_has_a_printed_configuration_that_it_can_take(page):
    runs = [run for run in printed_runs() if run.page == page.stem]
    declared = parameters_of(page)
    assert runs, "what the page runs under the profile paper is not said"
    for run in runs:
        values = validate(declared, run.parameters)
        assert {*values.get("datasets", []), *run.reads} <= set(DATASETS)
        assert set(run.lacks) <= set(declared)
        fetched = {*run.networks, *run.behind}
        assert fetched <= set(sources.COMMITS), "a network that is not pinned"
        assert cost_of(run).disk > 0
        assert run.over in ("", *NETWORKS)


def test_what_the_reader_gives_wins_and_other_profiles_keep_their_own():
    page = "wang_table2_two_step_sbert"
    assert completed(page, {"seed": 1}) == {"seed": 1}
    assert completed(page, {"profile": "gpu", "seed": 1}) == {"profile": "gpu", "seed": 1}
    assert completed("playground", SWEPT) == SWEPT
    printed = completed(page, SWEPT)
    assert (printed["backbone"], printed["batch_size"], printed["max_length"]) == (
        "roberta-base",
        64,
        128,
    )
    assert completed(page, SWEPT | {"batch_size": 8}) == printed | {"batch_size": 8}


def test_a_page_with_several_printed_networks_takes_what_is_printed_for_the_one_given():
    page = "ese_figure3_depth_by_dim"
    usual = completed(page, SWEPT)
    other = completed(page, SWEPT | {"backbone": "meta-llama/Llama-2-7b-hf"})
    assert (usual["backbone"], usual["batch_size"]) == ("BAAI/bge-base-en-v1.5", 128)
    assert (other["batch_size"], other["size"], usual["size"]) == (32, 128, 128)


def test_a_run_and_plain_papermill_hand_over_the_printed_values(tmp_path, monkeypatch, online):
    page = project_root() / "notebooks" / "wang_table4_classification.md"
    handed = {}
    monkeypatch.setattr(
        papermill, "execute_notebook", lambda *_, parameters, **__: handed.update(parameters)
    )
    execution.run(page, tmp_path / "out.ipynb", SWEPT | {"dims": [16]})
    assert (handed["protocol"], handed["fit_sentences"], handed["dims"]) == (
        "senteval",
        [2000],
        [16],
    )
    checked = notebook.read(notebook.to_ipynb(page, tmp_path)).cells
    (line,) = [cell.source for cell in checked if "check_parameters(" in cell.source]
    main = type("Main", (), {"__annotations__": {}})()
    cell = next(cell.source for cell in checked if "parameters" in cell.metadata.get("tags", []))
    exec(cell, vars(main))
    main.profile, main.dims = "paper", [16]
    main.In = [cell, '# Parameters\nprofile = "paper"\ndims = [16]']
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(line, {})
    assert (main.protocol, main.fit_sentences, main.dims) == ("senteval", [2000], [16])


def test_what_cannot_be_had_is_said_before_anything_is_trained(monkeypatch, online, capsys):
    printed = completed("ese_table3_rag", SWEPT)
    assert list(told_before("ese_table3_rag", printed | {"reference": None})) == []
    changed = told_before("ese_table3_rag", printed | {"reference": None, "questions": 20})
    assert "other values were given: questions" in next(changed)
    words = completed("sbertlp_table2_knn", SWEPT) | {"fasttext": "a.vec", "vectors": None}
    (said,) = told_before("sbertlp_table2_knn", words)
    assert "no hub that is read has it; left out without `-p vectors" in said
    monkeypatch.setattr(sources, "notes_of", _absent)
    with pytest.raises(InputError) as error:
        Page("ese_table3_rag", "ese_table3", profile="paper", parameters=printed)
    for part in (
        "nothing was trained",
        "bge-base-en-v1.5 is not",
        "accept a licence",
        "-p generator",
    ):
        assert part in str(error.value)
    given = {**printed, "backbone": "/a/folder", "generator": None}
    Page("ese_table3_rag", "ese_table3", profile="paper", parameters=given)
    assert "not as printed (ESE, Table 3)" in capsys.readouterr().err


def systems_of(run):
    names = []
    for parameter in OF_SYSTEMS:
        given = run.values.get(parameter, [])
        names += [given] if isinstance(given, str) else given
    return names


def test_what_no_hub_has_of_a_printed_run_is_told_before_it_begins(online):
    lexicon, _ = choose_lexicon("hub")
    assert lexicon is None
    for run in printed_runs():
        waits = set()
        if {"glove", "infersent"} & set(systems_of(run)):
            waits.add("vectors")
        if "fasttext" in systems_of(run):
            waits.add("fasttext")
        if "synonym" in run.values.get("augmentations", []):
            waits |= {"lexicon", "translators"}
        assert set(run.lacks) == waits, run.prints
    page = "proposal_baselines"
    told = [*told_before(page, completed(page, SWEPT | {"source": "local"}))]
    assert [line.partition(":")[0] for line in told] == ["fastText"]


def test_published_networks_that_systems_stand_on_are_asked_for_before_anything_is_trained(
    monkeypatch,
):
    for run in printed_runs():
        known = [SYSTEMS[name] for name in systems_of(run) if name in SYSTEMS]
        assert set(run.behind) == {system.hub for system in known if system.hub}, run.prints
    large = "sentence-transformers/bert-large-nli-mean-tokens"
    monkeypatch.setattr(sources, "notes_of", lambda name: name == large and _absent(name))
    page = "sbertlp_table2_knn"
    printed = completed(page, SWEPT)
    with pytest.raises(InputError, match=f"nothing was trained.*{large}.*-p weights"):
        list(told_before(page, printed))
    list(told_before(page, printed | {"weights": "a folder"}))
    list(told_before(page, printed | {"mapped": ["sbert_base"]}))


def test_trainings_of_the_papers_are_set_as_printed(online):
    def trained(page, network, **changes):
        parameters = completed(page, SWEPT | {"backbone": network})
        changes |= {"sentences": parameters.get("sentences")}
        asked = Page(page, "x", "paper", "hub", parameters=parameters)
        return asked.settings(backbone=network, **changes)

    simcse = {"bert-base-uncased": (64, 3e-5), "bert-large-uncased": (64, 1e-5)}
    simcse |= {"roberta-base": (512, 1e-5), "roberta-large": (512, 3e-5)}
    for network, settings in simcse.items():
        chosen = trained("wang_figure3_loss_decomposition", network)
        train = chosen.train
        assert (train.batch_size, train.learning_rate) == settings, network
        assert (train.pooling, train.temperature, train.max_length, train.epochs) == (
            "cls",
            0.05,
            32,
            1,
        )
        assert (train.sentences, train.mask_duplicates) == (1_000_000, False)
        assert chosen.step_two.batch_size == train.batch_size
    nli = trained("wang_table2_two_step_sbert", "roberta-base", objective="nli")
    assert (nli.train.batch_size, nli.step_two.batch_size, nli.train.learning_rate) == (
        64,
        64,
        2e-5,
    )
    assert (nli.train.warmup, nli.train.max_length, nli.train.pooling) == (0.1, 128, "cls")
    for network in printed_run("ese_table1_sts").networks:
        ese = trained("ese_table1_sts", network, objective="ese").train
        decoder = "Qwen" in network
        assert (ese.learning_rate, ese.max_length) == (2e-4 if decoder else 5e-5, 75)
        assert (ese.examples, ese.angle) == ("triples", ANGLE_PRESETS["ese_readme"])
        assert (ese.pooling, ese.bidirectional) == ("mean" if decoder else "cls", decoder)
        assert ese.lora == (LoraConfig(32, 32, 0.1) if decoder else None)
        assert (ese.espresso.alpha, ese.espresso.beta) == (1, 1)


def test_the_proposals_encoders_have_its_layer_a_linear_map_of_the_mean_state(online):
    page = "proposal_alignment_uniformity"
    parameters = completed(page, SWEPT)
    readout = {name: parameters[name] for name in ("backbone", "pooling", "activation")}
    asked = Page(page, "x", "paper", parameters=parameters)
    train = asked.settings(**readout).train
    assert (train.backbone, train.pooling, train.activation) == (
        "bert-base-uncased",
        "mean",
        "identity",
    )


def test_the_map_of_ese_shows_the_whole_test_set_as_its_caption_says():
    values = printed_run("ese_figure7_compression").values
    assert values["sentences"] == DATASETS["stsb"].sizes["test"]


def test_the_table_of_what_the_papers_take_is_the_books():
    assert cost_table() in (project_root() / "book" / "reproduce.md").read_text(encoding="utf-8")


def test_a_page_that_prints_what_needs_a_gpu_says_beside_it_what_two_cores_do():
    command = f"--profile {PROFILE}"
    told = []
    for page in sorted((project_root() / "notebooks").glob("*.md")):
        lines = page.read_text(encoding="utf-8").splitlines()
        for line in filter(lambda line: command in line, lines):
            assert line.endswith(small_run(page.stem)), page.stem
            told.append(small_run(page.stem))
    assert len(told) == 7
    # What the page on reproducing says of them: a minute, the longest two
    *others, longest = sorted(int(small.split()[-5]) for small in told)
    assert others[-1] <= 60 < longest <= 120
    elsewhere = [*(project_root() / "book").rglob("*.md"), project_root() / "README.md"]
    printing = [page.name for page in elsewhere if command in page.read_text(encoding="utf-8")]
    assert printing == ["reproduce.md"]
    assert small_run("PAGE") in (project_root() / "book" / "reproduce.md").read_text("utf-8")


def test_hours_memory_and_disk_follow_from_shapes_and_one_timed_run():
    rows = recorded_rows("raw_network").query("metric == 'tokens_seen'")
    whole = rows["value"].max()
    assert seconds_of("roberta-base", whole, 3) == pytest.approx(240 * 12 * 768**2 / (6 * 384**2))
    base, large = (
        memory_of(name, 64, 32, trained=True) for name in ("roberta-base", "roberta-large")
    )
    assert 16 * 0.125 < base < large < 16
    assert memory_of("meta-llama/Llama-2-7b-hf", 1, 1, trained=True) == pytest.approx(27, abs=0.1)
    figure, table = (
        printed_run(f"wang_{name}") for name in ("figure2_dimensions", "table1_two_step_simcse")
    )
    assert cost_of(figure).gpu_hours / cost_of(table).gpu_hours == pytest.approx(11 / 8, rel=0.01)
    # The ablations train the narrowest width twice more, Table 2 the other difference once
    ablations = printed_run("wang_ablations")
    ratio = cost_of(ablations).gpu_hours / cost_of(table).gpu_hours
    assert ratio == pytest.approx(10 / 8, rel=0.01)
    softmax = printed_run("wang_table2_two_step_sbert")
    assert softmax.trainings == len(softmax.values["dims"]) + len(softmax.values["switch_dims"])


def test_memory_and_disk_are_of_the_largest_batch_all_paragraphs_and_the_language_model():
    networks = cost_of(printed_run("wang_figure3_loss_decomposition"))
    largest = memory_of("roberta-large", 2 * 512, 32, trained=True)
    assert networks.memory == pytest.approx(largest)
    answers = printed_run("ese_table3_rag")
    weights = 4 * 6.738
    assert cost_of(answers).memory > weights
    paragraphs = 10 * DATASETS["hotpotqa"].sizes["test"]
    layers, hidden = 13, 768
    states = 4 * paragraphs * layers * hidden * 3 * answers.trainings / 1e9
    assert cost_of(answers).disk > states


def test_every_line_of_the_table_has_its_command_and_names_weights_that_are_gated():
    lines = cost_table().splitlines()[2:]
    for line, run in zip(lines, printed_runs(), strict=True):
        told_gated = line.replace(" \\| ", "").split(" | ")[6]
        needed = {*run.networks, run.values.get("generator")} & set(gated())
        assert (run.command in line, told_gated) == (True, ", ".join(needed) or "–")


def test_systems_of_the_papers_learn_from_all_there_is():
    assert SystemConfig("hub", profile="paper").size > DATASETS["nli"].sizes["train"]
    assert SystemConfig("local").size == 4_800
    assert SystemConfig("hub", profile="paper", sentences=7).size == 7
