from __future__ import annotations

import shlex

import pytest

from gguf_audit.repairing import fix_command
from gguf_audit.rule import (
    Advice,
    Reconvert,
    RemoveKey,
    Repair,
    Replace,
    SetArray,
    SetChatTemplate,
    SetKey,
    SetPreTokenizer,
    SetSpecialId,
)


def command(repair: Repair, *, file: str = "m.gguf", rewritable: bool = True) -> str:
    return fix_command(repair, file=file, rewritable=rewritable)


@pytest.mark.parametrize(
    ("repair", "expected"),
    [
        (
            SetKey(key="llama.context_length", value=8192, present=True),
            "gguf-set-metadata m.gguf llama.context_length 8192",
        ),
        (
            SetKey(key="llama.rope.freq_base", value=500000.0, present=True),
            "gguf-set-metadata m.gguf llama.rope.freq_base 500000.0",
        ),
        (SetKey(key="llama.attention.causal", value=False, present=True), "reconvert"),
        (SetKey(key="llama.rope.scaling.type", value="yarn", present=True), "reconvert"),
        (SetKey(key="llama.context_length", value=8192, present=False), "reconvert"),
        (
            RemoveKey(key="general.url"),
            "gguf-new-metadata --remove-metadata general.url m.gguf m-repaired.gguf",
        ),
        (
            SetSpecialId(name="eos", id=1),
            "gguf-new-metadata --special-token-by-id eos 1 m.gguf m-repaired.gguf",
        ),
        (
            SetPreTokenizer(name="qwen2"),
            "gguf-new-metadata --pre-tokenizer qwen2 m.gguf m-repaired.gguf",
        ),
        (
            SetChatTemplate(template="{{ x }}"),
            "gguf-new-metadata --chat-template-file chat_template.jinja m.gguf m-repaired.gguf",
        ),
        (SetArray(key="tokenizer.ggml.scores", items=(0.0,)), "reconvert"),
        (Reconvert(), "reconvert"),
        (Reconvert(hint="why"), "reconvert (why)"),
        (Reconvert(first="look again"), "look again; else reconvert"),
        (Advice(text="hf upload o/r m.gguf"), "hf upload o/r m.gguf"),
        (Replace(), "fetch the file again"),
    ],
)
def test_the_command_is_one_that_can_do_it(repair: Repair, expected: str) -> None:
    assert command(repair) == expected


def test_a_file_that_the_scripts_misread_is_reconverted() -> None:
    repair = SetKey(key="llama.context_length", value=8192, present=True)
    assert command(repair, rewritable=False) == "reconvert"
    assert command(Replace(), rewritable=False) == "fetch the file again"


@pytest.mark.parametrize("key", ["a;rm -rf ~.context_length", "$(id)", "-force", "a b", "a\nb"])
def test_a_key_from_a_hostile_file_is_never_in_a_command(key: str) -> None:
    assert command(SetKey(key=key, value=1, present=True)) == "reconvert"
    assert command(RemoveKey(key=key)) == "reconvert"
    assert command(SetSpecialId(name=key, id=1)) == "reconvert"
    assert command(SetPreTokenizer(name=key)) == "reconvert"


@pytest.mark.parametrize("file", ["-rf.gguf", "a b.gguf", "$(id).gguf", "a';id.gguf"])
def test_a_file_name_stays_one_argument(file: str) -> None:
    words = shlex.split(command(SetSpecialId(name="eos", id=1), file=file))
    path = f"./{file}" if file.startswith("-") else file
    assert words[-2:] == [path, path.removesuffix(".gguf") + "-repaired.gguf"]
