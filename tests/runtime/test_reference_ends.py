from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Json, Tokenizer
from gguf_audit.parts import Absent
from gguf_audit.runtime.generation import reference_ends
from rule_subjects import checkpoint

OWN = Tokenizer(complete=True, special_ids={"eos": 2})

ENDS: list[tuple[dict[str, Json] | None, dict[str, Json], set[int]]] = [
    ({"eos_token_id": [7, 2]}, {"eos_token_id": 5}, {2, 7}),
    ({"eos_token_id": 7}, {}, {7}),
    # Of config.json only a list with the tokenizer's own end in it is believed.
    (None, {"eos_token_id": [7, 2]}, {2, 7}),
    (None, {"text_config": {"eos_token_id": [7, 2]}}, {2, 7}),
    (None, {"eos_token_id": [7, 8]}, set[int]()),
    (None, {"eos_token_id": 2}, set[int]()),
    # What is no id is none.
    ({"eos_token_id": [True, -1, "2", 9]}, {}, {9}),
]


@pytest.mark.parametrize(("generation", "config", "expected"), ENDS)
def test_where_a_reference_ends(
    generation: dict[str, Json] | None, config: dict[str, Json], expected: set[int]
) -> None:
    reference = checkpoint(
        tokenizer=OWN,
        config=config,
        generation=Absent("none") if generation is None else generation,
    )
    assert reference_ends(reference) == expected
