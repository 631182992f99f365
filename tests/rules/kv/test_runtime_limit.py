from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.layout import CacheLayout, Full, Latent, Sliding
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.runtime_limit import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, conversion, layers

FULL = Full(kv_heads=1, key_length=8, value_length=8)
WINDOW = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=8)
LONG = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=1 << 30)
LATENT = Latent(kv_heads=1, key_length=8)


def said(expected: CacheLayout, ideal: CacheLayout) -> list[object]:
    held = replace(conversion(LLAMA, LLAMA), expected=expected, ideal=ideal)
    return list(check(held, SETTINGS))


def limit(what: str, layers_: str, first: int, *then: str) -> Hit:
    return Hit(
        message=f"the architecture has a {what} on {layers_}, llama.cpp keeps every token "
        "unpacked there whatever the file says",
        where=Where(layer=first),
        expected=what,
        actual="full attention",
        level=Severity.INFO,
        consequences=then,
    )


def test_fires_for_a_window_that_the_runtime_ignores() -> None:
    assert said(layers(FULL, FULL), layers(FULL, WINDOW)) == [
        limit(
            "sliding window",
            "layer 1",
            1,
            "prompts beyond 8 tokens are read further back than in training",
        )
    ]


def test_fires_for_a_latent_that_the_runtime_unpacks() -> None:
    assert said(layers(FULL, FULL), layers(LATENT, LATENT)) == [
        limit("latent (MLA)", "all 2 layers", 0)
    ]


def test_silent_where_the_runtime_does_as_the_architecture() -> None:
    assert said(layers(WINDOW, LATENT, FULL), layers(WINDOW, LATENT, FULL)) == []


def test_silent_for_a_window_beyond_the_context() -> None:
    assert said(layers(FULL), layers(LONG)) == []


def test_silent_where_the_need_is_not_known() -> None:
    held = replace(conversion(LLAMA, LLAMA), ideal=UNKNOWN)
    assert list(check(held, SETTINGS)) == []
