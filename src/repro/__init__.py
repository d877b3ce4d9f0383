"""repro: how many dimensions does a sentence embedding need?

Five documents on that question, computed side by side. Importing this package is cheap: nothing
heavy is loaded until a floor that needs it is imported (`repro.models` brings torch, and so on).
"""

__version__ = "0.1.0"
