"""`python -m dimadvise` is the command `dimadvise`."""

from repro.__main__ import dimadvise

if __name__ == "__main__":
    dimadvise()
