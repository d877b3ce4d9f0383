"""Pre-train a backbone and write it with its model card (what `repro pretrain` does)."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from repro import data
from repro.digests import digest, module_of
from repro.paths import home
from repro.provenance import commit, hardware, versions
from repro.runs.texts import fingerprint
from repro.seeding import cpu_count
from repro.training.mlm import PretrainConfig, loss_curve, pretrain
from repro.types import InputError
from repro.writing import writable_folder

CARD = """# {name}

A BERT of {layers} layers, hidden size {hidden_dim}, {heads} heads, {vocabulary} lower-cased WordPieces, at most
{max_length} tokens, pre-trained from scratch by masked language modelling. It is *raw*: it has seen no sentence
objective.

| | |
|---|---|
| corpus | {corpus} ({source}), {sentences:,} sentences, one in a hundred held out; content {content} |
| licence | English Wikipedia text is CC BY-SA 3.0 / GFDL; the weights are released under Apache-2.0 |
| tokens seen | {tokens:.1f} M in {steps:,} steps of {batch_size} sentences ({epochs} epochs) |
| optimiser | AdamW (0.9, 0.98), weight decay 0.01, rate {learning_rate}, {warmup:.0%} warm-up, linear decay |
| held-out loss | {dev_loss:.3f} nats per masked token; unigram cross-entropy {unigram_loss:.3f} |
| time | {minutes:.0f} min on {hardware}, {threads} thread(s) |
| versions | {versions}; commit {commit} |
| seed | {seed} |

Exact command: `repro {command}`

The training loss over steps is in `card.json`; the book draws it on the page "The network of this book".
Not for use as a sentence encoder as it is, nor where the biases of an encyclopaedia would do harm.
"""


def pretrain_backbone(
    corpus: str,
    config: PretrainConfig,
    output: Path,
    *,
    source: str | None = None,
    sentences: int | None = None,
    threads: int | None = None,
    command: str = "pretrain",
    progress: bool = True,
) -> dict[str, float]:
    """Train, resume if a state of the same settings is at hand, and write the backbone's folder.

    Raises:
        InputError: if the corpus is not a corpus of plain sentences, or the output is there and is not a folder.
    """
    writable_folder(output)
    texts = data.load(corpus, source=source, limit=sentences)
    if not isinstance(texts, data.Corpus):
        raise InputError(f"{corpus!r} is not a corpus of plain sentences")
    content = fingerprint(corpus, texts.source)
    key = digest({"config": asdict(config), "content": content, "sentences": sentences}, code=(module_of(pretrain),))
    count = threads or cpu_count()
    torch.set_num_threads(count)
    state = home() / "work" / f"pretrain-{key}" / "state.safetensors"
    backbone, history, figures = pretrain(texts.texts, config, state_path=state, progress=progress)
    backbone.save(output)
    note: dict[str, Any] = {
        "config": asdict(config),
        "figures": figures,
        "loss_curve": loss_curve(history),
        "command": command,
    }
    note |= {"corpus": corpus, "source": texts.source, "content": content, "hardware": hardware(), "threads": count}
    (output / "card.json").write_text(json.dumps(note), encoding="utf-8")
    (output / "README.md").write_text(
        CARD.format(
            name=output.name,
            corpus=corpus,
            source=texts.source,
            content=content,
            sentences=len(texts),
            tokens=figures["tokens_seen"] / 1e6,
            steps=int(figures["steps"]),
            dev_loss=figures["dev_loss"],
            unigram_loss=figures["unigram_loss"],
            minutes=figures["seconds"] / 60,
            hardware=hardware(),
            threads=count,
            versions=versions(),
            commit=commit(),
            command=command,
            **{
                k: v
                for k, v in asdict(config).items()
                if k
                in (
                    "layers",
                    "hidden_dim",
                    "heads",
                    "vocabulary",
                    "max_length",
                    "batch_size",
                    "epochs",
                    "learning_rate",
                    "warmup",
                    "seed",
                )
            },
        ),
        encoding="utf-8",
    )
    shutil.rmtree(state.parent, ignore_errors=True)  # no longer needed
    return figures
