"""`python -m dimadvise` is the command `dimadvise`."""

from repro.cli import dimadvise

if __name__ == "__main__":
    dimadvise()
