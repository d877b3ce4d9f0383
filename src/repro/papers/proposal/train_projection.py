"""The proposal's encoder, trained at a size: mean of states, a linear map without bias, unit length, InfoNCE."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from repro.config import Profile, TrainConfig, digest
from repro.config import profile as make_profile
from repro.evaluation.protocol import all_texts
from repro.models import Pooler
from repro.runs.cell import TrainedCell, cell_key, scorer_on, threads, write_trained
from repro.runs.sweep import Sweep, hidden_dim_of, states_of
from repro.runs.texts import training_sentences
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.training.contrastive import train_contrastive
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError

POOLER: dict[str, Any] = {"activation": "identity", "bias": False, "normalize": True}
"""the proposal's projection: z = Wv, divided by its length"""
PROPOSED = (128, 200, 256, 384)
"""sizes that the proposal names"""
QUICK: dict[str, Any] = {"sentences": 1_600}
"""of the embedded profile: half of what other pages train, as every size is a training of its own"""
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    # The recipe of this network on real text was found with [CLS]. The mean of its states starts higher, at 54.2 on
    # STS-B dev, and every rate tried takes something away: 25 steps at full size end at 52.7 at 3e-5, 50.0 at 1e-4 and
    # 45.7 at 3e-4, 50 steps at the recipe's 1e-3 at 40.0. The smallest hardly moves the projection either.
    ("repro-tiny", "local"): {"learning_rate": 1e-4, "dropout": 0.4},
    ("repro-tiny", "hub"): {"learning_rate": 1e-4, "dropout": 0.4},
}
"""(backbone, source) to settings that differ from its recipe"""


def projection_profile(name: str, *, backbone: str | None = None, source: str | None = None, **train: Any) -> Profile:
    """The named profile as this experiment trains it; fields of `TrainConfig` that are given win, None keeps them.

    Args:
        name: embedded, gpu or paper.
        backbone: another network than the profile's.
        source: local, hub or microworld.
        train: fields of `TrainConfig`.
    """
    plain = make_profile(name, backbone=backbone, source=source).train
    own = (QUICK if name == "embedded" else {}) | SETTINGS.get((plain.backbone, plain.source), {})
    given = {field: value for field, value in train.items() if value is not None}
    chosen = make_profile(name, backbone=backbone, source=source, **(own | given))
    return replace(chosen, train=preset(chosen.train))


def default_dims(hidden_dim: int) -> list[int]:
    """The proposal's sizes below the full one; of a network too small for any of them a half, a quarter, an eighth."""
    return [d for d in PROPOSED if d < hidden_dim] or [hidden_dim // 8, hidden_dim // 4, hidden_dim // 2]


def preset(config: TrainConfig) -> TrainConfig:
    """A configuration with the proposal's pooling and its linear projection."""
    return replace(config, pooling="mean", activation="identity")


def train_projection(config: TrainConfig, dev: ScoredPairs, store: Store, *, progress: bool = True) -> TrainedCell:
    """Train encoder and projection together, or find them; as `experiments.cell.train_cell`, with the pooler above.

    Args:
        config: what to train and how; its `validation` is not read.
        dev: pairs that pick the checkpoint.
        store: where it is kept.
        progress: show a progress bar.

    Raises:
        InputError: for another pooling or activation than the proposal's.
    """
    if config != preset(config):
        raise InputError(f"pooling is {config.pooling}, activation {config.activation}: expected `preset(config)`")

    @threads(config.threads)
    def make(target: Path, work: Path) -> None:
        encoder = fresh_encoder(config)
        pooler = Pooler(encoder.hidden_dim, config.dim, **POOLER).initialise(config.seed)
        encoder.pooler = pooler.to(encoder.backbone.device)
        trained = train_contrastive(
            config,
            training_sentences(config, store),
            scorer_on(dev),
            encoder=encoder,
            state_path=work / "state.safetensors",
            save_every=config.save_every,
            progress=progress,
        )
        write_trained(trained, config, target)

    judged_by = digest([dev.texts1, dev.texts2, dev.scores.tolist()])
    key = digest({"cell": cell_key(config), "pooler": POOLER, "dev": judged_by})
    made = store.get_or_make("encoders", key, make, config=asdict(config))
    return TrainedCell(config, key, made.folder, made.hit, made.seconds)


def train_projections(
    config: TrainConfig,
    dims: Sequence[int],
    dev: ScoredPairs,
    sets: Sequence[DataSet],
    store: Store,
    *,
    progress: bool = True,
) -> Sweep:
    """An encoder at full size D and one at every dim below, with the states of all texts under each.

    Args:
        config: what to train and how; pooling, activation and dim are set here.
        dims: sizes; those that are not below D are left out.
        dev: pairs that pick every checkpoint.
        sets: what else is encoded.
        store: where trained encoders and states are kept.
        progress: show progress bars.

    Raises:
        InputError: if no dim lies below the full size, or one comes twice.
    """
    full = hidden_dim_of(config)
    below = [d for d in dims if 0 < d < full]
    if not below or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected different sizes below the {full} of {config.backbone}")
    sizes = sorted(below, reverse=True)
    cells = {d: train_projection(replace(preset(config), dim=d), dev, store, progress=progress) for d in [full, *sizes]}
    texts = all_texts([dev, *sets])
    return Sweep(cells, {d: states_of(c, texts, store) for d, c in cells.items()}, sum(c.hit for c in cells.values()))
