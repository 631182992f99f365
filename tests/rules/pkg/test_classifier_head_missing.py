from __future__ import annotations

import pytest

from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.classifier_head_missing import check
from rule_subjects import SETTINGS, model

TENSOR = ("blk.0.attn_q.weight", (64, 64), "F16")
HEAD = "cls.output.weight"


def said(keys: dict[str, FieldValue], rows: int | None = None) -> list[object]:
    head = [] if rows is None else [(HEAD, (64, rows), "F16")]
    subject = model({"general.architecture": "qwen3", **keys}, [TENSOR, *head])
    return list(check(subject, SETTINGS))


def test_fires_for_a_reranker_without_a_head() -> None:
    assert said({"general.name": "Zerank 2 Reranker"}) == [
        Hit(
            message=f"a reranker needs {HEAD}, absent from the file: llama.cpp can't rank with it",
            where=Where(key="general.name", tensor=HEAD),
            expected=HEAD,
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    "keys",
    [
        {"general.basename": "Qwen3-Reranker"},
        {"general.finetune": "re-ranker"},
        {"general.tags": (ValueType.STRING, ["transformers", "text-ranking"])},
    ],
)
def test_fires_for_every_way_to_say_so(keys: dict[str, FieldValue]) -> None:
    assert len(said(keys)) == 1


def test_fires_for_a_head_of_other_rows() -> None:
    [hit] = said({"general.name": "Qwen3 Reranker 0.6B"}, rows=1)
    assert isinstance(hit, Hit)
    # What says that they are too few for the labels is about the same tensor.
    assert (hit.expected, hit.actual, hit.also) == (2, 1, (HEAD,))


def test_silent_for_a_reranker_with_a_head() -> None:
    assert said({"general.name": "Qwen3 Reranker 0.6B"}, rows=2) == []
    assert said({"general.architecture": "bert", "general.name": "Bge Reranker Base"}, rows=1) == []


@pytest.mark.parametrize("name", ["Qwen3 8B", "Prankster 7B", "Frankenreranked"])
def test_silent_for_models_that_claim_no_such_thing(name: str) -> None:
    assert said({"general.name": name}) == []
