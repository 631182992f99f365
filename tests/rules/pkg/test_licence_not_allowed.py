from __future__ import annotations

import pytest

from gguf_audit.policies import Policy
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.licence_not_allowed import check
from rule_subjects import LLAMA, SETTINGS, model, policed


def said(allowed: tuple[str, ...] | None, **keys: str) -> list[Outcome]:
    stated = {f"general.{key.replace('_', '.')}": value for key, value in keys.items()}
    subject = model({"general.architecture": "llama", **LLAMA, **stated})
    return list(check(subject, policed(Policy(licenses=allowed))))


@pytest.mark.parametrize(("keys", "has"), [({}, "is absent"), ({"license": "gemma"}, "is 'gemma'")])
def test_fires_for_another_licence_or_none(keys: dict[str, str], has: str) -> None:
    assert said(("apache-2.0", "mit"), **keys) == [
        Hit(
            message=f"needs a licence out of apache-2.0, mit, general.license {has}",
            where=Where(key="general.license"),
            expected=["apache-2.0", "mit"],
            actual=keys.get("license"),
            level=Severity.ERROR,
        )
    ]


def test_fires_for_any_where_none_is_allowed() -> None:
    [hit] = said((), license="mit")
    assert isinstance(hit, Hit)
    assert hit.message == "needs a licence out of an empty list, general.license is 'mit'"


@pytest.mark.parametrize(
    "keys",
    [
        {"license": "mit"},
        {"license": "Apache-2.0"},
        {"license": "other", "license_name": "MIT"},
    ],
)
def test_silent_for_an_allowed_one(keys: dict[str, str]) -> None:
    assert said(("apache-2.0", "mit"), **keys) == []


def test_silent_where_nobody_asks() -> None:
    assert said(None) == []
    assert list(check(model(LLAMA), SETTINGS)) == []
