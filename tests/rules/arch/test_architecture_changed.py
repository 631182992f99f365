from __future__ import annotations

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.arch.architecture_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, conversion


def test_silent_for_the_same_architecture() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []


def test_silent_where_the_right_one_is_unknown() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_silent_where_the_file_names_none() -> None:
    assert list(check(conversion({"general.name": "x"}, LLAMA), SETTINGS)) == []


def test_fires_for_another_architecture() -> None:
    assert list(check(conversion(GEMMA, LLAMA), SETTINGS)) == [
        Hit(
            message="needs architecture 'llama' for org/model, general.architecture is 'gemma3'",
            where=Where(key="general.architecture"),
            expected="llama",
            actual="gemma3",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(first="name the right reference with --against"),
        )
    ]
