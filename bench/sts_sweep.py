"""The STS task at six prefix sizes: encode once and slice, or encode both sides again for every
size.
"""

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

from bench.timing import BenchRow, alternate
from repro import data
from repro.evaluation import sts_spearman
from repro.models import SentenceEncoder
from repro.models.sources import MINILM, locate

DIMS = (384, 256, 128, 64, 32, 16)


def run(quick: bool) -> BenchRow:
    pairs = data.load("stsb", split="test", limit=60 if quick else 300)
    encoder = SentenceEncoder.load(MINILM, device="cpu")
    model = SentenceTransformer(str(locate(MINILM)), device="cpu")

    def ours() -> np.ndarray:
        X = encoder.encode(data.texts_of(pairs))
        return sts_spearman(X[: len(pairs)], X[len(pairs) :], pairs.scores, dims=DIMS)

    def peer() -> np.ndarray:
        sides = list(pairs.texts1), list(pairs.texts2), pairs.scores.tolist()
        evaluators = [
            EmbeddingSimilarityEvaluator(
                *sides,
                similarity_fn_names=["cosine"],
                truncate_dim=dim,
                write_csv=False,
            )
            for dim in DIMS
        ]
        return np.array([evaluate(model)["spearman_cosine"] for evaluate in evaluators])

    results, seconds = alternate({"ours": ours, "peer": peer}, 2 if quick else 3)
    gap = float(np.abs(results["ours"] - results["peer"]).max())
    return BenchRow(
        work=f"STS, {len(pairs)} pairs, six sizes",
        peer="sentence-transformers, truncate_dim",
        goal=5,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-6,
        checked=f"Spearman, {gap:.0e} ≤ 1e-6",
        columns={"backbone": MINILM, "dataset": "stsb", "data_source": pairs.source},
    )
