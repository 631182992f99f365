"""What makes published faults again, and tells which rules find them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from gguf_audit import arch
from gguf_audit.formats.card import find_card
from gguf_audit.parts import Absent
from gguf_audit.rule import Severity
from gguf_audit.testing import FieldValue
from gguf_audit.verdict import Report
from public_configs import Config

__all__ = ["config_of", "keys_of", "noted", "told"]


def config_of(of: Config | str) -> Config:
    """Return a ``config.json``, or that of a card."""
    if not isinstance(of, str):
        return of
    card = find_card(of)
    assert card is not None
    assert not isinstance(card.config, Absent)
    return card.config


def keys_of(
    of: Config | str,
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] = MappingProxyType({}),
) -> dict[str, FieldValue]:
    """Return a right conversion's metadata with some keys lost and some changed."""
    fields = arch.expected_fields(config_of(of))
    keys: dict[str, FieldValue] = {"general.architecture": fields.architecture}
    for found in fields:
        assert isinstance(found.value, int | float | str | tuple)
        keys[found.key] = found.value
    for name in lost:
        del keys[fields.key(name)]
    return keys | {fields.key(name): value for name, value in changed.items()}


def told(report: Report) -> str:
    """Return the rules that fired, but for those that only note something."""
    return " ".join(
        sorted({found.rule for found in report.findings if found.severity is not Severity.INFO})
    )


def noted(report: Report) -> str:
    """Return the rules that only note something."""
    return " ".join(
        sorted({found.rule for found in report.findings if found.severity is Severity.INFO})
    )
