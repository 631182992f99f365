from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.gguf.array_nested import check
from rule_subjects import SETTINGS, gguf, model_of

LLAMA: dict[str, FieldValue] = {"general.architecture": "llama"}


@pytest.mark.parametrize("value", [[[1, 2], [3]], [[[1]]], [["a"]]])
def test_fires_for_arrays_in_an_array(value: FieldValue) -> None:
    model = model_of(gguf({**LLAMA, "some.key": value}))
    [file] = model.gguf.files
    assert isinstance(value, list)
    assert list(check(model, SETTINGS)) == [
        Hit(
            message=f"needs an array of numbers or texts, some.key is an array of {len(value)} "
            "arrays: llama.cpp refuses the file",
            where=Where(file=file.name, key="some.key", offset=file.fields[1].offset),
            expected="an array of numbers or texts",
            actual="an array of arrays",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(hint="without some.key; gguf-new-metadata --remove-metadata"),
        )
    ]


@pytest.mark.parametrize("value", [(ValueType.INT32, []), [1, 2], ["a"], "[[1]]"])
def test_silent_for_other_values(value: FieldValue) -> None:
    assert list(check(model_of(gguf({**LLAMA, "some.key": value})), SETTINGS)) == []
