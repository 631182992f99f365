from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.arch.other_checkpoint import check
from rule_subjects import GEMMA, SETTINGS, conversion


def test_silent_for_the_same_width() -> None:
    assert list(check(conversion(GEMMA, GEMMA), SETTINGS)) == []


def test_fires_for_another_width() -> None:
    subject = replace(conversion(GEMMA, GEMMA), widths=(2560, 640))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs a width of 2,560 for org/model, gemma3.embedding_length is 640 and so "
            "is token_embd.weight: it was made from another checkpoint",
            where=Where(key="gemma3.embedding_length"),
            expected=2560,
            actual=640,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(first="name the right reference with --against"),
        )
    ]
