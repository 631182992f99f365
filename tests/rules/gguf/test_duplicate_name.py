from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.evidence import Model
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue, TensorSpec, make_gguf
from gguf_audit.where import Where
from gguf_audit_rules.gguf.duplicate_name import check
from rule_subjects import SETTINGS, model_of

KEYS: list[tuple[str | bytes, FieldValue]] = [("general.architecture", "llama"), ("a", 1), ("b", 2)]


def named(*names: str) -> Model:
    return model_of(make_gguf(KEYS, [TensorSpec(name, (32,)) for name in names]))


def test_silent_for_distinct_names() -> None:
    assert list(check(named("x", "y"), SETTINGS)) == []


def test_fires_for_the_last_key() -> None:
    subject = model_of(make_gguf([*KEYS, ("b", 3), ("b", 4)]))
    again = subject.gguf.files[0].fields[3]
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs each key once, b is there again",
            where=Where(file="model.gguf", key="b", offset=again.offset),
            expected=1,
            actual=3,
            unit="time",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_many_keys_are_one_finding() -> None:
    subject = model_of(
        make_gguf(
            [*KEYS, *((f"k{n}", n) for n in range(9)), *KEYS[1:], *((f"k{n}", n) for n in range(9))]
        )
    )
    again = subject.gguf.files[0].fields[12]
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs each key once, a is there again, as are b, k0, k1, k2 (and 6 more)",
            where=Where(file="model.gguf", key="a", offset=again.offset),
            expected=1,
            actual=2,
            unit="time",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_fires_for_the_last_tensor() -> None:
    subject = named("x", "y", "z", "z")
    again = subject.gguf.files[0].tensors[3]
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs each tensor once, z is in model.gguf and again in model.gguf",
            where=Where(file="model.gguf", tensor="z", offset=again.info_offset),
            expected=1,
            actual=2,
            unit="time",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_exactly_five_tensors_are_all_named() -> None:
    [hit] = list(check(named(*"abcde", *"abcde"), SETTINGS))
    assert isinstance(hit, Hit)
    assert hit.message == (
        "needs each tensor once, a is in model.gguf and again in model.gguf, as are b, c, d, e"
    )


def two_shards(second: Model) -> Model:
    first = named("x", "y").gguf
    facts = second.gguf.files[0]
    tensors = tuple(replace(tensor, file=1) for tensor in facts.tensors)
    shard = replace(facts, name="2.gguf", tensors=tensors)
    return model_of(replace(first, files=(first.files[0], shard)))


def test_shards_repeat_keys_by_right() -> None:
    assert list(check(two_shards(named("z")), SETTINGS)) == []


def test_fires_for_a_tensor_in_two_shards() -> None:
    subject = two_shards(named("z", "y"))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs each tensor once, y is in model.gguf and again in 2.gguf",
            where=Where(
                file="2.gguf", tensor="y", offset=subject.gguf.files[1].tensors[1].info_offset
            ),
            expected=1,
            actual=2,
            unit="time",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_thousands_of_double_names_take_no_time() -> None:
    names = [f"t{index}" for index in range(5_000)]
    [hit] = list(check(named(*names, *names), SETTINGS))
    assert isinstance(hit, Hit)
    assert hit.message.endswith("(and 4995 more)")


def test_a_tensor_may_be_there_three_times() -> None:
    [hit] = list(check(named("x", "z", "z", "z"), SETTINGS))
    assert isinstance(hit, Hit)
    assert (hit.where.tensor, hit.expected, hit.actual) == ("z", 1, 3)
