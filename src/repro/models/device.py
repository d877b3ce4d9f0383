"""Where a network runs: the accelerator that is there, or the device that is asked for."""

import torch

from repro.types import InputError


def default_device() -> torch.device:
    """CUDA if there is such an accelerator, else the CPU.

    Apple's `mps` is taken where it is asked for by name: it has no float64, in which ESE's targets
    and SBERT-WK are computed, so that a training would stop there that a CPU carries through.
    """
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def chosen_device(name: torch.device | str | None) -> torch.device:
    """The device of that name, by default `default_device`.

    Raises:
        InputError: for a device that torch does not know or this machine does not have.
    """
    if name is None:
        return default_device()
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error) or repr(error)).splitlines()[0][:160]
        wrong = f"device {str(name)!r} cannot be used here ({reason})"
        raise InputError(f"{wrong}: expected cpu, cuda or mps, whichever there is") from error
    return device
