from __future__ import annotations

import math

import pytest

from gguf_audit.json_values import as_json
from gguf_audit.rule import Severity


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**64 - 1, 2**64 - 1),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ((1, [2.0, math.nan]), [1, [2.0, "NaN"]]),
        ({"a": (1,), 2: b"\xff"}, {"a": [1], "2": "ff"}),
        (range(33), {"items": list(range(32)), "count": 33}),
        ({3, 1, 2}, [1, 2, 3]),
        (dict.fromkeys(range(33)), {"items": dict.fromkeys(map(str, range(32))), "count": 33}),
        (Severity.ERROR, "error"),
        ("x" * 4097, "x" * 4096 + "... (1 more characters)"),
    ],
)
def test_values_become_bounded_json(value: object, shown: object) -> None:
    assert as_json(value) == shown
