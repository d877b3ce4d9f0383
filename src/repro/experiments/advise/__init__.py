"""The advisor: how few dimensions keep what an embedding is used for, measured on a user's own embeddings."""

from repro.experiments.advise.advice import Advice, Candidate, advise
from repro.experiments.advise.evidence import Classes, Evidence, Pairs, Search
from repro.experiments.advise.savings import Saving, savings

__all__ = ["Advice", "Candidate", "Classes", "Evidence", "Pairs", "Saving", "Search", "advise", "savings"]
