from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.policies import Budget, Policy
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.run.file_over_budget import check
from rule_subjects import LLAMA, SETTINGS, model, policed

MODEL = model(LLAMA, [("token_embd.weight", (64, 8), "F16")])
SIZE = sum(file.size_bytes for file in MODEL.gguf.files)


def said(allowed: int | None, *, shards: int = 1) -> list[Outcome]:
    gguf = replace(MODEL.gguf, files=MODEL.gguf.files * shards)
    settings = policed(Policy(budget=Budget(file_bytes=allowed)))
    return list(check(replace(MODEL, gguf=gguf), settings))


def test_fires_above_the_budget() -> None:
    [hit] = said(1024)
    assert hit == Hit(
        message="needs at most 1 KiB, has 1.53 KiB",
        where=Where(),
        expected=1024,
        actual=SIZE,
        unit="byte",
        level=Severity.ERROR,
    )


def test_fires_for_all_shards_together() -> None:
    [hit] = said(2 * SIZE - 1, shards=2)
    assert isinstance(hit, Hit)
    assert (hit.actual, hit.message.endswith(" in 2 files")) == (2 * SIZE, True)


def test_silent_up_to_the_budget() -> None:
    assert said(SIZE) == []
    assert said(2 * SIZE, shards=2) == []


def test_silent_without_a_budget() -> None:
    assert said(None) == []
    assert list(check(MODEL, SETTINGS)) == []
