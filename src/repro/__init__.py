"""repro: how many dimensions does a sentence embedding need?

Importing this package is cheap: nothing heavy is loaded until a floor that needs it (`repro.models`
brings torch).
"""

__version__ = "0.1.0"
