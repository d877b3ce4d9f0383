"""Low-rank adapters beside a backbone's linear layers: y = x Wᵀ + b + (α/r) x Aᵀ Bᵀ (Hu et al.,
2022, Eq. 3).

Only A (r, d_in) and B (d_out, r) are trained, r(d_in + d_out) numbers a layer; W stays as it was
published. Also the one importer of peft, inside the functions: loading it takes a quarter of a
second that few encoders need.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from repro.models.backbone import Backbone
from repro.models.sources import ADAPTER_WEIGHTS, MINILM, SHIPPED, is_hub_id
from repro.models.whole import read_weights
from repro.reading import is_out_of_memory
from repro.seeding import derive_seed
from repro.settings import LoraConfig
from repro.types import InputError


def add_lora(backbone: Backbone, config: LoraConfig, *, seed: int) -> Backbone:
    """Put an adapter beside every targeted linear layer, in place; from then on only adapters are
    trainable.

    B starts at 0, so outputs are unchanged until a step is taken. The same seed gives the same A on
    every device.

    Raises:
        InputError: for a target that no linear layer inside the blocks is called, or a backbone
            with adapters.
    """
    from peft import LoraConfig as PeftConfig
    from peft import inject_adapter_in_model

    if backbone.lora is not None:
        raise InputError(f"{backbone.name} has adapters already: expected a network without")
    sizes = {"r": config.rank, "lora_alpha": config.alpha, "lora_dropout": config.dropout}
    settings = PeftConfig(**sizes, target_modules=targets(backbone, config.targets), bias="none")
    device = backbone.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "lora", config.rank))
        inject_adapter_in_model(settings, backbone.model.cpu())
    # New layers start in training mode, with dropout
    backbone.model.to(device).train(backbone.training)
    backbone.lora = config
    return backbone


def targets(backbone: Backbone, names: tuple[str, ...] = ()) -> list[str]:
    """Full names of the linear layers inside the blocks, or of those whose last part is among
    `names`.
    """
    inside = {id(module) for module in backbone.blocks.modules() if isinstance(module, nn.Linear)}
    linear = [name for name, module in backbone.model.named_modules() if id(module) in inside]
    if not linear:
        raise InputError(
            f"{backbone.name} has no linear layers inside its blocks: adapters have no place there"
        )
    ends = sorted({name.rpartition(".")[2] for name in linear})
    for unknown in set(names) - set(ends):
        where = f"no linear layer inside the blocks of {backbone.name} is called {unknown!r}"
        raise InputError(f"{where}: choose among {', '.join(ends)}")
    suffixes = names or ends
    return [name for name in linear if name.rpartition(".")[2] in suffixes]


def adapter_weights(backbone: Backbone) -> dict[str, Tensor]:
    """All A and B, by name."""
    return {name: weight for name, weight in backbone.model.named_parameters() if ".lora_" in name}


def base_digest(backbone: Backbone) -> str:
    """Digest of the network's own weights, without adapters: sixteen hex digits, on whatever
    device.
    """
    weights_digest = hashlib.sha256()
    for name, weight in sorted(backbone.model.state_dict().items()):
        if ".lora_" not in name:
            own_name = name.replace(".base_layer", "")
            weights_digest.update(f"{own_name} {weight.dtype} {tuple(weight.shape)}".encode())
            weights_digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy())
    return weights_digest.hexdigest()[:16]


def save_adapters(backbone: Backbone, folder: Path) -> dict[str, Any]:
    """Write the adapters alone, and return what `load_adapters` must know: the base, its digest,
    the depth kept.
    """
    weights = {
        name: weight.detach().cpu().contiguous()
        for name, weight in adapter_weights(backbone).items()
    }
    save_file(weights, folder / ADAPTER_WEIGHTS)
    # Other folders are found from anywhere
    named = backbone.name in (*SHIPPED, MINILM) or is_hub_id(backbone.name)
    name = backbone.name if named else str(Path(os.path.expanduser(backbone.name)).resolve())
    return {"name": name, "digest": base_digest(backbone), "layers": backbone.n_layers}


def load_adapters(
    backbone: Backbone,
    folder: Path,
    config: LoraConfig,
    base: dict[str, Any],
) -> None:
    """Put the adapters of a folder beside the layers of their base."""
    if backbone.n_layers > base["layers"]:
        backbone.keep(base["layers"])
    digest_here = base_digest(backbone)
    if digest_here != base["digest"]:
        raise InputError(
            f"the adapters in {folder} were trained beside {base['name']} with weights "
            f"{base['digest']}, but those it has here are {digest_here}: put the network back that "
            "was there, or train the adapters again"
        )
    add_lora(backbone, config, seed=0)
    file = folder / ADAPTER_WEIGHTS
    try:
        weights = read_weights(file)
    except (OSError, SafetensorError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(
            f"{file} cannot be read ({error}): the encoder folder is damaged"
        ) from error
    places = adapter_weights(backbone)
    if {name: tensor.shape for name, tensor in weights.items()} != {
        n: p.shape for n, p in places.items()
    }:
        raise InputError(f"{file} does not fit {base['name']}: the encoder folder is damaged")
    for name, weight in weights.items():
        places[name].data.copy_(weight)
