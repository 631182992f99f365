from __future__ import annotations

import pytest

from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.vocabulary_size_mismatch import KEY, check
from rule_subjects import LLAMA, SETTINGS, info_offset, model, tokens

NAME = "token_embd.weight"


def test_silent_for_one_row_per_token() -> None:
    # Padded lists too: [PAD608] has its row.
    assert list(check(model(tokens(8), [(NAME, (64, 8), "F32")]), SETTINGS)) == []


@pytest.mark.parametrize(
    "tensors", [[], [("output.weight", (64, 9), "F32")], [(NAME, (64,), "F32")]]
)
def test_silent_without_an_embedding(tensors: list[tuple[str, tuple[int, ...], str]]) -> None:
    assert list(check(model(tokens(8), tensors), SETTINGS)) == []


def test_silent_without_tokens() -> None:
    assert list(check(model(LLAMA, [(NAME, (64, 8), "F32")]), SETTINGS)) == []


@pytest.mark.parametrize("count", [7, 9])
def test_fires(count: int) -> None:
    subject = model(tokens(count), [(NAME, (64, 8), "F32")])
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs one token for each of the 8 rows of {NAME}, {KEY} has {count}",
            where=Where(key=KEY, tensor=NAME, offset=info_offset(subject, NAME)),
            expected=8,
            actual=count,
            unit="token",
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]
