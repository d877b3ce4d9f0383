"""The advisor: how few dimensions keep what an embedding is used for, measured on a user's own embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dimadvise.advice import Advice, Candidate, advise
    from dimadvise.evidence import Classes, Evidence, Pairs, Search
    from dimadvise.report import savings

__all__ = ["Advice", "Candidate", "Classes", "Evidence", "Pairs", "Search", "advise", "savings"]


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is asked for: the command line starts before scikit-learn does."""
    if name not in __all__:
        raise AttributeError(f"module 'dimadvise' has no attribute {name!r}")
    home = {"Advice": "advice", "Candidate": "advice", "advise": "advice", "savings": "report"}.get(name, "evidence")
    return getattr(import_module(f"dimadvise.{home}"), name)
