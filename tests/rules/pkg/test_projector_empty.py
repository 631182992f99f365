from __future__ import annotations

from companion_subjects import GEMMA, companion, file, gemma
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.projector_empty import check
from rule_subjects import SETTINGS


def test_fires_for_a_file_without_tensors() -> None:
    assert list(check(companion(file(GEMMA, {})), SETTINGS)) == [
        Hit(
            message="needs the tensors of an encoder and a projector, the file has none",
            where=Where(),
            expected="tensors",
            actual=0,
            unit="tensor",
            level=Severity.ERROR,
            repair=Reconvert(hint="with a converter that knows the names of these tensors"),
        )
    ]


def test_silent_for_a_right_projector() -> None:
    assert list(check(companion(gemma()), SETTINGS)) == []
