from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import AddedToken, TokenizerFiles, TokenizerJson
from gguf_audit.gguf import ValueType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Outcome, Reconvert, Severity
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.runtime.probe_texts import TEXTS
from gguf_audit.runtime.splitting import Splitting
from gguf_audit.runtime.tokenisation import Ids, Tokenisation
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.tokens_differ import check
from rule_subjects import SETTINGS, checkpoint, conversion, tokens

MISSING = Absent("not at hand")
RUNTIME = "llama.cpp b1"
#: Tokens of the reference; of the file they are ``t0`` and so on.
NAMES = {0: "\u2581", 1: "12", 2: "345", 3: "1", 4: "2", 5: "<x>"}
SAME: dict[str, tuple[Ids, Ids]] = {"same": ((1, 2), (1, 2))}
Texts = dict[str, tuple[Ids, Ids]]


def said(
    lines: Texts | None = None,
    *,
    texts: Texts | None = None,
    added: Texts | None = None,
    kind: str = "gpt2",
    left_out: int = 0,
    splitting: Splitting | Absent = MISSING,
    others: dict[str, FieldValue] | None = None,
) -> list[Outcome]:
    found = Tokenisation(
        runtime=RUNTIME,
        texts=texts or lines or SAME,
        lines=lines or SAME,
        added=added or {},
        names=NAMES,
        left_out=left_out,
    )
    json = TokenizerJson(
        model="BPE",
        ids={},
        added=(
            AddedToken(id=5, content="<x>", special=True),
            AddedToken(id=6, content="<y>"),
        ),
    )
    files = TokenizerFiles(
        names=frozenset({"tokenizer.json"}),
        load_json=lambda: json,
        load_bytes=lambda: MISSING,
        load_sentencepiece=lambda _: MISSING,
        load_object=lambda _: MISSING,
        load_text=lambda _: MISSING,
    )
    subject = replace(
        conversion(
            {**tokens(8, kind), **(others or {})},
            reference=replace(checkpoint(), tokenizer_files=files),
        ),
        load_tokenisation=lambda: found,
        load_splitting=lambda: splitting,
    )
    return list(check(subject, SETTINGS))


def hit(message: str, level: Severity, text: str, ours: list[int], theirs: list[int]) -> Hit:
    return Hit(
        message=message,
        where=Where(),
        expected={text: ours},
        actual={text: theirs},
        level=level,
        repair=Reconvert(),
    )


def test_silent_where_all_ids_are_the_same() -> None:
    assert said(added={"<x>": ((5,), (5,))}) == []


def test_fires_for_a_text_that_is_not_the_first() -> None:
    assert said({**SAME, "12345": ((6, 1, 2, 7), (6, 3, 4, 7))}) == [
        hit(
            f"{RUNTIME} makes other tokens of 1 of 2 texts than the reference; "
            "HF: 12|345 (1, 2)  this file: t3|t4 (3, 4)",
            Severity.WARNING,
            "12345",
            [6, 1, 2, 7],
            [6, 3, 4, 7],
        )
    ]


def test_notes_scores_that_are_all_the_same() -> None:
    flat: dict[str, FieldValue] = {"tokenizer.ggml.scores": (ValueType.FLOAT32, [-1000.0] * 8)}
    (found,) = said({"a": ((1,), (3,))}, kind="llama", others=flat)
    assert isinstance(found, Hit)
    assert found.level is Severity.INFO
    assert "; all of tokenizer.ggml.scores are the same, which is what" in found.message
    graded: dict[str, FieldValue] = {
        "tokenizer.ggml.scores": (ValueType.FLOAT32, [-float(i) for i in range(8)])
    }
    (found,) = said({"a": ((1,), (3,))}, kind="llama", others=graded)
    assert isinstance(found, Hit)
    assert found.level is Severity.WARNING


def test_notes_texts_that_llama_cpp_only_comes_close_to() -> None:
    pieces = tuple((text,) for text in TEXTS)
    apart = (tuple(TEXTS[0]), *pieces[1:])
    close = Splitting(
        reference=pieces,
        named=dict.fromkeys(SPLITTERS, apart),
        right=("tiny_aya", "cohere2moe"),
    )
    named: dict[str, FieldValue] = {"tokenizer.ggml.pre": "cohere2moe"}
    different: Texts = {TEXTS[0]: ((1,), (3, 4))}
    (found,) = said(different, others=named, splitting=close)
    assert isinstance(found, Hit)
    assert found.level is Severity.INFO
    assert "; llama.cpp only comes close to the reference's splitter; HF: " in found.message
    # Another text isn't explained by that, and a wrong name explains nothing here.
    (found,) = said({**different, TEXTS[1]: ((1,), (3,))}, others=named, splitting=close)
    assert isinstance(found, Hit)
    assert found.level is Severity.WARNING
    wrong: dict[str, FieldValue] = {"tokenizer.ggml.pre": "qwen2"}
    (found,) = said(different, others=wrong, splitting=close)
    assert isinstance(found, Hit)
    assert found.level is Severity.WARNING


@pytest.mark.parametrize("both", [((1, 2), (7, 1, 2)), ((0, 1, 2), (1, 2)), ((1, 2), (1, 2))])
def test_notes_a_space_in_front(both: tuple[Ids, Ids]) -> None:
    spaced: dict[str, FieldValue] = {
        "tokenizer.ggml.tokens": (ValueType.STRING, [*"abcdefg", "\u2581"])
    }
    found = said({"12345": both}, texts={"12345": ((1,), (3,))}, others=spaced)
    assert found == [
        Hit(
            message=f"{RUNTIME} and the reference don't both put a space in front of a text; "
            "HF: 12 (1)  this file: d (3)",
            where=Where(key="tokenizer.ggml.add_space_prefix"),
            level=Severity.INFO,
        )
    ]


def test_another_token_in_front_is_no_space() -> None:
    (found,) = said({"12345": ((1, 2), (7, 1, 2))})
    assert isinstance(found, Hit)
    assert found.level is Severity.WARNING


@pytest.mark.parametrize(
    ("token", "kind", "level"),
    [
        ("<x>", "control", Severity.ERROR),
        ("<y>", "other", Severity.WARNING),
    ],
)
def test_fires_for_an_added_token_in_pieces(token: str, kind: str, level: Severity) -> None:
    assert said(added={"<z>": ((1,), (1,)), token: ((5,), (3, 4))}) == [
        hit(
            f"{RUNTIME} makes other tokens of 1 {kind} added tokens than the reference; "
            "HF: <x> (5)  this file: t3|t4 (3, 4)",
            level,
            token,
            [5],
            [3, 4],
        )
    ]


def test_silent_about_an_added_token_that_the_file_has_no_row_for() -> None:
    assert said(added={"<x>": ((8,), (3, 4))}) == []


def test_notes_added_tokens_whose_types_the_converter_does_not_write() -> None:
    (found,) = said(added={"<x>": ((5,), (3, 4))}, kind="gemma4")
    assert isinstance(found, Hit)
    assert found.level is Severity.INFO


def test_many_ids_are_cut_and_none_is_said() -> None:
    (found,) = said({"a": ((), tuple([1] * 20))})
    assert isinstance(found, Hit)
    assert found.message.endswith(
        "HF: nothing  this file: t1|t1|t1|t1|t1|t1|t1|t1... (1, 1, 1, 1, 1, 1, 1, 1...)"
    )


def test_says_what_it_did_not_look_at() -> None:
    assert said(left_out=3) == [
        NoEvidence("3 of the added tokens aren't looked at, there are so many", kind="limit")
    ]
    subject = replace(conversion(tokens(8)), load_tokenisation=lambda: MISSING)
    assert list(check(subject, SETTINGS)) == [NoEvidence("not at hand")]
