"""Step 2 under the softmax objective: pooler and classifier on the frozen encoder's dropout views of distinct texts."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from repro.losses.nli import softmax_nli
from repro.models.packing import merge_equal
from repro.models.pooling import Pooler
from repro.objectives import StepTwoConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import count_steps
from repro.training.loop import LoopConfig, train
from repro.training.nli import label_ids, nli_head
from repro.training.two_step import PoolerRun, two_of
from repro.types import Array, InputError, check_same_length


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
