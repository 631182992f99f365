"""When two effective values are the same to the model."""

from __future__ import annotations

import math

__all__ = ["same"]

#: A 32-bit float has 24 bits; some converters rounded through 16-bit formats first.
TOLERANCE = 1e-5


def same(one: object, other: object) -> bool:
    """Whether two values are equal, floats up to the precision of a file."""
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other
