from __future__ import annotations

import pytest

from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.kv_full_attention import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, conversion, layers, without

WINDOW, PATTERN = "gemma3.attention.sliding_window", "gemma3.attention.sliding_window_pattern"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (GEMMA, GEMMA),
        (LLAMA, LLAMA),
        # Full attention is right, however many heads it has.
        ({**LLAMA, "llama.attention.head_count_kv": 4}, LLAMA),
        # Part of the saving is lost, not all of it.
        ({**GEMMA, WINDOW: 4096}, GEMMA),
        ({**GEMMA, PATTERN: 2}, GEMMA),
        # A window that reaches beyond the compared length is the same on both sides.
        ({**GEMMA, WINDOW: 40000}, {**GEMMA, WINDOW: 40000}),
        # llama.cpp refuses the file.
        (without(GEMMA, "gemma3.context_length"), GEMMA),
    ],
)
def test_silent(actual: dict[str, Scalar], expected: dict[str, Scalar]) -> None:
    assert list(check(conversion(actual, expected), SETTINGS)) == []


def test_silent_where_nothing_is_expected() -> None:
    assert list(check(conversion(GEMMA, UNKNOWN), SETTINGS)) == []
    odd = conversion({"odd.block_count": 1}, {"odd.block_count": 1}, layout=layers())
    assert list(check(odd, SETTINGS)) == []
    refused = conversion(GEMMA, without(GEMMA, "gemma3.context_length"), layout=layers())
    assert list(check(refused, SETTINGS)) == []


@pytest.mark.parametrize(
    "actual", [without(GEMMA, WINDOW), {**GEMMA, WINDOW: 0}, {**GEMMA, WINDOW: 40000}]
)
def test_fires_for_a_lost_window(actual: dict[str, Scalar]) -> None:
    assert list(check(conversion(actual, GEMMA), SETTINGS)) == [
        Hit(
            message="needs 111 MiB of cache at 32768 tokens, this file makes llama.cpp keep "
            "576 MiB, equal to full attention",
            where=Where(),
            expected=111 << 20,
            actual=576 << 20,
            unit="byte",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]
