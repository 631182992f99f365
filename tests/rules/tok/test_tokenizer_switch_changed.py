from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Vocabulary
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.tokenizer_switch_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary


def said(
    name: str,
    right: tuple[bool | None, ...],
    stored: FieldValue | None,
    *,
    kind: str = "llama",
    pre: str = "default",
) -> list[Outcome]:
    values = {} if stored is None else {name: stored}
    ids: dict[str, FieldValue] = {
        f"{each}_token_id": (ValueType.UINT32, 1) for each in ("bos", "eos", "seperator")
    }
    found = vocabulary(["a", "b"], {"pre": pre, **ids, **values}, kind=kind)
    wanted = Vocabulary(model=kind, texts=["a", "b"], types=[1, 1], switches={name: right})
    return list(check(conversion(found, reference=checkpoint(vocabulary=wanted)), SETTINGS))


@pytest.mark.parametrize(
    ("name", "right", "stored", "kind", "pre"),
    [
        ("add_bos_token", (True,), True, "gpt2", "gpt-2"),
        # The default is the same.
        ("add_bos_token", (True,), None, "llama", "default"),
        ("add_bos_token", (True,), None, "gpt2", "llama-bpe"),
        ("add_bos_token", (False,), None, "gpt2", "gpt-2"),
        ("add_sep_token", (True,), None, "bert", "default"),
        ("add_eos_token", (True,), None, "t5", "default"),
        # Releases differ.
        ("add_bos_token", (False, None), None, "gpt2", "llama-bpe"),
        ("add_bos_token", (False, True), True, "gpt2", "gpt-2"),
        # Gemma 4 begins with bos whatever the file says.
        ("add_bos_token", (True,), False, "gemma4", "default"),
        # Not read for that kind of tokenizer.
        ("add_space_prefix", (False,), True, "gpt2", "gpt-2"),
        ("normalizer.lowercase", (False,), True, "llama", "default"),
        # TOK007 tells it.
        ("add_bos_token", (True,), "false", "llama", "default"),
    ],
)
def test_silent(
    name: str, right: tuple[bool | None, ...], stored: FieldValue | None, kind: str, pre: str
) -> None:
    assert said(name, right, stored, kind=kind, pre=pre) == []


def test_silent_without_such_a_token() -> None:
    found = vocabulary(["a", "b"], {"add_bos_token": True})
    wanted = Vocabulary(
        model="gpt2", texts=["a", "b"], types=[1, 1], switches={"add_sep_token": (True,)}
    )
    subject = conversion(found, reference=checkpoint(vocabulary=wanted))
    assert list(check(subject, SETTINGS)) == []


@pytest.mark.parametrize(
    ("name", "right", "stored", "kind", "level"),
    [
        ("add_bos_token", (True,), False, "gpt2", Severity.ERROR),
        ("add_bos_token", (False,), None, "llama", Severity.ERROR),
        ("add_bos_token", (None,), False, "llama", Severity.WARNING),
        ("add_eos_token", (True,), False, "gpt2", Severity.ERROR),
        ("add_sep_token", (True,), False, "bert", Severity.WARNING),
        ("add_space_prefix", (False,), None, "llama", Severity.WARNING),
        ("remove_extra_whitespaces", (True,), None, "t5", Severity.WARNING),
        ("normalizer.lowercase", (False,), None, "bert", Severity.WARNING),
        ("normalizer.strip_accents", (False,), None, "bert", Severity.WARNING),
    ],
)
def test_fires(
    name: str, right: tuple[bool | None, ...], stored: bool | None, kind: str, level: Severity
) -> None:
    key = f"tokenizer.ggml.{name}"
    [hit] = said(name, right, stored, kind=kind)
    assert isinstance(hit, Hit)
    wanted = hit.expected
    assert isinstance(wanted, bool)
    was, is_ = (str(value).lower() for value in (wanted, not wanted))
    found = is_ if stored is not None else f"absent, so llama.cpp takes {is_}"
    assert hit == Hit(
        message=f"needs {name} {was} as the reference has it, {key} is {found}",
        where=Where(key=key),
        expected=wanted,
        actual=not wanted,
        origin=Origin.KEY if stored is not None else Origin.RUNTIME_DEFAULT,
        level=level,
        repair=SetKey(key=key, value=wanted, present=stored is not None),
    )
