"""Algorithm 1 against the loops one would write by hand, and what the rows of its tables say."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch.nn.utils.rnn import pad_sequence

from repro import data
from repro.data.samples import training_sentences
from repro.data.sampling import epoch_order
from repro.methods import AVERAGE, END_TO_END, STAGE_NAMES, STEP_1, STEP_2
from repro.models import SentenceEncoder
from repro.papers.wang.sweeps import dims_rows, two_step_rows
from repro.runs.lines import SEVEN_SETS, Task, sets_of
from repro.runs.scorers import spearman_of
from repro.runs.sweep import train_sweep, train_two_step
from repro.seeding import derive_seed
from repro.training.two_step import dropout_views, train_poolers
from repro.types import InputError
from shown_code import on_page

DIMS = (32, 8, 4)
OF = (
    ("gain", STEP_1),
    ("gain", STEP_2),
    ("gain_total", STEP_2),
    ("gain_steps", STEP_1),
    ("gain_alone", END_TO_END),
)
GAINS = [(f"spearman_{what}", stage) for what, stage in OF]


# The naive implementation: no cache, no stacking, no store; step 2 has its own beside
# `train_poolers`


def naive_pooled(encoder, texts, max_length=48):
    """The mean of every text's token states, by the bare network."""
    encoded = [torch.tensor(row) for row in encoder.backbone.tokenize(texts, max_length)[0]]
    ids, mask = (
        pad_sequence(rows, batch_first=True) for rows in (encoded, [row > -1 for row in encoded])
    )
    states = encoder.backbone.model(input_ids=ids, attention_mask=mask).last_hidden_state
    return (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)


@torch.no_grad()
def naive_score(encoder, pooler, pairs):
    encoder.eval()
    sides = [naive_pooled(encoder, list(texts)) for texts in (pairs.texts1, pairs.texts2)]
    z1, z2 = sides if pooler is None else (pooler(side) for side in sides)
    return spearmanr(F.cosine_similarity(z1.double(), z2.double()).numpy(), pairs.scores).statistic


def naive_end_to_end(config, dim, texts, dev):
    """Line 3: backbone and pooler together; the checkpoint that maximises dev."""
    encoder = SentenceEncoder.load(config.backbone, dim=dim, seed=config.seed, pooling="mean")
    optimiser = torch.optim.Adam(encoder.parameters(), lr=config.learning_rate, fused=True)
    steps = len(texts) // config.batch_size
    order = epoch_order(len(texts), seed=config.seed, epoch=0)
    best, best_score = None, -2.0
    for step in range(steps):
        rows = order[step * config.batch_size : (step + 1) * config.batch_size]
        torch.manual_seed(derive_seed(config.seed, "step", step, 0))
        encoder.train()
        batch = [texts[i] for i in rows]
        z1, z2 = encoder.pooler(
            naive_pooled(encoder, batch + batch, max_length=config.max_length)
        ).chunk(2)
        logits = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / 0.05
        equal = torch.tensor(
            [[a == b and i != j for j, b in enumerate(batch)] for i, a in enumerate(batch)]
        )
        optimiser.zero_grad()
        F.cross_entropy(
            logits.masked_fill(equal, float("-inf")),
            torch.arange(len(rows)),
        ).backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = config.learning_rate * (1 - step / steps)
        optimiser.step()
        if (step + 1) % config.check_every == 0 or step + 1 == steps:
            score = naive_score(encoder, encoder.pooler, dev)
            if score > best_score:
                best, best_score = copy.deepcopy(encoder), score
    return best


def test_algorithm_1_line_by_line(sweep, config, store, sets, tasks, step_two_config):
    texts = list(training_sentences(config, store))
    whole_dev = data.load("sickr", split="dev", source="microworld")
    encoders = {d: naive_end_to_end(config, d, texts, whole_dev) for d in DIMS}  # Lines 2 to 4
    for d in DIMS:
        found, expected = sweep.cells[d].encoder.state_dict(), encoders[d].state_dict()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=3e-5)
    scores = {d: naive_score(encoders[d], None, sets["dev"]) for d in DIMS}  # Line 5
    opt = max(DIMS, key=lambda d: (scores[d], d))  # Line 6
    poolers, frozen = {d: encoders[d].pooler for d in DIMS}, sweep.cells[opt].encoder
    views = dropout_views(
        frozen,
        texts,
        views=2,
        seed=step_two_config.seed,
        max_length=config.max_length,
    )
    starts = [sweep.cells[d].pooler for d in DIMS]  # Lines 7 and 8
    runs = train_poolers(
        views, texts, starts, lambda own: naive_score(frozen, own, sets["dev"]), step_two_config
    )
    new = {d: run.pooler for d, run in zip(DIMS, runs, strict=True)}
    expected = {
        (d, stage): naive_score(encoders[which], pooler, sets["test"])
        for d in DIMS
        for stage, which, pooler in (
            (END_TO_END, d, poolers[d]),
            (STEP_1, opt, poolers[d]),
            (STEP_2, opt, new[d]),
        )
    }

    trained = train_two_step(sweep, sets["dev"], step_two_config, store)
    assert trained.opt == dict.fromkeys(sorted(DIMS), opt)
    for d in DIMS:
        torch.testing.assert_close(
            trained.new_poolers[d].linear.weight,
            new[d].linear.weight,
            rtol=1e-3,
            atol=1e-5,
        )
    rows = two_step_rows(sweep, trained, tasks, experiment="e", profile="embedded")
    found = rows[(rows["metric"] == "spearman") & (rows["readout"] == "pooler")].set_index(
        ["dim", "method"]
    )["value"]
    assert found.to_dict() == pytest.approx(expected, abs=1e-6)
    assert len(set(expected.values())) > len(DIMS)  # The stages do differ


def test_step_two_leaves_the_encoders_as_they_were(sweep, store, sets, step_two_config, weights_of):
    cells = sweep.cells.items()
    before = {
        d: (weights_of(cell.folder), copy.deepcopy(cell.encoder.state_dict())) for d, cell in cells
    }
    trained = train_two_step(
        sweep,
        sets["dev"],
        replace(step_two_config, learning_rates=(0.1,)),
        store,
    )
    for d, (files, weights) in before.items():
        assert files == weights_of(sweep.cells[d].folder)
        assert all(
            torch.equal(weights[name], value)
            for name, value in sweep.cells[d].encoder.state_dict().items()
        )
    moved = [
        not torch.equal(trained.new_poolers[d].linear.weight, sweep.cells[d].pooler.linear.weight)
        for d in DIMS
    ]
    assert any(moved) and not trained.hit


@pytest.mark.parametrize("select_by", ["encoder", "pooler_max", "pair", "oracle"])
def test_opt_follows_the_rule(select_by, sweep, store, sets, step_two_config):
    dev, test = sets["dev"], sets["test"]
    # An oracle of another mind than dev: the order of its scores is turned round
    oracle = replace(test, scores=5 - test.scores) if select_by == "oracle" else None
    trained = train_two_step(sweep, dev, step_two_config, store, select_by=select_by, oracle=oracle)
    for d in DIMS:
        read = {"encoder": None, "pooler_max": max(DIMS)}.get(select_by, d)
        scores = {i: spearman_of(sweep.embeddings(i, read), oracle or dev) for i in DIMS}
        assert trained.opt[d] == max(DIMS, key=lambda i: (scores[i], i))
        # Step 2 is stopped on dev always
        before = spearman_of(sweep.embeddings(trained.opt[d], d), dev)
        assert trained.runs[d]["dev_before"] == pytest.approx(before, abs=1e-6)
    # An oracle needs them, no other rule may have them
    with pytest.raises(InputError, match="give the test pairs"):
        train_two_step(
            sweep,
            dev,
            step_two_config,
            store,
            select_by=select_by,
            oracle=None if oracle else test,
        )


def test_rows_of_table_1(sweep, trained, sets, tasks):
    with pytest.raises(InputError, match="stsb dev chose opt"):
        two_step_rows(
            sweep,
            trained,
            {"stsb": Task("stsb", {"test": sets["dev"]})},
            experiment="e",
            profile="embedded",
        )
    rows = two_step_rows(sweep, trained, tasks, experiment="e", profile="embedded")
    value = rows.set_index(["metric", "method", "readout", "dim"])["value"]
    assert value.index.is_unique
    for d in DIMS:
        end, one, two = (value["spearman", name, "pooler", d] for name in STAGE_NAMES)
        alone, gains = (
            value["spearman", END_TO_END, "encoder", d],
            [value[*gain, "pooler", d] for gain in GAINS],
        )
        assert gains == pytest.approx(
            [one - end, two - one, two - end, 2 * one - end - two, alone - end]
        )
        assert value["optimal_dim", STEP_1, "encoder", d] == trained.opt[d]
    for metric, stage in GAINS:
        assert value[f"{metric}_mean", stage].item() == pytest.approx(value[metric, stage].mean())


def test_of_seven_sets_one_and_the_average_are_kept(sweep, trained, tasks):
    turned = replace(tasks["stsb"].pairs, scores=5 - tasks["stsb"].pairs.scores)
    seven = {name: Task(name, {"test": turned}) for name in SEVEN_SETS} | tasks
    rows = two_step_rows(sweep, trained, seven, experiment="e", profile="embedded")
    value = rows[rows["metric"] == "spearman"].set_index(["dataset", "method", "readout", "dim"])[
        "value"
    ]
    assert set(rows["dataset"]) == {"stsb", AVERAGE} and set(rows["setting"]) == {
        "test, select_by=encoder"
    }
    for (method, readout, d), score in value["stsb"].items():
        assert value[AVERAGE, method, readout, d] == pytest.approx(-5 / 7 * score)


def test_rows_of_figure_2(config, store, sets):
    trec = {
        split: data.load("trec", split=split, source="microworld", limit=300)
        for split in ("train", "test")
    }
    tasks = {"stsb": Task("stsb", {"test": sets["test"]}), "trec": Task("trec", trec)}
    sweep = train_sweep(config, (8, 4), sets_of(tasks), store)
    rows = dims_rows(sweep, tasks, store, experiment="e", profile="embedded")
    value = rows.set_index(["metric", "dataset", "readout", "dim"]).sort_index()["value"]
    for d in (8, 4):
        for readout, table in (
            ("pooler", sweep.embeddings(d, d)),
            ("encoder", sweep.embeddings(d)),
        ):
            assert value["spearman", "stsb", readout, d] == spearman_of(table, sets["test"])
            assert value["accuracy", "trec", readout, d] > 0
    assert len(value["majority_floor"]) == 1
    for metric, name in (("spearman", "stsb"), ("accuracy", "trec")):
        wide, narrow = (value[metric, name, "pooler", d] for d in (8, 4))
        assert value[f"{metric}_change", name, "pooler", 4] == pytest.approx(narrow - wide)
    assert (value["train_seconds"] > 0).all()


def test_the_joint_run_moves_both_parts_of_a_copy_and_is_stored(sweep, store, trained):
    parts = [part for cell in sweep.cells.values() for part in (cell.encoder, cell.pooler)]
    before = [copy.deepcopy(part.state_dict()) for part in parts]
    opt, narrow = sweep.cells[trained.opt[4]], sweep.cells[4]
    train_along = on_page("wang_ablations", "train_along", page=SimpleNamespace(store=store))[
        "train_along"
    ]
    joint = train_along(opt, narrow)
    for part, weights in zip(parts, before, strict=True):
        assert all(torch.equal(value, weights[name]) for name, value in part.state_dict().items())
    assert not torch.equal(joint.pooler.linear.weight, narrow.pooler.linear.weight)
    assert train_along(opt, narrow).hit


def test_two_step_training_under_the_softmax_objective(sweep_config, sets, store, step_two_config):
    config = replace(sweep_config, objective="nli", corpus="nli", pooling="mean")
    sweep = train_sweep(config, [8, 4], list(sets.values()), store)
    trained = train_two_step(sweep, sets["dev"], step_two_config, store)
    for d in (8, 4):
        assert trained.runs[d]["dev_after"] >= trained.runs[d]["dev_before"]
        assert sweep.cells[d].head.weight.shape == (3, 3 * d)
    assert train_two_step(sweep, sets["dev"], step_two_config, store).hit
