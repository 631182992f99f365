"""Which hit is folded into which, where several keys have to do with a cause."""

from __future__ import annotations

from msgspec.structs import replace

from engine_subjects import hit, rule
from gguf_audit.causes import one_per_cause
from gguf_audit.rule import Hit, Rule

HOST = rule("KV1")
GUEST = rule("ARCH1", defers_to=("KV1",))


def folded(*hits: tuple[Rule, Hit]) -> list[tuple[str, tuple[str, ...]]]:
    """Return what is left of hits: message and consequences."""
    return [(found.message, found.consequences) for _, found in one_per_cause(hits)]


def of(message: str, key: str | None, *also: str) -> Hit:
    return replace(hit(message, key), also=also)


def test_another_key_is_another_cause() -> None:
    assert folded((HOST, of("host", "a")), (GUEST, of("guest", "b"))) == [
        ("host", ()),
        ("guest", ()),
    ]


def test_a_key_that_has_to_do_with_the_host_counts() -> None:
    assert folded((HOST, of("host", "a", "x", "b")), (GUEST, of("guest", "b"))) == [
        ("host", ("guest",))
    ]


def test_a_key_that_the_guest_may_follow_from_counts() -> None:
    assert folded((GUEST, of("guest", "b", "x", "a")), (HOST, of("host", "a"))) == [
        ("host", ("guest",))
    ]


def test_the_very_key_goes_before_the_others() -> None:
    hits = ((HOST, of("first", "a")), (HOST, of("second", "b")), (GUEST, of("guest", "b", "a")))
    assert folded(*hits) == [("first", ()), ("second", ("guest",))]


def test_a_hit_without_a_key_of_its_own_goes_by_the_others() -> None:
    hits = ((HOST, of("first", "a")), (HOST, of("second", "b")), (GUEST, of("guest", None, "b")))
    assert folded(*hits) == [("first", ()), ("second", ("guest",))]
    assert folded((HOST, of("first", "a")), (GUEST, of("guest", None))) == [("first", ("guest",))]
