from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.fields import Fields, Origin
from gguf_audit.gguf import Field, Scalar
from gguf_audit.rule import Hit, Reconvert, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.ctx.rope_base_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, conversion, without

KEY, SWA = "llama.rope.freq_base", "gemma3.rope.freq_base_swa"


@pytest.mark.parametrize("base", [5e5, 500001.0])
def test_silent_for_the_right_base(base: float) -> None:
    assert list(check(conversion({**LLAMA, KEY: base}, LLAMA), SETTINGS)) == []


def test_silent_where_the_default_is_right() -> None:
    right = {**LLAMA, KEY: 1e4}
    assert list(check(conversion(without(LLAMA, KEY), right), SETTINGS)) == []
    assert list(check(conversion(right, without(LLAMA, KEY)), SETTINGS)) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion(LLAMA, UNKNOWN), SETTINGS)) == []


@pytest.mark.parametrize("odd", ["1e6", [1e6]])
def test_silent_for_what_is_no_number(odd: FieldValue) -> None:
    assert list(check(conversion({**LLAMA, KEY: odd}, LLAMA), SETTINGS)) == []


def test_fires_for_another_base() -> None:
    assert list(check(conversion({**LLAMA, KEY: 500010.0}, LLAMA), SETTINGS)) == [
        Hit(
            message=f"needs a RoPE base of 500000, {KEY} is 500010",
            where=Where(key=KEY),
            expected=5e5,
            actual=500010.0,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=KEY, value=5e5, present=True),
        )
    ]


def test_fires_for_a_lost_base() -> None:
    assert list(check(conversion(without(LLAMA, KEY), LLAMA), SETTINGS)) == [
        Hit(
            message=f"needs a RoPE base of 500000, {KEY} is absent, so it is 10000",
            where=Where(key=KEY),
            expected=5e5,
            actual=1e4,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(hint="until then run with --rope-freq-base"),
        )
    ]


def test_fires_for_the_windowed_layers_base() -> None:
    assert list(check(conversion({**GEMMA, SWA: 1e6}, GEMMA), SETTINGS)) == [
        Hit(
            message=f"needs a RoPE base of 10000 on the windowed layers, {SWA} is 1000000",
            where=Where(key=SWA),
            expected=1e4,
            actual=1e6,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=SWA, value=1e4, present=True),
        )
    ]


def test_silent_where_the_architecture_has_the_windowed_layers_base() -> None:
    assert list(check(conversion(without(GEMMA, SWA), GEMMA), SETTINGS)) == []


def test_silent_about_windowed_layers_where_there_are_none() -> None:
    lost = without(GEMMA, "gemma3.attention.sliding_window")
    assert list(check(conversion({**lost, SWA: 1e6}, GEMMA), SETTINGS)) == []
    assert list(check(conversion({**GEMMA, SWA: 1e6}, lost), SETTINGS)) == []


def test_both_bases_are_two_causes() -> None:
    wrong = {**GEMMA, SWA: 1e6, "gemma3.rope.freq_base": 1e4}
    keys = [
        hit.where.key for hit in check(conversion(wrong, GEMMA), SETTINGS) if isinstance(hit, Hit)
    ]
    assert keys == ["gemma3.rope.freq_base", SWA]


def test_windowed_layers_that_follow_the_global_base_are_no_second_cause() -> None:
    right = {key.replace("gemma3", "gemma2"): value for key, value in without(GEMMA, SWA).items()}
    wrong = {**right, "gemma2.rope.freq_base": 1e4}
    assert _keys(wrong, right) == ["gemma2.rope.freq_base"]
    own = {**right, "gemma2.rope.freq_base_swa": 1e4}
    assert _keys(right, own) == _keys(own, right) == ["gemma2.rope.freq_base_swa"]


def _keys(actual: Mapping[str, Scalar], expected: Mapping[str, Scalar]) -> list[str | None]:
    hits = check(conversion(actual, expected), SETTINGS)
    return [hit.where.key for hit in hits if isinstance(hit, Hit)]


def test_silent_for_what_another_release_writes() -> None:
    fields = {key: Field(key=key, type=None, value=value) for key, value in LLAMA.items()}
    either = Fields("llama", fields, alternatives={KEY: (1e6,)})
    assert list(check(conversion({**LLAMA, KEY: 1e6}, either), SETTINGS)) == []
    assert len(list(check(conversion(without(LLAMA, KEY), either), SETTINGS))) == 1
    absent = Fields("llama", fields, alternatives={KEY: (None,)})
    assert list(check(conversion(without(LLAMA, KEY), absent), SETTINGS)) == []
    assert len(list(check(conversion({**LLAMA, KEY: 1e4}, absent), SETTINGS))) == 1
