"""Published sentence encoders by hub id, and whole: network, pooling and what follows it."""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from repro.models.encoder import SentenceEncoder
from repro.models.parts import WEIGHTS_MISSING
from repro.models.transformed import Transformed
from repro.types import Encoder, InputError

FILES = ("*.json", "*.txt", "*.model", "model*.safetensors", "*/model.safetensors")
"""what is read of a published model; no pickled weights, no other framework's"""


def hub_folder(name: str, *, download: bool = False) -> Path:
    """Folder of a published model in the hub's cache, fetched into it first if `download` is set.

    Raises:
        InputError: if it is not there, cannot be fetched, or has no weights in safetensors.
    """
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(FILES), local_files_only=not download))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        if not download:
            raise InputError(f"{name} is not in the hub's cache on this machine") from error
        reason = (str(error) or repr(error)).splitlines()[0][:160]
        raise InputError(f"{name} cannot be fetched from the hub ({reason})") from error
    if not list(folder.glob("model*.safetensors")):
        raise InputError(f"{name} in {folder} has no {WEIGHTS_MISSING}")
    return folder


def load_modules(folder: Path, *, device: str | None = None) -> Encoder:
    """The encoder that a folder's `modules.json` describes, both readouts its last part's; else mean pooling.

    Raises:
        InputError: for a part that is not known here, or settings or weights that cannot be read.
    """
    pooling = None if (folder / "modules.json").is_file() else "mean"
    encoder = SentenceEncoder.load(str(folder), pooling=pooling, device=device)
    return encoder if encoder.pooler is None else Transformed(encoder, encoder.pooler.project, encoder.dim)
