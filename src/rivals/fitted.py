"""What this book trains or fits for SBERT-LP's tables, kept in the store: InferSent, flow, whitening.

Every function returns how to make the encoder and the digest that names it. Training runs on one thread on the CPU, so
that its bytes do not depend on company.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from repro.digests import digest
from repro.models.pretrained import default_device
from repro.models.transformed import Transformed
from repro.runs.cell import threads
from repro.runs.embeddings import encode_once
from repro.sets import LabelledPairs
from repro.store import Store
from repro.types import Encoder
from rivals.flow import Flow
from rivals.flow_fit import FlowConfig, fit_flow
from rivals.infersent import InferSent
from rivals.infersent_training import InferSentConfig, train_infersent
from rivals.static import WordTable
from rivals.system import Named
from rivals.whitening import Whitening, fit_whitening

INFERSENT_CODE = (
    "rivals.infersent_training",
    "rivals.infersent",
    "rivals.static",
    "repro.data.batching",
    "repro.seeding",
)
FLOW_CODE = (
    "repro.models.transformed",
    "rivals.flow_fit",
    "repro.training.loop",
    "rivals.flow",
    "repro.data.batching",
    "repro.seeding",
)


def trained_infersent(
    table: Callable[[], WordTable],
    vectors: str,
    pairs: LabelledPairs,
    config: InferSentConfig,
    store: Store,
    *,
    progress: bool = True,
) -> Named:
    """InferSent on word vectors and entailment pairs.

    Args:
        table: reads the vectors; called only if they are needed.
        vectors: digest of the vectors.
        pairs: what it is trained on.
        config: sizes and schedule.
        store: where it is kept.
        progress: show a progress bar.
    """
    wanted = {"vectors": vectors, "config": asdict(config)}
    key = digest(
        {**wanted, "pairs": digest([pairs.texts1, pairs.texts2, [str(label) for label in pairs.labels]])},
        code=INFERSENT_CODE,
    )

    @threads(1)
    def make(target: Path, work: Path) -> None:
        encoder, history = train_infersent(pairs, table(), config, progress=progress)
        encoder.save(target)
        (target / "history.json").write_text(json.dumps(asdict(history)), encoding="utf-8")

    made = store.get_or_make("infersent", key, make, config=wanted)
    return lambda: InferSent.load(made.folder, table()), key


def fitted_flow(base: Named, texts: Sequence[str], config: FlowConfig, store: Store, *, progress: bool = True) -> Named:
    """A flow on the `encoder` readout of another encoder, fitted to its states of some distinct texts."""
    encoder, identity = base
    wanted = {"base": identity, "texts": digest(list(texts)), "config": asdict(config)}
    key = digest(wanted, code=FLOW_CODE)

    @threads(1)
    def make(target: Path, work: Path) -> None:
        table = encode_once(encoder, identity, texts, store, progress=progress)
        flow, history = fit_flow(table.X, config, progress=progress)
        save_file({k: v.detach().cpu().contiguous() for k, v in flow.state_dict().items()}, target / "flow.safetensors")
        note = {"flow": flow.settings, "losses": history.losses}
        (target / "flow.json").write_text(json.dumps(note), encoding="utf-8")

    made = store.get_or_make("flows", key, make, config=wanted)

    def load() -> Encoder:
        flow = Flow(**json.loads((made.folder / "flow.json").read_text(encoding="utf-8"))["flow"])
        flow.load_state_dict(load_file(made.folder / "flow.safetensors"))
        return Transformed(encoder(), flow.to(default_device()).eval().transform, flow.dim)

    return load, key


def fitted_whitening(base: Named, texts: Sequence[str], store: Store, *, progress: bool = True) -> Named:
    """Whitening of the `encoder` readout of another encoder, fitted to its states of some distinct texts."""
    encoder, identity = base
    wanted = {"base": identity, "texts": digest(list(texts))}
    key = digest(wanted, code=("rivals.whitening",))

    def make(target: Path, work: Path) -> None:
        table = encode_once(encoder, identity, texts, store, progress=progress)
        fit = fit_whitening(table.X)
        save_arrays({"mean": fit.mean, "matrix": fit.matrix}, target / "whitening.safetensors")

    made = store.get_or_make("whitenings", key, make, config=wanted)

    def load() -> Encoder:
        fit = Whitening(**load_arrays(made.folder / "whitening.safetensors"))
        return Transformed(encoder(), fit, fit.dim)

    return load, key
