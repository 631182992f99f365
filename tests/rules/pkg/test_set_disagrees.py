from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.evidence import Digest, SetMember, SetSubject
from gguf_audit.fields import Fields
from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, Outcome, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.set_disagrees import check
from rule_subjects import SETTINGS

AGAIN = Reconvert(hint="quantize all files again from one conversion")
WINDOW = "gemma3.attention.sliding_window"
TOKENS = Digest(kind="string", count=262144, sha256="a" * 64)
SAME: dict[str, Scalar | Digest] = {
    "general.name": "Gemma",
    "gemma3.block_count": 18,
    WINDOW: 512,
    "tokenizer.ggml.tokens": TOKENS,
}
Values = Mapping[str, Scalar | Digest | None]
#: A file that says what all say.
PLAIN: Values = {}


def member(
    name: str,
    values: Values,
    *,
    told: frozenset[str] = frozenset(),
) -> SetMember:
    """Return a file that says what all say, but for some values; ``None`` is no key."""
    said = {key: value for key, value in {**SAME, **values}.items() if value is not None}
    scalars = {
        key: value
        for key, value in said.items()
        if key.startswith("gemma3.") and isinstance(value, Scalar)
    }
    return SetMember(
        name=f"models/{name}",
        architecture="gemma3",
        byte_order="little",
        values=said,
        fields=Fields.of("gemma3", scalars),
        told=told,
    )


def said(*files: Values) -> list[Outcome]:
    members = tuple(member(f"{index}.gguf", file) for index, file in enumerate(files))
    return said_of(*members)


def said_of(*members: SetMember) -> list[Outcome]:
    subject = SetSubject(folder="models", architecture="gemma3", members=members)
    return list(check(subject, SETTINGS))


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_the_odd_one_out_is_named(odd: int) -> None:
    files = [PLAIN, PLAIN, PLAIN]
    files[odd] = {WINDOW: 4096}
    assert said(*files) == [
        Hit(
            message=f"needs 512 as in 2 of 3 files of this model, {WINDOW} is 4096 in {odd}.gguf",
            where=Where(file=f"models/{odd}.gguf", key=WINDOW),
            expected=512,
            actual=4096,
            level=Severity.ERROR,
            repair=AGAIN,
        )
    ]


def test_all_odd_files_of_a_key_are_in_one_hit() -> None:
    odd: Mapping[str, Scalar | None] = {WINDOW: None}
    assert said({}, odd, {WINDOW: 1}, {}, odd, {}, {}) == [
        Hit(
            message=(
                f"needs 512 as in 4 of 7 files of this model, {WINDOW} is absent in 1.gguf, 4.gguf;"
                " 1 in 2.gguf"
            ),
            where=Where(file="models/1.gguf", key=WINDOW),
            expected=512,
            actual=None,
            level=Severity.ERROR,
            repair=AGAIN,
        )
    ]


@pytest.mark.parametrize("files", [1, 2])
def test_without_a_majority_files_only_differ(files: int) -> None:
    found = said(*[PLAIN] * files, *[{WINDOW: 4096}] * files)
    names = {1: ("0.gguf", "1.gguf"), 2: ("0.gguf, 1.gguf", "2.gguf, 3.gguf")}[files]
    assert found == [
        Hit(
            message=(
                f"files of one model differ, {WINDOW} is 512 in {names[0]}; 4096 in {names[1]}"
            ),
            where=Where(file=f"models/{files}.gguf", key=WINDOW),
            level=Severity.INFO,
            repair=AGAIN,
        )
    ]


@pytest.mark.parametrize(
    ("key", "level"),
    [
        (WINDOW, Severity.ERROR),
        ("gemma3.block_count", Severity.ERROR),
        ("gemma3.vocab_size", Severity.INFO),
        ("tokenizer.ggml.tokens", Severity.ERROR),
        ("tokenizer.ggml.eos_token_id", Severity.ERROR),
        ("tokenizer.ggml.padding_token_id", Severity.INFO),
        ("tokenizer.chat_template", Severity.WARNING),
        ("tokenizer.chat_template.tool_use", Severity.WARNING),
        ("general.name", Severity.INFO),
    ],
)
def test_a_key_weighs_as_much_as_it_changes(key: str, level: Severity) -> None:
    [hit] = said({}, {}, {key: 7})
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.level) == (key, level)


def test_arrays_differ_by_size_or_hash() -> None:
    other = Digest(kind="string", count=262144, sha256="b" * 64)
    [hit] = said({"tokenizer.ggml.tokens": other}, {}, {})
    assert hit == Hit(
        message=(
            "needs 262144 string items (sha256 aaaaaaaa) as in 2 of 3 files of this model, "
            "tokenizer.ggml.tokens is 262144 string items (sha256 bbbbbbbb) in 0.gguf"
        ),
        where=Where(file="models/0.gguf", key="tokenizer.ggml.tokens"),
        expected="262144 string items (sha256 aaaaaaaa)",
        actual="262144 string items (sha256 bbbbbbbb)",
        level=Severity.ERROR,
        repair=AGAIN,
    )


def test_a_key_too_many_is_odd_too() -> None:
    [hit] = said({}, {}, {"gemma3.final_logit_softcapping": 30.0})
    assert isinstance(hit, Hit)
    assert hit.message == (
        "needs no such key as in 2 of 3 files of this model, "
        "gemma3.final_logit_softcapping is 30 in 2.gguf"
    )


def test_every_key_is_looked_at() -> None:
    found = said({}, {}, {"gemma3.block_count": 17, WINDOW: 1, "tokenizer.ggml.tokens": None})
    assert [hit.where.key for hit in found if isinstance(hit, Hit)] == [
        "gemma3.block_count",
        WINDOW,
        "tokenizer.ggml.tokens",
    ]


def test_many_odd_files_are_counted() -> None:
    odd: list[Values] = [{WINDOW: value} for value in (1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6)]
    [hit] = said(*[PLAIN] * 20, *odd)
    assert isinstance(hit, Hit)
    assert hit.message.endswith(
        "is 1 in 20.gguf, 21.gguf, 22.gguf, 23.gguf, 24.gguf and 2 more; "
        "2 in 27.gguf; 3 in 28.gguf; 3 values more"
    )


def test_silent_where_all_say_the_same() -> None:
    assert said({}, {}, {}) == []


@pytest.mark.parametrize(
    "odd",
    [
        {"general.file_type": 7},
        {"general.quantization_version": 2},
        {"general.quantized_by": "somebody"},
        {"general.tags": TOKENS},
        # What llama.cpp takes without the key.
        {"gemma3.rope.freq_base_swa": 10000.0},
        {"gemma3.expert_count": 0},
        {"tokenizer.ggml.add_sep_token": False},
        # A padding token may be another, but isn't here.
        {},
    ],
)
def test_silent_about_what_may_differ(odd: Mapping[str, Scalar | Digest]) -> None:
    assert said({}, {}, odd) == []
    assert said(odd, odd, {}) == []


def test_silent_about_what_a_file_is_known_to_have_wrong() -> None:
    wrong = member("2.gguf", {WINDOW: None}, told=frozenset({WINDOW}))
    assert said_of(member("0.gguf", {}), member("1.gguf", {}), wrong) == []
