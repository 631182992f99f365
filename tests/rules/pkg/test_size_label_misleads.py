from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.size_label_misleads import check
from rule_subjects import LLAMA, SETTINGS, model

#: Eight billion parameters, of which nothing is stored.
EIGHT = [("blk.0.ffn_up.weight", (100_000, 80_000), "F16")]


def said(
    label: str | None = None,
    *,
    name: str = "model.gguf",
    tensors: list[tuple[str, tuple[int, int], str]] = EIGHT,
) -> list[Outcome]:
    keys = {} if label is None else {"general.size_label": label}
    subject = model({"general.architecture": "llama", **LLAMA, **keys}, tensors)
    return list(check(replace(subject, gguf=replace(subject.gguf, name=name)), SETTINGS))


def test_fires_where_the_label_is_far() -> None:
    assert said("70B", name="x-70B-Q4_0.gguf") == [
        Hit(
            message="needs about 8.0B parameters as it has, general.size_label is '70B'",
            where=Where(key="general.size_label"),
            expected=8_000_000_000,
            actual="70B",
            unit="parameter",
            level=Severity.INFO,
        )
    ]


def test_fires_where_the_name_is_far() -> None:
    assert said("8B", name="models-8B/Llama-70b-Q4_0.gguf") == [
        Hit(
            message="needs about 8.0B parameters as it has, the file's name says 70b",
            where=Where(),
            expected=8_000_000_000,
            actual="70b",
            unit="parameter",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize("label", ["16B", "4B", "500M", "1T"])
def test_fires_from_a_factor_of_two_on(label: str) -> None:
    assert len(said(label)) == 1


@pytest.mark.parametrize(
    "label", ["8B", "8.0B", "7.6B", "15B", "4.1B", "8x7B", "30B-A3B", "large", None]
)
def test_silent_about_rounding_and_other_labels(label: str | None) -> None:
    assert said(label) == []


@pytest.mark.parametrize(
    "name", ["x-7B-Q4_0.gguf", "x-7B-1M-Q4_0.gguf", "x-128K.gguf", "x-v70B1.gguf", "70Bx.gguf"]
)
def test_silent_about_names_that_fit_or_say_several_things(name: str) -> None:
    assert said(name=name) == []


def test_silent_about_experts_and_vocabularies() -> None:
    experts = [("blk.0.ffn_up_exps.weight", (100_000, 80_000), "F16")]
    assert said("70B", tensors=experts) == []
    assert said("70B", tensors=[]) == []
