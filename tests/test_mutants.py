"""The list of mistakes behind `make mutants` fits the package."""

import subprocess
import sys
from pathlib import Path


def test_every_mistake_finds_its_line_and_its_tests():
    ran = subprocess.run([sys.executable, Path(__file__).parent / "mutants", "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
