"""Two ways to a short embedding: the proposal's projection, comparisons on shared items, a choice by dev alone."""

from itertools import product

import numpy as np
import pytest
import torch

from repro import data
from repro.config import StepTwoConfig
from repro.evaluation import retrieval_scores, sts_spearman
from repro.evaluation.stats import paired_spearman_difference
from repro.methods import BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.papers.proposal import train_or_reduce
from repro.reducers import make_reducer
from repro.runs.cell import training_sentences
from repro.runs.lines import Task, by_kind, cosines_of, load_questions, score_rows, spearman_of
from repro.store import Store
from repro.types import InputError
from shown_code import on_page

FULL, DIMS = 32, [4, 8]


@pytest.fixture(scope="module")
def sets():
    stsb = data.load_splits("stsb", source="microworld")
    pairs = {split: data.take(stsb[split], 60) for split in ("dev", "test")}
    return pairs["dev"], {"stsb": pairs["test"], "hotpotqa": load_questions("microworld", questions=12, paragraphs=20)}


@pytest.fixture(scope="module")
def world(sweep_config, sets, tmp_path_factory):
    """Sweep, lines and rows of one seed, with all that they were made from."""
    store = Store(tmp_path_factory.mktemp("store"))
    torch.set_num_threads(1)
    dev, judged = sets
    sweep = train_or_reduce.train_projections(sweep_config, DIMS, dev, list(judged.values()), store)
    fit = training_sentences(sweep.config, store)
    step_two = StepTwoConfig(learning_rates=(1e-3,), batch_size=16, check_every=2)
    lines = list(train_or_reduce.lines_of(sweep, dev, fit, store, step_two=step_two))
    tasks = {name: Task(name, {"test": part}) for name, part in judged.items()}
    shown = on_page("proposal_train_or_reduce", "over_full", "trained_over")
    contrasts = (shown["over_full"], shown["trained_over"])
    rows = score_rows(lines, tasks, by_kind(store), contrasts=contrasts, progress=False, **sweep.shared())
    return store, sweep, fit, lines, rows


def at(lines, method, dim):
    (found,) = [line for line in lines if (line.method, line.dim) == (method, dim)]
    return found


def test_the_projection_is_linear_without_bias_and_of_unit_length(world, sets, sweep_config):
    store, sweep, fit, *_ = world
    again = train_or_reduce.train_projections(sweep_config, DIMS, sets[0], list(sets[1].values()), store)
    assert again.hits == 3 and sweep.hits == 0
    assert list(sweep.cells) == [FULL, 8, 4], "the full size first"
    for dim, cell in sweep.cells.items():
        encoder = cell.encoder
        assert encoder.pooling == "mean" and encoder.pooler.linear.bias is None
        h, z = (encoder.encode(fit[:5], readout=readout) for readout in ("encoder", "pooler"))
        assert z.shape == (5, dim) and np.linalg.norm(z, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
        W = encoder.pooler.linear.weight.detach().numpy()
        linear = h @ W.T
        assert z == pytest.approx(linear / np.linalg.norm(linear, axis=1, keepdims=True), abs=1e-5)


def test_reductions_are_those_of_the_encoder_at_full_size(world, sets):
    _, sweep, fit, lines, _ = world
    encoder, pairs = sweep.cells[FULL].encoder, sets[1]["stsb"]
    distinct = list(dict.fromkeys(fit))
    reducer = make_reducer("pca", 8).fit(encoder.encode(distinct, readout="pooler"))
    expected = reducer.transform(encoder.encode(pairs.texts1[:6], readout="pooler"))
    found = at(lines, "PCA", 4).table[pairs.texts1[:6]]
    assert np.abs(found) == pytest.approx(np.abs(expected[:, :4]), abs=1e-4)
    assert {line.setting for line in lines if line.method == "PCA"} == {f"fitted on {len(distinct)} sentences"}


def test_dev_alone_chooses_the_reduction(world, sets):
    _, _, _, lines, _ = world
    for dim in DIMS:
        scores = {name: spearman_of(at(lines, name, dim).table, sets[0]) for name in ("PCA", "GRP", "Truncate")}
        best = at(lines, BEST_REDUCED, dim)
        assert best.setting == f"{max(scores, key=scores.get)}, chosen on stsb dev"
        assert spearman_of(best.table, sets[0]) == max(scores.values())


def test_scores_and_leads_are_paired_on_shared_items(world, sets):
    *_, lines, rows = world
    pairs, asked = sets[1]["stsb"], sets[1]["hotpotqa"]
    by = rows.set_index(["dataset", "method", "dim", "metric"]).sort_index()
    a, b = at(lines, TRAINED_PROJECTION, 8), at(lines, BEST_REDUCED, 8)
    own = by.loc["stsb", TRAINED_PROJECTION, 8, "spearman"]["value"].item()
    assert own == pytest.approx(sts_spearman(a.table[pairs.texts1], a.table[pairs.texts2], pairs.scores))
    expected = paired_spearman_difference(
        cosines_of(a.table, pairs), cosines_of(b.table, pairs), pairs.scores, subsets=pairs.subsets, seed=0
    )
    lead = by.loc[("stsb", f"{TRAINED_PROJECTION} − {BEST_REDUCED}", 8, "spearman_lead"), :]
    assert lead["value"] == pytest.approx(expected.value)
    assert (lead["ci_low"], lead["ci_high"]) == pytest.approx((expected.low, expected.high), abs=0.05)
    ids = {"query_ids": asked.query_ids, "corpus_ids": asked.document_ids}
    scores = retrieval_scores(a.table[asked.queries], a.table[asked.documents], asked.qrels, **ids)
    assert by.loc["hotpotqa", TRAINED_PROJECTION, 8, "ndcg@10"]["value"].item() == pytest.approx(scores["ndcg@10"])


def test_every_way_has_a_line_per_dim_and_a_lead_over_full_size(world):
    *_, rows = world
    scores = rows[(rows["metric"] == "spearman") & (rows["dataset"] == "stsb")]
    per_dim = {TRAINED_PROJECTION, TWO_STEP_PROJECTION, BEST_REDUCED, "PCA", "GRP", "Truncate"}
    assert set(zip(scores["method"], scores["dim"], strict=True)) == {(FULL_SIZE, FULL), *product(per_dim, DIMS)}
    over = rows[rows["metric"] == "spearman_lead"]["method"]
    assert {f"{method} − {FULL_SIZE}" for method in per_dim} < set(over)


def test_what_cannot_be_compared_is_said(sweep_config, sets, world):
    store, sweep, fit, *_ = world
    for dims in ([], [32], [64, 128], [8, 8]):
        with pytest.raises(InputError, match="below the 32"):
            train_or_reduce.train_projections(sweep_config, dims, sets[0], [], store)
    with pytest.raises(InputError, match="methods is empty"):
        list(train_or_reduce.lines_of(sweep, sets[0], fit, store, methods=[]))
    with pytest.raises(InputError, match="method"):
        list(train_or_reduce.lines_of(sweep, sets[0], fit, store, methods=["umap"]))
