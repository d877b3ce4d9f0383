"""Translations are what the network's own logits say, whatever their batch; there and back, kept by weights."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.store import Store
from repro.types import InputError
from rivals import generator as translation
from rivals.generator import TOKEN_BUDGET, back_translate, load_translator

TEXTS = [
    "the cook",
    "why did the farmer sell the old horse in the woods?",
    "a",
    "the driver thanked the tiger",
    "the cook",
    "where was it?",
]


def literal(translator, text, steps):
    """Token by token without a cache, padding or `generate`."""
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


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_each_translation_is_the_literal_one_whatever_its_batch(family, translators, monkeypatch):
    translator = load_translator(translators[family], device="cpu")
    together = translator.translate(TEXTS, max_tokens=24)
    assert together == [literal(translator, text, 24) for text in TEXTS]
    assert len(set(together)) > 2
    assert [translator.translate(texts, max_tokens=24) for texts in ([], [" "])] == [[], [" "]]
    monkeypatch.setitem(TOKEN_BUDGET, "cpu", 1)  # one by one
    assert translator.translate(TEXTS, max_tokens=24) == together


def test_beams_find_what_is_no_less_likely(translators):
    translator = load_translator(translators["marian"], device="cpu")

    def likelihood(text, translated):
        ids = torch.tensor([translator.tokenizer(text)["input_ids"]])
        written = translator.tokenizer(translated, add_special_tokens=False)["input_ids"]
        start = torch.tensor([[translator.model.config.decoder_start_token_id, *written]])
        with torch.no_grad():
            logits = translator.model(input_ids=ids, decoder_input_ids=start).logits[0].log_softmax(-1)
        return float(sum(logits[i, token] for i, token in enumerate([*written, 3])) / (len(written) + 1))

    greedy, beams = (translator.translate(TEXTS[:1], beams=n, max_tokens=4)[0] for n in (1, 8))
    assert likelihood(TEXTS[0], beams) >= likelihood(TEXTS[0], greedy) - 1e-6


def test_unusable_knobs_are_named(translators):
    translator = load_translator(translators["marian"], device="cpu")
    with pytest.raises(InputError, match="max_tokens is 65: expected 1 to 64"):
        translator.translate(["a"], max_tokens=65)
    with pytest.raises(InputError, match="beams is 0"):
        translator.translate(["a"], beams=0)
    with pytest.raises(TypeError, match=r"texts\[1\] is int"):
        translator.translate(["a", 3], max_tokens=8)


def test_back_translation_is_one_after_the_other_and_kept(translators, monkeypatch):
    store, there, back = Store(), translators["marian"], translators["t5"]
    monkeypatch.setattr(translation, "CHUNK", 2)
    found = back_translate(TEXTS, there, back, store, max_tokens=16, progress=False)
    middle = load_translator(there, device="cpu").translate(TEXTS, max_tokens=16)
    assert found == load_translator(back, device="cpu").translate(middle, max_tokens=16)
    assert found[0] == found[4]
    assert len(list(store.artefacts())) == 3, "five distinct texts, two to an entry"
    monkeypatch.setattr(translation, "load_translator", lambda name: pytest.fail("the store has it"))
    assert back_translate(TEXTS, there, back, store, max_tokens=16, progress=False) == found


def test_other_weights_translate_anew(translators, tmp_path):
    store, there = Store(), translators["t5"]
    folder = tmp_path / "other"
    shutil.copytree(there, folder)
    weights = load_file(folder / "model.safetensors")
    weights["shared.weight"] = weights["shared.weight"].flip(0)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    first, second = (
        back_translate(TEXTS, there, back, store, max_tokens=8, progress=False) for back in (there, str(folder))
    )
    assert first != second and len(list(store.artefacts())) == 2


def test_a_network_that_cannot_translate_is_refused(translators, tiny, decoders, tmp_path):
    for place in (tiny, decoders["llama"]):
        with pytest.raises(InputError, match="cannot load translator"):
            load_translator(place)
    with pytest.raises(InputError, match="no backbone folder"):
        back_translate(["a"], "./nosuch", translators["t5"], Store())
    folder = tmp_path / "half"
    shutil.copytree(translators["t5"], folder)
    weights = load_file(folder / "model.safetensors")
    del weights["decoder.final_layer_norm.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"half' lack decoder\.final_layer_norm"):
        load_translator(str(folder))
