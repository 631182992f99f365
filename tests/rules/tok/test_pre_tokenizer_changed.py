from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import TokenizerFiles, TokenizerJson
from gguf_audit.fields import Origin
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Outcome, SetPreTokenizer, Severity
from gguf_audit.runtime.pre_tokenizers import SPLITTERS
from gguf_audit.runtime.splitting import Pieces, Splitting
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.pre_tokenizer_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, gguf, offset, tokens

PRE = "tokenizer.ggml.pre"
MISSING = Absent("not at hand")
BY_DIGIT: tuple[Pieces, ...] = (("x", *"12345"), ("a\n",))
WHOLE: tuple[Pieces, ...] = (("x", "12345"), ("a\n",))
LINES: tuple[Pieces, ...] = (("x", *"12345"), ("a", "\n"))


def splitting(*right: str, reference: tuple[Pieces, ...] = BY_DIGIT) -> Splitting:
    named = dict.fromkeys(SPLITTERS, WHOLE) | dict.fromkeys(right, reference)
    return Splitting(reference=reference, named=named, right=right)


def said(
    found: Splitting | Absent,
    pre: str | None = None,
    *,
    kind: str = "gpt2",
    ignore_merges: bool = False,
    others: dict[str, FieldValue] | None = None,
    names: tuple[str, ...] | Absent = (),
) -> list[Outcome]:
    file = {**tokens(4, kind), **(others or {}), **({} if pre is None else {PRE: pre})}
    json = TokenizerJson(model="BPE", ids={}, options={"ignore_merges": ignore_merges})
    files = TokenizerFiles(
        names=frozenset({"tokenizer.json"}),
        load_json=lambda: json,
        load_bytes=lambda: MISSING,
        load_sentencepiece=lambda _: MISSING,
        load_object=lambda _: MISSING,
        load_text=lambda _: MISSING,
    )
    reference = replace(checkpoint(), tokenizer_files=files)
    subject = replace(
        conversion(file, reference=reference),
        load_splitting=lambda: found,
        load_names=lambda: names,
    )
    return list(check(subject, SETTINGS))


def hit(pre: str | None, wanted: str, message: str) -> Hit:
    subject = conversion({**tokens(4), **({} if pre is None else {PRE: pre})})
    return Hit(
        message=message,
        where=Where(key=PRE, offset=None if pre is None else offset(subject, PRE)),
        expected=wanted,
        actual=pre or "default",
        origin=Origin.KEY if pre else Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=SetPreTokenizer(name=wanted),
    )


@pytest.mark.parametrize("kind", ["llama", "bert", "t5", "rwkv", "plamo2", "gemma4", "none"])
@pytest.mark.parametrize("pre", [None, "default", "nonsense"])
def test_silent_for_vocabularies_that_do_not_use_it(kind: str, pre: str | None) -> None:
    assert said(splitting("qwen2"), pre, kind=kind) == []


@pytest.mark.parametrize("pre", ["qwen2", "megrez"])
def test_silent_where_the_file_names_one_that_splits_alike(pre: str) -> None:
    assert said(splitting("qwen2", "megrez"), pre) == []


def test_fires_and_shows_what_changes() -> None:
    assert said(splitting("starcoder"), "gpt-2") == [
        hit(
            "gpt-2",
            "starcoder",
            "needs the splitter 'starcoder', tokenizer.ggml.pre is 'gpt-2'; "
            "HF: 1|2|3|4|5  this file: 12345",
        )
    ]


def test_fires_for_a_text_that_is_not_the_first() -> None:
    (found,) = said(splitting("starcoder", reference=(WHOLE[0], LINES[1])), "gpt-2")
    assert isinstance(found, Hit)
    assert found.message.endswith("'gpt-2'; HF: a|\\n  this file: a\\n")


@pytest.mark.parametrize(("pre", "how"), [(None, "absent"), ("", "empty")])
def test_fires_where_no_name_means_the_default(pre: str | None, how: str) -> None:
    assert said(splitting("qwen2"), pre) == [
        hit(
            pre,
            "qwen2",
            f"needs the splitter 'qwen2', tokenizer.ggml.pre is {how}: llama.cpp takes 'default'; "
            "HF: 1|2|3|4|5  this file: 12345",
        )
    ]


def test_fires_for_a_name_that_nobody_knows() -> None:
    assert said(splitting("qwen2"), "qwen9") == [
        hit(
            "qwen9",
            "qwen2",
            "needs the splitter 'qwen2', tokenizer.ggml.pre is 'qwen9', which llama.cpp refuses",
        )
    ]


def test_the_name_to_give_takes_no_whole_tokens_in_vain() -> None:
    right = ("llama-bpe", "smaug-bpe")
    (plain,) = said(splitting(*right), "gpt-2")
    (whole,) = said(splitting(*right), "gpt-2", ignore_merges=True)
    assert isinstance(plain, Hit)
    assert isinstance(whole, Hit)
    assert (plain.repair, whole.repair) == (
        SetPreTokenizer(name="smaug-bpe"),
        SetPreTokenizer(name="llama-bpe"),
    )


@pytest.mark.parametrize(
    ("others", "level", "more"),
    [
        (
            {},
            Severity.WARNING,
            ", and with tokenizer.ggml.add_bos_token absent adds no BOS",
        ),
        ({"tokenizer.ggml.add_bos_token": True}, Severity.INFO, ""),
    ],
)
def test_fires_where_tokens_are_merged_that_the_reference_takes_whole(
    others: dict[str, FieldValue], level: Severity, more: str
) -> None:
    right = ("llama-bpe", "smaug-bpe")
    (found,) = said(splitting(*right), "smaug-bpe", ignore_merges=True, others=others)
    assert isinstance(found, Hit)
    assert (found.level, found.repair) == (level, SetPreTokenizer(name="llama-bpe"))
    assert found.message == (
        "tokenizer.ggml.pre is 'smaug-bpe': it splits as 'llama-bpe' does, but merges tokens "
        f"that the reference takes whole{more}"
    )


def test_silent_about_merging_where_it_is_usual() -> None:
    right = ("llama-bpe", "smaug-bpe")
    assert said(splitting(*right), "smaug-bpe") == []
    assert said(splitting(*right), "llama-bpe", ignore_merges=True) == []
    # GPT-4o's usual name merges, whatever the reference does.
    assert said(splitting("gpt-4o"), "gpt-4o", ignore_merges=True) == []


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (MISSING, "not at hand"),
        (splitting(), "llama.cpp has no splitter that does what the reference's does"),
        (splitting("gemma4"), "the reference has another kind of tokenizer than the file"),
    ],
)
def test_says_why_it_can_not_look(found: Splitting | Absent, reason: str) -> None:
    assert said(found, "gpt-2") == [NoEvidence(reason)]


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ({**tokens(4), PRE: "joyai-llm"}, None),
        ({**tokens(4), PRE: "qwen2"}, "qwen2"),
        (tokens(4), "default"),
        ({**tokens(4), PRE: "nonsense"}, None),
        ({**tokens(4, "llama"), PRE: "qwen2"}, None),
    ],
)
def test_another_file_is_held_to_its_name(other: dict[str, FieldValue], wanted: str | None) -> None:
    reference = replace(checkpoint(), gguf=gguf(other))
    subject = conversion({**tokens(4), PRE: "deepseek-v3"}, reference=reference)
    found = [each.expected for each in check(subject, SETTINGS) if isinstance(each, Hit)]
    assert found == ([] if wanted is None else [wanted])


@pytest.mark.parametrize("right", [(), ("qwen2",)])
def test_the_converters_own_name_is_right_as_well(right: tuple[str, ...]) -> None:
    assert said(splitting(*right), "jais", names=("gpt-2",)) == []
    assert said(splitting(*right), "starcoder", names=("gpt-2", "starcoder")) == []


@pytest.mark.parametrize("right", [(), ("qwen2",)])
def test_the_converters_own_name_is_the_one_to_give(right: tuple[str, ...]) -> None:
    (found,) = said(splitting(*right), "gpt-2", names=("starcoder",))
    assert isinstance(found, Hit)
    assert found.repair == SetPreTokenizer(name="starcoder")
    assert found.message.startswith("needs the splitter 'starcoder', ")


def test_no_alarm_before_the_converter_was_asked() -> None:
    assert said(splitting("qwen2"), "gpt-2", names=MISSING) == [NoEvidence("not at hand")]
