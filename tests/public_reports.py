"""Which published reports of faulty files a test makes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["TOLD", "rows"]

Test = TypeVar("Test", bound=Callable[..., object])

#: File and name of a test -> ids of the reports that it makes again.
TOLD: dict[tuple[str, str], str] = {}


def rows(ids: str) -> Callable[[Test], Test]:
    """Note which reports a test makes again."""

    def noted(test: Test) -> Test:
        TOLD[test.__code__.co_filename, test.__name__] = ids
        return test

    return noted
