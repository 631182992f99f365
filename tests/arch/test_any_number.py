"""A config may name any number of anything: nothing is made so many times."""

from __future__ import annotations

import contextlib
import copy
import tracemalloc
from collections.abc import Iterator

import pytest

from gguf_audit import arch
from gguf_audit.checkpoint import Json
from gguf_audit.errors import AuditError
from gguf_audit.formats.card import find_card, list_cards
from gguf_audit.parts import Absent

#: The largest number that a GGUF file's counts can hold.
MANY = 2**32 - 1
#: All that a config of 10,000 blocks may take.
MOST_BYTES = 64 << 20


def configs() -> dict[str, dict[str, Json]]:
    """Return a published config of each class, of those that there are cards of."""
    found: dict[str, dict[str, Json]] = {}
    for id_ in list_cards():
        card = find_card(id_)
        if card is not None and not isinstance(card.config, Absent):
            found.setdefault(str(card.config.get("architectures")), dict(card.config))
    return found


CONFIGS = configs()


def numbers(document: Json) -> Iterator[tuple[dict[str, Json], str]]:
    """Yield every object in a document with each of its keys that holds a number."""
    left = [document]
    while left:
        match left.pop():
            case dict() as members:
                yield from ((members, key) for key, value in members.items() if type(value) is int)
                left += members.values()
            case list() as items:
                left += items
            case _:
                pass


@pytest.mark.parametrize("name", CONFIGS)
def test_no_number_is_a_size(name: str) -> None:
    config = copy.deepcopy(CONFIGS[name])
    config.setdefault("mtp_num_hidden_layers", 1)
    config.setdefault("num_nextn_predict_layers", 1)
    tracemalloc.start()
    try:
        for members, key in list(numbers(config)):
            usual, members[key] = members[key], MANY
            for look in (implied, arch.ideal_layout):
                with contextlib.suppress(AuditError):
                    look(config)
            members[key] = usual
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES, key
    finally:
        tracemalloc.stop()


def implied(config: dict[str, Json]) -> object:
    """Derive the layout that a right conversion makes llama.cpp keep."""
    return arch.implied_layout(arch.expected_fields(config))
