"""The verb of `repro` that makes a network of one's own: `pretrain`, from texts to its card."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.terminal import say
from repro.types import DataSource, InputError, check_dim
from repro.verb_outputs import copy_encoder, refuse_foreign
from repro.writing import writable_folder

if TYPE_CHECKING:
    from repro.store import Store
    from repro.training.mlm import PretrainConfig
    from repro.training.wordpieces import TokenisedCorpus

MOST_THREADS = 1024  # More than machines have cores; so many more would stop one
CARD = "card.json"  # Beside a network of our own: how it was made


@dataclass(frozen=True)
class Pretraining:
    """Which network is pre-trained, on what and how.

    Args:
        corpus: dataset name or a text file with one sentence per line.
        output: folder for the backbone, its tokenizer and model card.
        layers: transformer blocks.
        hidden_dim: hidden size D.
        heads: attention heads; by default one per 64 dims.
        vocabulary: WordPieces, trained on the corpus; at most 65,536.
        max_length: tokens kept of a sentence, and positions of the network.
        epochs: passes over the corpus.
        learning_rate: peak rate; by default 1e-3 for 2 layers, 5e-4 for more.
        batch_size: sentences per step.
        sentences: take only so many sentences; by default all.
        threads: CPU threads, on whose number the last bits of the weights depend; by default all
            cores.
        source: where the corpus comes from; by default local files if REPRO_DATA is set, else the
            microworld.
        seed: of weights, masks and data order.
    """

    corpus: str = "wiki"
    output: Path = Path("runs/repro-tiny")
    layers: int = 2
    hidden_dim: int = 128
    heads: int | None = None
    vocabulary: int = 8192
    max_length: int = 64
    epochs: float = 1.25
    learning_rate: float | None = None
    batch_size: int = 256
    sentences: int | None = None
    threads: int | None = None
    source: DataSource | None = None
    seed: int = 0


def pretrain(options: Pretraining) -> int:
    """A small BERT of your own, pre-trained from scratch; a stopped run goes on when the command is
    given again.
    """
    from repro import data
    from repro.digests import digest
    from repro.provenance import hardware
    from repro.reading import read_json
    from repro.seeding import cpu_count
    from repro.store import Store
    from repro.training import mlm

    config = _network_asked(options)
    mlm.check_affordable(config)
    asked_cores = cpu_count() if options.threads is None else options.threads
    cores = check_dim(asked_cores, limit=MOST_THREADS, what="threads")
    writable_folder(options.output)
    texts = data.load(options.corpus, source=options.source, limit=options.sentences)
    if not isinstance(texts, data.Corpus):
        raise InputError(f"{options.corpus!r} is not a corpus of plain sentences")
    content = sha256("\n".join(texts.texts).encode()).hexdigest()  # A file may change meanwhile
    # Sums that are split among other threads differ in their last bits
    settings = {
        "config": asdict(config),
        "content": content,
        "sentences": options.sentences,
        "threads": cores,
    }
    key = digest(settings, code=(mlm.__name__,))
    store = Store()
    refuse_foreign(options.output, key, stored=store.folder("backbones", key).exists())
    mlm.check_enough(texts.texts, config)

    origin = {
        "corpus": options.corpus,
        "source": texts.source,
        "licence": _licence_of(options.corpus, texts.source),
        "content": content,
        "hardware": hardware(),
        "threads": cores,
        "command": " ".join(sys.argv[1:]),
    }
    tokens = partial(_tokens_of, options, texts.texts, content, store)
    make = partial(_make_network, tokens=tokens, config=config, origin=origin)
    network = store.get_or_make("backbones", key, make, config=settings)
    copy_encoder(network.folder, options.output)
    figures = read_json(network.folder / CARD)["figures"]
    state = "found in the store" if network.hit else f"trained in {network.seconds:.0f} s"
    say(
        f"{options.output}: {state}; dev loss {figures['dev_loss']:.3f} after "
        f"{figures['tokens_seen'] / 1e6:.0f} M tokens"
    )
    return 0


def _tokens_of(
    options: Pretraining,
    texts: Sequence[str],
    content: str,
    store: "Store",
) -> "TokenisedCorpus":
    """The corpus in tokens, stored apart from the network: a run that goes on would wait for them
    again.
    """
    from repro.digests import digest
    from repro.training import wordpieces

    cut = {"vocabulary": options.vocabulary, "max_length": options.max_length}
    named = {"content": content, "sentences": options.sentences, **cut}
    made = store.get_or_make(
        "tokens",
        digest(named, code=(wordpieces.__name__,)),
        lambda target, work: wordpieces.tokenised(texts, **cut).save(target),
        config=named,
    )
    return wordpieces.TokenisedCorpus.load(made.folder)


def _licence_of(corpus: str, source: str) -> str:
    """Under what a corpus may be used, as far as it is known here."""
    from repro.data import DATASETS

    if source == "microworld":
        return "generated text, free of rights"
    return DATASETS[corpus].licence if corpus in DATASETS else "that of the file, unknown here"


def _network_asked(options: Pretraining) -> "PretrainConfig":
    """What is trained: heads of 64 dims, as far as they fit, and a usual rate where none is
    given.
    """
    from repro.training.mlm import PretrainConfig

    heads = max(1, options.hidden_dim // 64)
    while options.hidden_dim % heads:
        heads -= 1
    usual_rate = 1e-3 if options.layers <= 2 else 5e-4
    return PretrainConfig(
        layers=options.layers,
        hidden_dim=options.hidden_dim,
        heads=heads if options.heads is None else options.heads,
        vocabulary=options.vocabulary,
        max_length=options.max_length,
        epochs=options.epochs,
        learning_rate=usual_rate if options.learning_rate is None else options.learning_rate,
        batch_size=options.batch_size,
        save_every=1000,
        seed=options.seed,
    )


def _make_network(
    target: Path,
    work: Path,
    *,
    tokens: Callable[[], "TokenisedCorpus"],
    config: "PretrainConfig",
    origin: dict[str, Any],
) -> None:
    """Pre-train a network into a folder, with a card for readers and one for programs."""
    import torch

    from repro.paths import ASSETS
    from repro.provenance import commit, versions
    from repro.store import STATE
    from repro.training import mlm
    from repro.writing import write_text

    torch.set_num_threads(origin["threads"])
    corpus = tokens()
    how: dict[str, Any] = {"state_path": work / STATE, "description": "masked LM"}
    backbone, history, figures = mlm.pretrain(corpus, config, **how)
    note = {
        "config": asdict(config),
        "figures": figures,
        "loss_curve": mlm.loss_curve(history),
        **origin,
    }
    told = {
        "versions": versions(),
        "commit": commit(),
        "sentences": len(corpus),
        "vocabulary": corpus.tokenizer.get_vocab_size(),
        "steps": int(figures["steps"]),
        "minutes": figures["seconds"] / 60,
        "tokens_seen": figures["tokens_seen"] / 1e6,
    }
    backbone.save(target)
    write_text(target / CARD, json.dumps(note))
    card = (ASSETS / "backbone_card.md").read_text(encoding="utf-8")
    write_text(target / "README.md", card.format(**asdict(config) | figures | origin | told))
