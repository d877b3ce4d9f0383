"""Back-translation: into another language and back, by any pair of encoder-decoders, kept in the store.

Each network goes one way, such as Marian from English to German and its sister from German to English.
"""

import logging
from collections.abc import Sequence

import torch

from repro.models.packing import merge_equal
from repro.models.pretrained import check_complete, identity, load_writer
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import check_dim
from rivals.generator import Writer

log = logging.getLogger(__name__)
CHUNK = 512
"""texts whose translations are one entry of the store, so that a killed run goes on where it stopped"""


class Translator(Writer):
    """An encoder-decoder and its tokenizer."""

    def translate(self, texts: Sequence[str], *, beams: int = 1, max_tokens: int = 128) -> list[str]:
        """The most likely translation of every text, equal texts translated once.

        Args:
            texts: any texts; one without a word is its own translation.
            beams: hypotheses that are followed at a time; 1 is greedy.
            max_tokens: most tokens read of a text, and most written.

        Raises:
            TypeError: for an item that is not a string, with its index.
            InputError: for beams or max_tokens below 1, or more tokens than the network has positions for.
        """
        check_dim(beams, what="beams")
        check_dim(max_tokens, limit=self.max_length, what="max_tokens")
        distinct, inverse = merge_equal(texts)
        worded = [i for i, text in enumerate(distinct) if text.strip()]
        # T5 and Marian end a text with a token, which a cut has to leave
        ids = [self.tokenizer(distinct[i], truncation=True, max_length=max_tokens)["input_ids"] for i in worded]
        if cut := sum(len(row) >= max_tokens for row in ids):
            log.info("%d of %d texts reach %d tokens, where %s stops reading", cut, len(ids), max_tokens, self.name)
        pad, costs = self.model.config.pad_token_id, [2 * len(row) for row in ids]
        said = self.written(ids, costs, pad, left=False, new_tokens=max_tokens, beams=beams)
        found = dict(zip(worded, map(str.strip, said), strict=True))
        return [found.get(i, distinct[i]) for i in inverse]


def load_translator(name_or_path: str, *, device: torch.device | str | None = None) -> Translator:
    """A translator by folder or hub id; only safetensors weights are read and no remote code is run.

    Raises:
        InputError: for an unknown name, a network that is no encoder-decoder, or a folder without weights.
    """
    model, tokenizer, found = load_writer("AutoModelForSeq2SeqLM", "translator", name_or_path, device)
    check_complete(name_or_path, found)
    return Translator(model, tokenizer, name=name_or_path)


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

        def compute(chunk: list[str] = chunk) -> list[str]:
            if not loaded:
                loaded.extend(load_translator(name) for name in (there, back))
            for translator in loaded:
                chunk = translator.translate(chunk, beams=beams, max_tokens=max_tokens)
            return chunk

        named = {"networks": weights, "texts": chunk, "beams": beams, "max_tokens": max_tokens}
        found += store.remember("translations", named, compute)
    return [found[i] for i in inverse]
