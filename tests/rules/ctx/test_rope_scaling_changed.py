from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.ctx.rope_scaling_changed import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, conversion

TYPE, FACTOR = "rope.scaling.type", "rope.scaling.factor"
ORIGINAL, ATTENTION = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
YARN: dict[str, Scalar] = {TYPE: "yarn", FACTOR: 4.0, ORIGINAL: 2048}
YARN_SAID = "RoPE scaling of type yarn, factor 4.0, original_context_length 2048"


def said(
    actual: Mapping[str, Scalar],
    expected: Mapping[str, Scalar],
    *,
    base: Mapping[str, Scalar] = LLAMA,
) -> list[Outcome]:
    """Return what is said of one scaling beside another, keys without prefix."""
    found = {f"llama.{key}": value for key, value in actual.items()}
    wanted = {f"llama.{key}": value for key, value in expected.items()}
    return list(check(conversion({**base, **found}, {**LLAMA, **wanted}), SETTINGS))


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({}, {}),
        (YARN, YARN),
        ({**YARN, FACTOR: 4.000001}, YARN),
        # Without effect, whatever the type.
        ({TYPE: "none", FACTOR: 8.0}, {}),
        ({TYPE: "linear"}, {}),
        ({TYPE: "linear", FACTOR: 1.0}, {}),
        ({FACTOR: 0.0}, {}),
        ({TYPE: "yarn", FACTOR: 1.0, ORIGINAL: 8192}, {}),
        ({}, {TYPE: "yarn", FACTOR: 1.0}),
        ({ATTENTION: 1.0}, {}),
        # Defaults of the runtime: linear, the old key, the training context.
        ({FACTOR: 8.0}, {TYPE: "linear", FACTOR: 8.0}),
        ({"rope.scale_linear": 8.0}, {TYPE: "linear", FACTOR: 8.0}),
        ({TYPE: "yarn", FACTOR: 4.0}, {**YARN, ORIGINAL: 8192}),
        ({**YARN, ORIGINAL: 8192}, {TYPE: "yarn", FACTOR: 4.0}),
    ],
)
def test_silent(actual: dict[str, Scalar], expected: dict[str, Scalar]) -> None:
    assert said(actual, expected) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_another_context_is_no_other_scaling() -> None:
    yarn: dict[str, Scalar] = {TYPE: "yarn", FACTOR: 4.0}
    assert said(yarn, yarn, base={**LLAMA, "llama.context_length": 9}) == []


def scaling(values: Mapping[str, Scalar]) -> dict[str, object]:
    return dict(values)


@pytest.mark.parametrize(
    ("actual", "key", "values", "has", "origin"),
    [
        # Everything lost; the type; the factor; the original length.
        ({}, TYPE, {}, "no RoPE scaling", Origin.RUNTIME_DEFAULT),
        (
            {FACTOR: 4.0, ORIGINAL: 2048},
            TYPE,
            {TYPE: "linear", FACTOR: 4.0},
            "RoPE scaling of type linear, factor 4.0",
            Origin.RUNTIME_DEFAULT,
        ),
        ({TYPE: "yarn", ORIGINAL: 2048}, TYPE, {}, "no RoPE scaling", Origin.KEY),
        (
            {TYPE: "yarn", FACTOR: 4.0},
            ORIGINAL,
            {**YARN, ORIGINAL: 8192},
            "RoPE scaling of type yarn, factor 4.0, original_context_length 8192",
            Origin.RUNTIME_DEFAULT,
        ),
        (
            {**YARN, FACTOR: 2.0},
            FACTOR,
            {**YARN, FACTOR: 2.0},
            "RoPE scaling of type yarn, factor 2.0, original_context_length 2048",
            Origin.KEY,
        ),
        (
            {**YARN, ATTENTION: 1.5},
            ATTENTION,
            {**YARN, ATTENTION: 1.5},
            f"{YARN_SAID}, attn_factor 1.5",
            Origin.KEY,
        ),
        ({TYPE: "none", FACTOR: 4.0}, TYPE, {}, "no RoPE scaling", Origin.KEY),
    ],
)
def test_fires(
    actual: dict[str, Scalar], key: str, values: dict[str, Scalar], has: str, origin: Origin
) -> None:
    assert said(actual, YARN) == [
        Hit(
            message=f"needs {YARN_SAID}, this file has {has}",
            where=Where(key=f"llama.{key}"),
            expected=scaling(YARN),
            actual=scaling(values) or None,
            origin=origin,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_a_lost_attention_factor() -> None:
    assert said({}, {ATTENTION: 1.19}) == [
        Hit(
            message="needs RoPE scaling of attn_factor 1.19, this file has no RoPE scaling",
            where=Where(key=f"llama.{ATTENTION}"),
            expected={ATTENTION: 1.19},
            actual=None,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_linear_scaling_that_nobody_wants_is_an_error() -> None:
    assert said({FACTOR: 2.0}, {}) == [
        Hit(
            message="needs no RoPE scaling, this file has RoPE scaling of type linear, factor 2.0",
            where=Where(key=f"llama.{TYPE}"),
            expected=None,
            actual={TYPE: "linear", FACTOR: 2.0},
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_yarn_on_a_model_without_scaling_extends_it() -> None:
    assert said(YARN, {}) == [
        Hit(
            message=f"needs no RoPE scaling, this file has {YARN_SAID}, which extends the context "
            "to 8192 tokens on purpose",
            where=Where(key=f"llama.{TYPE}"),
            expected=None,
            actual=scaling(YARN),
            origin=Origin.KEY,
            level=Severity.INFO,
        )
    ]


# What YaRN knows besides

MISTRAL = {key.replace("llama", "mistral3"): value for key, value in LLAMA.items()}
EXTRAPOLATION = "rope.scaling.yarn_ext_factor"
BETA, LOGS = "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_log_multiplier"


def of_yarn(
    architecture: str, actual: Mapping[str, Scalar], expected: Mapping[str, Scalar]
) -> list[tuple[str | None, str]]:
    """Return what is said of YaRN's further values, by key and level."""
    base = {key.replace("mistral3", architecture): value for key, value in MISTRAL.items()}
    base |= {f"{architecture}.{key}": value for key, value in YARN.items()}
    found = {f"{architecture}.{key}": value for key, value in actual.items()}
    wanted = {f"{architecture}.{key}": value for key, value in expected.items()}
    hits = check(conversion({**base, **found}, {**base, **wanted}), SETTINGS)
    return [(hit.where.key, hit.level.value) for hit in hits if isinstance(hit, Hit)]


def test_silent_for_a_value_that_the_runtime_has_anyway() -> None:
    assert of_yarn("mistral3", {}, {BETA: 32.0, LOGS: 0.0}) == []
    assert of_yarn("mistral3", {BETA: 32.0}, {}) == []
    for factor in (1.0, -1.0):
        assert of_yarn("grok", {EXTRAPOLATION: factor}, {}) == []


def test_fires_for_a_lost_multiplier() -> None:
    assert of_yarn("mistral3", {}, {LOGS: 0.1}) == [(f"mistral3.{LOGS}", "error")]
    assert of_yarn("mistral3", {BETA: 8.0}, {BETA: 32.0}) == [(f"mistral3.{BETA}", "error")]
    assert of_yarn("grok", {EXTRAPOLATION: 0.5}, {}) == [(f"grok.{EXTRAPOLATION}", "error")]


def test_warns_where_the_architecture_reads_none_of_it() -> None:
    assert of_yarn("llama", {BETA: 8.0}, {BETA: 32.0}) == [(f"llama.{BETA}", "warning")]
    assert of_yarn("llama", {}, {BETA: 8.0}) == []
    assert of_yarn("llama", {BETA: 8.0}, {}) == []


def test_an_original_length_counts_without_a_type() -> None:
    assert len(said({}, {ORIGINAL: 2048})) == 1
    assert said({ORIGINAL: 8192}, {}) == []
    assert said({}, {ORIGINAL: 8192}) == []


def test_silent_where_there_is_no_rope() -> None:
    jamba = {key.replace("llama", "jamba"): value for key, value in LLAMA.items()}
    jamba |= {f"jamba.ssm.{name}": 4 for name in ("conv_kernel", "inner_size", "state_size")}
    jamba |= {"jamba.ssm.time_step_rank": 4}
    assert (
        list(check(conversion({**jamba, "jamba.rope.scaling.factor": 2.0}, jamba), SETTINGS)) == []
    )
