from __future__ import annotations

import pytest

from gguf_audit.evidence import Model
from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.rule import Hit, Outcome, Reconvert, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.wt.tensor_shape_mismatch import check
from rule_subjects import LLAMA, SETTINGS, info_offset, model, without
from wt_subjects import SPECS, changed, llama, without_tensors

KEY = "llama.feed_forward_length"
LABELS = "bert.classifier.output_labels"


def found(subject: Model) -> list[Outcome]:
    return list(check(subject, SETTINGS))


def test_a_key_that_every_tensor_contradicts() -> None:
    subject = llama(keys={**LLAMA, KEY: 96})
    name = "blk.0.ffn_gate.weight"
    assert found(subject) == [
        Hit(
            message=f"needs {name} of shape [64, 96] by {KEY}, it has [64, 128], as do 8 more "
            "tensors: llama.cpp won't load the file",
            where=Where(key=KEY, tensor=name, layer=0, offset=info_offset(subject, name)),
            expected=[64, 96],
            actual=[64, 128],
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=SetKey(key=KEY, value=128, present=True),
            consequences=(
                (
                    "the others: blk.0.ffn_up.weight, blk.0.ffn_down.weight, "
                    "blk.1.ffn_gate.weight, blk.1.ffn_up.weight and 4 more"
                ),
            ),
            also=tuple(
                f"blk.{block}.ffn_{part}.weight"
                for block in range(3)
                for part in ("gate", "up", "down")
            ),
        )
    ]


def test_a_lost_key() -> None:
    subject = llama(keys=without(LLAMA, KEY))
    [hit] = found(subject)
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.origin, hit.repair) == (KEY, Origin.RUNTIME_DEFAULT, Reconvert())


def test_one_tensor_that_others_contradict() -> None:
    name = "blk.2.ffn_up.weight"
    subject = changed(name, 64, 96)
    assert found(subject) == [
        Hit(
            message=f"needs {name} of shape [64, 128], it has [64, 96]: "
            "llama.cpp won't load the file",
            where=Where(tensor=name, layer=2, offset=info_offset(subject, name)),
            expected=[64, 128],
            actual=[64, 96],
            level=Severity.ERROR,
            repair=Reconvert(),
            also=(KEY, name),
        )
    ]


def test_transposed() -> None:
    [hit] = found(changed("blk.2.ffn_down.weight", 64, 128))
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.expected, hit.actual) == (None, [128, 64], [64, 128])


def head(rows: int, labels: int) -> Model:
    """Return a classifier: its head and nothing else, beside what metadata say of it."""
    keys: dict[str, FieldValue] = {
        "bert.block_count": 1,
        "bert.context_length": 16,
        "bert.embedding_length": 64,
        "bert.feed_forward_length": 128,
        "bert.attention.head_count": 4,
        "bert.attention.layer_norm_epsilon": 1e-5,
    }
    names = [f"label {number}" for number in range(labels)]
    if names:
        keys[LABELS] = (ValueType.STRING, names)
    tensors = [("cls.output.weight", (64, rows), "F16"), ("cls.output.bias", (rows,), "F32")]
    return model(keys, tensors)


def test_a_classifier_with_fewer_rows_than_labels() -> None:
    subject = head(rows=2, labels=3)
    name = "cls.output.weight"
    assert found(subject) == [
        Hit(
            message=f"needs {name} of shape [64, 3] by {LABELS}, it has [64, 2], as does one more "
            "tensor: llama.cpp won't load the file",
            where=Where(key=LABELS, tensor=name, offset=info_offset(subject, name)),
            expected=[64, 3],
            actual=[64, 2],
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
            consequences=("the others: cls.output.bias",),
            also=(name, "cls.output.bias"),
        )
    ]


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        (2, "give its two labels names of their own in id2label, the converter drops LABEL_0"),
        (3, ""),
    ],
)
def test_a_classifier_without_labels(rows: int, hint: str) -> None:
    [hit] = found(head(rows=rows, labels=0))
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.origin) == (LABELS, Origin.RUNTIME_DEFAULT)
    assert (hit.expected, hit.actual, hit.repair) == ([64, 1], [64, rows], Reconvert(hint=hint))


@pytest.mark.parametrize(("rows", "labels"), [(1, 0), (1, 1), (3, 3)])
def test_silent_about_a_row_for_each_label(rows: int, labels: int) -> None:
    assert found(head(rows=rows, labels=labels)) == []


def test_silent_where_all_fit() -> None:
    assert found(llama()) == []


def test_silent_about_rows_of_the_vocabulary() -> None:
    assert found(changed("token_embd.weight", 64, 11)) == []


def test_silent_about_ones_at_the_end() -> None:
    [first] = [shape for name, shape, _ in SPECS if name == "output_norm.weight"]
    assert found(changed("output_norm.weight", *first, 1)) == []


def test_silent_without_any_tensor() -> None:
    assert found(without_tensors()) == []
