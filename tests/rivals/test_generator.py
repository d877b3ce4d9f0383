"""Greedy answers: each is what the model's own logits say, whatever batch it was written in."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from repro.types import InputError
from rivals.generator import TOKEN_BUDGET, load_generator

PROMPTS = [
    "the cook",
    "why did the farmer sell the old horse in the woods?",
    "a",
    "the driver thanked the tiger",
    "the cook",
    "where was it?",
]


@pytest.fixture
def generator(decoders):
    return load_generator(decoders["llama"], device="cpu")


def literal(generator, prompt, steps):
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


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_each_answer_is_the_literal_one_whatever_its_batch(family, decoders, monkeypatch):
    generator = load_generator(decoders[family], device="cpu")
    together = generator.generate(PROMPTS, max_new_tokens=6)
    assert together == [literal(generator, prompt, 6) for prompt in PROMPTS]
    assert len(set(together)) > 3 and all(together) and generator.generate([]) == []
    monkeypatch.setitem(TOKEN_BUDGET, "cpu", 1)  # one by one
    assert generator.generate(PROMPTS, max_new_tokens=6) == together


def test_an_answer_ends_where_the_model_ends_it(generator):
    alone = [generator.generate([prompt], max_new_tokens=8)[0].split() for prompt in PROMPTS[:2]]
    end = next(i for i, word in enumerate(alone[0]) if i and word not in alone[1])
    stop = generator.tokenizer.convert_tokens_to_ids(alone[0][end])
    generator.model.generation_config.eos_token_id = stop
    first, second = (answer.split() for answer in generator.generate(PROMPTS[:2], max_new_tokens=8))
    assert first == alone[0][: end + 1] and second == alone[1]
    assert len(alone[0]) > end + 1


def test_published_settings_that_sample_or_punish_repetition_are_left_out(decoders, tmp_path):
    folder = tmp_path / "sampling"
    shutil.copytree(decoders["qwen2"], folder)
    settings = {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "eos_token_id": [3, 7]}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    sampling = load_generator(str(folder), device="cpu")
    assert sampling.model.generation_config.eos_token_id == [3, 7]
    sampling.model.generation_config.eos_token_id = 3
    plain = load_generator(decoders["qwen2"], device="cpu")
    assert sampling.generate(PROMPTS, max_new_tokens=8) == plain.generate(PROMPTS, max_new_tokens=8)


def test_a_prompt_without_room_for_its_answer_is_named(generator):
    with pytest.raises(InputError, match=r"'the cook the cook .*…? has 62 tokens and 8 are to follow.* takes 64"):
        generator.generate(["a word", "the cook " * 30], max_new_tokens=8)
    with pytest.raises(InputError, match="max_new_tokens is 0"):
        generator.generate(["a"], max_new_tokens=0)
    with pytest.raises(TypeError, match=r"texts\[1\] is int"):
        generator.generate(["a", 3])


def test_a_network_that_cannot_write_is_refused(decoders, tmp_path, tiny):
    with pytest.raises(InputError, match="no backbone folder"):
        load_generator("./nosuch")
    with pytest.raises(InputError, match=r"is a Bert.*: expected a causal decoder"):
        load_generator(tiny)
    folder = tmp_path / "headless"
    shutil.copytree(decoders["llama"], folder)
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"headless' lack lm_head\.weight"):
        load_generator(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot load generator"):
        load_generator(str(folder))
