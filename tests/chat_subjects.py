"""Models with chat templates, rendered by the real child process."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gguf_audit.chats import chat_of, chat_of_reference
from gguf_audit.checkpoint import Checkpoint, Tokenizer
from gguf_audit.evidence import Conversion, Model
from gguf_audit.gguf import ValueType
from gguf_audit.parts import Absent
from gguf_audit.probes.templates import Analyst
from gguf_audit.runtime.generation import generation
from gguf_audit.testing import FieldValue
from rule_subjects import checkpoint, conversion, model

KEY = "tokenizer.chat_template"
#: Text -> type: one is normal, three control.
TOKENS = {
    "<s>": 3,
    "</s>": 3,
    "a": 1,
    "<|im_start|>": 3,
    "<|im_end|>": 3,
    "<|done|>": 3,
    "[gone]": 1,
    "<|stop|>": 3,
}
IDS = {text: id_ for id_, text in enumerate(TOKENS)}
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: The same, with another token behind every turn.
ENDED = CHATML.replace("<|im_end|>", "{end}")

__all__ = ["CHATML", "ENDED", "IDS", "KEY", "TOKENS", "chatting", "compared", "vocabulary"]


def vocabulary(**keys: FieldValue) -> dict[str, FieldValue]:
    """Return a vocabulary of those tokens; keys are named without their prefix."""
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": (ValueType.STRING, [*TOKENS]),
        "tokenizer.ggml.token_type": (ValueType.INT32, [*TOKENS.values()]),
        "tokenizer.ggml.bos_token_id": IDS["<s>"],
        "tokenizer.ggml.eos_token_id": IDS["</s>"],
        "tokenizer.ggml.add_bos_token": False,
        **{f"tokenizer.ggml.{key}": value for key, value in keys.items()},
    }


def chatting(
    templates: str | Mapping[str, FieldValue], keys: Mapping[str, FieldValue] | None = None
) -> Model:
    """Return a model with a template, or with what stands at these keys."""
    stored = {KEY: templates} if isinstance(templates, str) else dict(templates)
    made = model({**(vocabulary() if keys is None else keys), **stored})
    tokens = generation(made.gguf)
    with Analyst() as analyst:
        chat = chat_of(made.gguf, tokens, lambda: analyst)
    return replace(made, chat=chat, generation=tokens)


def compared(
    template: str,
    expected: str | Mapping[str, str] | Checkpoint | Absent,
    keys: Mapping[str, FieldValue] | None = None,
    *,
    ids: Mapping[str, int] | None = None,
) -> Conversion:
    """Return a model with a template beside a reference with another one."""
    made = chatting(template, keys) if template else chatting({}, keys)
    if isinstance(expected, str):
        expected = {"default": expected}
    tokenizer = Tokenizer(special_ids=ids or {})
    reference = (
        expected
        if isinstance(expected, Checkpoint)
        else checkpoint(templates=expected, tokenizer=tokenizer)
    )
    assert not isinstance(made.chat, Absent)
    chat = made.chat
    with Analyst() as analyst:
        held = chat_of_reference(reference, chat, lambda: analyst)
    return replace(conversion(made, reference=reference), expected_chat=held)
