"""Options of `repro train` for ESE's comparison; one that the objective does not read is refused, not ignored."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from repro.cli_help import Unset
from repro.config import SCALING, TrainConfig, override
from repro.objectives import ANGLE_PRESETS, ESPRESSO_FORMS, LayerWeights, LoraConfig, Strategy
from repro.types import InputError

DIM = 128
"""pooler size, and ESE's compressed size, where none is given"""
READ_BY = {
    "difference": ("nli",),
    "activation": ("simcse", "nli"),
    "dims": ("simcse", "nli", "matryoshka", "ese"),
    **dict.fromkeys(("form", "layer_weights", "strategy", "alpha", "beta"), ("ese",)),
    **dict.fromkeys(("preset", "examples"), SCALING),
}
"""option to the objectives that read it; all objectives read the others"""


@dataclass(frozen=True)
class ScalingOptions:
    """Options of AnglE, Matryoshka and ESE, and of the large backbones they are published on."""

    preset: Unset[Literal["paper", "code", "ese_readme"]] = None
    """angle, matryoshka, ese: weights of AnglE's terms; by default paper"""
    examples: Unset[Literal["pairs", "triples"]] = None
    """angle, matryoshka, ese: entailed and contradicted pairs (the default), or premises with one hypothesis of each"""
    form: Unset[Literal["paper", "code"]] = None
    """ese: as printed (the default), or as its authors released it"""
    layer_weights: Unset[LayerWeights] = None
    """ese: of the layers below the last; by default the form's, log"""
    strategy: Unset[Strategy] = None
    """ese: what the compressed target is made of; by default the form's, dependencies"""
    alpha: Unset[float] = None
    """ese: weight of learn-to-express; by default 1"""
    beta: Unset[float] = None
    """ese: weight of learn-to-compress; by default 1"""
    lora_rank: Unset[int] = None
    """train adapters of this rank in place of the backbone's own weights; by default the weights themselves"""
    bidirectional: bool = False
    """let the tokens of a decoder see those after them"""
    final_norm: Unset[Literal["last", "all", "none"]] = None
    """which states pass the backbone's final norm, if it has one; by default last"""

    def settings(self) -> dict[str, Any]:
        """Fields of `TrainConfig`; None where nothing was asked for."""
        form = ESPRESSO_FORMS[self.form or "paper"]
        return {
            "angle": None if self.preset is None else ANGLE_PRESETS[self.preset],
            "examples": self.examples,
            "espresso": override(
                form, layer_weights=self.layer_weights, strategy=self.strategy, alpha=self.alpha, beta=self.beta
            ),
            "lora": None if self.lora_rank is None else LoraConfig(rank=self.lora_rank),
            "bidirectional": self.bidirectional or None,
            "final_norm": self.final_norm,
        }


def refuse_unread(objective: str, options: ScalingOptions, others: Mapping[str, Any]) -> None:
    """Refuse an option that the objective does not read.

    Args:
        objective: what is trained.
        options: those of ESE's comparison.
        others: further options, by name; those not given are None or empty.

    Raises:
        InputError: naming the option, and the objectives that it belongs to.
    """
    untouched = {f.name: f.default for f in fields(options)}
    given = [name for name, value in asdict(options).items() if value != untouched[name]]
    given += [name for name, value in others.items() if value not in (None, ())]
    for name in given:
        if objective not in READ_BY.get(name, (objective,)):
            way_out = " (read prefixes of it with `repro evaluate --dims`)" if name == "dims" else ""
            raise InputError(
                f"--{name.replace('_', '-')} is not read by the objective {objective!r}, only by "
                f"{', '.join(READ_BY[name])}: leave it out{way_out}"
            )


def trainings(base: TrainConfig, dims: Sequence[int]) -> dict[str, TrainConfig]:
    """The encoders that a command trains, by the subfolder of its output that they go to; "" is the output itself.

    SimCSE and the softmax classifier train one per pooler size, ESE one per compressed size; AnglE and Matryoshka
    train one, whose prefixes `dims` are.
    """
    if base.objective == "angle":
        return {"": base}
    if base.objective == "matryoshka":
        return {"": replace(base, prefixes=tuple(sorted(dims)))}
    return {f"dim{dim}": replace(base, dim=dim) for dim in dims or (DIM,)}
