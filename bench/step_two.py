"""Step 2 of two-step training, eight poolers × four learning rates, on a frozen encoder.

Ours computes the dropout views once; the peer, as a training script does, runs the encoder in every
step of every pooler and rate. Dropout is 0 here, so that both see the same views and must end at
the same weights.
"""

import copy

import numpy as np
import torch

from bench.encode import distinct_texts
from bench.timing import BenchRow, alternate
from repro import data
from repro.config import StepTwoConfig
from repro.data.sampling import epoch_order
from repro.evaluation import sts_spearman
from repro.losses import info_nce
from repro.models import Pooler, SentenceEncoder
from repro.training.two_step import dropout_views, train_poolers

BACKBONE = "repro-tiny"
DIMS = (256, 128, 64, 32, 16, 8, 4, 2)


def run(quick: bool) -> BenchRow:
    config = StepTwoConfig(batch_size=64, check_every=0)
    texts = distinct_texts(config.batch_size * (2 if quick else 16))
    encoder = SentenceEncoder.load(BACKBONE, device="cpu")
    encoder.backbone.set_dropout(0.0)
    poolers = [
        Pooler(encoder.hidden_dim, dim).initialise(0) for dim in (DIMS[2:4] if quick else DIMS)
    ]
    pairs = data.load("stsb", split="dev", source="microworld", limit=200)
    dev = encoder.encode(data.texts_of(pairs), readout="encoder")

    def dev_score(pooler: Pooler) -> float:
        z = pooler.project(dev)
        return sts_spearman(z[: len(pairs)], z[len(pairs) :], pairs.scores)

    def ours() -> list[Pooler]:
        views = dropout_views(encoder, texts, views=config.views, seed=0)
        return [run.pooler for run in train_poolers(views, texts, poolers, dev_score, config)]

    def peer() -> list[Pooler]:
        return [best_of_rates(encoder, texts, pooler, dev_score, config) for pooler in poolers]

    results, seconds = alternate({"ours": ours, "peer": peer}, 1 if quick else 3)
    weights = [[p.linear.weight.detach() for p in results[name]] for name in ("ours", "peer")]
    gap = max(float((a - b).abs().max()) for a, b in zip(*weights, strict=True))
    moved = sum(
        not torch.equal(a, p.linear.weight) for a, p in zip(weights[0], poolers, strict=True)
    )
    rates, steps = len(config.learning_rates), len(texts) // config.batch_size
    return BenchRow(
        work=f"step 2, {len(poolers)} sizes × {rates} rates, {steps} steps",
        peer="frozen encoder in every step",
        goal=20,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-4 and moved > 0,
        checked=f"pooler weights, {gap:.0e} ≤ 1e-4; {moved} of {len(poolers)} left their start",
        columns={
            "backbone": BACKBONE,
            "dataset": "stsb",
            "data_source": "microworld",
            "n_train": len(texts),
        },
    )


def best_of_rates(encoder, texts, pooler, dev_score, config) -> Pooler:
    """The pooler after one epoch at the rate that dev likes best, or as it was if none helps."""
    best, best_score = pooler, dev_score(pooler)
    ids, _ = encoder.backbone.tokenize(texts, 32)
    steps = len(texts) // config.batch_size
    encoder.train()
    for rate in config.learning_rates:
        mine = copy.deepcopy(pooler)
        optimizer = torch.optim.Adam(mine.parameters(), lr=rate)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
        for members in np.split(epoch_order(len(texts), seed=config.seed, epoch=0), steps):
            batch = encoder.padded([ids[i] for i in members])
            with torch.no_grad():
                h1, h2 = encoder.pooled(*batch)[0], encoder.pooled(*batch)[0]
            optimizer.zero_grad()
            info_nce(mine(h1), mine(h2), temperature=config.temperature).backward()
            torch.nn.utils.clip_grad_norm_(mine.parameters(), config.clip_norm)
            optimizer.step()
            schedule.step()
        score = dev_score(mine)
        if score > best_score:
            best, best_score = mine, score
    encoder.eval()
    return best
