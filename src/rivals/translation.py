"""Back-translation: into another language and back, by any pair of encoder-decoders, kept in the store.

Each network goes one way, such as Marian from English to German and its sister from German to English.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from repro.digests import digest
from repro.models.intact import check_complete
from repro.models.packing import merge_equal, pack_by_tokens
from repro.models.pretrained import identity, load_writer
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import check_dim

log = logging.getLogger(__name__)
TOKEN_BUDGET = {"cpu": 2**11, "cuda": 2**15}
"""padded tokens of a batch times beams, those to come included"""
CHUNK = 512
"""texts whose translations are one entry of the store, so that a killed run goes on where it stopped"""


def load_translator(name_or_path: str, *, device: torch.device | str | None = None) -> "Translator":
    """A translator by folder or hub id; only safetensors weights are read and no remote code is run.

    Raises:
        InputError: for an unknown name, a network that is no encoder-decoder, or a folder without weights.
    """
    model, tokenizer, found = load_writer("AutoModelForSeq2SeqLM", "translator", name_or_path, device)
    check_complete(name_or_path, found)
    return Translator(model, tokenizer, name=name_or_path)


class Translator:
    """An encoder-decoder and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name

    def translate(self, texts: Sequence[str], *, beams: int = 1, max_tokens: int = 128) -> list[str]:
        """The most likely translation of every text, equal texts translated once.

        Texts of like length share a batch, padded on the right.

        Args:
            texts: any texts; one without a word is its own translation.
            beams: hypotheses that are followed at a time; 1 is greedy.
            max_tokens: most tokens read of a text, and most written.

        Raises:
            TypeError: for an item that is not a string, with its index.
            InputError: for beams or max_tokens below 1, or more tokens than the network has positions for.
        """
        check_dim(beams, what="beams")
        check_dim(max_tokens, limit=self._positions, what="max_tokens")
        distinct, inverse = merge_equal(texts)
        found = list(distinct)
        worded = [i for i, text in enumerate(distinct) if text.strip()]
        # T5 and Marian end a text with a token, which a cut has to leave
        ids = [self.tokenizer(distinct[i], truncation=True, max_length=max_tokens)["input_ids"] for i in worded]
        if cut := sum(len(row) >= max_tokens for row in ids):
            log.info("%d of %d texts reach %d tokens, where %s stops reading", cut, len(ids), max_tokens, self.name)
        budget = TOKEN_BUDGET["cpu" if self.model.device.type == "cpu" else "cuda"] // beams
        for batch in pack_by_tokens([2 * len(row) for row in ids], max(1, budget)):
            written = self._written([ids[i] for i in batch], beams, max_tokens)
            for i, text in zip(batch, written, strict=True):
                found[worded[i]] = text
        return [found[i] for i in inverse]

    @property
    def _positions(self) -> int | None:
        limit = getattr(self.model.config, "max_position_embeddings", None)  # T5 has none
        return None if limit is None else int(limit)

    @torch.no_grad()
    def _written(self, ids: list[list[int]], beams: int, max_tokens: int) -> list[str]:
        width = max(len(row) for row in ids)
        pad = self.model.config.pad_token_id
        table = torch.tensor([row + [pad] * (width - len(row)) for row in ids], device=self.model.device)  # (B, T)
        lengths = torch.tensor([len(row) for row in ids], device=self.model.device)
        mask = (torch.arange(width, device=self.model.device) < lengths[:, None]).long()
        found = self.model.generate(
            input_ids=table, attention_mask=mask, max_new_tokens=max_tokens, do_sample=False, num_beams=beams
        )
        return [str(text).strip() for text in self.tokenizer.batch_decode(found, skip_special_tokens=True)]


def back_translate(
    texts: Sequence[str],
    there: str,
    back: str,
    store: Store,
    *,
    beams: int = 1,
    max_tokens: int = 128,
    progress: bool = True,
) -> list[str]:
    """Every text in another language and back again, from the store where it is there.

    Args:
        texts: any texts; equal ones are translated once.
        there: network into the other language, a folder or a hub id.
        back: network out of it.
        store: where translations are kept, by the weights of both networks.
        beams: as `Translator.translate` has it.
        max_tokens: likewise.
        progress: show a progress bar.

    Raises:
        InputError: if a network cannot be loaded, or its positions do not suffice.
    """
    distinct, inverse = merge_equal(texts)
    weights, loaded = [identity(there), identity(back)], list[Translator]()
    found: list[str] = []
    for start in progress_bar(range(0, len(distinct), CHUNK), desc="back-translating", show=progress):
        chunk = distinct[start : start + CHUNK]
        named = {"networks": weights, "texts": chunk, "beams": beams, "max_tokens": max_tokens}
        key = digest(named, code=("rivals.translation",))

        def make(target: Path, work: Path, chunk: list[str] = chunk) -> None:
            if not loaded:
                loaded.extend(load_translator(name) for name in (there, back))
            said: Sequence[str] = chunk
            for translator in loaded:
                said = translator.translate(said, beams=beams, max_tokens=max_tokens)
            (target / "texts.json").write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")

        made = store.get_or_make("translations", key, make, config={"there": there, "back": back, "texts": len(chunk)})
        found += json.loads((made.folder / "texts.json").read_text(encoding="utf-8"))
    return [found[i] for i in inverse]
