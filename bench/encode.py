"""Distinct texts to embeddings, same weights, single precision, on the CPU."""

import numpy as np
from sentence_transformers import SentenceTransformer

from bench.timing import BenchRow, alternate, matmul
from repro import data
from repro.models import SentenceEncoder
from repro.models.sources import MINILM, locate


def run(quick: bool) -> BenchRow:
    texts = distinct_texts(160 if quick else 1000)
    ours = SentenceEncoder.load(MINILM, device="cpu")
    peer = SentenceTransformer(str(locate(MINILM)), device="cpu")
    product, product_flops = matmul(hidden_dim=ours.hidden_dim)
    works = {
        "ours": lambda: ours.encode(texts, normalize=True),
        "peer": lambda: peer.encode(texts),
        "product": product,
    }
    results, seconds = alternate(works, 3 if quick else 5)
    gap = float(np.abs(results["ours"] - results["peer"]).max())
    rate = product_flops / seconds["product"]
    flops = _flops(ours, texts)
    share, peer_share = (flops / seconds[name] / rate for name in ("ours", "peer"))
    return BenchRow(
        work=f"encode {len(texts)} distinct texts",
        peer="sentence-transformers",
        goal=1.5,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-5,
        checked=f"embeddings, {gap:.0e} ≤ 1e-5",
        columns={"backbone": MINILM, "dim": ours.dim, "data_source": data.default_source()},
        shares={"matmul_share": share, "peer_matmul_share": peer_share},
        note=f"of the {rate / 1e9:.0f} GFLOP/s of a plain matmul: ours {share:.0%} "
        f"(goal 65%), peer {peer_share:.0%}",
    )


def distinct_texts(count: int) -> list[str]:
    """Half generated sentences, half STS-B's, real ones where REPRO_DATA is set."""
    half = count // 2
    wiki = dict.fromkeys(data.load("wiki", source="microworld", limit=count).texts)
    pairs = dict.fromkeys(data.texts_of(data.load("stsb")))
    return list(dict.fromkeys([*list(wiki)[:half], *list(pairs)]))[:count]


def _flops(encoder: SentenceEncoder, texts: list[str]) -> float:
    """Of the blocks' products on the tokens there are: 24·D² per token and 4·D·length for its
    attention.
    """
    lengths = np.array([len(ids) for ids in encoder.backbone.tokenize(texts)[0]], float)
    D = encoder.hidden_dim
    return float(encoder.n_layers * (24 * D * D * lengths.sum() + 4 * D * (lengths**2).sum()))
