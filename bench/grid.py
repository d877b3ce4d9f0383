"""Every encoder with every pooler, N = 8: N encodings and N² small products, or N² encodings."""

import numpy as np
import torch

from bench.timing import BenchRow, alternate
from repro import data
from repro.evaluation import sts_spearman
from repro.models import Pooler, SentenceEncoder
from repro.training.two_step import splice

BACKBONE = "repro-tiny"
DIMS = (512, 256, 128, 64, 32, 16, 8, 4)


def run(quick: bool) -> BenchRow:
    pairs = data.load("stsb", split="test", source="microworld", limit=60 if quick else 1000)
    texts, dims = data.texts_of(pairs), DIMS[:2] if quick else DIMS
    encoders = [_variant(seed) for seed in range(len(dims))]
    poolers = [Pooler(encoders[0].hidden_dim, dim).initialise(0) for dim in dims]

    def score(Z: np.ndarray) -> float:
        return sts_spearman(Z[: len(pairs)], Z[len(pairs) :], pairs.scores)

    def ours() -> np.ndarray:
        states = [encoder.encode(texts, readout="encoder") for encoder in encoders]
        return np.array([[score(pooler.project(h)) for pooler in poolers] for h in states])

    def peer() -> np.ndarray:
        return np.array(
            [
                [score(splice(encoder, pooler).encode(texts)) for pooler in poolers]
                for encoder in encoders
            ]
        )

    results, seconds = alternate({"ours": ours, "peer": peer}, 1 if quick else 2)
    gap = float(np.abs(results["ours"] - results["peer"]).max())
    return BenchRow(
        work=f"grid of {len(dims)} encoders × {len(dims)} poolers, {len(pairs)} pairs",
        peer="an encoding per pair",
        goal=6,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-6,
        checked=f"Spearman, {gap:.0e} ≤ 1e-6",
        columns={"backbone": BACKBONE, "dataset": "stsb", "data_source": "microworld"},
    )


def _variant(seed: int) -> SentenceEncoder:
    """An encoder of its own: the backbone with a little noise in its weights."""
    encoder = SentenceEncoder.load(BACKBONE, device="cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight += (
                0.01 * weight.std(correction=0) * torch.randn(weight.shape, generator=generator)
            )
    return encoder
