from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.gguf.alignment_odd import check
from rule_subjects import SETTINGS, gguf, model_of


@pytest.mark.parametrize("alignment", [1, 2, 4])
def test_fires_for_less_than_the_format_allows(alignment: int) -> None:
    model = model_of(gguf({"general.architecture": "llama", "general.alignment": alignment}))
    assert list(check(model, SETTINGS)) == [
        Hit(
            message=f"needs a multiple of 8, general.alignment is {alignment}",
            where=Where(file=model.gguf.files[0].name, key="general.alignment"),
            expected="a multiple of 8",
            actual=alignment,
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_silent_for_other_powers_of_two(alignment: int) -> None:
    model = model_of(gguf({"general.architecture": "llama", "general.alignment": alignment}))
    assert list(check(model, SETTINGS)) == []
    assert list(check(model_of(gguf({"general.architecture": "llama"})), SETTINGS)) == []
