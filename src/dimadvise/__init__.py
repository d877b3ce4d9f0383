"""The advisor: how few dimensions keep what an embedding is used for, measured on a user's own embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dimadvise.advice import Advice, Candidate, advise
    from dimadvise.evidence import Classes, Evidence, Pairs, Search
    from dimadvise.report import Saving, savings

__all__ = ["Advice", "Candidate", "Classes", "Evidence", "Pairs", "Saving", "Search", "advise", "savings"]
_HOMES = {"advice": ("Advice", "Candidate", "advise"), "report": ("Saving", "savings")}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is asked for: the command line starts before scikit-learn does."""
    if name not in __all__:
        raise AttributeError(f"module 'dimadvise' has no attribute {name!r}")
    home = next((home for home, names in _HOMES.items() if name in names), "evidence")
    return getattr(import_module(f"dimadvise.{home}"), name)
