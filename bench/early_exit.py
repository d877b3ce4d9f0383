"""Encoding at half depth: a run that stops there, the whole network, and a peer whose upper blocks
are cut off.

ESE's released code removes blocks for good (`truncate_layer`); ours stops at whichever layer is
asked for.
"""

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import nn

from bench.encode import distinct_texts
from bench.timing import BenchRow, alternate
from repro import data
from repro.models import SentenceEncoder
from repro.models.sources import MINILM, locate


def run(quick: bool) -> list[BenchRow]:
    texts = distinct_texts(160 if quick else 1000)
    encoder = SentenceEncoder.load(MINILM, device="cpu")
    half, full = encoder.n_layers // 2, encoder.n_layers
    peer = cut(half)
    works = {
        "half": lambda: encoder.encode(texts, layer=half),
        "full": lambda: encoder.encode_layers(texts, [half, full])[0],
        "peer": lambda: peer.encode(texts),
        "tokens": lambda: encoder.backbone.tokenize(texts),
    }
    results, seconds = alternate(works, 3 if quick else 5)
    saved = seconds["half"] / seconds["full"]
    shared = {
        "backbone": MINILM,
        "layer": half,
        "dim": encoder.dim,
        "data_source": data.default_source(),
    }
    return [
        BenchRow(
            work=f"encode {len(texts)} texts at layer {half} of {full}",
            peer="the whole network, that layer kept",
            goal=1.7,
            ours_s=seconds["half"],
            peer_s=seconds["full"],
            columns=shared,
            shares={
                "share_of_full_depth": saved,
                "tokenising_share": seconds["tokens"] / seconds["half"],
            },
            note=f"{saved:.0%} of the time for {half / full:.0%} of the blocks; tokens and "
            "embeddings cost the same",
            **_equal(results["half"], results["full"]),
        ),
        BenchRow(
            work=f"encode {len(texts)} texts at layer {half} of {full}",
            peer="sentence-transformers, blocks cut off",
            goal=1,
            ours_s=seconds["half"],
            peer_s=seconds["peer"],
            columns=shared,
            **_equal(results["half"], results["peer"]),
        ),
    ]


def cut(layers: int) -> SentenceTransformer:
    """The peer with its first blocks only, and mean pooling without the closing normalisation."""
    peer = SentenceTransformer(str(locate(MINILM)), device="cpu")
    network = peer[0].auto_model
    network.encoder.layer = nn.ModuleList(network.encoder.layer[:layers])
    return SentenceTransformer(modules=[peer[0], peer[1]], device="cpu")


def _equal(ours: np.ndarray, theirs: np.ndarray) -> dict:
    gap = float(np.abs(ours - theirs).max())
    return {"equal": gap <= 1e-5, "checked": f"states, {gap:.0e} ≤ 1e-5"}
