from __future__ import annotations

import pytest

from gguf_audit.evidence import Conversion
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.layout import CacheLayout
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.block_count_changed import check
from rule_subjects import SETTINGS, UNKNOWN, conversion

BLOCKS, DRAFTS = "glm4moe.block_count", "glm4moe.nextn_predict_layers"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({BLOCKS: 46}, {BLOCKS: 46}),
        # Draft blocks dropped on purpose, or kept where the reference counts none.
        ({BLOCKS: 46}, {BLOCKS: 47, DRAFTS: 1}),
        ({BLOCKS: 47, DRAFTS: 1}, {BLOCKS: 46}),
        ({BLOCKS: 47, DRAFTS: 1}, {BLOCKS: 47, DRAFTS: 1}),
        # Wrong types and absent keys are load-refused's.
        ({BLOCKS: (ValueType.INT32, 45)}, {BLOCKS: 46}),
        ({BLOCKS: 46, DRAFTS: 1.0}, {BLOCKS: 46}),
        ({"glm4moe.context_length": 1}, {BLOCKS: 46}),
    ],
)
def test_silent(actual: dict[str, FieldValue], expected: dict[str, int]) -> None:
    assert list(check(_conversion(actual, expected), SETTINGS)) == []


def test_silent_without_expected_fields() -> None:
    assert list(check(conversion({BLOCKS: 45}, UNKNOWN), SETTINGS)) == []


@pytest.mark.parametrize(
    ("actual", "key", "trunk", "origin"),
    [
        ({BLOCKS: 46, DRAFTS: 1}, BLOCKS, 45, Origin.KEY),
        ({BLOCKS: 48, DRAFTS: 1}, BLOCKS, 47, Origin.KEY),
        ({BLOCKS: 48}, BLOCKS, 48, Origin.KEY),
        ({BLOCKS: 47}, DRAFTS, 47, Origin.RUNTIME_DEFAULT),
        ({BLOCKS: 47, DRAFTS: 2}, DRAFTS, 45, Origin.KEY),
    ],
)
def test_fires(actual: dict[str, FieldValue], key: str, trunk: int, origin: Origin) -> None:
    assert list(check(_conversion(actual, {BLOCKS: 47, DRAFTS: 1}), SETTINGS)) == [
        Hit(
            message=f"needs 46 blocks, {key} makes it {trunk} (prediction blocks not counted)",
            where=Where(key=key),
            expected=46,
            actual=trunk,
            origin=origin,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def _conversion(actual: dict[str, FieldValue], expected: dict[str, int]) -> Conversion:
    return conversion(actual, expected, layout=CacheLayout(layers=()))
