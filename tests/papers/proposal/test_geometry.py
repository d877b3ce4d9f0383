"""Free points, simulated losses, measured geometry and random projection against closed forms and
direct loops.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from repro import data, theory
from repro.losses import alignment, info_nce, uniformity
from repro.objectives import columns_of
from repro.papers.proposal import geometry
from repro.reducers import make_reducer
from repro.runs.sweep import train_sweep
from repro.store import Store
from repro.types import InputError, unit_rows
from shown_code import on_page

PAGE = on_page(
    "proposal_alignment_uniformity",
    "aligned_info_nce",
    "free_points",
    "sampled_info_nce",
)


def sphere(n, dim, seed=0):
    return unit_rows(np.random.default_rng(seed).normal(size=(n, dim)))


def test_aligned_loss_is_info_nce_of_equal_views():
    z = torch.from_numpy(sphere(9, 5))
    for temperature in (0.05, 0.5):
        expected = info_nce(z, z, temperature=temperature)
        assert float(PAGE["aligned_info_nce"](z, temperature)) == pytest.approx(
            float(expected),
            rel=1e-9,
        )


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_free_points_reach_the_simplex_exactly_where_it_fits(temperature):
    bound = theory.simplex_bound(temperature, 6)
    points, loss = PAGE["free_points"](6, 5, temperature)
    assert loss == pytest.approx(bound, rel=1e-6)
    assert points @ points.T == pytest.approx(np.eye(6) * 1.2 - 0.2, abs=1e-3)
    _, cramped = PAGE["free_points"](6, 3, temperature)
    assert bound * 1.01 < cramped < theory.expected_info_nce(3, temperature, 6)


@pytest.mark.parametrize(
    ("dim", "temperature", "batch"),
    [(2, 0.5, 8), (3, 0.1, 16), (64, 0.05, 32)],
)
def test_simulated_loss_encloses_the_quadrature(dim, temperature, batch):
    found = PAGE["sampled_info_nce"](dim, temperature, batch, 1)
    assert found.low < theory.expected_info_nce(dim, temperature, batch) < found.high


@pytest.mark.parametrize("dim", [2, 17])
def test_uniformity_dim_inverts_the_limit(dim):
    assert geometry.uniformity_dim(theory.uniformity_limit(dim)) == dim
    assert geometry.uniformity_dim(theory.uniformity_limit(dim) + 1e-6) == dim
    assert geometry.uniformity_dim(-4.0) is None, "no sphere is as uniform as that"
    assert geometry.uniformity_dim(0.0) == 1, "collapsed"


def test_uniformity_and_the_losses_of_one_full_batch_are_the_losses_of_the_same_name():
    Z1, Z2 = sphere(10, 4, seed=1), sphere(10, 4, seed=2)
    losses = geometry.batch_losses(Z1, Z2, temperature=0.2, batch=10, seed=0)
    expected = info_nce(torch.from_numpy(Z1), torch.from_numpy(Z2), temperature=0.2)
    assert losses.mean() == pytest.approx(float(expected))
    assert geometry.uniformity_of(Z1) == pytest.approx(float(uniformity(torch.from_numpy(Z1))))


def test_positives_use_every_sentence_once():
    texts1, texts2 = ("a", "a", "c", "e", "g", "i"), ("b", "d", "b", "e", "h", "j")
    scores, subsets = np.array([5.0, 5, 5, 5, 4, 3.9]), np.array(["x"] * 6, object)
    pairs = data.ScoredPairs("x", "local", "test", texts1, texts2, scores, subsets)
    assert geometry.positives_of(pairs) == (("a", "g"), ("b", "h"))
    with pytest.raises(InputError, match=r"0 pairs .* of 4"):
        geometry.positives_of(replace(pairs, scores=np.full(6, 3.0)))


def test_geometry_of_trained_encoders(sweep_config, capsys):
    store, pairs = Store(), data.load("stsb", split="test", source="microworld")
    sweep = train_sweep(replace(sweep_config, seed=3), [4, 16], [pairs], store)
    tables, sides = {d: sweep.embeddings(d, d) for d in sweep.cells}, geometry.positives_of(pairs)
    rows = geometry.geometry_rows(
        tables, pairs, temperature=0.05, batch=8, **columns_of(sweep.config)
    )
    few = geometry.geometry_rows(tables, pairs, temperature=0.05, batch=len(sides[0]) + 1, seed=0)
    assert (
        set(few["setting"]) == {f"τ = 0.05, B = {len(sides[0])}"}
        and "one batch of all" in capsys.readouterr().err
    )
    at = rows.set_index(["dim", "metric"])["value"]
    Z1, Z2 = (torch.from_numpy(sweep.embeddings(16, 16)[side]) for side in sides)
    assert at[16, "alignment"] == pytest.approx(float(alignment(Z1, Z2)), abs=1e-5)
    assert (
        at[4, "uniformity"]
        >= at[4, "uniformity_limit"]
        == pytest.approx(theory.uniformity_limit(4))
    )
    assert set(rows["dataset"]) == {pairs.name} and set(rows["setting"]) == {"τ = 0.05, B = 8"}


JL = on_page("proposal_johnson_lindenstrauss", "promised_eps", "change")


@pytest.mark.parametrize("n", [50, 1_000_000])
def test_what_the_page_promises_inverts_the_bound(n):
    for dim in (400, 1_000, 20_000):
        assert dim <= theory.jl_dim(n, JL["promised_eps"](n, dim)) <= dim + 1
    silent = int(24 * np.log(n))
    assert np.isnan(JL["promised_eps"](n, silent)) and JL["promised_eps"](n, silent + 1) < 1


@pytest.mark.parametrize("seed", [-1, 0, 5])
def test_distances_are_those_of_pairs_drawn_by_any_seed_and_by_numpys_own_from_zero_on(seed):
    X = sphere(40, 8)
    ratio = JL["change"](X, 2 * X, 50, seed)
    assert ratio["distortion_min"] == pytest.approx(4) == ratio["distortion_max"]
    if seed >= 0:  # As they were drawn when the rows were recorded
        rng = np.random.default_rng(seed)
        i = rng.integers(0, 40, 50)
        j = (i + rng.integers(1, 40, 50)) % 40
        Z = X[:, :3]
        kept = np.square(Z[i] - Z[j]).sum(1) / np.square(X[i] - X[j]).sum(1)
        assert JL["distortion"](X, Z, 50, seed) == pytest.approx(kept)


def test_random_projection_errs_as_theory_expects_also_above_full_size():
    X = sphere(120, 24)
    for dim in (16, 64, 256):
        maps = [
            make_reducer("grp", dim, seed=seed).fit(X).transform(X).astype(np.float64)
            for seed in range(12)
        ]
        found = [JL["change"](X, Z, 500, 0) for Z in maps]
        mean = {metric: np.mean([each[metric] for each in found]) for metric in found[0]}
        assert mean["cosine_rms"] == pytest.approx(mean["cosine_rms_expected"], rel=0.15)
    low, high = chi2.ppf([0.005, 0.995], 256) / 256
    assert (mean["distortion_low"], mean["distortion_high"]) == pytest.approx((low, high), abs=0.1)
