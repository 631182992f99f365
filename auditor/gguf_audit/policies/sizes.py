"""Sizes as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["size_bytes"]

_SIZE = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?P<unit>[KMGT]?(?:iB|B)?)")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def size_bytes(text: str) -> int | None:
    """Return the bytes of ``8GiB``, ``1.5G``, ``500MB`` or ``4096``, ``None`` for no size.

    ``K``, ``M``, ``G`` and ``T`` count by 1024, with ``iB`` or alone; by 1000 with ``B``, as
    in ``numfmt --from=auto`` but for the bare letter, which means memory here.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit = found["unit"]
    letter = unit[:1] if unit[:1] in _POWERS else ""
    base = 1000 if letter and unit[1:] == "B" else 1024
    size = Decimal(found["number"]) * base ** _POWERS[letter]
    return int(size)
