from __future__ import annotations

import pytest

from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Field, Scalar, ValueType
from gguf_audit.rule import Hit, Reconvert, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.ctx.context_length_changed import check
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, conversion, layers, without

KEY = "llama.context_length"
FACTOR, ORIGINAL = "llama.rope.scaling.factor", "llama.rope.scaling.original_context_length"


def test_silent_for_the_right_length() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


def test_silent_where_a_right_conversion_has_no_length() -> None:
    expected = Fields.of("llama", without(LLAMA, KEY))
    assert list(check(conversion(LLAMA, expected, layout=layers()), SETTINGS)) == []


def test_silent_for_a_wrong_type() -> None:
    assert list(check(conversion({**LLAMA, KEY: (ValueType.UINT64, 9)}, LLAMA), SETTINGS)) == []


def test_silent_for_what_another_release_writes() -> None:
    fields = {key: Field(key=key, type=None, value=value) for key, value in LLAMA.items()}
    either = Fields("llama", fields, alternatives={KEY: (4096, None)})
    assert list(check(conversion({**LLAMA, KEY: 4096}, either), SETTINGS)) == []
    assert list(check(conversion(without(LLAMA, KEY), either), SETTINGS)) == []
    [hit] = list(check(conversion({**LLAMA, KEY: 4095}, either), SETTINGS))
    assert isinstance(hit, Hit)


def test_a_lost_length_is_an_error() -> None:
    assert list(check(conversion(without(LLAMA, KEY), LLAMA), SETTINGS)) == [
        Hit(
            message=f"needs 8192 tokens of training context, {KEY} is absent: "
            "llama.cpp refuses the file",
            where=Where(key=KEY),
            expected=8192,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_a_shorter_length_is_a_warning() -> None:
    assert list(check(conversion({**LLAMA, KEY: 8191}, LLAMA), SETTINGS)) == [
        Hit(
            message=f"needs 8192 tokens of training context, {KEY} is 8191: "
            "the runtime stops short of what the model can do",
            where=Where(key=KEY),
            expected=8192,
            actual=8191,
            origin=Origin.KEY,
            level=Severity.WARNING,
            repair=SetKey(key=KEY, value=8192, present=True),
        )
    ]


@pytest.mark.parametrize(
    "scaling",
    [
        {},
        {FACTOR: 2.0},
        {FACTOR: "4"},
        # A factor of one would explain every length that it is multiplied with.
        {FACTOR: 1.0, ORIGINAL: 32768},
        # Unknown what it is a multiple of.
        {FACTOR: 8.0, ORIGINAL: 8192},
    ],
)
def test_a_longer_length_is_an_error(scaling: dict[str, FieldValue]) -> None:
    assert list(check(conversion({**LLAMA, **scaling, KEY: 32768}, LLAMA), SETTINGS)) == [
        Hit(
            message=f"needs 8192 tokens of training context, {KEY} is 32768 and no RoPE scaling "
            "in the file explains it",
            where=Where(key=KEY),
            expected=8192,
            actual=32768,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=KEY, value=8192, present=True),
        )
    ]


EXTENDED: list[tuple[dict[str, Scalar], int]] = [
    ({FACTOR: 4.0}, 32768),
    ({FACTOR: 1.5}, 12288),
    ({FACTOR: 4.0, ORIGINAL: 8192}, 32768),
    # Extended from the length of pre-training, as with Qwen 3.
    ({FACTOR: 4.0, ORIGINAL: 6144}, 24576),
    ({"llama.rope.scale_linear": 2.5}, 20480),
]


@pytest.mark.parametrize(("scaling", "length"), EXTENDED)
def test_an_extended_length_is_worth_knowing(scaling: dict[str, Scalar], length: int) -> None:
    factor = next(iter(scaling.values()))
    subject = conversion({**LLAMA, **scaling, KEY: length}, {**LLAMA, **scaling})
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs 8192 tokens of training context, {KEY} is {length}, extended on "
            f"purpose: the file scales RoPE by {factor:g}",
            where=Where(key=KEY),
            expected=8192,
            actual=length,
            origin=Origin.KEY,
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(("scaling", "length"), EXTENDED)
def test_a_new_scaling_tells_the_extension_itself(scaling: dict[str, Scalar], length: int) -> None:
    assert list(check(conversion({**LLAMA, **scaling, KEY: length}, LLAMA), SETTINGS)) == []
