"""What random projection and PCA keep: the bound inverted, χ² and cosine errors met, a lossless size found lossless."""

import numpy as np
import pytest

from repro import data, theory
from repro.evaluation import sts_spearman
from repro.papers.proposal import projections
from repro.runs.embeddings import TextTable, unit_rows

N = 60


@pytest.fixture(scope="module")
def pairs():
    texts = tuple(f"sentence {i}" for i in range(2 * N))
    scores = np.linspace(0, 5, N)
    return data.ScoredPairs("x", "local", "test", texts[:N], texts[N:], scores, np.array(["x"] * N, object))


def table_of(pairs, rank, dim=24, seed=0):
    """Gaussian embeddings of a rank."""
    rng = np.random.default_rng(seed)
    texts = data.texts_of(pairs)
    X = rng.normal(size=(len(texts), rank)) @ rng.normal(size=(rank, dim))
    return TextTable({text: i for i, text in enumerate(texts)}, X.astype(np.float32))


def rows_of(pairs, rank=24, **options):
    table = table_of(pairs, rank)
    chosen = {"dims": [4, 16, 64], "draws": 3, "sampled": 500, **options}
    dims = chosen.pop("dims")
    return projections.projection_rows(table, data.texts_of(pairs), pairs, dims, backbone="b", **chosen)


@pytest.mark.parametrize("n", [50, 2_551, 1_000_000])
def test_what_the_page_promises_inverts_the_bound(n, shown_on):
    promised_eps = shown_on("proposal_johnson_lindenstrauss", "promised_eps")
    for dim in (400, 1_000, 20_000):
        assert dim <= theory.jl_dim(n, promised_eps(n, dim)) <= dim + 1
    silent = int(24 * np.log(n))
    assert np.isnan(promised_eps(n, silent)) and promised_eps(n, silent + 1) < 1
    assert np.isnan(promised_eps(2_551, 128)), "of STS-B's test sentences nothing is promised at 128 dims"


def test_pca_at_the_rank_of_the_data_is_lossless(pairs):
    rows = rows_of(pairs, rank=4, dims=[2, 4, 8])
    of = rows[rows["method"] == "PCA"].set_index(["dim", "metric"])["value"]
    X = unit_rows(table_of(pairs, 4).X.astype(np.float64))
    centred = X - X.mean(axis=0)
    assert of[4, "distortion_worst"] < 1e-5 and of[4, "cosine_rms"] < 1e-5
    assert of[4, "spearman"] == pytest.approx(sts_spearman(centred[:N], centred[N:], pairs.scores), abs=1e-4)
    assert of[2, "distortion_worst"] > 0.1


def test_random_projection_errs_as_theory_expects_and_reaches_above_full_size(pairs):
    rows = rows_of(pairs, dims=[16, 64, 256], draws=20)
    table = rows[rows["method"] == "GRP"].pivot_table(index="dim", columns="metric", values="value")
    assert list(table.index) == [16, 64, 256], "24 columns do not limit random projection"
    assert table["cosine_rms"].to_numpy() == pytest.approx(table["cosine_rms_expected"].to_numpy(), rel=0.15)
    low, high = theory.distortion_quantiles(64, [0.005, 0.995])
    assert table.loc[64, "distortion_low"] == pytest.approx(low, abs=0.08)
    assert table.loc[64, "distortion_high"] == pytest.approx(high, abs=0.12)
    assert set(rows.loc[rows["method"] == "PCA", "dim"]) == {16}


def test_draws_differ_and_the_first_is_repeated(pairs):
    first, again = rows_of(pairs), rows_of(pairs)
    assert first["value"].equals(again["value"])
    spread = first[(first["method"] == "GRP") & (first["metric"] == "spearman")].groupby("dim")["value"].nunique()
    assert (spread == 3).all()
