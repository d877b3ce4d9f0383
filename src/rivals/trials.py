"""Which settings SBERT and InferSent take here, by score on STS-B's dev split; no test pair is read.

`python -m rivals.trials` tries them all again and replaces `results/systems_recipe.parquet`.
"""

from dataclasses import replace
from typing import Any

import pandas as pd

from repro import data
from repro.evaluation import sts_spearman
from repro.rows import make_rows, record
from repro.runs.cell import recipe_rows
from repro.store import Store
from rivals.loaders import INFERSENT, sbert_settings, trained_infersent
from rivals.system import SystemConfig, training_pairs, words_of

EXPERIMENT, DEV = "systems_recipe", "stsb"
SBERT_TRIED: list[dict[str, Any]] = [
    {"learning_rate": rate, "dropout": dropout} for rate in (3e-5, 1e-4, 3e-4, 1e-3) for dropout in (0.0, 0.1)
]
INFERSENT_TRIED: list[dict[str, Any]] = [{"learning_rate": rate, "epochs": 4} for rate in (0.1, 0.5, 1.0, 2.0)]


def sbert_trials(config: SystemConfig, store: Store) -> pd.DataFrame:
    """Dev Spearman of the mean of states, untrained and at the best check, for every setting of SBERT."""
    base = sbert_settings(config, len(training_pairs(config)))
    return recipe_rows(base, SBERT_TRIED, store).assign(experiment=EXPERIMENT, method="sbert")


def infersent_trials(config: SystemConfig, store: Store) -> pd.DataFrame:
    """Dev Spearman of InferSent for every setting."""
    pairs, dev = training_pairs(config), data.load(DEV, split="dev", source=config.source)
    assert isinstance(dev, data.ScoredPairs)
    base, rows = replace(INFERSENT[config.profile], seed=config.seed), []
    for tried in INFERSENT_TRIED:
        make, _ = trained_infersent(words_of(config), pairs, replace(base, **tried), store)
        encoder = make()
        setting = ", ".join(f"{name}={value}" for name, value in tried.items())
        X1, X2 = (encoder.encode(side, readout="encoder") for side in (dev.texts1, dev.texts2))
        rows.append({"setting": setting, "value": float(sts_spearman(X1, X2, dev.scores)), "dim": X1.shape[1]})
    where = {"experiment": EXPERIMENT, "paper_table": "appendix", "method": "infersent", "backbone": "infersent"}
    what = {"metric": "spearman", "dataset": DEV, "readout": "encoder", "data_source": config.source}
    return make_rows(rows, **where, **what, n_train=len(pairs), seed=config.seed, profile=config.profile)


if __name__ == "__main__":
    here, kept = SystemConfig(source=data.default_source()), Store()
    record(pd.concat([sbert_trials(here, kept), infersent_trials(here, kept)], ignore_index=True))
