"""Names of splitters, and what they do: as llama.cpp's own lists have it."""

from __future__ import annotations

import pytest

from gguf_audit.runtime.pre_tokenizers import DEFAULT, GROUPS, SPLITTERS, pre_tokenizer


def test_every_name_is_in_one_group() -> None:
    assert len(SPLITTERS) == sum(len(splitter.names) for splitter in GROUPS) == 92
    assert all(SPLITTERS[name] is each for each in GROUPS for name in each.names)
    assert DEFAULT in SPLITTERS


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("deepseek-v3", "joyai-llm"),
        ("llama-bpe", "lfm2"),
        ("gpt-2", "exaone4"),
        ("qwen2", "megrez"),
        ("starcoder", "command-r"),
        ("gemma4", "sarvam-moe"),
    ],
)
def test_names_of_one_splitter(name: str, other: str) -> None:
    assert SPLITTERS[name] is SPLITTERS[other]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("llama-bpe", "smaug-bpe"),
        ("qwen2", "qwen35"),
        ("gpt-2", "default"),
        ("llama-bpe", "minicpm5"),
        ("deepseek-llm", "deepseek-coder"),
    ],
)
def test_names_of_two_splitters(name: str, other: str) -> None:
    assert SPLITTERS[name] is not SPLITTERS[other]


def test_steps_of_a_splitter() -> None:
    def split(pattern: str) -> dict[str, object]:
        regex = {"Regex": pattern}
        return {"type": "Split", "pattern": regex, "behavior": "Isolated", "invert": False}

    starcoder = SPLITTERS["starcoder"]
    assert pre_tokenizer(starcoder) == {
        "type": "Sequence",
        "pretokenizers": [split(pattern) for pattern in starcoder.patterns],
    }
    assert pre_tokenizer(starcoder, meant=True) == pre_tokenizer(starcoder)
    assert pre_tokenizer(SPLITTERS["gemma4"], meant=True) == {
        "type": "Sequence",
        "pretokenizers": [],
    }
