"""The fuzzer's targets on inputs that it would try first; the rest is for ``make fuzz``."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import fuzz_targets


@pytest.mark.parametrize("target", fuzz_targets.TARGETS)
def test_a_value_or_an_audit_error(target: str) -> None:
    look: Callable[[bytes], None] = fuzz_targets.TARGETS[target]
    known = list(fuzz_targets.seeds(target))
    for content in (b"", b"\0", *known):
        look(content)
    chance = random.Random(target)  # noqa: S311 - the same inputs every time
    tried = 0
    for number in range(400):
        content, other = chance.choice(known), chance.choice(known)
        found = fuzz_targets.mutated(target, content, other, number)
        if found is not None:
            look(found)
            tried += found != content
    assert tried > 200
