from __future__ import annotations

from gguf_audit.evidence import SetMember, SetSubject
from gguf_audit.fields import Fields
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.quant_twice import check
from rule_subjects import SETTINGS


def said(*names: str) -> list[Outcome]:
    members = tuple(
        SetMember(
            name=f"m/{name}.gguf",
            architecture="llama",
            byte_order="little",
            values={},
            fields=Fields.of("llama", {}),
        )
        for name in names
    )
    subject = SetSubject(folder="m", architecture="llama", members=members)
    return list(check(subject, SETTINGS))


def test_fires_for_the_same_label_again() -> None:
    assert said("x-Q8_0", "x-Q4_K_M", "x-q4_k_m") == [
        Hit(
            message="needs one file of Q4_K_M, has 2: m/x-Q4_K_M.gguf, m/x-q4_k_m.gguf",
            where=Where(file="m/x-q4_k_m.gguf"),
            expected=1,
            actual=2,
            unit="file",
            level=Severity.INFO,
        )
    ]


def test_silent_about_other_labels() -> None:
    assert said("x-Q4_K_M", "x-Q4_K_L", "x-UD-Q4_K_M", "x-Q4_K_S", "x", "y") == []
