"""What a page's trainings will cost before anyone pays: its own code is followed up to where it
needs an encoder.

Trainings are noted, not done; sets are generated ones, and count as large as published. What that
takes is estimated in operations of the transformer's products: 2 for each weight and token
forwards, 6 for a training.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from repro import data
from repro.digests import PACKAGES
from repro.models import SentenceEncoder, pretrained
from repro.models.backbone import load_backbone
from repro.runs.cell import TrainedCell, hidden_dim_of, train_all, train_cell
from repro.settings import TrainConfig
from repro.types import InputError

PUBLISHED = {
    "roberta-base": (768, 12, 3072, 50265),
    "BAAI/bge-base-en-v1.5": (768, 12, 3072, 30522),
}
"""Hidden size, blocks, inner size and vocabulary of what `profile paper` trains, where it is not
here.
"""
LENGTH = 32
"""Tokens a text that is encoded is taken to have; a training's are its `max_length`, the most it
can have.
"""
SIDES = {"pairs": 2, "labelled_pairs": 2, "texts": 1, "captions": 1, "retrieval": 10}
"""Texts of a row of a set, by its kind."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a network that decide what it costs."""

    hidden: int
    layers: int
    inner: int
    vocabulary: int
    heads: int = 12
    shared: float = 1.0  # key and value heads for each query head
    # Three matrices between the inner layers, as in Llama, where others have two
    gated: bool = False

    @property
    def block_weights(self) -> float:
        """Weights of all blocks' matrices."""
        attention = (2 + 2 * self.shared) * self.hidden**2
        return self.layers * (attention + (3 if self.gated else 2) * self.hidden * self.inner)

    @property
    def weights(self) -> float:
        """Weights with those of the vocabulary."""
        return self.block_weights + self.vocabulary * self.hidden

    def forward(self, tokens: float, length: int) -> float:
        """Operations of one pass over so many tokens in texts of one length."""
        return tokens * (2 * self.block_weights + 4 * self.layers * self.hidden * length)

    def training_bytes(self, texts: int, length: int, *, bf16: bool) -> float:
        """Weights, gradients, Adam's two moments and the best weights kept; and the states of a
        batch of texts.

        States are those of Korthikanti et al. (2022, Eq. 2): 34·D + 5·heads·length bytes a token
        and block in bfloat16.
        """
        states = texts * length * self.layers * (34 * self.hidden + 5 * self.heads * length)
        return 20 * self.weights + states * (1 if bf16 else 2)


def shape_of(name: str, layers: int | None = None) -> Shape:
    """A network's shape from its config.json, here or in the hub's cache, else as published;
    `layers` keeps so many.
    """
    try:
        hub, only = pretrained.is_hub_id(name), ("config.json",)
        folder = (
            pretrained.hub_folder(name, download=False, patterns=only)
            if hub
            else pretrained.locate(name)
        )
    except InputError:
        if name not in PUBLISHED:
            raise InputError(
                f"{name} is not here, so its size is not known: give a folder with config.json"
            ) from None
        hidden, blocks, inner, vocabulary = PUBLISHED[name]
        return Shape(hidden, layers or blocks, inner, vocabulary, heads=hidden // 64)
    said = pretrained.read_json(folder, "config.json", {})
    heads, blocks = said["num_attention_heads"], layers or said["num_hidden_layers"]
    sizes = said["hidden_size"], blocks, said["intermediate_size"], said["vocab_size"], heads
    return Shape(
        *sizes,
        (said.get("num_key_value_heads") or heads) / heads,
        said.get("hidden_act") == "silu",
    )


class Followed(Exception):
    """The page asks for embeddings, of encoders that nobody has trained yet."""


def follow(cells: Iterable[str], values: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Sets and trainings that cells of code ask for, none of them trained, and why they stop.

    `values` replace those of the first cell, which declares them.
    """
    page, why = ModuleType("__main__"), "its end"
    vars(page)["display"] = lambda *_: None
    with (
        _listening() as notes,
        patch.dict(sys.modules, {"__main__": page}),
        redirect_stdout(StringIO()),
    ):
        try:
            for place, code in enumerate(cells):
                exec(code, vars(page))
                vars(page).update({} if place else values)
        except Exception as error:  # a page may stop in any way: what it had asked for counts
            why = f"{type(error).__name__}: {error}"
    return notes, why


@contextmanager
def _listening() -> Iterator[list[dict[str, Any]]]:
    """Note sets and trainings, in place of training, wherever a module has these functions by
    name.
    """
    notes: list[dict[str, Any]] = []
    load_set = data.load

    def train(configs: Sequence[TrainConfig], *_: Any, **__: Any) -> list[TrainedCell]:
        notes.extend(asdict(config) for config in configs)
        return [TrainedCell(config, f"planned {config}", Path(), False, 0.0) for config in configs]

    def load(name: Any, *, split: str | None = None, **options: Any) -> Any:
        spec = data.DATASETS.get(str(name))
        if spec is not None and spec.kind in SIDES:
            parts = tuple(spec.sizes) if split == "all" else (split or spec.default_split,)
            texts = SIDES[spec.kind] * sum(spec.sizes.get(part, 0) for part in parts)
            notes.append({"name": spec.name, "parts": parts, "texts": texts})
        return load_set(name, split=split, **options)

    def stop(*_: Any, **__: Any) -> Any:
        raise Followed("from here on it needs encoders")

    given: dict[Any, Any] = {
        hidden_dim_of: lambda config: shape_of(config.backbone).hidden,
        load_backbone: lambda name, **_: SimpleNamespace(hidden_dim=shape_of(name).hidden),
        train_cell: lambda config, *_, **__: train([config])[0],
        train_all: train,
        data.load: load,
    }
    _swap(given)
    try:
        with patch.object(SentenceEncoder, "load", stop):
            yield notes
    finally:
        # Also in modules that the page was the first to import
        _swap({new: old for old, new in given.items()})


def _swap(given: Mapping[Any, Any]) -> None:
    for name, module in list(sys.modules.items()):
        for known, value in (
            list(vars(module).items()) if name.partition(".")[0] in PACKAGES else ()
        ):
            if isinstance(value, FunctionType) and value in given:
                setattr(module, known, given[value])


def estimate(
    notes: Iterable[dict[str, Any]],
    *,
    seeds: int = 1,
    step_two: bool = False,
) -> dict[str, float]:
    """Trainings, the most texts that each encoder reads then, operations, bytes of memory and of
    disk.

    Args:
        notes: what `follow` found; equal ones count once.
        seeds: repetitions of all trainings where the notes are of one of several seeds.
        step_two: two more passes over the sentences of each training, for poolers on frozen
            encoders.
    """
    said = list({json.dumps(each, sort_keys=True): each for each in notes}.values())
    trained = [each for each in said if "objective" in each]
    texts = sum(each["texts"] for each in said if "texts" in each)
    operations = memory = disk = 0.0
    for each in trained:
        shape, length = shape_of(each["backbone"], each["layers"]), each["max_length"]
        sides = 3 if each["examples"] == "triples" else 2
        passes = each["sentences"] * each["epochs"] * (3 * sides + 2 * step_two)
        operations += seeds * (
            shape.forward(passes * length, length) + shape.forward(texts * LENGTH, LENGTH)
        )
        disk += seeds * 4 * (shape.weights + shape.hidden * each["dim"] + texts * shape.hidden)
        memory = max(
            memory,
            shape.training_bytes(each["batch_size"] * sides, length, bf16=each["bf16"]),
        )
    count = seeds * len(trained)
    return {
        "trainings": count,
        "texts": texts,
        "operations": operations,
        "memory": memory,
        "disk": disk,
    }
