"""Which learning rate, batch, dropout and pooling teach a small backbone: the measurements behind `recipes.RECIPES`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from repro.objectives import TrainConfig
from repro.rows import make_rows
from repro.runs.pool import train_all
from repro.store import Store

TRIED = ("learning_rate", "batch_size", "dropout", "pooling", "dim")


def recipe_rows(base: TrainConfig, settings: Sequence[Mapping[str, Any]], store: Store) -> pd.DataFrame:
    """Dev Spearman of the encoder readout before, and of the best check after, for every setting.

    Args:
        base: what the settings share.
        settings: fields of `TrainConfig` to replace, one mapping per training.
        store: where the trained encoders are kept.
    """
    cells = train_all([replace(base, **setting) for setting in settings], store)
    rows: list[dict[str, Any]] = []
    for cell in cells:
        c, history = cell.config, cell.history
        setting = ", ".join(f"{name}={getattr(c, name)}" for name in TRIED)
        values = {
            "spearman_before": cell.dev_before,
            "spearman": history.best_score,
            "best_step": history.best_step,
            "last_loss": sum(history.losses[-10:]) / len(history.losses[-10:]),
        }
        rows += [
            {
                "setting": setting,
                "metric": metric,
                "value": value,
                "dim": c.dim,
                "backbone": c.backbone,
                "data_source": c.source,
                "n_train": c.sentences,
                **c.columns,
                "seed": c.seed,
                "seconds": cell.seconds,
                "method": c.pooling,
                "readout": c.checkpoint_by,
            }
            for metric, value in values.items()
        ]
    return make_rows(
        rows, experiment="tiny_recipe", paper_table="appendix", profile="embedded", dataset=base.validation
    )
