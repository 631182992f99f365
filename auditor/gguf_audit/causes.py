"""One cause, one finding: what follows from another rule's finding stands under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from gguf_audit.catalogue import family
from gguf_audit.rule import Hit, Rule, Severity

__all__ = ["UNPUBLISHED", "one_per_cause"]

#: Why a hit against a reference is a warning only; taken back where it turns out to be
#: an error without that reference too.
UNPUBLISHED = "the reference isn't a published configuration, so this is no error yet"


def one_per_cause(
    hits: Sequence[tuple[Rule, Hit]], *, ignored: AbstractSet[str] = frozenset()
) -> Iterator[tuple[Rule, Hit]]:
    """Fold a hit into the one that its rule defers to, so one cause is one finding.

    The other hit must name the same key (or one of those in ``also``), unless the
    deferring one names none. What it is folded into becomes as severe as it is itself.
    What an ``ignored`` rule says is left out; so is its mere echo, and nothing else that
    it would have told otherwise.
    """
    hosts = _hosts(hits, ignored)
    folded: dict[int, list[tuple[Rule, Hit]]] = {}
    for index in hosts:
        folded.setdefault(_last(index, hosts), []).append(hits[index])
    for index, (rule, hit) in enumerate(hits):
        if index not in hosts and rule.id not in ignored:
            yield rule, _with(hit, folded.get(index, ()))


def _with(hit: Hit, folded: Sequence[tuple[Rule, Hit]]) -> Hit:
    if not folded:
        return hit
    worst = max((hit.level, *(each.level for _, each in folded)), key=lambda level: level.rank)
    own = hit.consequences
    if worst is Severity.ERROR:
        own = tuple(each for each in own if each != UNPUBLISHED)
    return replace(
        hit,
        level=worst,
        consequences=(*own, *(each.message for rule, each in folded if not rule.echoes)),
    )


def _hosts(hits: Sequence[tuple[Rule, Hit]], ignored: AbstractSet[str]) -> dict[int, int]:
    """Return which hit is folded into which, by position.

    Looked up by rule and key: a hostile file has more hits than may be compared with
    each other. Two rules of a pack that defer to each other both stay.
    """
    first: dict[tuple[str, str | None], int] = {}
    for position, (rule, hit) in enumerate(hits):
        for key in (*_keys(hit), None):
            first.setdefault((rule.id, key), position)
    spoken = {rule.id: rule for rule, _ in hits}
    tellers = {
        rule.id: [
            other
            for other in spoken.values()
            if _defers(rule, other) and (rule.echoes or other.id not in ignored)
        ]
        for rule in spoken.values()
    }
    hosts: dict[int, int] = {}
    for position, (rule, hit) in enumerate(hits):
        # What is said of the very key goes before what has to do with it.
        for key in _keys(hit) or (None,):
            found = [first.get((other.id, key)) for other in tellers[rule.id]]
            told = [host for host in found if host is not None]
            if told:
                if _last(min(told), hosts) != position:
                    hosts[position] = min(told)
                break
    return hosts


def _keys(hit: Hit) -> tuple[str, ...]:
    """Return every key that a hit is about, its own first."""
    return hit.also if hit.where.key is None else (hit.where.key, *hit.also)


def _defers(rule: Rule, other: Rule) -> bool:
    codes = (other.id, family(other.id))
    return other is not rule and any(code in rule.defers_to for code in codes)


def _last(index: int, hosts: Mapping[int, int]) -> int:
    while index in hosts:
        index = hosts[index]
    return index
