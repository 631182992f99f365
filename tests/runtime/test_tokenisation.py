"""What is left of ids without what they begin and end with alike."""

from __future__ import annotations

import pytest

from gguf_audit.runtime.tokenisation import Ids, window


@pytest.mark.parametrize(
    ("ours", "theirs", "left"),
    [
        ((1, 2, 3), (1, 2, 3), ((), ())),
        ((1, 2, 3), (1, 4, 5, 3), ((2,), (4, 5))),
        ((1, 1, 1), (1, 1), ((1,), ())),
        ((), (7,), ((), (7,))),
        ((5, 1), (1,), ((5,), ())),
        ((1, 2), (2, 1), ((1, 2), (2, 1))),
    ],
)
def test_window(ours: Ids, theirs: Ids, left: tuple[Ids, Ids]) -> None:
    assert window(ours, theirs) == left
