"""What networks write is what their own logits say, whatever the batch; there and back again, kept
by weights.
"""

import json
import shutil
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.store import Store
from repro.store_mending import artefacts
from repro.types import InputError
from rivals import generator as writing
from rivals.generator import TOKEN_BUDGET, back_translate, load_generator, load_translator

TEXTS = ["the cook", "why did the farmer sell the old horse in the woods?", "a"]
TEXTS += ["the driver thanked the tiger", "the cook", "where was it?"]


def literal(writer, text, steps):
    """Token by token without a cache, padding or `generate`."""
    model, ids = writer.model, writer.tokenizer(text)["input_ids"]
    translates, stop = model.config.is_encoder_decoder, model.config.eos_token_id
    written = [model.config.decoder_start_token_id] if translates else []
    for step in range(steps):
        read = (ids, written) if translates else ([*ids, *written],)
        with torch.no_grad():
            given = dict(
                zip(
                    ("input_ids", "decoder_input_ids"),
                    (torch.tensor([row]) for row in read),
                    strict=False,
                )
            )
            best = int(model(**given).logits[0, -1].argmax())
        last = (
            step + 1 == steps
            and getattr(model.generation_config, "forced_eos_token_id", None) is not None
        )
        written.append(stop if last else best)
        if written[-1] == stop:
            break
    return writer.tokenizer.decode(written, skip_special_tokens=True)


@pytest.mark.parametrize("family", ["llama", "qwen2", "marian", "t5"])
def test_what_is_written_is_the_literal_answer_whatever_its_batch(
    family,
    decoders,
    translators,
    monkeypatch,
):
    if family in decoders:
        writer, steps = load_generator(decoders[family], device="cpu"), 6
        write = partial(writer.generate, max_new_tokens=steps)
    else:
        writer, steps = load_translator(translators[family], device="cpu"), 24
        write = partial(writer.translate, max_tokens=steps)
        assert write([" "]) == [" "]
    together = write(TEXTS)
    assert together == [literal(writer, text, steps) for text in TEXTS]
    assert len(set(together)) > 2 and write([]) == []
    monkeypatch.setitem(TOKEN_BUDGET, "cpu", 1)  # One by one
    assert write(TEXTS) == together


def test_published_settings_that_sample_or_punish_repetition_are_left_out(decoders, tmp_path):
    folder = tmp_path / "sampling"
    shutil.copytree(decoders["qwen2"], folder)
    settings = {
        "do_sample": True,
        "temperature": 5.0,
        "repetition_penalty": 9.0,
        "eos_token_id": [3, 7],
    }
    (folder / "generation_config.json").write_text(json.dumps(settings))
    sampling = load_generator(str(folder), device="cpu")
    assert sampling.model.generation_config.eos_token_id == [3, 7]
    sampling.model.generation_config.eos_token_id = 3
    plain = load_generator(decoders["qwen2"], device="cpu")
    assert sampling.generate(TEXTS, max_new_tokens=8) == plain.generate(TEXTS, max_new_tokens=8)


def test_prompts_without_room_and_unusable_knobs_are_named(decoders, translators):
    generator = load_generator(decoders["llama"], device="cpu")
    with pytest.raises(
        InputError,
        match=r"'the cook the cook .*…? has 62 tokens and 8 are to follow.* takes 64",
    ):
        generator.generate(["a word", "the cook " * 30], max_new_tokens=8)
    with pytest.raises(InputError, match="max_tokens is 65: expected 1 to 64"):
        load_translator(translators["marian"], device="cpu").translate(["a"], max_tokens=65)


def test_back_translation_is_one_after_the_other_and_kept_by_weights(
    translators,
    monkeypatch,
    tmp_path,
):
    store, there, back = Store(), translators["marian"], translators["t5"]
    monkeypatch.setitem(writing.CHUNKS, "translations", 2)
    found = back_translate(TEXTS, there, back, store, max_tokens=16)
    middle = load_translator(there, device="cpu").translate(TEXTS, max_tokens=16)
    assert found == load_translator(back, device="cpu").translate(middle, max_tokens=16)
    assert found[0] == found[4]
    assert len(list(artefacts(store))) == 3, "five distinct texts, two to an entry"
    other = shutil.copytree(back, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    weights["shared.weight"] = weights["shared.weight"].flip(0)
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    assert back_translate(TEXTS, there, str(other), store, max_tokens=16) != found
    monkeypatch.setattr(writing, "load_translator", lambda name: pytest.fail("the store has it"))
    assert back_translate(TEXTS, there, back, store, max_tokens=16) == found


def test_a_network_that_cannot_write_is_refused(tiny):
    with pytest.raises(InputError, match="no backbone folder"):
        load_generator("./nosuch")
    with pytest.raises(InputError, match=r"is a Bert.*: expected a causal decoder"):
        load_generator(tiny)
    with pytest.raises(InputError, match="cannot load translator"):
        load_translator(tiny)
