from __future__ import annotations

import pytest

from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.arch.unknown_architecture import check
from rule_subjects import LLAMA, SETTINGS, model

TENSOR = [("token_embd.weight", (64, 8), "F32")]
WHERE = Where(key="general.architecture")


def test_silent_for_known_architectures() -> None:
    assert list(check(model(LLAMA, TENSOR), SETTINGS)) == []
    assert list(check(model({"general.architecture": "qwen3moe"}, TENSOR), SETTINGS)) == []


@pytest.mark.parametrize("name", ["lama", "Llama", "llama2", "", "llama "])
def test_an_unknown_name_is_a_warning(name: str) -> None:
    assert list(check(model({"general.architecture": name}), SETTINGS)) == [
        Hit(
            message="needs an architecture that llama.cpp b11434 knows, "
            f"general.architecture is {name!r}",
            where=WHERE,
            expected="a name in llama.cpp's table",
            actual=name,
            level=Severity.WARNING,
        )
    ]


@pytest.mark.parametrize(
    ("keys", "state"),
    [({"general.name": "x"}, "absent"), ({"general.architecture": 7}, "no string")],
)
def test_tensors_without_a_name_are_an_error(keys: dict[str, str | int], state: str) -> None:
    assert list(check(model(keys, TENSOR), SETTINGS)) == [
        Hit(
            message=f"needs an architecture's name, general.architecture is {state}: "
            "no runtime loads this file",
            where=WHERE,
            expected="a name in llama.cpp's table",
            actual=None,
            level=Severity.ERROR,
        )
    ]


def test_silent_for_an_empty_container() -> None:
    assert list(check(model({"general.name": "x"}), SETTINGS)) == []
