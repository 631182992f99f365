from __future__ import annotations

from gguf_audit.policies import Policy
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.architecture_not_allowed import check
from rule_subjects import LLAMA, SETTINGS, model, policed


def said(*allowed: str, architecture: str | None = "llama") -> list[Outcome]:
    named = {"general.name": "x"}
    if architecture is not None:
        named["general.architecture"] = architecture
    return list(check(model(named), policed(Policy(architectures=allowed))))


def test_fires_for_another_architecture() -> None:
    assert said("gemma3", "qwen3") == [
        Hit(
            message="needs an architecture out of gemma3, qwen3, general.architecture is 'llama'",
            where=Where(key="general.architecture"),
            expected=["gemma3", "qwen3"],
            actual="llama",
            level=Severity.ERROR,
        )
    ]


def test_fires_for_what_only_begins_alike() -> None:
    assert len(said("llama", architecture="llama4")) == 1


def test_silent_for_an_allowed_one() -> None:
    assert said("gemma3", "llama") == []


def test_silent_where_nobody_asks_or_nothing_is_said() -> None:
    assert list(check(model(LLAMA), SETTINGS)) == []
    assert said("llama", architecture=None) == []
