"""Training on entailment pairs with a softmax classifier (Reimers & Gurevych, 2019; Wang et al., 2023, Table 2).

End to end, backbone, pooler and classifier learn together; in step 2 pooler and classifier learn on the frozen
encoder, whose dropout views of the distinct texts are computed once.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, nn

from repro.data.entailment import LIKE, NEUTRAL, UNLIKE, checked_labels
from repro.losses.nli import CLASSES, softmax_nli
from repro.models import Pooler
from repro.models.encoder import merge_equal
from repro.models.pretrained import default_device
from repro.objectives import StepTwoConfig, TrainConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import DevScore, Trained, batches, count_steps, fresh_encoder, minimise
from repro.training.loop import LoopConfig, train
from repro.training.two_step import PoolerRun, two_of
from repro.types import Array, InputError, check_same_length

LABELS = {UNLIKE: 0, LIKE: 1, NEUTRAL: 2}


def nli_head(dim: int, seed: int) -> nn.Linear:
    """A fresh classifier V (3, 3·dim) with PyTorch's own initial weights, from a generator owned by (seed, dim)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "nli head", dim))
        return nn.Linear(3 * dim, CLASSES).to(default_device())


def label_ids(pairs: LabelledPairs) -> Tensor:
    """Classes 0 … 2 of entailment pairs (n,).

    Raises:
        InputError: for a label that is not contradiction, entailment or neutral.
    """
    return torch.tensor([LABELS[label] for label in checked_labels(pairs)])


def train_nli(
    config: TrainConfig,
    pairs: LabelledPairs,
    dev_score: DevScore,
    *,
    state_path: Path | None = None,
    save_every: int = 0,
    progress: bool = True,
) -> Trained:
    """Train one encoder, pooler and classifier on entailment pairs; the head comes back beside the encoder.

    Args:
        config: what to train and how.
        pairs: premises, hypotheses and their labels.
        dev_score: `dev_score(encoder, readout)`, dev Spearman of one readout; picks the checkpoint.
        state_path: resumable state.
        save_every: steps between resumable states; 0 saves only at the end.
        progress: show a progress bar.

    Raises:
        InputError: if the pairs do not fill one batch, or carry other labels than the three.
        TrainingDiverged: when the loss is not finite.
    """
    steps = count_steps(config, len(pairs), "pairs")
    labels = label_ids(pairs)
    encoder = fresh_encoder(config)
    head = nli_head(config.dim, config.seed)
    dev_before = dev_score(encoder, "encoder")
    premises, _ = encoder.backbone.tokenize(pairs.texts1, config.max_length)
    hypotheses, _ = encoder.backbone.tokenize(pairs.texts2, config.max_length)
    batch = batches(config, len(pairs))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        tokens, mask = encoder.padded([premises[i] for i in members] + [hypotheses[i] for i in members])
        u, v = encoder(tokens, mask)[1].split(len(members))
        own = labels[torch.from_numpy(members)].to(u.device)
        return softmax_nli(u, v, own, head.weight, head.bias, difference=config.difference)

    history = minimise(
        nn.ModuleDict({"encoder": encoder, "head": head}),
        loss_at,
        config,
        steps,
        lambda: dev_score(encoder, config.checkpoint_by),
        state_path=state_path,
        save_every=save_every,
        progress=progress,
    )
    return Trained(encoder, history, dev_before, head)


def train_nli_pooler(
    views: Array,
    texts: Sequence[str],
    pairs: LabelledPairs,
    pooler: Pooler,
    head: nn.Linear,
    dev_score: Callable[[Pooler], float],
    config: StepTwoConfig,
    *,
    difference: str = "abs",
) -> PoolerRun:
    """Step 2 (Algorithm 1, line 8) under the softmax objective: pooler and head on the frozen encoder.

    Every learning rate starts from the same weights; the dev score picks one. Step 0 counts.

    Args:
        views: cached states (R, n, hidden_dim) of the frozen encoder under dropout.
        texts: the n texts the views belong to.
        pairs: training pairs, whose texts must all be among them.
        pooler: where the pooler starts; left as it is.
        head: where the classifier starts; left as it is.
        dev_score: dev Spearman of a pooler on the frozen encoder.
        config: schedule; `start="random"` begins with fresh weights instead.
        difference: third feature of the classifier.

    Raises:
        InputError: if the pairs do not fill one batch, or a text has no view.
        TrainingDiverged: when the loss is not finite.
    """
    check_same_length(views=views[0], texts=texts)
    row = {text: i for i, text in enumerate(texts)}
    try:
        left, right = ([row[text] for text in side] for side in (pairs.texts1, pairs.texts2))
    except KeyError as error:
        raise InputError(f"{error.args[0]!r} has no cached view: encode all texts of the pairs") from error
    steps = count_steps(config, len(pairs), "pairs")
    labels, states = label_ids(pairs), torch.from_numpy(views)
    device = pooler.linear.weight.device
    left_rows, right_rows = torch.tensor(left), torch.tensor(right)
    dev_before = dev_score(pooler)

    def run(rate: float) -> tuple[Pooler, float, int]:
        mine, own_head = deepcopy(pooler), deepcopy(head)
        if config.start == "random":
            mine.initialise(derive_seed(config.seed, "step 2 restart"))
            own_head = nli_head(pooler.dim, derive_seed(config.seed, "step 2 restart"))

        def loss_at(step: int) -> Tensor:
            first, second, order = two_of(len(views), len(pairs), step, config)
            members = torch.from_numpy(order)
            u = mine(states[first, left_rows[members]].to(device))
            v = mine(states[second, right_rows[members]].to(device))
            return softmax_nli(u, v, labels[members].to(device), own_head.weight, own_head.bias, difference=difference)

        loop = LoopConfig(
            steps=steps,
            learning_rate=rate,
            clip_norm=config.clip_norm,
            check_every=config.check_every,
            check_first=True,
            patience=config.patience,
            seed=config.seed,
        )
        history = train(
            nn.ModuleDict({"pooler": mine, "head": own_head}),
            loss_at,
            loop,
            check=lambda: dev_score(mine),
            description=f"step 2, dim {pooler.dim}",
            progress=False,
        )
        return mine, history.best_score, history.best_step

    runs = {rate: run(rate) for rate in config.learning_rates}
    best = max(runs, key=lambda rate: runs[rate][1])
    kept, score, step = runs[best]
    return PoolerRun(kept, best, step, dev_before, score, {rate: found[1] for rate, found in runs.items()})


def distinct_texts(pairs: LabelledPairs) -> list[str]:
    """Every text of the pairs once, in order of first appearance."""
    return merge_equal([*pairs.texts1, *pairs.texts2])[0]
