"""The splitter of a tokenizer.json is run in a child, beside llama.cpp's."""

from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Json, TokenizerJson
from gguf_audit.errors import AuditError, LimitError, ReferenceUnavailableError
from gguf_audit.limits import LIMITS
from gguf_audit.probes import tokenizer
from gguf_audit.probes.tokenizer import split
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.runtime.probe_texts import TEXTS
from gguf_audit.runtime.splitting import Splitting
from published_tokenizers import PUBLISHED, byte_level, regex, steps


def made(pre_tokenizer: Json, normalizer: Json = None) -> Splitting:
    found = split(
        TokenizerJson(model="BPE", ids={}, normalizer=normalizer, pre_tokenizer=pre_tokenizer)
    )
    assert isinstance(found, Splitting)
    return found


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_right_name_is_found(name: str) -> None:
    right = made(*PUBLISHED[name]).right
    assert right[0] == name
    assert set(SPLITTERS[name].names) <= set(right)
    assert "default" not in right


def test_only_names_that_split_alike_are_right() -> None:
    assert made(*PUBLISHED["starcoder"]).right == SPLITTERS["starcoder"].names
    assert made(*PUBLISHED["gpt-2"]).right == SPLITTERS["gpt-2"].names
    # They differ in what the reference may or may not do with whole tokens.
    assert made(*PUBLISHED["llama-bpe"]).right == (
        *SPLITTERS["llama-bpe"].names,
        *SPLITTERS["smaug-bpe"].names,
    )


def test_a_space_that_a_reference_puts_in_front_changes_nothing() -> None:
    assert made(byte_level(regex=True, prefix=True)).right == SPLITTERS["gpt-2"].names


def test_nothing_at_all_splits_nothing() -> None:
    spaces: Json = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    found = made(None, spaces)
    assert found.right == SPLITTERS["gemma4"].names
    assert found.reference == tuple((text,) for text in TEXTS)


def test_pieces_of_every_text() -> None:
    found = made(*PUBLISHED["starcoder"])
    assert found.reference[0] == (*"12345", " and", " ", *"1234567")
    assert found.named["gpt-2"][0] == ("12345", " and", " 1234567")
    assert found.reference == found.named["starcoder"]
    assert ["".join(pieces) for pieces in found.reference] == list(TEXTS)


def test_another_splitter_has_no_name() -> None:
    assert made({"type": "Whitespace"}).right == ()
    assert made(steps(regex("[aeiou]"), byte_level(regex=False))).right == ()


def broken(pre_tokenizer: Json, normalizer: Json = None) -> AuditError:
    found = TokenizerJson(model="BPE", ids={}, normalizer=normalizer, pre_tokenizer=pre_tokenizer)
    with pytest.raises(AuditError) as error:
        split(found)
    return error.value


def test_what_the_library_refuses_is_an_error() -> None:
    unknown: Json = {"type": "Teleport"}
    for refused in (regex("("), unknown):
        error = broken(refused)
        assert type(error) is ReferenceUnavailableError
        assert error.message.startswith("tokenizers can't run the reference's tokenizer.json: ")
        # Told again, and found out once.
        assert broken(refused) is error


def growing(times: int) -> Json:
    """Return a normalizer that makes a text so many times four times as long."""
    step: Json = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"}
    listed: list[Json] = [step] * times
    return {"type": "Sequence", "normalizers": listed}


def test_what_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "LIMITS", LIMITS._replace(tokenizer_memory_bytes=1 << 28))
    error = broken(None, growing(40))
    assert type(error) is LimitError
    assert error.message.startswith("the process that runs the reference's tokenizer")


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "LIMITS", LIMITS._replace(tokenizer_seconds=1))
    # An expression without an end is given up by the library itself: it matches nothing.
    assert made(regex("(.*)*(.*)*(.*)*Z")).reference[0] == (TEXTS[0],)
    error = broken(None, growing(13))
    assert type(error) is LimitError
    assert error.message.startswith(("tokenizers took longer", "the process that runs the"))
