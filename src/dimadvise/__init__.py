"""The advisor: how few dimensions keep what an embedding is used for, measured on a user's own embeddings."""

from dimadvise.advice import Advice, Candidate, advise
from dimadvise.evidence import Classes, Evidence, Pairs, Search
from dimadvise.savings import Saving, savings

__all__ = ["Advice", "Candidate", "Classes", "Evidence", "Pairs", "Saving", "Search", "advise", "savings"]
