"""Algorithm 1 against the loops one would write by hand, and what the rows of its tables say."""

import copy
import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr

from repro import data
from repro.config import StepTwoConfig
from repro.data.batching import epoch_order
from repro.models import SentenceEncoder
from repro.papers import wang
from repro.runs.pool import train_all
from repro.runs.sweep import spearman_of
from repro.runs.texts import training_sentences
from repro.seeding import derive_seed, make_rng
from repro.store import Store
from repro.types import InputError

DIMS = (40, 8, 4)
STEP_TWO = StepTwoConfig(learning_rates=(1e-3, 3e-2), batch_size=16, check_every=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("wang"))


@pytest.fixture(scope="module")
def sets():
    return {split: data.load("stsb", split=split, source="microworld", limit=60) for split in ("dev", "test")}


@pytest.fixture(scope="module")
def config(sweep_config):
    """Mean pooling: a random network's first token says the same of every text, and ranks would hang on rounding."""
    return replace(sweep_config, pooling="mean")


@pytest.fixture(scope="module")
def sweep(config, store, sets):
    torch.set_num_threads(1)
    cells = train_all([replace(config, dim=dim) for dim in DIMS], store, workers=1, progress=False)
    assert not any(cell.hit for cell in cells)
    whole = data.load("stsb", split="dev", source="microworld")
    return wang.train_sweep(config, DIMS, [*sets.values(), whole], store, progress=False)


def bytes_on_disk(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


# the naive implementation: no cache, no stacking, no store


def naive_pooled(encoder, texts, *, max_length=48):
    """The mean of every text's token states, by the bare network."""
    encoded = encoder.backbone.tokenize(texts, max_length)[0]
    width = max(map(len, encoded))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in encoded])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in encoded])
    states = encoder.backbone.model(input_ids=ids, attention_mask=mask).last_hidden_state
    return (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)


@torch.no_grad()
def naive_score(encoder, pooler, pairs):
    encoder.eval()
    sides = [naive_pooled(encoder, list(texts)) for texts in (pairs.texts1, pairs.texts2)]
    z1, z2 = sides if pooler is None else (pooler(side) for side in sides)
    return spearmanr(F.cosine_similarity(z1.double(), z2.double()).numpy(), pairs.scores).statistic


def naive_loss(z1, z2, rows, texts):
    logits = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / 0.05
    equal = torch.tensor([[texts[i] == texts[j] and i != j for j in rows] for i in rows])
    return F.cross_entropy(logits.masked_fill(equal, float("-inf")), torch.arange(len(rows)))


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
        z = encoder.pooler(naive_pooled(encoder, batch + batch, max_length=config.max_length))
        optimiser.zero_grad()
        naive_loss(z[: len(rows)], z[len(rows) :], rows, texts).backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = config.learning_rate * (1 - step / steps)
        optimiser.step()
        if (step + 1) % config.check_every == 0 or step + 1 == steps:
            score = naive_score(encoder, encoder.pooler, dev)
            if score > best_score:
                best, best_score = copy.deepcopy(encoder), score
    return best


def naive_step_two(encoder, pooler, texts, dev, config):
    """Line 8: the pooler alone, on dropout views of the frozen encoder; the rate that maximises dev."""
    encoder.train()
    views = []
    lengths = [len(row) for row in encoder.backbone.tokenize(texts, 32)[0]]
    order = np.argsort(lengths, kind="stable")
    for view in range(2):
        torch.manual_seed(derive_seed(config.seed, "dropout view", view, 0))
        with torch.no_grad():
            h = naive_pooled(encoder, [texts[i] for i in order], max_length=32)
        views.append(h[np.argsort(order)])
    best, best_score = copy.deepcopy(pooler), naive_score(encoder, pooler, dev)
    steps = len(texts) // config.batch_size
    rows_of = epoch_order(len(texts), seed=config.seed, epoch=0)
    for rate in config.learning_rates:
        mine = copy.deepcopy(pooler)
        optimiser = torch.optim.Adam(mine.parameters(), lr=rate)
        for step in range(steps):
            rows = rows_of[step * config.batch_size : (step + 1) * config.batch_size]
            first, second = make_rng(config.seed, "views", step).choice(2, 2, replace=False)
            optimiser.zero_grad()
            naive_loss(mine(views[first][rows]), mine(views[second][rows]), rows, texts).backward()
            torch.nn.utils.clip_grad_norm_(mine.parameters(), 1.0)
            optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
            optimiser.step()
            if (step + 1) % config.check_every == 0 or step + 1 == steps:
                score = naive_score(encoder, mine, dev)
                if score > best_score:
                    best, best_score = copy.deepcopy(mine), score
    return best


def test_algorithm_1_line_by_line(sweep, config, store, sets):
    texts = list(training_sentences(config, store))
    whole_dev = data.load("stsb", split="dev", source="microworld")
    encoders = {d: naive_end_to_end(config, d, texts, whole_dev) for d in DIMS}  # lines 2 to 4
    for d in DIMS:
        found, expected = sweep.cells[d].encoder.state_dict(), encoders[d].state_dict()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)
    scores = {d: naive_score(encoders[d], None, sets["dev"]) for d in DIMS}  # line 5
    opt = max(DIMS, key=lambda d: (scores[d], d))  # line 6
    poolers = {d: copy.deepcopy(encoders[d].pooler) for d in DIMS}
    new = {d: naive_step_two(encoders[opt], poolers[d], texts, sets["dev"], STEP_TWO) for d in DIMS}  # lines 7, 8
    expected = {
        (d, stage): naive_score(encoders[which], pooler, sets["test"])
        for d in DIMS
        for stage, which, pooler in (
            (wang.END_TO_END, d, poolers[d]),
            (wang.STEP_1, opt, poolers[d]),
            (wang.STEP_2, opt, new[d]),
        )
    }

    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    assert trained.opt == dict.fromkeys(sorted(DIMS), opt)
    for d in DIMS:
        torch.testing.assert_close(trained.new_poolers[d].linear.weight, new[d].linear.weight, rtol=1e-3, atol=1e-5)
    rows = wang.two_step_rows(sweep, trained, sets["test"], experiment="e", paper_table="t", profile="embedded")
    found = rows[(rows["metric"] == "spearman") & (rows["readout"] == "pooler")].set_index(["dim", "method"])["value"]
    assert found.to_dict() == pytest.approx(expected, abs=1e-6)
    assert len(set(expected.values())) > len(DIMS)  # the stages do differ


def test_step_two_leaves_the_encoders_as_they_were(sweep, store, sets):
    files = {d: bytes_on_disk(cell.folder) for d, cell in sweep.cells.items()}
    weights = {d: copy.deepcopy(cell.encoder.state_dict()) for d, cell in sweep.cells.items()}
    trained = wang.train_two_step(sweep, sets["dev"], replace(STEP_TWO, learning_rates=(0.1,)), store)
    assert {d: bytes_on_disk(cell.folder) for d, cell in sweep.cells.items()} == files
    for d, cell in sweep.cells.items():
        assert all(torch.equal(cell.encoder.state_dict()[name], value) for name, value in weights[d].items())
    moved = [not torch.equal(trained.new_poolers[d].linear.weight, sweep.cells[d].pooler.linear.weight) for d in DIMS]
    assert any(moved) and not trained.hit


def test_dev_never_falls_and_the_second_call_finds_the_poolers(sweep, store, sets):
    first = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    again = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    assert again.hit and again.opt == first.opt
    for d in DIMS:
        run = first.runs[d]
        assert run["dev_after"] >= run["dev_before"]
        assert torch.equal(again.new_poolers[d].linear.weight, first.new_poolers[d].linear.weight)
        table = sweep.states[first.opt[d]].map(first.new_poolers[d].project)
        assert spearman_of(table, sets["dev"]) == pytest.approx(run["dev_after"], abs=1e-9)


def test_poolers_chosen_on_other_pairs_are_other_poolers(sweep, store, sets):
    first = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    other = wang.train_two_step(sweep, data.load("stsb", split="dev", source="microworld"), STEP_TWO, store)
    assert any(first.runs[d]["dev_before"] != other.runs[d]["dev_before"] for d in DIMS)


@pytest.mark.parametrize("select_by", ["encoder", "pooler_max", "pair", "oracle"])
def test_opt_follows_the_rule(select_by, sweep, store, sets):
    dev, test = sets["dev"], sets["test"]
    # an oracle of another mind than dev: the order of its scores is turned round
    oracle = replace(test, scores=5 - test.scores) if select_by == "oracle" else None
    trained = wang.train_two_step(sweep, dev, STEP_TWO, store, select_by=select_by, oracle=oracle)
    for d in DIMS:
        read = {"encoder": None, "pooler_max": max(DIMS)}.get(select_by, d)
        scores = {i: spearman_of(sweep.embeddings(i, read), oracle or dev) for i in DIMS}
        assert trained.opt[d] == max(DIMS, key=lambda i: (scores[i], i))
        before = spearman_of(sweep.embeddings(trained.opt[d], d), dev)  # step 2 is stopped on dev always
        assert trained.runs[d]["dev_before"] == pytest.approx(before, abs=1e-6)


def test_the_diagonal_of_the_grid_is_end_to_end(sweep, sets):
    texts = list(sets["test"].texts1)
    for d, cell in sweep.cells.items():
        np.testing.assert_allclose(sweep.embeddings(d, d)[texts], cell.encoder.encode(texts), atol=1e-5)
        np.testing.assert_allclose(sweep.embeddings(d)[texts], cell.encoder.encode(texts, readout="encoder"), atol=1e-5)
        score = naive_score(cell.encoder, cell.encoder.pooler, sets["test"])
        assert spearman_of(sweep.embeddings(d, d), sets["test"]) == pytest.approx(score, abs=1e-6)


def test_n_encoders_times_m_poolers_are_n_encodes(config, sets, tmp_path, store, monkeypatch):
    counted = []
    encode_layers = SentenceEncoder.encode_layers

    def counting(self, texts, *args, **kwargs):
        counted.append(len(texts))
        return encode_layers(self, texts, *args, **kwargs)

    monkeypatch.setattr(SentenceEncoder, "encode_layers", counting)
    other = data.load("stsb", split="test", source="microworld", limit=70, seed=3)
    fresh = wang.train_sweep(config, DIMS, [sets["test"], other], store, progress=False)
    assert fresh.hits == len(DIMS)
    grid = [spearman_of(fresh.embeddings(i, j), part) for part in (sets["test"], other) for i in DIMS for j in DIMS]
    assert len(grid) == 18
    assert len(counted) == len(DIMS)
    wang.train_sweep(config, DIMS, [sets["test"], other], store, progress=False)
    assert len(counted) == len(DIMS)  # the second time from the store


def test_rows_of_table_1(sweep, store, sets):
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    rows = wang.two_step_rows(sweep, trained, sets["test"], experiment="e", paper_table="t", profile="embedded")
    assert not rows.duplicated(["method", "readout", "dim", "metric"]).any()
    value = rows.set_index(["metric", "method", "readout", "dim"])["value"]
    for d in DIMS:
        stage = {name: value["spearman", name, "pooler", d] for name in wang.STAGES}
        gains = [value["spearman_gain", name, "pooler", d] for name in (wang.STEP_1, wang.STEP_2)]
        assert gains[0] == pytest.approx(stage[wang.STEP_1] - stage[wang.END_TO_END])
        assert gains[1] == pytest.approx(stage[wang.STEP_2] - stage[wang.STEP_1])
        assert value["spearman_gain_total", wang.STEP_2, "pooler", d] == pytest.approx(sum(gains))
        assert value["optimal_dim", wang.STEP_1, "encoder", d] == trained.opt[d]
    scored = rows[rows["metric"] == "spearman"]
    assert ((scored["ci_low"] <= scored["value"]) & (scored["value"] <= scored["ci_high"])).all()
    assert set(rows["data_source"]) == {"microworld"} and set(rows["n_train"]) == {64}


def test_rows_of_figure_2(config, store):
    tasks = {
        "stsb": {s: data.load("stsb", split=s, source="microworld", limit=60) for s in ("dev", "test")},
        "trec": {s: data.load("trec", split=s, source="microworld", limit=300) for s in ("train", "test")},
    }
    sweep = wang.train_sweep(config, (8, 4), wang.sets_of(tasks), store, progress=False)
    rows = wang.dims_rows(sweep, tasks, store, experiment="e", profile="embedded")
    scores = rows[rows["metric"].isin(["spearman", "accuracy"])]
    assert set(zip(scores["dim"], scores["readout"], scores["dataset"], strict=True)) == {
        (d, r, t) for d in (8, 4) for r in ("pooler", "encoder") for t in tasks
    }
    floors = rows[rows["metric"] == "majority_floor"]
    assert set(floors["dataset"]) == {"trec"} and floors["value"].between(0, 1).all()
    assert (rows[rows["metric"] == "train_seconds"]["value"] > 0).all()


def test_before_and_after(sweep, config):
    dev = data.load("stsb", split="dev", source="microworld")
    rows = wang.before_after_rows(sweep, dev, experiment="e", paper_table="t", profile="embedded")
    before = rows[rows["method"] == wang.UNTRAINED]["value"].item()
    assert before == sweep.cells[4].dev_before
    assert set(rows[rows["method"] == wang.END_TO_END]["dim"]) == set(DIMS)


def test_tasks_bring_the_splits_they_need():
    tasks = wang.load_tasks(("stsb", "cr", "mrpc"), "microworld")
    assert {name: set(splits) for name, splits in tasks.items()} == {
        "stsb": {"dev", "test"},
        "cr": {"all"},
        "mrpc": {"train", "test"},
    }
    assert len(wang.sets_of(tasks)) == 5


def test_what_a_sweep_refuses(config, store):
    for dims in ((), (8, 8)):
        with pytest.raises(InputError, match="expected one or more different sizes"):
            wang.train_sweep(config, dims, [], store)


def test_what_was_chosen_on_may_not_be_reported(sweep, store, sets):
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    with pytest.raises(InputError, match="stsb dev chose opt"):
        wang.two_step_rows(sweep, trained, sets["dev"], experiment="e", paper_table="t", profile="embedded")


def test_an_oracle_needs_the_test_pairs_and_step_two_still_uses_dev(sweep, store, sets):
    with pytest.raises(InputError, match="give the test pairs"):
        wang.train_two_step(sweep, sets["dev"], STEP_TWO, store, select_by="oracle")
    with pytest.raises(InputError, match="give the test pairs"):
        wang.train_two_step(sweep, sets["dev"], STEP_TWO, store, oracle=sets["test"])
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store, select_by="oracle", oracle=sets["test"])
    assert trained.chosen_on == ("stsb", "dev")
    assert all(run["dev_after"] >= run["dev_before"] for run in trained.runs.values())
