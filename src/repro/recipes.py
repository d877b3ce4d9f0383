"""Settings that suit a network on a kind of data, found by trials; a profile starts from them."""

from typing import Any

RECIPES: dict[tuple[str, str | None], dict[str, Any]] = {
    # The contrastive loss of a network this small falls to 0.06 within 150 steps at dropout 0.1 and stops
    # teaching; on Wikipedia sentences dropout 0.4 keeps it near 1 and lifts STS-B dev from 0.16 to 0.40 instead
    # of 0.22 (results/tiny_recipe.parquet). Generated sentences share most words and are hard to tell apart as it
    # is: there that dropout teaches nothing, and mean pooling is lifted (0.26 to 0.29), which on Wikipedia
    # sentences it is not (0.54 to 0.47).
    ("repro-tiny", "local"): {"batch_size": 64, "learning_rate": 1e-3, "dropout": 0.4},
    ("repro-tiny", "hub"): {"batch_size": 64, "learning_rate": 1e-3, "dropout": 0.4},
    ("repro-tiny", "microworld"): {"batch_size": 64, "learning_rate": 3e-4, "pooling": "mean"},
    ("bert-base-uncased", None): {"batch_size": 64, "learning_rate": 3e-5},
    ("bert-large-uncased", None): {"batch_size": 64, "learning_rate": 1e-5},
    ("roberta-base", None): {"batch_size": 512, "learning_rate": 1e-5},
    ("roberta-large", None): {"batch_size": 512, "learning_rate": 3e-5},
}
"""(backbone, source) to the settings that suit it; source None holds for all. The last four are SimCSE's own."""
NLI_RECIPES: dict[tuple[str, str | None], dict[str, Any]] = {
    # A hundred steps do not teach this network entailment with dropout (loss 1.09, ln 3 = 1.10); without it the
    # loss falls to 1.04 in 150 steps and STS-B dev rises from 0.16 to 0.28.
    ("repro-tiny", "local"): {"learning_rate": 1e-3, "dropout": 0.0, "sentences": 6_400},
    ("repro-tiny", "hub"): {"learning_rate": 1e-3, "dropout": 0.0, "sentences": 6_400},
    ("repro-tiny", "microworld"): {"learning_rate": 1e-3, "pooling": "mean", "sentences": 4_800},
}
"""the same for the `nli` objective; others have Sentence-BERT's learning rate"""
ANGLE_RECIPES: dict[tuple[str, str | None], dict[str, Any]] = {}
"""the same for `angle`, `matryoshka` and `ese`; others have the paper's learning rate"""
