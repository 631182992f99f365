from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.layout import CacheLayout, Full, Latent, Recurrent, Sliding, StatePart
from gguf_audit.rule import Hit, Reconvert, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.kv.window_changed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, compared, conversion, layers, without

KEY, PATTERN = "gemma3.attention.sliding_window", "gemma3.attention.sliding_window_pattern"
FULL = Full(kv_heads=1, key_length=8, value_length=8)
STATE = Recurrent(parts=(StatePart(name="ssm", elements=64),))
EIGHT = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=8)
NINE = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=9)


@pytest.mark.parametrize(
    "actual",
    [
        GEMMA,
        # Scalar period, array, and what llama.cpp itself assumes are one pattern.
        {**GEMMA, PATTERN: 6},
        {**GEMMA, PATTERN: [index % 6 < 5 for index in range(18)]},
    ],
)
def test_silent_for_a_right_conversion(actual: dict[str, FieldValue]) -> None:
    assert list(check(conversion(actual, GEMMA), SETTINGS)) == []


def test_silent_for_models_without_a_window() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []


def test_a_window_lost_as_a_whole_is_another_rules_cause() -> None:
    assert list(check(conversion(without(GEMMA, KEY), GEMMA), SETTINGS)) == []


def test_silent_where_a_layer_has_no_attention_of_its_own() -> None:
    implied, expected = layers(EIGHT, None, STATE), layers(EIGHT, EIGHT, FULL)
    assert list(check(compared(implied, expected), SETTINGS)) == []


def test_fires_for_another_size() -> None:
    assert list(check(conversion({**GEMMA, KEY: 4096}, GEMMA), SETTINGS)) == [
        Hit(
            message="needs a 512-token window on 15 of 18 layers (0, 1, 2, 3, 4, 6, 7, 8, ...), "
            f"{KEY} makes it 4096: 163.50 MiB of cache at 32768 tokens, "
            "where a right conversion keeps 111 MiB",
            where=Where(key=KEY, layer=0),
            expected=512,
            actual=4096,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=KEY, value=512, present=True),
        )
    ]


def test_a_size_that_no_key_states_is_not_set() -> None:
    assert list(
        check(compared(layers(FULL, EIGHT, NINE), layers(FULL, EIGHT, EIGHT)), SETTINGS)
    ) == [
        Hit(
            message="needs a 8-token window on layer 2, odd.attention.sliding_window makes it 9",
            where=Where(key="odd.attention.sliding_window", layer=2),
            expected=8,
            actual=9,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_a_window_of_no_tokens_is_a_window_of_another_size() -> None:
    none = Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=0)
    [hit] = list(check(compared(layers(none, FULL), layers(EIGHT, FULL)), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.actual) == (8, 0)


def test_latents_have_windows_too() -> None:
    small = Latent(kv_heads=1, key_length=8, window_tokens=8)
    large = Latent(kv_heads=1, key_length=8, window_tokens=16)
    assert list(check(compared(layers(small, large), layers(small, large)), SETTINGS)) == []
    [hit] = list(check(compared(layers(small, large), layers(small, small)), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.layer, hit.expected, hit.actual) == (1, 8, 16)


def test_fires_for_another_pattern() -> None:
    three = [index % 3 < 2 for index in range(18)]
    assert list(check(conversion({**GEMMA, PATTERN: 3}, GEMMA), SETTINGS)) == [
        Hit(
            message="needs the window on SSSSSFSSSSSFSSSSSF, this file has it on "
            "SSFSSFSSFSSFSSFSSF, other than it should be on 3 of 18 layers (2, 8, 14): "
            "204 MiB of cache at 32768 tokens, where a right conversion keeps 111 MiB",
            where=Where(key=PATTERN, layer=2),
            expected=[index % 6 < 5 for index in range(18)],
            actual=three,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_a_short_pattern_that_leaves_the_last_layer_full() -> None:
    implied, expected = layers(EIGHT, STATE, FULL), layers(EIGHT, STATE, EIGHT)
    assert list(check(compared(implied, expected), SETTINGS)) == [
        Hit(
            message="needs the window on S-S, this file has it on S-F, "
            "other than it should be on layer 2",
            where=Where(key="odd.attention.sliding_window_pattern", layer=2),
            expected=[True, False, True],
            actual=[True, False, False],
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize("expected", [layers(FULL, FULL), layers(EIGHT, FULL)])
def test_fires_for_a_window_that_nobody_wants(expected: CacheLayout) -> None:
    [hit] = list(check(compared(layers(EIGHT, EIGHT), expected), SETTINGS))
    assert isinstance(hit, Hit)
    assert hit.actual == [True, True]


def test_a_window_as_long_as_the_context_is_none() -> None:
    fields = {**without(GEMMA, KEY), "gemma3.context_length": 4096}
    assert list(check(conversion({**fields, KEY: 4096}, fields), SETTINGS)) == []
    assert len(list(check(conversion({**fields, KEY: 4095}, fields), SETTINGS))) == 1


def test_size_and_pattern_are_two_causes() -> None:
    wrong = {**GEMMA, KEY: 1024, PATTERN: 3}
    hits = list(check(conversion(wrong, GEMMA), SETTINGS))
    assert [hit.where.key for hit in hits if isinstance(hit, Hit)] == [KEY, PATTERN]
