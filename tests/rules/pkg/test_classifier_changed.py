from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import Json, StoredTensor
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Reconvert, SetArray, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.classifier_changed import check
from rule_subjects import SETTINGS, checkpoint, conversion, model

KEY = "bert.classifier.output_labels"
BERT: Mapping[str, Json] = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "id2label": {"0": "neg", "1": "neu", "2": "pos"},
}
ROBERTA: Mapping[str, Json] = {
    **BERT,
    "architectures": ["XLMRobertaForSequenceClassification"],
    "model_type": "xlm-roberta",
}


def said(
    labels: Sequence[str],
    config: Mapping[str, Json] = ROBERTA,
    tensors: Sequence[str] = ("cls.output.weight",),
) -> list[object]:
    stored = {"bert.pooler.dense.weight": StoredTensor(dtype="F32", shape=(64, 64))}
    reference = replace(checkpoint(), config=config, load_tensors=lambda: stored)
    file = model(
        {"general.architecture": "bert", KEY: (ValueType.STRING, list(labels))},
        [(name, (64, 3), "F16") for name in tensors],
    )
    return list(check(conversion(file, reference=reference), SETTINGS))


def test_fires_for_labels_in_another_order() -> None:
    [hit] = said(["neg", "pos", "neu"])
    assert isinstance(hit, Hit)
    assert hit == Hit(
        message=f"needs the labels 'neg', 'neu', 'pos', {KEY} is 'neg', 'pos', 'neu'",
        where=Where(key=KEY, offset=hit.where.offset),
        expected=["neg", "neu", "pos"],
        actual=["neg", "pos", "neu"],
        level=Severity.ERROR,
        repair=SetArray(key=KEY, items=("neg", "neu", "pos")),
    )


def test_fires_for_labels_sorted_as_text() -> None:
    ten: dict[str, Json] = {str(index): f"c{index}" for index in range(11)}
    as_text = [f"c{index}" for index in sorted(range(11), key=str)]
    assert len(said(as_text, {**ROBERTA, "id2label": ten})) == 1
    assert said([f"c{index}" for index in range(11)], {**ROBERTA, "id2label": ten}) == []


def test_fires_for_a_dropped_pooler() -> None:
    assert said(["neg", "neu", "pos"], BERT) == [
        Hit(
            message=(
                "the reference's classifier sees the pooled first token, the file has no pooler:"
                " scores are others, their order mostly the same"
            ),
            where=Where(tensor="cls.weight"),
            expected="cls.weight",
            level=Severity.WARNING,
            repair=Reconvert(hint="with a converter that keeps bert.pooler"),
        )
    ]


def test_silent_for_a_whole_head() -> None:
    assert said(["neg", "neu", "pos"]) == []
    assert said(["neg", "neu", "pos"], BERT, ("cls.output.weight", "cls.weight")) == []


@pytest.mark.parametrize(
    "config",
    [
        {**ROBERTA, "id2label": {"0": "LABEL_0", "1": "LABEL_1"}},
        {**ROBERTA, "architectures": ["XLMRobertaModel"]},
        {"architectures": ["BertModel"], "model_type": "bert"},
    ],
)
def test_silent_where_there_is_nothing_to_hold_against(config: Mapping[str, Json]) -> None:
    assert said(["a"], config) == []
