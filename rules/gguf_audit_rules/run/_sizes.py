"""Sizes as messages have them."""

from __future__ import annotations

__all__ = ["told_bytes"]


def told_bytes(count: int) -> str:
    """Return bytes as a person compares them: ``4 GiB``, ``1.25 GiB``, ``111 MiB``, ``90 bytes``."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            hundredths = (count * 100) >> power
            whole, rest = divmod(hundredths, 100)
            return f"{whole:,}.{rest:02} {unit}" if rest else f"{whole:,} {unit}"
    return f"{count} bytes"
