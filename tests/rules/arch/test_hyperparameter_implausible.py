from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.hyperparameter_implausible import check
from rule_subjects import LLAMA, SETTINGS, model, offset, tokens

RMS = "attention.layer_norm_rms_epsilon"
FACTOR, ORIGINAL = "rope.scaling.factor", "rope.scaling.original_context_length"
TYPE = "rope.scaling.type"
BEYOND = (
    "llama.cpp counts positions in signed 32-bit numbers, and takes this for the default "
    "size of a context"
)


def count(value: int) -> FieldValue:
    return (ValueType.UINT32, value)


def real(value: float) -> FieldValue:
    return (ValueType.FLOAT32, value)


def named(changes: dict[str, FieldValue]) -> dict[str, FieldValue]:
    return {f"llama.{name}": value for name, value in changes.items()}


def said(changes: dict[str, FieldValue]) -> list[tuple[str | None, object, Severity | None]]:
    subject = model({**LLAMA, **named(changes)})
    return [
        (hit.where.key, hit.actual, hit.level)
        for hit in check(subject, SETTINGS)
        if isinstance(hit, Hit)
    ]


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"context_length": count(10_485_760)},
        {"context_length": count((1 << 31) - 1)},
        {"rope.freq_base": real(100.0)},
        {"rope.freq_base": real(1e9)},
        # What this architecture doesn't read, and what is another rule's.
        {"rope.freq_base_swa": real(0.0), "attention.layer_norm_epsilon": real(0.0)},
        {"rope.freq_base": real(float("nan"))},
        {"context_length": real(0.0)},
        {RMS: real(1e-12)},
        {RMS: real(0.05), FACTOR: real(1.0)},
        # No scaling, to llama.cpp.
        {FACTOR: real(0.0)},
        {FACTOR: real(0.0), TYPE: "none"},
        {FACTOR: real(40.0), TYPE: "yarn", ORIGINAL: count(4096)},
        # Without a list of tokens, nothing says otherwise.
        {"vocab_size": count(0)},
    ],
)
def test_silent(right: dict[str, FieldValue]) -> None:
    assert said(right) == []


def test_silent_for_an_unknown_architecture() -> None:
    assert list(check(model({"odd.context_length": count(0)}), SETTINGS)) == []


@pytest.mark.parametrize(
    ("name", "value", "more", "wanted", "why", "level"),
    [
        (
            "context_length",
            0,
            {},
            "a number of positions above 0",
            "llama.cpp makes no context of its default size, which is this one",
            Severity.ERROR,
        ),
        (
            "context_length",
            (1 << 32) - 1,
            {},
            "at most 2147483647 positions",
            BEYOND,
            Severity.ERROR,
        ),
        (
            "rope.freq_base",
            0.0,
            {},
            "a base above 0",
            "llama.cpp rotates by what is no number",
            Severity.ERROR,
        ),
        (
            "rope.freq_base",
            -10000.0,
            {},
            "a base above 0",
            "llama.cpp rotates by what is no number",
            Severity.ERROR,
        ),
        (
            FACTOR,
            -2.0,
            {},
            "a factor above 0",
            "llama.cpp rotates in the other direction",
            Severity.ERROR,
        ),
        (
            FACTOR,
            0.0,
            {TYPE: "yarn"},
            "a factor above 0 for 'yarn'",
            "llama.cpp takes 1, which stretches nothing",
            Severity.WARNING,
        ),
        (
            ORIGINAL,
            0,
            {},
            "a number of positions above 0",
            "llama.cpp doesn't scale by it here",
            Severity.WARNING,
        ),
        (
            ORIGINAL,
            0,
            {TYPE: "longrope"},
            "a number of positions above 0",
            "llama.cpp scales 'longrope' as if every position were beyond it",
            Severity.ERROR,
        ),
        (
            RMS,
            -1.0,
            {},
            "a number above 0 and at most 0.1",
            "llama.cpp aborts at the first token",
            Severity.ERROR,
        ),
        (
            RMS,
            0.0,
            {},
            "a number above 0 and at most 0.1",
            "llama.cpp divides by nothing where a row is all zeros",
            Severity.WARNING,
        ),
        (
            RMS,
            0.5,
            {},
            "a number above 0 and at most 0.1",
            "llama.cpp divides by more than the values it is to keep from being 0",
            Severity.ERROR,
        ),
    ],
)
def test_fires(
    name: str,
    value: float,
    more: dict[str, FieldValue],
    wanted: str,
    why: str,
    level: Severity,
) -> None:
    key = f"llama.{name}"
    stored = count(value) if type(value) is int else real(value)
    subject = model({**LLAMA, **named(more), key: stored})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs {wanted}, {key} is {value}: {why}",
            where=Where(key=key, offset=offset(subject, key)),
            expected=wanted,
            actual=value,
            origin=Origin.KEY,
            level=level,
            repair=Reconvert(hint="or set the key to what the reference has"),
        )
    ]


def test_a_window_rotates_by_a_base_of_its_own() -> None:
    key = "gemma3.rope.freq_base_swa"
    subject = model({"gemma3.block_count": count(2), key: real(0.0)})
    assert [hit.where.key for hit in check(subject, SETTINGS) if isinstance(hit, Hit)] == [key]


@pytest.mark.parametrize("stated", [0, 7, 9, (1 << 32) - 1])
def test_fires_for_a_size_that_no_vocabulary_has(stated: int) -> None:
    key = "llama.vocab_size"
    subject = model({**tokens(8), **LLAMA, key: count(stated)})
    wanted = "8, the number of tokens"
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs {wanted}, {key} is {stated}: llama.cpp goes by the list, engines that "
            "go by this key make another embedding",
            where=Where(key=key, offset=offset(subject, key)),
            expected=wanted,
            actual=stated,
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=Reconvert(hint="or set the key to what the reference has"),
        )
    ]


@pytest.mark.parametrize(("stated", "found"), [(8, 0), (10, 0), (9, 1)])
def test_tokens_or_rows_are_the_vocabulary(stated: int, found: int) -> None:
    keys = {**tokens(8), **LLAMA, "llama.vocab_size": count(stated)}
    subject = model(keys, [("token_embd.weight", (64, 10), "F32")])
    assert len(list(check(subject, SETTINGS))) == found
