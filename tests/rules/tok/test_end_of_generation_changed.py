from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.checkpoint import Json, Tokenizer, Vocabulary
from gguf_audit.gguf import ValueType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, Outcome, Reconvert, SetSpecialId, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.tok.end_of_generation_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, vocabulary

EOS, EOT, EOM = (f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))
TOKENS = "tokenizer.ggml.tokens"
#: 3 ends generation by its text; 1 and 2 only if an id says so.
TEXTS = ["a", "<end>", "<turn>", "<|im_end|>"]
LIST: Json = [1, 2]


def said(
    ids: Mapping[str, int],
    *,
    right: Tokenizer | Absent | None = None,
    config: Mapping[str, Json] | None = None,
    generation: Mapping[str, Json] | None = None,
    texts: list[str] = TEXTS,
) -> list[Outcome]:
    others: dict[str, FieldValue] = {
        f"{name}_token_id": (ValueType.UINT32, id_) for name, id_ in ids.items()
    }
    reference = checkpoint(
        tokenizer=Tokenizer(special_ids={"eos": 1}) if right is None else right,
        vocabulary=Vocabulary(model="gpt2", texts=TEXTS, types=[1, 3, 3, 3]),
        config={} if config is None else config,
        generation=Absent("none") if generation is None else generation,
    )
    found = vocabulary(texts, others)
    return list(check(conversion(found, reference=reference), SETTINGS))


@pytest.mark.parametrize(
    ("config", "generation"),
    [
        ({}, None),
        ({"eos_token_id": 1}, {"eos_token_id": 1}),
        # Ends by its text.
        ({}, {"eos_token_id": [1, 3]}),
        # A word, and an id out of range: of another tokenizer.
        ({}, {"eos_token_id": [0, 99]}),
        # Not the tokenizer's own end, so it is another tokenizer's list.
        ({"eos_token_id": [2]}, None),
        ({"eos_token_id": 2}, None),
    ],
)
def test_silent(config: Mapping[str, Json], generation: Mapping[str, Json] | None) -> None:
    assert said({"eos": 1}, config=config, generation=generation) == []


def test_silent_where_nobody_knows() -> None:
    assert said({"eos": 1}, right=Absent("none"), generation={"eos_token_id": LIST}) == []
    unsure = Tokenizer(special_ids={}, unsure_ids=frozenset({"eos"}), complete=False)
    assert said({"eos": 2}, right=unsure) == []
    # A token that is another one is told elsewhere.
    assert said({"eos": 1}, generation={"eos_token_id": LIST}, texts=["a", "<end>", "b", "c"]) == [
        *said({"eos": 1}, texts=["a", "<end>", "b", "c"])
    ]


@pytest.mark.parametrize(
    ("config", "generation"), [({}, {"eos_token_id": LIST}), ({"eos_token_id": LIST}, None)]
)
def test_an_end_that_the_converter_drops_as_well_is_a_warning(
    config: Mapping[str, Json], generation: Mapping[str, Json] | None
) -> None:
    assert said({"eos": 1}, config=config, generation=generation) == [
        Hit(
            message="needs generation to end where the reference's does, it runs on after id 2 "
            "('<turn>'): the converter stores one eos only",
            where=Where(key=EOT),
            expected=[2],
            actual=None,
            level=Severity.WARNING,
            repair=SetSpecialId(name="eot", id=2),
            also=(EOT, EOM, TOKENS),
        )
    ]
    assert said({"eos": 1, "eot": 2}, config=config, generation=generation) == []


def test_an_end_of_a_right_conversion_that_is_lost_is_an_error() -> None:
    right = Tokenizer(special_ids={"eos": 1, "eot": 2})
    assert said({"eos": 1}, right=right) == [
        Hit(
            message="needs generation to end where the reference's does, it runs on after id 2 "
            "('<turn>')",
            where=Where(key=EOS),
            expected=[2],
            actual=None,
            level=Severity.ERROR,
            repair=SetSpecialId(name="eot", id=2),
            also=(EOT, EOM, TOKENS),
        )
    ]


def test_an_end_too_many_is_a_warning() -> None:
    assert said({"eos": 1, "eot": 0}) == [
        Hit(
            message="needs generation to end where the reference's does, it ends at id 0 ('a') as "
            "well",
            where=Where(key=EOT),
            expected=[1, 3],
            actual=[0, 1, 3],
            level=Severity.WARNING,
            repair=Reconvert(),
            also=(EOS, TOKENS),
        )
    ]
