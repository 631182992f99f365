from __future__ import annotations

from gguf_audit.fields import Origin
from gguf_audit.layout import Chunked, Full, Latent, Sliding
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.window_lost import check
from rule_subjects import (
    GEMMA,
    LLAMA,
    SETTINGS,
    UNKNOWN,
    compared,
    conversion,
    layers,
    model,
    without,
)

KEY = "gemma3.attention.sliding_window"
FULL = Full(kv_heads=1, key_length=8, value_length=8)
HINT = Reconvert(hint="no metadata tool can add this key")


def sliding(tokens: int) -> Sliding:
    return Sliding(kv_heads=1, key_length=8, value_length=8, window_tokens=tokens)


def test_silent_for_a_right_conversion() -> None:
    assert list(check(conversion(GEMMA, GEMMA), SETTINGS)) == []


def test_silent_for_models_without_a_window() -> None:
    assert list(check(conversion(LLAMA, LLAMA), SETTINGS)) == []
    assert list(check(compared(layers(sliding(8)), layers(FULL)), SETTINGS)) == []


def test_silent_where_one_window_is_left() -> None:
    expected = layers(sliding(8), sliding(8), FULL)
    assert list(check(compared(layers(FULL, FULL, sliding(8)), expected), SETTINGS)) == []


def test_fires_for_a_lost_key() -> None:
    assert list(check(conversion(without(GEMMA, KEY), GEMMA), SETTINGS)) == [
        Hit(
            message=f"needs a 512-token window on 15 of 18 layers (0, 1, 2, 3, 4, 6, 7, 8, ...), "
            f"{KEY} is absent: 576 MiB of cache at 32768 tokens, equal to full attention, "
            "where a right conversion keeps 111 MiB",
            where=Where(key=KEY),
            expected=512,
            actual=None,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=HINT,
            consequences=(
                "these layers also rotate with the global RoPE base 1000000 instead of their own 10000",
            ),
        )
    ]


def test_fires_for_a_window_of_zero() -> None:
    lost = {**GEMMA, KEY: 0, "gemma3.rope.freq_base": 1e4}
    assert list(check(conversion(lost, GEMMA), SETTINGS)) == [
        Hit(
            message=f"needs a 512-token window on 15 of 18 layers (0, 1, 2, 3, 4, 6, 7, 8, ...), "
            f"{KEY} is not in effect: 576 MiB of cache at 32768 tokens, equal to full attention, "
            "where a right conversion keeps 111 MiB",
            where=Where(key=KEY),
            expected=512,
            actual=0,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=HINT,
        )
    ]


def test_fires_for_the_last_layer_alone() -> None:
    expected = layers(FULL, FULL, sliding(8))
    assert list(check(compared(layers(FULL, FULL, FULL), expected), SETTINGS)) == [
        Hit(
            message="needs a 8-token window on layer 2, odd.attention.sliding_window is absent",
            where=Where(key="odd.attention.sliding_window"),
            expected=8,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=HINT,
        )
    ]


def test_windows_of_two_sizes_and_kinds() -> None:
    chunked = Chunked(kv_heads=1, key_length=8, value_length=8, window_tokens=16)
    latent = Latent(kv_heads=1, key_length=8, window_tokens=4)
    full = Latent(kv_heads=1, key_length=8)
    subject = compared(layers(FULL, full, FULL), layers(chunked, latent, FULL))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs a 4 or 16-token window on 2 of 3 layers (0, 1), "
            "odd.attention.sliding_window is absent",
            where=Where(key="odd.attention.sliding_window"),
            expected=[4, 16],
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=HINT,
        )
    ]


def test_a_window_as_long_as_the_context_is_none() -> None:
    short = {**GEMMA, "gemma3.context_length": 512}
    assert list(check(conversion(without(short, KEY), short), SETTINGS)) == []
    longer = {**GEMMA, "gemma3.context_length": 513}
    assert len(list(check(conversion(without(longer, KEY), longer), SETTINGS))) == 1


def test_silent_where_a_layout_is_not_known() -> None:
    lost = without(GEMMA, KEY)
    assert list(check(conversion(model(lost, implied=UNKNOWN), GEMMA), SETTINGS)) == []
    assert list(check(conversion(lost, UNKNOWN), SETTINGS)) == []
