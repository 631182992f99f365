from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Tokenizer
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, SetSpecialId, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.special_id_changed import check
from rule_subjects import LLAMA, SETTINGS, checkpoint, conversion, tokens

KEYS = {
    "bos": "tokenizer.ggml.bos_token_id",
    "eos": "tokenizer.ggml.eos_token_id",
    "unk": "tokenizer.ggml.unknown_token_id",
    "pad": "tokenizer.ggml.padding_token_id",
    "sep": "tokenizer.ggml.seperator_token_id",
    "mask": "tokenizer.ggml.mask_token_id",
    "eot": "tokenizer.ggml.eot_token_id",
}


def said(
    actual: dict[str, int],
    tokenizer: Tokenizer | Absent,
    *,
    kind: str = "gpt2",
) -> list[Outcome]:
    """Return what is said of a file's ids, by the names that a checkpoint gives them."""
    ids: dict[str, FieldValue] = {KEYS[name]: value for name, value in actual.items()}
    subject = conversion({**tokens(32, kind), **ids}, reference=checkpoint(tokenizer=tokenizer))
    return list(check(subject, SETTINGS))


def right(**ids: int) -> Tokenizer:
    return Tokenizer(special_ids=ids)


@pytest.mark.parametrize(
    ("kind", "actual", "expected"),
    [
        ("gpt2", {}, {}),
        ("gpt2", {"bos": 3, "eos": 3, "pad": 5}, {"bos": 3, "eos": 3, "pad": 5}),
        # Absent, and llama.cpp's default is the reference's.
        ("llama", {}, {"bos": 1, "eos": 2, "unk": 0}),
        ("gpt2", {}, {"bos": 11, "eos": 11}),
        ("t5", {}, {"eos": 1, "unk": 2, "pad": 0}),
        ("bert", {"bos": 2}, {"bos": 2, "unk": 100, "sep": 102, "pad": 0, "mask": 103}),
        # Ids that the reference has none for.
        ("gpt2", {"bos": 3, "pad": 4, "eot": 5}, {}),
    ],
)
def test_silent(kind: str, actual: dict[str, int], expected: dict[str, int]) -> None:
    assert said(actual, right(**expected), kind=kind) == []


def test_silent_without_a_vocabulary() -> None:
    reference = checkpoint(tokenizer=right(bos=5))
    none = {**LLAMA, "tokenizer.ggml.model": "none"}
    assert list(check(conversion(LLAMA, reference=reference), SETTINGS)) == []
    assert list(check(conversion(none, reference=reference), SETTINGS)) == []
    unnamed = {**tokens(32), "tokenizer.ggml.model": 3}
    assert list(check(conversion(unnamed, reference=reference), SETTINGS)) == []


def test_no_evidence_without_a_tokenizer() -> None:
    assert said({"bos": 1}, Absent("the card doesn't hold it")) == [
        NoEvidence("the special tokens: the card doesn't hold it")
    ]


@pytest.mark.parametrize(
    ("name", "gguf_name", "level"),
    [
        ("bos", "bos", Severity.ERROR),
        ("eos", "eos", Severity.ERROR),
        ("unk", "unknown", Severity.WARNING),
        ("pad", "padding", Severity.INFO),
        ("sep", "seperator", Severity.WARNING),
        ("mask", "mask", Severity.WARNING),
        ("eot", "eot", Severity.WARNING),
    ],
)
def test_fires_for_another_id(name: str, gguf_name: str, level: Severity) -> None:
    assert said({name: 7}, right(**{name: 8})) == [
        Hit(
            message=f"needs {name} token 8, {KEYS[name]} is 7",
            where=Where(key=KEYS[name]),
            expected=8,
            actual=7,
            origin=Origin.KEY,
            level=level,
            repair=SetSpecialId(name=gguf_name, id=8),
        )
    ]


@pytest.mark.parametrize(
    ("kind", "name", "default"),
    [("llama", "bos", 1), ("llama", "eos", 2), ("gpt2", "eos", 11), ("t5", "pad", 0)],
)
def test_fires_where_the_default_is_another_token(kind: str, name: str, default: int) -> None:
    [hit] = said({}, right(**{name: 8}), kind=kind)
    assert hit == Hit(
        message=f"needs {name} token 8, {KEYS[name]} is absent, so llama.cpp takes {default}",
        where=Where(key=KEYS[name]),
        expected=8,
        actual=default,
        origin=Origin.RUNTIME_DEFAULT,
        level=Severity.INFO if name == "pad" else Severity.ERROR,
        repair=SetSpecialId(name="padding" if name == "pad" else name, id=8),
    )


def test_fires_where_there_is_no_default() -> None:
    assert said({}, right(pad=0)) == [
        Hit(
            message=f"needs pad token 0, {KEYS['pad']} is absent",
            where=Where(key=KEYS["pad"]),
            expected=0,
            actual=None,
            origin=None,
            level=Severity.INFO,
            repair=SetSpecialId(name="padding", id=0),
        )
    ]


def test_every_name_is_looked_at() -> None:
    hits = said({"bos": 1, "eos": 2, "mask": 4}, right(bos=1, eos=3, mask=5))
    assert [hit.where.key for hit in hits if isinstance(hit, Hit)] == [KEYS["eos"], KEYS["mask"]]


NOT_AT_HAND = NoEvidence("which ids the special tokens have: the tokenizer isn't at hand")


def test_an_id_that_is_not_known_is_not_compared() -> None:
    unsure = Tokenizer(special_ids={}, unsure_ids=frozenset({"eos", "pad"}), complete=False)
    assert said({"eos": 5, "pad": 6}, unsure) == [NOT_AT_HAND]


def test_an_id_that_is_not_known_has_to_be_there() -> None:
    unsure = Tokenizer(special_ids={"bos": 1}, unsure_ids=frozenset({"eos", "pad"}))
    assert said({"bos": 1}, unsure) == [
        Hit(
            message=f"needs a eos token as the reference has one, {KEYS['eos']} is absent, "
            "so llama.cpp takes 11",
            where=Where(key=KEYS["eos"]),
            expected="the reference's id",
            actual=11,
            origin=Origin.RUNTIME_DEFAULT,
            level=Severity.ERROR,
            repair=Reconvert(),
        ),
        Hit(
            message=f"needs a pad token as the reference has one, {KEYS['pad']} is absent",
            where=Where(key=KEYS["pad"]),
            expected="the reference's id",
            actual=None,
            origin=None,
            level=Severity.INFO,
            repair=Reconvert(),
        ),
        NOT_AT_HAND,
    ]


def test_what_a_tokenizer_may_add_is_noted() -> None:
    assert said({"bos": 1}, Tokenizer(special_ids={"bos": 1}, complete=False)) == [NOT_AT_HAND]


@pytest.mark.parametrize(
    ("added", "template", "level"),
    [
        (False, "{{ messages }}", Severity.INFO),
        (False, None, Severity.INFO),
        (False, "{{ bos_token }}{{ messages }}", Severity.ERROR),
        (True, "{{ messages }}", Severity.ERROR),
        (None, "{{ messages }}", Severity.ERROR),
    ],
)
def test_a_begin_token_that_nothing_uses_is_only_noted(
    added: bool | None, template: str | None, level: Severity
) -> None:
    more: dict[str, FieldValue] = {}
    if added is not None:
        more["tokenizer.ggml.add_bos_token"] = added
    if template is not None:
        more["tokenizer.chat_template"] = template
    subject = conversion({**tokens(32), **more}, reference=checkpoint(tokenizer=right(bos=3)))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs bos token 3, tokenizer.ggml.bos_token_id is absent, so llama.cpp takes 11",
            where=Where(key=KEYS["bos"]),
            expected=3,
            actual=11,
            origin=Origin.RUNTIME_DEFAULT,
            level=level,
            repair=SetSpecialId(name="bos", id=3),
        )
    ]
