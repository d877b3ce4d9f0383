"""What soak trials work on, made once by the commands that a user would type."""

import os

import numpy as np
import pandas as pd

from repro import data
from repro.cli import VERBS, apply, main
from repro.results import record
from repro.rows import make_rows
from repro.training.mlm import PretrainConfig, make_bert
from repro.training.wordpieces import train_wordpiece

VECTORS = ("X.npy", "X.npz", "X.parquet", "advice/reducer.safetensors")
SMALL = "--dims 8 16 --levels int8 binary --recall 0.3 --sample 300"
MADE = (
    f"advise X.npy --output advice {SMALL}",
    "apply X.npy --advice advice --rows-per-shard 200 --output shards",
    "train --backbone tiny --dims 8 --sentences 64 --batch-size 8 --source microworld --output "
    "encoder",
    "export --encoder encoder --pooling mean --dim 6 --normalize --output exported",
)


def prepare(folder):
    """A network, texts, vectors, an advice, its shards, a trained and an exported encoder, rows: in
    a new folder.
    """
    folder.mkdir()
    os.chdir(folder)
    os.environ["REPRO_HOME"] = str(folder / "home")
    texts = data.load("wiki", source="microworld", limit=600).texts
    make_bert(train_wordpiece(texts, 400), PretrainConfig(hidden_dim=32, max_length=48)).save(
        folder / "tiny"
    )
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    X = (np.random.default_rng(0).standard_normal((600, 32)) / np.arange(1, 33)).astype(np.float32)
    np.save("X.npy", X)
    np.savez("X.npz", X=X)
    pd.DataFrame({"v": list(X[:50])}).to_parquet("X.parquet")
    record(
        make_rows([{"value": i / 7, "dim": i} for i in range(40)], experiment="e", seed=0),
        folder / "results",
    )
    for line in MADE:
        try:
            main(line.split(), verbs={**VERBS, "apply": apply})
        except SystemExit as stop:
            if stop.code:
                raise
