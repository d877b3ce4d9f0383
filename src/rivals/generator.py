"""Networks that write: a causal language model goes on with a text, an encoder-decoder puts it into
another language.

Greedily, as the reader of ESE's Table 3 does; there and back again, by a pair of networks that each
go one way.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from repro.models.attention import causal_parts
from repro.models.packing import merge_equal, pack_by_tokens
from repro.models.pretrained import load_writer
from repro.models.sources import identity
from repro.models.whole import check_complete
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import InputError, check_dim

log = logging.getLogger(__name__)
CHUNKS = {"answers": 32, "translations": 512}
"""Texts of which what is written is one entry of the store."""
ANSWER_TOKENS = 32  # Length of an answer
TOKEN_BUDGET = {"cpu": 2**11, "cuda": 2**15}
"""Padded tokens of a batch times beams, those to come included."""


class Writer:
    """A network that writes, and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str) -> None:
        self.model, self.tokenizer, self.name = model, tokenizer, name
        self.max_length: int | None = getattr(model.config, "max_position_embeddings", None)
        """Most tokens the model has positions for; None if it sets no limit."""

    @torch.no_grad()
    def written(
        self,
        ids: Sequence[list[int]],
        costs: Sequence[int],
        pad: int,
        *,
        left: bool,
        new_tokens: int,
        beams: int = 1,
    ) -> list[str]:
        """What the model writes for each row of tokens; rows of like cost share a batch, padded on
        one side.
        """
        budget = TOKEN_BUDGET["cpu" if self.model.device.type == "cpu" else "cuda"] // beams
        options = {"max_new_tokens": new_tokens, "do_sample": False, "num_beams": beams}
        padded = partial(pad_sequence, batch_first=True, padding_side="left" if left else "right")
        device = self.model.device
        texts = [""] * len(ids)
        for batch in pack_by_tokens(list(costs), max(1, budget)):
            rows = [torch.tensor(ids[i]) for i in batch]
            table = padded(rows, padding_value=pad).to(device)  # (B, T)
            mask = padded([torch.ones_like(row) for row in rows], padding_value=0).to(device)
            output = self.model.generate(input_ids=table, attention_mask=mask, **options)
            output = output[:, table.shape[1] :] if left else output
            answers = self.tokenizer.batch_decode(output, skip_special_tokens=True)
            for i, text in zip(batch, answers, strict=True):
                texts[i] = text
        return texts


class Generator(Writer):
    """A decoder with its language-model head and its tokenizer."""

    def generate(self, prompts: Sequence[str], *, max_new_tokens: int = 32) -> list[str]:
        """The most likely next token, again and again: what follows each prompt, without the
        prompt.

        No chat template is put around a prompt. An answer ends where the model ends it, or after
        `max_new_tokens`.
        """
        check_dim(max_new_tokens, what="max_new_tokens")
        distinct, inverse = merge_equal(prompts)
        ids = [list(self.tokenizer(text)["input_ids"]) for text in distinct]
        for text, row in zip(distinct, ids, strict=True):
            start = f"the prompt {text[:40]!r}{'…' if len(text) > 40 else ''}"
            if not row:
                raise InputError(f"{start} has no token: {self.name} has nothing to go on from")
            if self.max_length is not None and len(row) + max_new_tokens > self.max_length:
                raise InputError(
                    f"{start} has {len(row)} tokens and {max_new_tokens} are to follow, but "
                    f"{self.name} takes {self.max_length}: shorten the context or max_new_tokens"
                )
        costs = [len(row) + max_new_tokens for row in ids]
        pad = self.model.generation_config.pad_token_id
        answers = self.written(ids, costs, pad, left=True, new_tokens=max_new_tokens)
        return [answers[i] for i in inverse]


def load_generator(name_or_path: str, *, device: torch.device | str | None = None) -> Generator:
    """A generator by folder or hub id; only safetensors weights are read and no remote code is run.

    Of the folder's generation settings only the ids that end a text are kept: published ones
    sample.
    """
    kind = "AutoModelForCausalLM"
    model, tokenizer, loading = load_writer(kind, "generator", name_or_path, device)
    if not causal_parts(model):
        raise InputError(
            f"{name_or_path!r} is a {type(model).__name__}: expected a causal decoder, such as "
            "Llama"
        )
    check_complete(name_or_path, model, loading)
    stop = model.generation_config.eos_token_id
    stop = tokenizer.eos_token_id if stop is None else stop
    first = stop[0] if isinstance(stop, list) else stop
    pad = first if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    model.generation_config = type(model.generation_config)(eos_token_id=stop, pad_token_id=pad)
    return Generator(model, tokenizer, name=name_or_path)


def written_once(
    kind: str,
    named: dict[str, Any],
    texts: Sequence[str],
    write: Callable[[list[str]], list[str]],
    store: Store,
) -> dict[str, str]:
    """What is written for each distinct text; every chunk is kept, so that a killed run goes on
    where it stopped.
    """
    (distinct, _), size = merge_equal(texts), CHUNKS[kind]
    written: dict[str, str] = {}
    for start in progress_bar(range(0, len(distinct), size), desc=kind, show=True):
        chunk = distinct[start : start + size]
        answers = store.remember(kind, {**named, "texts": chunk}, partial(write, chunk))
        written |= zip(chunk, answers, strict=True)
    return written


def answers_to(prompts: Sequence[str], generator: str, store: Store) -> dict[str, str]:
    """What a generator, a folder or a hub id, says to each prompt, from the store where it is
    there.

    A model that was told to be brief goes on with a question of its own on the next line: the first
    line that is not blank is the answer.
    """
    loaded = cache(load_generator)

    def write(chunk: list[str]) -> list[str]:
        return loaded(generator).generate(chunk, max_new_tokens=ANSWER_TOKENS)

    named = {"generator": identity(generator), "tokens": ANSWER_TOKENS}
    answers = written_once("answers", named, prompts, write, store)
    return {
        prompt: next(iter(answer.strip().splitlines()), "").strip()
        for prompt, answer in answers.items()
    }


class Translator(Writer):
    """An encoder-decoder and its tokenizer."""

    def translate(
        self,
        texts: Sequence[str],
        *,
        beams: int = 1,
        max_tokens: int = 128,
    ) -> list[str]:
        """The most likely translation of every text; one without a word stays as it is.

        `beams` hypotheses are followed at a time; 1 is greedy. At most `max_tokens` are read of a
        text, and written.
        """
        check_dim(beams, what="beams")
        check_dim(max_tokens, limit=self.max_length, what="max_tokens")
        distinct, inverse = merge_equal(texts)
        worded = [i for i, text in enumerate(distinct) if text.strip()]
        # T5 and Marian end a text with a token, which a cut has to leave
        ids = [
            self.tokenizer(distinct[i], truncation=True, max_length=max_tokens)["input_ids"]
            for i in worded
        ]
        if cut := sum(len(row) >= max_tokens for row in ids):
            log.info(
                "%d of %d texts reach %d tokens, where %s stops reading",
                cut,
                len(ids),
                max_tokens,
                self.name,
            )
        pad, costs = self.model.config.pad_token_id, [2 * len(row) for row in ids]
        written = self.written(ids, costs, pad, left=False, new_tokens=max_tokens, beams=beams)
        translations = dict(zip(worded, map(str.strip, written), strict=True))
        return [translations.get(i, distinct[i]) for i in inverse]


def load_translator(name_or_path: str, *, device: torch.device | str | None = None) -> Translator:
    """A translator by folder or hub id, as `load_generator` has it."""
    kind = "AutoModelForSeq2SeqLM"
    model, tokenizer, loading = load_writer(kind, "translator", name_or_path, device)
    check_complete(name_or_path, model, loading)
    return Translator(model, tokenizer, name=name_or_path)


def back_translate(
    texts: Sequence[str],
    there: str,
    back: str,
    store: Store,
    *,
    beams: int = 1,
    max_tokens: int = 128,
) -> list[str]:
    """Every text in another language and back again, by the networks `there` and `back`; kept by
    both's weights.
    """
    loaded = cache(load_translator)

    def write(chunk: list[str]) -> list[str]:
        for name in (there, back):
            chunk = loaded(name).translate(chunk, beams=beams, max_tokens=max_tokens)
        return chunk

    named = {
        "networks": [identity(there), identity(back)],
        "beams": beams,
        "max_tokens": max_tokens,
    }
    translations = written_once("translations", named, texts, write, store)
    return [translations[text] for text in texts]
