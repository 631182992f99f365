"""The converter's question to a tokenizer."""

from __future__ import annotations

import hashlib

from gguf_audit.runtime import check_text
from gguf_audit.runtime.check_text import CHECK_TEXT, name_by_ids
from gguf_audit.runtime.pre_tokenizers import SPLITTERS


def test_the_text_is_the_converters() -> None:
    assert len(CHECK_TEXT) == 350
    assert hashlib.sha256(CHECK_TEXT.encode()).hexdigest().startswith("a36179c1e2b1cfcf")


def test_every_name_is_one_of_a_splitter() -> None:
    assert set(check_text.NAMES.values()) <= SPLITTERS.keys()
    assert all(len(found) == 64 for found in check_text.NAMES)
    assert len(check_text.NAMES) == 94


def test_ids_that_nobody_knows_have_no_name() -> None:
    assert name_by_ids([1, 2, 3]) is None
    assert name_by_ids(()) is None
