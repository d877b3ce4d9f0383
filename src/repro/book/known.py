"""Imported once, by the process that kernels are forked from: no page then reads what the code it stands on does."""

import sys

from repro.digests import PACKAGES, read_module

for name in sorted(sys.modules):
    if name.partition(".")[0] in PACKAGES:
        read_module(name)
