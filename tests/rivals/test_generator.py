"""What networks write is what their own logits say, whatever the batch; there and back again, kept by weights."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.store import Store
from repro.types import InputError
from rivals import generator as writing
from rivals.generator import TOKEN_BUDGET, back_translate, load_generator, load_translator

TEXTS = ["the cook", "why did the farmer sell the old horse in the woods?", "a"]
TEXTS += ["the driver thanked the tiger", "the cook", "where was it?"]


def continued(generator, prompt, steps):
    """Token by token without a cache, padding or `generate`."""
    ids = generator.tokenizer(prompt)["input_ids"]
    start = len(ids)
    with torch.no_grad():
        for _ in range(steps):
            best = int(generator.model(torch.tensor([ids])).logits[0, -1].argmax())
            ids = [*ids, best]
            if best == generator.model.generation_config.eos_token_id:
                break
    return generator.tokenizer.decode(ids[start:], skip_special_tokens=True)


def translated(translator, text, steps):
    """The same for an encoder-decoder."""
    model, stop = translator.model, translator.model.config.eos_token_id
    ids = torch.tensor([translator.tokenizer(text)["input_ids"]])
    written = [model.config.decoder_start_token_id]
    with torch.no_grad():
        for step in range(steps):
            logits = model(input_ids=ids, decoder_input_ids=torch.tensor([written])).logits[0, -1]
            last = step + 1 == steps and getattr(model.generation_config, "forced_eos_token_id", None) is not None
            written.append(stop if last else int(logits.argmax()))
            if written[-1] == stop:
                break
    return translator.tokenizer.decode(written, skip_special_tokens=True)


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_each_answer_is_the_literal_one_whatever_its_batch(family, decoders, monkeypatch):
    generator = load_generator(decoders[family], device="cpu")
    together = generator.generate(TEXTS, max_new_tokens=6)
    assert together == [continued(generator, prompt, 6) for prompt in TEXTS]
    assert len(set(together)) > 3 and all(together) and generator.generate([]) == []
    monkeypatch.setitem(TOKEN_BUDGET, "cpu", 1)  # one by one
    assert generator.generate(TEXTS, max_new_tokens=6) == together


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_each_translation_is_the_literal_one_whatever_its_batch(family, translators, monkeypatch):
    translator = load_translator(translators[family], device="cpu")
    together = translator.translate(TEXTS, max_tokens=24)
    assert together == [translated(translator, text, 24) for text in TEXTS]
    assert len(set(together)) > 2
    assert [translator.translate(texts, max_tokens=24) for texts in ([], [" "])] == [[], [" "]]
    monkeypatch.setitem(TOKEN_BUDGET, "cpu", 1)  # one by one
    assert translator.translate(TEXTS, max_tokens=24) == together


def test_published_settings_that_sample_or_punish_repetition_are_left_out(decoders, tmp_path):
    folder = tmp_path / "sampling"
    shutil.copytree(decoders["qwen2"], folder)
    settings = {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "eos_token_id": [3, 7]}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    sampling = load_generator(str(folder), device="cpu")
    assert sampling.model.generation_config.eos_token_id == [3, 7]
    sampling.model.generation_config.eos_token_id = 3
    plain = load_generator(decoders["qwen2"], device="cpu")
    assert sampling.generate(TEXTS, max_new_tokens=8) == plain.generate(TEXTS, max_new_tokens=8)


def test_prompts_without_room_and_unusable_knobs_are_named(decoders, translators):
    generator = load_generator(decoders["llama"], device="cpu")
    with pytest.raises(InputError, match=r"'the cook the cook .*…? has 62 tokens and 8 are to follow.* takes 64"):
        generator.generate(["a word", "the cook " * 30], max_new_tokens=8)
    with pytest.raises(InputError, match="max_tokens is 65: expected 1 to 64"):
        load_translator(translators["marian"], device="cpu").translate(["a"], max_tokens=65)


def test_back_translation_is_one_after_the_other_and_kept_by_weights(translators, monkeypatch, tmp_path):
    store, there, back = Store(), translators["marian"], translators["t5"]
    monkeypatch.setattr(writing, "CHUNK", 2)
    found = back_translate(TEXTS, there, back, store, max_tokens=16)
    middle = load_translator(there, device="cpu").translate(TEXTS, max_tokens=16)
    assert found == load_translator(back, device="cpu").translate(middle, max_tokens=16)
    assert found[0] == found[4]
    assert len(list(store.artefacts())) == 3, "five distinct texts, two to an entry"
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
