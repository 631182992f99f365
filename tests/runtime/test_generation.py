from __future__ import annotations

import pytest

from chat_subjects import IDS, vocabulary
from gguf_audit.fields import Origin
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.runtime.generation import generation
from gguf_audit.runtime.vocabulary import adds_bos
from gguf_audit.testing import FieldValue
from rule_subjects import gguf


def of(texts: list[str], **keys: FieldValue) -> Gguf:
    stored = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    return gguf(
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": (ValueType.STRING, texts),
            **stored,
        }
    )


def ends(texts: list[str], **keys: FieldValue) -> set[str]:
    found = generation(of(texts, **keys))
    assert found is not None
    return {found.texts[id_] for id_ in found.ends}


def test_what_keys_name_and_what_texts_say_ends_generation() -> None:
    found = generation(gguf(vocabulary()))
    assert found is not None
    assert found.special == {"bos": IDS["<s>"], "eos": IDS["</s>"]}
    assert found.ends == {IDS["</s>"], IDS["<|im_end|>"]}
    assert (found.text("bos"), found.text("eos"), found.text("eot")) == ("<s>", "</s>", "")


ENDS: list[tuple[list[str], dict[str, FieldValue], set[str]]] = [
    (["a", "b"], {}, set[str]()),
    (["a", "b"], {"eos_token_id": 1}, {"b"}),
    (["a", "b"], {"eot_token_id": 0, "eom_token_id": 1}, {"a", "b"}),
    # Beyond the vocabulary there is no token, and the default is beyond it as well.
    (["a", "b"], {"eos_token_id": 9}, set[str]()),
    (["a", "<|eot_id|>", "[EOS]", "<EOT>"], {}, {"<|eot_id|>", "[EOS]", "<EOT>"}),
    # Those that fill in text, found by key or by text.
    (
        ["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"],
        {},
        {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"},
    ),
    (["<|fim_pad|>", "x"], {"fim_pad_token_id": 1}, {"x"}),
    # Which of several it takes is up to a hash table.
    (["<fim_pad>", "<PAD>"], {}, {"<fim_pad>", "<PAD>"}),
    # Where it only parts turns, a token goes on.
    (["<|end|>"], {}, {"<|end|>"}),
    (["<|end|>", "<|return|>", "<|call|>"], {}, {"<|return|>", "<|call|>"}),
    (["<|end|>", "<|calls|>", "<|flush|>"], {}, {"<|calls|>", "<|flush|>"}),
    (["</s>", "<|tool_response>"], {}, {"<|tool_response>"}),
    (["</s>", "<|plamo:eos|>"], {"eos_token_id": 1}, {"<|plamo:eos|>"}),
    (["</s>", "<|plamo:eos|>"], {}, {"</s>"}),
]


@pytest.mark.parametrize(("texts", "keys", "expected"), ENDS)
def test_the_set_is_that_of_llama_cpp(
    texts: list[str], keys: dict[str, FieldValue], expected: set[str]
) -> None:
    assert ends(texts, **keys) == expected


def test_defaults_are_those_of_the_tokenizer() -> None:
    texts = ["<unk>", "<s>", "</s>"]
    found = generation(of(texts, model="llama"))
    assert found is not None
    assert found.special == {"bos": 1, "eos": 2}
    glm = generation(of([f"t{number}" for number in range(20)], pre="glm4"))
    assert glm is not None
    assert glm.special == {"eos": 11}
    assert generation(gguf({"general.architecture": "llama"})) is None


ADDS = [
    ({"model": "llama"}, True, Origin.RUNTIME_DEFAULT),
    ({"model": "llama", "add_bos_token": False}, False, Origin.KEY),
    ({"model": "bert"}, True, Origin.RUNTIME_DEFAULT),
    ({"model": "t5"}, False, Origin.RUNTIME_DEFAULT),
    ({"model": "gpt2", "pre": "qwen2"}, False, Origin.RUNTIME_DEFAULT),
    ({"model": "gpt2", "pre": "llama-bpe"}, True, Origin.RUNTIME_DEFAULT),
    ({"model": "gpt2", "pre": "qwen2", "add_bos_token": True}, True, Origin.KEY),
    ({"model": "hybriddna", "pre": "llama-bpe"}, True, Origin.RUNTIME_DEFAULT),
    ({"model": "gemma4", "add_bos_token": False}, True, Origin.RUNTIME_DEFAULT),
    ({"model": "gpt2", "pre": "gemma4", "add_bos_token": False}, True, Origin.RUNTIME_DEFAULT),
    # Only tokenizers with merges have a pre-tokenizer.
    ({"model": "llama", "pre": "gemma4", "add_bos_token": False}, False, Origin.KEY),
    ({"model": "llama", "add_bos_token": 1}, True, Origin.RUNTIME_DEFAULT),
]


@pytest.mark.parametrize(("keys", "expected", "origin"), ADDS)
def test_whether_a_bos_is_added(
    keys: dict[str, FieldValue], expected: bool, origin: Origin
) -> None:
    found = adds_bos(of(["a"], **keys))
    assert (found.value, found.origin) == (expected, origin)
