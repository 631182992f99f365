from __future__ import annotations

from chat_subjects import CHATML, KEY, compared, vocabulary
from gguf_audit.fields import Origin
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.tok.bos_missing import check
from rule_subjects import SETTINGS

OPENED = "{{ bos_token }}" + CHATML
WITHOUT = {
    key: value for key, value in vocabulary().items() if key != "tokenizer.ggml.bos_token_id"
}


def test_fires_where_neither_the_template_nor_the_tokenizer_adds_it() -> None:
    assert list(check(compared(CHATML, OPENED), SETTINGS)) == [
        Hit(
            message=(
                "needs a BOS token in front of a prompt as the reference's template prints,"
                " this template prints none and tokenizer.ggml.add_bos_token is off"
            ),
            where=Where(key=KEY),
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_where_the_file_names_none() -> None:
    # The default of this tokenizer is beyond so small a vocabulary.
    assert list(check(compared(OPENED, OPENED, WITHOUT, ids={"bos": 0}), SETTINGS)) == [
        Hit(
            message=(
                "needs a BOS token in front of a prompt, tokenizer.ggml.bos_token_id names none"
            ),
            where=Where(key="tokenizer.ggml.bos_token_id"),
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_silent_where_one_is_there() -> None:
    for keys in (vocabulary(), vocabulary(add_bos_token=True)):
        assert list(check(compared(OPENED, OPENED, keys), SETTINGS)) == []
    assert list(check(compared(CHATML, OPENED, vocabulary(add_bos_token=True)), SETTINGS)) == []


def test_silent_where_the_reference_has_none() -> None:
    assert list(check(compared(CHATML, CHATML), SETTINGS)) == []
    assert list(check(compared(OPENED, OPENED, WITHOUT), SETTINGS)) == []
    assert list(check(compared(CHATML, {}), SETTINGS)) == []
