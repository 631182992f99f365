from __future__ import annotations

from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
from gguf_audit.testing import TensorSpec
from gguf_audit.where import Where
from gguf_audit_rules.gguf.tensor_type import check
from rule_subjects import SETTINGS, info_offset, model

KEYS = {"general.architecture": "llama"}
GOOD = TensorSpec("good", (256,), "Q4_K")


def test_silent_for_types_of_llama_cpp() -> None:
    types = ["F32", "F16", "BF16", "Q4_0", "Q8_0", "Q4_K", "IQ4_XS", "TQ1_0", "MXFP4", "I32"]
    tensors = [TensorSpec(name, (256, 2), name) for name in types]
    assert list(check(model(KEYS, tensors), SETTINGS)) == []


def test_removed_types_are_errors() -> None:
    subject = model(KEYS, [GOOD, TensorSpec("old", (256,), 4), TensorSpec("older", (256,), 4)])
    name = subject.gguf.tensors["old"].type.name
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message=f"needs a type that llama.cpp reads, old has {name} (id 4), which was removed",
            where=Where(file="model.gguf", tensor="old", offset=info_offset(subject, "old")),
            expected="a type of llama.cpp",
            actual=name,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_types_of_another_engine_are_noted() -> None:
    subject = model(
        KEYS, [GOOD, TensorSpec("a", (256,), "IQ4_K"), TensorSpec("b", (256,), "IQ4_K")]
    )
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs ik_llama.cpp: 2 of 3 tensors have its type IQ4_K, the first is a",
            where=Where(file="model.gguf", tensor="a", offset=info_offset(subject, "a")),
            expected="a type of llama.cpp",
            actual="IQ4_K",
            level=Severity.INFO,
        )
    ]


def test_unknown_types_leave_the_audit_partial() -> None:
    subject = model(KEYS, [GOOD, TensorSpec("a", (256,), 9999), TensorSpec("b", (256,), 9999)])
    assert list(check(subject, SETTINGS)) == [
        NoEvidence(
            "2 tensors have a type that nobody here knows, id 9999; the first is a", kind="limit"
        )
    ]


def test_many_unknown_types_are_one_note() -> None:
    tensors = [TensorSpec(f"t{index}", (256,), 9000 + index // 2) for index in range(20)]
    assert list(check(model(KEYS, tensors), SETTINGS)) == [
        NoEvidence(
            "20 tensors have a type that nobody here knows, id 9000, 9001, 9002, 9003, 9004, ...; "
            "the first is t0",
            kind="limit",
        )
    ]


def test_exactly_five_unknown_types_are_all_named() -> None:
    tensors = [TensorSpec(f"t{index}", (256,), 9000 + index) for index in range(5)]
    [note] = list(check(model(KEYS, tensors), SETTINGS))
    assert isinstance(note, NoEvidence)
    assert note.reason == (
        "5 tensors have a type that nobody here knows, id 9000, 9001, 9002, 9003, 9004; "
        "the first is t0"
    )


def test_fires_for_ragged_rows_of_the_last_tensor() -> None:
    tensors = [GOOD, TensorSpec("a", (300, 2), "Q4_K"), TensorSpec("b", (33,), "Q8_0")]
    subject = model(KEYS, tensors)
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs rows of a multiple of 256 elements for Q4_K, a has rows of 300",
            where=Where(file="model.gguf", tensor="a", offset=info_offset(subject, "a")),
            expected="a multiple of 256 elements",
            actual=300,
            unit="element",
            level=Severity.ERROR,
            repair=Reconvert(),
            also=("a",),
        )
    ]


def test_a_quantized_scalar_is_a_ragged_row() -> None:
    [hit] = list(check(model(KEYS, [TensorSpec("s", (), "Q8_0")]), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.expected, hit.actual) == ("a multiple of 32 elements", 1)


def test_one_cause_does_not_hide_another() -> None:
    tensors = [
        TensorSpec("old", (256,), 4),
        TensorSpec("odd", (256,), 9999),
        TensorSpec("ragged", (33,), "Q8_0"),
    ]
    removed, unknown, ragged = list(check(model(KEYS, tensors), SETTINGS))
    assert isinstance(removed, Hit)
    assert isinstance(unknown, NoEvidence)
    assert isinstance(ragged, Hit)
    assert (removed.where.tensor, ragged.where.tensor) == ("old", "ragged")
