from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import Json
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.reference_value_odd import check
from rule_subjects import SETTINGS, checkpoint, conversion

INF = math.inf


def hits(
    config: dict[str, Json],
    *,
    generation: dict[str, Json] | None = None,
    tokenizer: dict[str, Json] | None = None,
) -> list[object]:
    found = checkpoint(config=config, generation=generation or {})
    found = replace(found, tokenizer_config=tokenizer or {})
    return list(check(conversion({}, reference=found), SETTINGS))


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"rms_norm_eps": 1e-5, "huge": 1e308, "text": "NaN"},
        {"time_step_limit": [0.0, INF], "vision": {"clamp_max": INF, "Limit": [-INF]}},
        {"model_type": None},
        {"model_type": ""},
        {"model_type": "nemotron-nas"},
        {"model_type": "qwen2_5_vl"},
    ],
)
def test_silent(config: dict[str, Json]) -> None:
    assert hits(config, tokenizer={"model_max_length": 10**30}) == []


def test_silent_without_files() -> None:
    assert list(check(conversion({}, reference=checkpoint()), SETTINGS)) == []


def test_tells_of_infinite_numbers_in_every_file() -> None:
    values: dict[str, Json] = {"a": [1.0, {"b": INF}], "c": -INF}
    found = hits({"time_step_limit": INF}, generation=values, tokenizer={"x": INF})
    assert found == [
        Hit(
            message="needs finite numbers, in the reference's generation_config.json a[1].b is "
            "Infinity, c is -Infinity: strict parsers refuse the file",
            where=Where(file="org/model/generation_config.json", key="a[1].b"),
            expected="finite numbers",
            actual="Infinity",
            level=Severity.INFO,
        ),
        Hit(
            message="needs finite numbers, in the reference's tokenizer_config.json x is Infinity: "
            "strict parsers refuse the file",
            where=Where(file="org/model/tokenizer_config.json", key="x"),
            expected="finite numbers",
            actual="Infinity",
            level=Severity.INFO,
        ),
    ]


def test_warns_of_what_is_no_number() -> None:
    assert hits({"a": INF, "time_step_limit": [0.0, math.nan]}) == [
        Hit(
            message="needs finite numbers, in the reference's config.json time_step_limit[1] is "
            "NaN, a is Infinity: strict parsers refuse the file",
            where=Where(file="org/model/config.json", key="time_step_limit[1]"),
            expected="finite numbers",
            actual="NaN",
            level=Severity.WARNING,
        )
    ]


def test_many_are_told_in_short() -> None:
    [hit] = hits({f"k{index}": INF for index in range(5000)})
    assert isinstance(hit, Hit)
    assert hit.message.endswith("k4 is Infinity (and 4995 more): strict parsers refuse the file")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, "5"),
        ([], "[]"),
        ({}, "{}"),
        (False, "False"),
        ("../../x", "'../../x'"),
        ("a\x1b[2J", "'a\\x1b[2J'"),
        ("x" * 65, "'" + "x" * 39 + "..."),
    ],
)
def test_warns_of_a_kind_that_is_no_name(value: Json, shown: str) -> None:
    assert hits({"model_type": value}) == [
        Hit(
            message="needs the name of a kind of model, model_type of the reference's config.json "
            f"is {shown}: transformers has no class for it",
            where=Where(file="org/model/config.json", key="model_type"),
            expected="a name",
            actual=shown,
            level=Severity.WARNING,
        )
    ]
