"""Claims of Zhang et al.: from made-up rows to the verdict they deserve, and the tables a reader sees."""

import math

import pandas as pd
import pytest

from repro.methods import FULL_SIZE, TRUNCATE, ZHANG_METHODS
from repro.papers.zhang import claims, losses
from repro.papers.zhang.seconds import seconds_table, table1, times_of_pca
from repro.report.compare import verdict_frame
from repro.rows import make_rows
from repro.types import InputError

MINILM, OURS = "all-MiniLM-L6-v2", "repro-tiny + SimCSE"
FULL = {MINILM: 384, OURS: 128}
SHARES = (0.125, 0.25, 0.5, 0.75)
SEEDS = (0, 1, 2)


def table(over_full, *, metric="spearman", full=0.8, between=0.0, spread=0.002, seeds=SEEDS, extra=()):
    """Rows in which `over_full(method, encoder, share)` is a method's lead over full size, with half-width `spread`."""
    entries = [dict(e) for e in extra]

    def add(value, half, **entry):
        entries.append({**entry, "value": value, "ci_low": value - half, "ci_high": value + half})

    for encoder, D in FULL.items():
        common = {"backbone": encoder, "dataset": "x", "readout": "encoder"}
        add(full, spread, **common, method=FULL_SIZE, dim=D, setting="", metric=metric)
        for share in SHARES:
            common["dim"] = int(share * D)
            at = {m: over_full(m, encoder, share) for m in (*ZHANG_METHODS, TRUNCATE)}
            for i, (method, lead) in enumerate(at.items()):
                for setting in losses.WITHIN:
                    shared = {**common, "setting": setting}
                    add(full + lead, spread, **shared, method=method, metric=metric)
                    add(lead, spread, **shared, method=f"{method} − {FULL_SIZE}", metric=f"{metric}_lead")
                    for other in list(at)[:i]:
                        add(lead - at[other], spread, **shared, method=f"{method} − {other}", metric=f"{metric}_lead")
                gain = 0.0 if method in ("GRP", TRUNCATE) else between
                half = 0.0 if method in ("GRP", TRUNCATE) else spread
                add(
                    gain, half, **common, setting=losses.BETWEEN, method=f"{method} − {method}", metric=f"{metric}_lead"
                )
    return make_rows([{**e, "seed": s} for e in entries for s in seeds], data_source="microworld")


def as_printed(method, encoder, share):
    """What the paper says of STS-B, in fractions."""
    if encoder == OURS and method in ("PCA", "KPCA"):
        return 0.03 if share > 0.15 else -0.01
    return {"PCA": 0.01, "KPCA": 0.009, "SVD": -0.005, "Autoencoder": -0.006, "GRP": -0.02, TRUNCATE: -0.03}[method]


def verdicts(found):
    return {(m.claim_id, m.what): m.verdict for m in found}


def worst_of(found, claim):
    own = [m.verdict for m in found if m.claim_id == claim]
    assert own, f"{claim} is not judged"
    return set(own)


def test_similarity_as_printed_is_reproduced():
    spectrum = [{"metric": "smallest_eigenvalue", "method": "KPCA, sigmoid", "backbone": MINILM, "value": -1e-4}]
    found = claims.figure2(table(as_printed, between=0.02, extra=spectrum))
    for claim in ("S42-1", "S42-2", "S42-4", "S42-5", "S42-7", "S42-8", "S42-9", "S42-11", "S42-12", "C-3"):
        assert worst_of(found, f"ZHANG-{claim}") == {"holds here"}, claim
    assert worst_of(found, "ZHANG-S42-13") == {"cannot tell"}, "ranks of scores that items may exchange"
    sure = claims.figure2(table(as_printed, spread=1e-6))
    assert worst_of(sure, "ZHANG-S42-13") == {"holds here"}
    assert worst_of(found, "ZHANG-S42-14") == {"holds here"}
    assert len(verdict_frame("live", found)) == len(found)


def test_similarity_the_other_way_round_is_not():
    spectrum = [{"metric": "smallest_eigenvalue", "method": "KPCA, rbf", "backbone": MINILM, "value": 1e-9}]
    rows = table(lambda m, e, s: -as_printed(m, e, s) - 0.035 * (m == "PCA"), between=-0.02, extra=spectrum)
    found = claims.figure2(rows)
    for claim in ("S42-1", "S42-2", "S42-4", "S42-5", "S42-7", "S42-8", "S42-11", "S42-13"):
        assert worst_of(found, f"ZHANG-{claim}") == {"does not hold here"}, claim


def test_a_wide_interval_tells_nothing():
    found = claims.figure2(table(as_printed, between=0.01, spread=0.2))
    judged = {m.verdict for m in found if m.claim_id not in ("ZHANG-S42-9", "ZHANG-S42-13")}
    assert judged == {"cannot tell"}


def test_one_seed_says_nothing_of_what_is_drawn_and_all_of_what_is_not():
    rows = table(as_printed, seeds=(0,))
    pca = losses.lead(rows, MINILM, "PCA", FULL_SIZE, "inductive")[192]
    grp = losses.lead(rows, MINILM, "GRP", FULL_SIZE, "inductive")[192]
    assert pca.half == pytest.approx(0.2)
    assert math.isnan(grp.half)


def test_who_is_first_is_not_said_of_one_encoder():
    rows = table(as_printed)
    one = claims.figure2(rows[rows["backbone"] == OURS])
    assert "ZHANG-S42-13" not in {m.claim_id for m in one}
    assert "ZHANG-S42-2" in {m.claim_id for m in one}


def test_random_projection_must_be_equal_to_the_last_digit():
    rows = table(as_printed)
    moved = (rows["setting"] == losses.BETWEEN) & (rows["method"] == "GRP − GRP")
    rows.loc[rows.index[moved][0], "value"] = 1e-6
    assert worst_of(claims.figure2(rows), "ZHANG-S42-9") == {"does not hold here"}


def jumps(value):
    return [
        {
            "metric": "roughness_lead",
            "method": "Autoencoder − others",
            "backbone": e,
            "setting": s,
            "value": value,
            "ci_low": value - 0.001,
            "ci_high": value + 0.001,
        }
        for e in FULL
        for s in losses.WITHIN
    ]


def test_classification_as_printed():
    def lead(method, encoder, share):
        fall = -0.2 if (method, encoder) == ("KPCA", MINILM) else 0.0
        return {"PCA": 0.0, "SVD": -0.001, "KPCA": -0.001 + fall, "GRP": -0.05, "Autoencoder": -0.04, TRUNCATE: -0.1}[
            method
        ]

    rows = table(lead, metric="accuracy", extra=jumps(0.03))
    trec, sicke = claims.figure3(rows), claims.figure4(rows)
    for claim in ("S42-1", "S42-3", "S42-5", "S42-6", "S42-8", "S42-10"):
        assert worst_of(trec, f"ZHANG-{claim}") == {"holds here"}, claim
    assert worst_of(sicke, "ZHANG-S42-6") == {"holds here"}
    for claim in ("ZHANG-C-1", "ZHANG-C-2"):
        (missing,) = [m for m in sicke if m.claim_id == claim]
        assert missing.verdict == "not attempted"
        assert "no stand-in at hand" in missing.what
    calm = claims.figure3(table(lead, metric="accuracy", extra=jumps(-0.03)))
    assert worst_of(calm, "ZHANG-S42-10") == {"does not hold here"}


def test_the_papers_own_encoders_are_judged_where_they_are(monkeypatch):
    names = {MINILM: "paraphrase-xlm-r-multilingual-v1", OURS: "msmarco-roberta-base-v2"}

    def lead(method, encoder, share):
        return {"SVD": 0.02, "KPCA": 0.03, "PCA": -0.05}.get(method, -0.01)

    rows = table(lead, metric="accuracy", extra=jumps(0.0))
    rows["backbone"] = rows["backbone"].replace(names)
    found = claims.figure4(rows)
    assert worst_of(found, "ZHANG-C-1") == {"holds here"}
    assert worst_of(found, "ZHANG-C-2") == {"holds here"}
    assert worst_of(found, "ZHANG-S42-12") == {"holds here"}
    assert losses.encoder_for_role(rows, "mpnet") is None
    assert losses.encoder_for_role(rows, "roberta") == "msmarco-roberta-base-v2"


def test_the_smallest_sufficient_size():
    assert losses.smallest_within({8: 5.0, 16: 0.9, 32: 0.2}, 1.0) == 16
    assert losses.smallest_within({8: 0.1, 16: 3.0, 32: 0.2}, 1.0) == 32, "a larger size that fails ends it"
    assert losses.smallest_within({8: 5.0}, 1.0) is None
    rows = table(lambda m, e, s: {0.125: -0.03, 0.25: -0.007, 0.5: 0.0, 0.75: 0.0}[s], spread=0.002)
    found = losses.sufficient_dims(rows).set_index(["encoder", "method", "setting"])
    line = found.loc[(MINILM, "PCA", "inductive")]
    assert (line["dims"], line["surely"]) == (96, 192), "0.7 of 80 points are 0.88 %, and 1.13 % at the interval's end"
    shown = losses.sufficient_table(rows).set_index(["encoder", "method"])
    assert shown.loc[(MINILM, "PCA"), "inductive"] == "96 (25 %), surely 192"
    nothing = losses.sufficient_table(table(lambda m, e, s: -0.5)).set_index(["encoder", "method"])
    assert nothing.loc[(OURS, "GRP"), "transductive"] == "more than 96"


def test_a_loss_needs_a_full_size():
    rows = table(as_printed)
    with pytest.raises(InputError, match="no full-size score of 'all-MiniLM-L6-v2'"):
        losses.loss(rows[rows["method"] != FULL_SIZE], MINILM, "PCA", "inductive")


def seconds(times, *, n_train=11_498, wobble=0.05):
    """Rows of Table 1 from (fit, transform) by method, scikit-learn's; the autoencoders are ours."""
    rows = []
    for method, pair in times.items():
        whose = "this package" if method.startswith("Auto") else "scikit-learn"
        for what, t in zip(("fit", "transform"), pair, strict=True):
            rows.append(
                {
                    "method": method,
                    "setting": whose,
                    "metric": f"{what}_seconds",
                    "value": t,
                    "ci_low": t * (1 - wobble),
                    "ci_high": t * (1 + wobble),
                }
            )
    return make_rows(rows, seed=0, n_train=n_train)


PRINTED = {
    "PCA": (2.08, 0.0049),
    "KPCA": (37.98, 0.7883),
    "SVD": (2.57, 0.0089),
    "Autoencoder": (101.16, 0.1479),
    "GRP": (0.03, 0.0080),
    "Autoencoder, 1 hidden layer": (10.0, 0.1),
    "Autoencoder, 3 hidden layers": (20.0, 0.2),
}


def test_the_printed_seconds_bear_their_claims_out():
    found = table1(seconds(PRINTED))
    assert worst_of(found, "ZHANG-T1-1") == {"holds here"}
    assert worst_of(found, "ZHANG-T1-2") == {"holds here"}
    assert worst_of(found, "ZHANG-S3-1") == {"holds here"}
    turned = dict(PRINTED, KPCA=(37.98, 0.001))
    assert "does not hold here" in worst_of(table1(seconds(turned)), "ZHANG-T1-2"), "the text's sentence"


def test_kernel_pca_of_few_rows_can_be_slow_but_not_fast():
    few = {m: v for m, v in verdicts(table1(seconds(PRINTED, n_train=800))).items() if "KPCA" in m[1]}
    assert {m[1].split(",")[0]: v for m, v in few.items()} == {
        "training: KPCA by SVD": "holds here",
        "training: Autoencoder by KPCA": "not attempted",
        "inference: KPCA by Autoencoder": "holds here",
    }
    fast = dict(PRINTED, KPCA=(1.0, 0.001))
    judged = verdicts(table1(seconds(fast, n_train=800)))
    assert {v for m, v in judged.items() if "KPCA" in m[1]} == {"not attempted"}


def test_depth_is_judged_by_score_too():
    def lead(value):
        row = {
            "metric": "spearman_lead",
            "method": "Autoencoder, 3 hidden layers − Autoencoder, 1 hidden layer",
            "dim": 96,
            "value": value,
            "ci_low": value - 0.001,
            "ci_high": value + 0.001,
        }
        return pd.concat([seconds(PRINTED), make_rows([{**row, "seed": s} for s in SEEDS])], ignore_index=True)

    assert worst_of(table1(lead(0.0)), "ZHANG-S3-1") == {"holds here"}
    assert "does not hold here" in worst_of(table1(lead(0.05)), "ZHANG-S3-1")


def test_times_of_pca():
    rows = seconds(PRINTED)
    times = times_of_pca({"live": rows})
    shown = times.set_index(["operation", "reducers", "method", "kind"])["value"]
    training = shown.loc["training"]
    assert training["scikit-learn", "KPCA", "paper"] == pytest.approx(18.26, abs=0.01)
    assert training["scikit-learn", "KPCA", "live"] == pytest.approx(training["scikit-learn", "KPCA", "paper"])
    assert training["scikit-learn", "Autoencoder", "live"] == pytest.approx(48.63, abs=0.01), "ours, over their PCA"
    assert "this package" not in set(times["reducers"]), "without our PCA there is no ratio to it"
    both = seconds_table(pd.concat([rows, rows.assign(setting="this package")])).set_index("method")
    assert both.loc["Autoencoder", "training, scikit-learn"] == "has none"
    assert both.loc["PCA", "inference, scikit-learn"] == "4.90 [4.65, 5.15]"
