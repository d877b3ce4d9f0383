"""One cell: one configuration and one seed, trained once and kept in the store; many at once in a
pool of processes.

Small networks train faster as two processes of one thread than as one process of two: operations of
microseconds do not pay for waking a second core. The bytes are the same either way.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from repro.data.samples import fingerprint
from repro.digests import digest, module_of
from repro.models import Pooler, SentenceEncoder
from repro.models.backbone import load_backbone
from repro.models.device import default_device
from repro.models.sources import identity as backbone_identity
from repro.objectives import columns_of, objective_of, only_what_is_read, title
from repro.reading import read_json
from repro.rows import make_rows
from repro.runs.dev import dev_scorer
from repro.seeding import cpu_count, done_in_processes, threads
from repro.settings import TrainConfig
from repro.store import STATE, Store
from repro.terminal import progress_bar
from repro.training.end_to_end import DevScore, MakeLoss, fresh_encoder, train_encoder
from repro.training.ese import angle, ese, matryoshka
from repro.training.nli import softmax_over_pairs
from repro.training.simcse import contrastive
from repro.training.state import History
from repro.types import InputError, check_dim

LOSSES: dict[str, MakeLoss] = {
    "simcse": contrastive,
    "nli": softmax_over_pairs,
    "angle": angle,
    "matryoshka": matryoshka,
    "ese": ese,
}
"""By the names of `repro.objectives`, what makes the loss of a training."""


def training_code(config: TrainConfig) -> tuple[str, ...]:
    """Where the code starts that decides the bytes of an encoder: the training, its loss, its
    material, and the score that picks a checkpoint.
    """
    loss = LOSSES[config.objective]
    material = objective_of(config).material
    return module_of(train_encoder), module_of(loss), module_of(material), module_of(dev_scorer)


def hidden_dim_of(config: TrainConfig) -> int:
    """Hidden size D of a configuration's backbone."""
    return load_backbone(config.backbone).hidden_dim


@dataclass(frozen=True)
class TrainedCell:
    """A trained encoder in the store."""

    config: TrainConfig
    key: str
    folder: Path
    hit: bool  # Found, not trained, by this call
    seconds: float  # What training took when it was done

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The encoder with the pooler it was trained with, if its objective has one."""
        return SentenceEncoder.load(str(self.folder))

    @cached_property
    def pooler(self) -> Pooler:
        """The pooler alone; cheap, for grids."""
        settings = read_json(self.folder / "encoder.json")["pooler"]
        if settings is None:
            raise InputError(
                f"the {self.config.objective} objective trains no pooler: read prefixes of the "
                "states"
            )
        weights = load_file(self.folder / "pooler.safetensors")
        pooler = Pooler(weights["linear.weight"].shape[1], **settings)
        pooler.load_state_dict(weights)
        return pooler.to(default_device()).eval()

    @cached_property
    def head(self) -> nn.Linear:
        """The classifier that the `nli` objective trained along."""
        weights = load_file(self.folder / "head.safetensors")
        outputs, inputs = weights["weight"].shape
        head = nn.Linear(inputs, outputs)
        head.load_state_dict(weights)
        return head.to(default_device())

    @cached_property
    def _note(self) -> dict[str, Any]:
        return dict(read_json(self.folder / "history.json"))

    @property
    def history(self) -> History:
        """Losses and dev checks of the training."""
        return History(**self._note["history"])

    @property
    def dev_before(self) -> float:
        """Dev Spearman of the untrained encoder readout."""
        return float(self._note["dev_before"])

    @property
    def log_weights(self) -> list[float] | None:
        """Learned weights of ESE's shallow layers, as s in e^(−s), first layer first; None where
        they are fixed.
        """
        return self._note.get("log_weights")


def cell_key(config: TrainConfig, *, other: Any = None) -> str:
    """Digest of everything that decides the trained bytes: settings, code, backbone weights, data.

    How often a resumable state is saved decides none of them.
    """
    read = replace(only_what_is_read(config), save_every=TrainConfig().save_every)
    named = {
        "config": asdict(read),
        **contents_of(config),
    } | ({} if other is None else {"other": other})
    return digest(named, code=training_code(config))


def contents_of(config: TrainConfig) -> dict[str, str]:
    """What identifies the bytes that a configuration names: those of its backbone and its data."""
    return {
        "backbone": backbone_identity(config.backbone),
        "corpus": fingerprint(config.corpus, config.source),
        "validation": fingerprint(config.validation, config.source),
    }


def train_cell(
    config: TrainConfig,
    store: Store,
    *,
    progress: bool = True,
    examples: Any = None,
    dev: DevScore | None = None,
    start: Callable[[], SentenceEncoder] | None = None,
    other: Any = None,
) -> TrainedCell:
    """Train the configuration, or find it in the store; a killed run resumes.

    On the CPU it runs on `config.threads` threads, whatever else runs, so that its bytes do not
    depend on company. `examples`, the score on `dev` and the encoder to `start` from replace those
    that the configuration names; `other` then names what is given, so that it has a cell of its
    own.
    """

    @threads(config.threads)
    def make(target: Path, work: Path) -> None:
        objective = objective_of(config)
        material = objective.material(config, store) if examples is None else examples
        score = dev or dev_scorer(config.validation, config.source)
        encoder = start() if start else fresh_encoder(config, pooler=objective.pooler)
        if contents_of(config) != contents:  # Since another process was waited for, say
            changed = f"{config.backbone}, {config.corpus} or {config.validation}"
            raise InputError(f"{changed} was written to while it was read: begin again")
        trained = train_encoder(
            config,
            LOSSES[config.objective],
            material,
            score,
            encoder=encoder,
            pooler=objective.pooler,
            state_path=work / STATE,
            description=title(config),
            progress=progress,
        )
        trained.encoder.save(target)
        if trained.head is not None:
            save_file(dict(trained.head.state_dict()), target / "head.safetensors")
        weights = None if trained.log_weights is None else trained.log_weights.tolist()
        note = {"dev_before": trained.dev_before, "log_weights": weights, "config": asdict(config)}
        note["history"] = asdict(trained.history)
        (target / "history.json").write_text(json.dumps(note), encoding="utf-8")

    contents = contents_of(config)
    key = cell_key(config, other=other)
    noted = asdict(config) | ({} if other is None else {"other": other})
    made = store.get_or_make("encoders", key, make, config=noted)
    return TrainedCell(config, key, made.folder, made.hit, made.seconds)


def train_all(
    configs: Sequence[TrainConfig],
    store: Store,
    *,
    workers: int | None = None,
) -> list[TrainedCell]:
    """Train every configuration that the store does not hold yet; all of them, in order.

    By default one process a core on the CPU, and one at a time on an accelerator. A killed run goes
    on where it was.
    """
    missing = [
        c for c in dict.fromkeys(configs) if not store.folder("encoders", cell_key(c)).exists()
    ]
    usual = 1 if torch.cuda.is_available() else cpu_count()
    lanes = usual if workers is None else check_dim(workers, what="workers")
    count = min(lanes, len(missing))
    if count > 1:
        # What takes longest starts first: ESE, which trains every layer, and wide poolers
        queue = sorted(missing, key=lambda c: (c.objective != "ese", -c.dim))
        with progress_bar(total=len(queue), desc="training cells", show=True) as bar:
            for config in done_in_processes(
                partial(train_cell, store=store, progress=False),
                queue,
                count,
            ):
                bar.set_postfix_str(f"{title(config)}, seed {config.seed}")
                bar.update()
    cells = [train_cell(config, store) for config in configs]
    return [replace(cell, hit=cell.hit and cell.config not in missing) for cell in cells]


def recipe_rows(
    base: TrainConfig,
    settings: Sequence[Mapping[str, Any]],
    store: Store,
) -> pd.DataFrame:
    """Dev Spearman before and after a training with each setting's fields: what
    `objectives.RECIPES` rests on.
    """
    rows: list[dict[str, Any]] = []
    tried = ("learning_rate", "batch_size", "dropout", "pooling", "dim")
    for cell in train_all([replace(base, **setting) for setting in settings], store):
        c, history = cell.config, cell.history
        setting, last = (
            ", ".join(f"{name}={getattr(c, name)}" for name in tried),
            history.losses[-10:],
        )
        about = {
            "setting": setting,
            "method": c.pooling,
            "readout": c.checkpoint_by,
            "dim": c.dim,
            **columns_of(c),
        }
        values = {
            "spearman_before": cell.dev_before,
            "spearman": history.best_score,
            "best_step": history.best_step,
            "last_loss": sum(last) / len(last),
        }
        rows += [
            {**about, "seconds": cell.seconds, "metric": m, "value": value}
            for m, value in values.items()
        ]
    named = {"experiment": "tiny_recipe", "paper_table": "appendix", "profile": "embedded"}
    return make_rows(rows, **named, dataset=base.validation)
