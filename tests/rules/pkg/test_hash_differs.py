from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.policies import Policy
from gguf_audit.rule import Hit, Outcome, Replace, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.hash_differs import check
from rule_subjects import LLAMA, SETTINGS, model, policed

ONE, OTHER = "1" * 64, "2" * 64
PINNED = Policy(hashes={"a.gguf": ONE, "b.gguf": OTHER})


def said(**digests: str) -> list[Outcome]:
    files = {f"models/{name}.gguf": sha256 for name, sha256 in digests.items()}
    return list(check(replace(model(LLAMA), digests=files), policed(PINNED)))


def test_fires_for_other_bytes() -> None:
    assert said(a=ONE, b=ONE) == [
        Hit(
            message=f"needs the file with sha256 {OTHER}, has {ONE}",
            where=Where(file="models/b.gguf"),
            expected=OTHER,
            actual=ONE,
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


def test_silent_for_the_same_bytes() -> None:
    assert said(a=ONE, b=OTHER) == []


def test_silent_for_what_is_not_pinned() -> None:
    assert said(c=ONE) == []
    assert list(check(model(LLAMA), SETTINGS)) == []
