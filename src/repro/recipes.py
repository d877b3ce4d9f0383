"""Settings that suit a network on a kind of data, found by trials; a profile starts from them."""

from typing import Any

from repro.objectives import LoraConfig

RECIPES: dict[tuple[str, str | None], dict[str, Any]] = {
    # The contrastive loss of a network this small falls to 0.06 within 150 steps at dropout 0.1 and stops
    # teaching; on Wikipedia sentences dropout 0.4 keeps it near 1 and lifts STS-B dev from 0.16 to 0.40 instead
    # of 0.22 (results/tiny_recipe.parquet). Generated sentences share most words and are hard to tell apart as it
    # is: there that dropout teaches nothing, and mean pooling is lifted (0.26 to 0.29), which on Wikipedia
    # sentences it is not (0.54 to 0.47).
    ("repro-tiny", "local"): {"batch_size": 64, "learning_rate": 1e-3, "dropout": 0.4},
    ("repro-tiny", "hub"): {"batch_size": 64, "learning_rate": 1e-3, "dropout": 0.4},
    ("repro-tiny", "microworld"): {"batch_size": 64, "learning_rate": 3e-4, "pooling": "mean", "sentences": 1_600},
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
    ("repro-tiny", "microworld"): {"learning_rate": 1e-3, "pooling": "mean", "sentences": 1_600},
}
"""the same for the `nli` objective; others have Sentence-BERT's learning rate"""
_DECODER = {"pooling": "mean", "bidirectional": True, "lora": LoraConfig(), "learning_rate": 2e-4}
"""of Li et al. (2025, §4.1) for large language models"""
ANGLE_RECIPES: dict[tuple[str, str | None], dict[str, Any]] = {
    # AnglE alone, 50 steps of 64 real pairs, STS-B dev: mean pooling rises from 54.2 to 58.2 at 3e-4 and to 57.9 at
    # 1e-3; with dropout 0.1 to 56.4 and 57.4. `cls` starts at 16.0 and ends at 43.6. Generated pairs: 25.5 to 32.4 in
    # 30 steps at 3e-4, then no further; 30.7 at 1e-4; 1e-3 falls below the start.
    ("repro-tiny", "local"): {
        "pooling": "mean",
        "learning_rate": 3e-4,
        "warmup": 0.1,
        "dropout": 0.0,
        "sentences": 3_200,
    },
    ("repro-tiny", "hub"): {
        "pooling": "mean",
        "learning_rate": 3e-4,
        "warmup": 0.1,
        "dropout": 0.0,
        "sentences": 3_200,
    },
    ("repro-tiny", "microworld"): {
        "pooling": "mean",
        "learning_rate": 3e-4,
        "warmup": 0.1,
        "dropout": 0.0,
        "sentences": 1_280,
        "check_every": 10,
    },
    # Its last layer knows more than these pairs teach: STS-B dev 86.7 untouched, 84.2 after 20 steps of AnglE at the
    # paper's 5e-5 and 84.1 after 32 at 2e-4. ESE (k = 64) has 86.7 and 85.7 there, but what it is for takes the larger
    # rate: layer 4 at 64 dims, 51.1 untouched, reaches 53.0 after 20 steps at 5e-5 and 72.0 after 32 at 2e-4 (AnglE:
    # 52.7). Trials of one seed.
    ("all-MiniLM-L6-v2", None): {
        "pooling": "mean",
        "learning_rate": 2e-4,
        "warmup": 0.1,
        "sentences": 4_800,
        "check_every": 40,
    },
    ("Qwen/Qwen1.5-0.5B", None): _DECODER,
    ("meta-llama/Llama-2-7b-hf", None): _DECODER,
}
"""the same for `angle`, `matryoshka` and `ese`, one for the three so that they compare; others have the paper's
learning rate, 5e-5 for BERT-like networks. The command that ESE's authors publish has 1e-6, inside a warm-up of 200
steps that its about 135 steps never leave"""
