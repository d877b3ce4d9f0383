"""Random decoders of two architectures, with the tokenizer of the random BERT, in Hugging Face layout."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def decoders(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of a Qwen2 (two heads share keys) and a Llama with a language-model head: 3 and 2 layers, hidden 32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    tokens = (Path(tiny) / "tokenizer.json").read_text(encoding="utf-8")
    sizes = {"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
    sizes |= {"max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    made = {}
    for name, make, config in (
        ("qwen2", Qwen2ForCausalLM, Qwen2Config(**sizes, num_key_value_heads=2, num_hidden_layers=3)),
        ("llama", LlamaForCausalLM, LlamaConfig(**sizes, num_hidden_layers=2)),
    ):
        torch.manual_seed(0)
        model = make(config)
        with torch.no_grad():  # a fresh norm is all ones: not to be told from none at all
            model.model.norm.weight.uniform_(0.5, 2.0)
        folder = tmp_path_factory.mktemp("decoder") / name
        model.save_pretrained(folder)
        (folder / "tokenizer.json").write_text(tokens, encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(
            '{"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[SEP]"}'
        )
        made[name] = str(folder)
    return made
