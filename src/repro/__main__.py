"""`python -m repro` is the command `repro`."""

from repro.cli import main

if __name__ == "__main__":
    main()
