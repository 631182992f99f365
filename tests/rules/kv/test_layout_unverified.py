from __future__ import annotations

from msgspec.structs import replace

from gguf_audit import arch
from gguf_audit.evidence import Model
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.layout_unverified import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, model


def unverified() -> Model:
    known = arch.by_name("llama")
    assert known is not None
    return replace(model(LLAMA), architecture=replace(known, verified=False))


def test_fires_for_a_layout_that_nobody_measured() -> None:
    assert list(check(unverified(), SETTINGS)) == [
        Hit(
            message="the cache of llama is known from llama.cpp's source alone, no run has "
            "confirmed it",
            where=Where(key="general.architecture"),
            expected="a measured layout",
            actual="a layout read from source",
            level=Severity.INFO,
        )
    ]


def test_silent_for_a_measured_layout() -> None:
    assert list(check(model(LLAMA), SETTINGS)) == []


def test_silent_without_a_layout() -> None:
    assert list(check(replace(unverified(), implied=UNKNOWN), SETTINGS)) == []
    assert list(check(replace(model(LLAMA), architecture=UNKNOWN), SETTINGS)) == []
