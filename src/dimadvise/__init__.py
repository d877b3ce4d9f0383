"""The advisor: the fewest bytes a vector that keep what an embedding is used for, measured on a
user's own vectors, and whether what was promised of them still holds.

    >>> advice = dimadvise.advise(X, recall=0.95)
    >>> print(advice)
    >>> advice.save("advice")
    >>> dimadvise.check("advice", X_of_today).broken
"""

from dimadvise.advisor import Advice, Check, advise, check
from dimadvise.request import Request

__all__ = ["Advice", "Check", "Request", "advise", "check"]
