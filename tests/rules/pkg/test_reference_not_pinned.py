from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.policies import Policy
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.reference_not_pinned import check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion, model, policed

COMMIT, OTHER = "a" * 40, "b" * 40


def said(pinned: str, revision: str | None = COMMIT) -> list[Outcome]:
    subject = model(LLAMA)
    used = replace(checkpoint(), id="org/model", revision=revision)
    policy = Policy(references={subject.gguf.name: pinned})
    return list(check(conversion(subject, reference=used), policed(policy)))


@pytest.mark.parametrize("pinned", ["org/other", f"org/model@{OTHER}", "org/model-2"])
def test_fires_for_another_reference(pinned: str) -> None:
    assert said(pinned) == [
        Hit(
            message=f"needs the reference {pinned}, was held against org/model@{COMMIT}",
            where=Where(),
            expected=pinned,
            actual=f"org/model@{COMMIT}",
            level=Severity.WARNING,
        )
    ]


def test_fires_where_the_commit_is_not_known() -> None:
    [hit] = said(f"org/model@{COMMIT}", None)
    assert isinstance(hit, Hit)
    assert hit.actual == "org/model"


@pytest.mark.parametrize(
    "pinned", [f"org/model@{COMMIT}", "org/model", "org/model@main", "hf://org/model", "auto"]
)
def test_silent_for_the_pinned_one(pinned: str) -> None:
    assert said(pinned) == []


def test_silent_where_nothing_is_pinned() -> None:
    other = Policy(references={"other.gguf": "org/other"})
    assert list(check(conversion(model(LLAMA)), policed(other))) == []
    assert list(check(conversion(model(LLAMA)), SETTINGS)) == []
