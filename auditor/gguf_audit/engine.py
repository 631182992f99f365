"""Puts an audit together: finds what targets mean, has each file examined, reports.

The only module that composes. Whatever one target does, the others are audited.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

import gguf_audit
from gguf_audit.against import Against
from gguf_audit.errors import AuditError, CrashedError, SourceError
from gguf_audit.evidence import SetMember
from gguf_audit.examination import Examined, Examiner
from gguf_audit.folders import folders_of
from gguf_audit.formats.gguf import shard_name
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Need, OnFolder
from gguf_audit.sets import Compared, audit_set, pairs_of, sets_of
from gguf_audit.sources import Tree
from gguf_audit.targets import Located, Targets
from gguf_audit.verdict import Problem, Report, SubjectReport

if TYPE_CHECKING:
    from gguf_audit.probes.templates import Analyst

__all__ = ["RUNTIMES", "audit_targets"]

#: Runtimes whose behaviour the report means, and the build it was measured on.
RUNTIMES = {"llama.cpp": "b11434", "vllm": "0.33.0"}
#: Files from which on several processes are quicker than one.
_MANY = 16

#: Told the files done, their number and the last one's name.
Progress = Callable[[int, int, str], None]


def audit_targets(
    targets: Sequence[str],
    mandate: Mandate,
    *,
    jobs: int | None = 1,
    part: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit what targets mean, each file by itself or against one reference.

    ``jobs`` is the number of processes, ``None`` for what suits; of the models ``part``
    takes every so manieth, (1, 3) the first, the fourth and so on. An audit that fails by
    a fault of ours is one that failed. Never raises AuditError: what can't be audited is
    in the report.
    """
    against = Against(mandate.against, mandate.policy, debug=mandate.debug)
    with contextlib.ExitStack() as stack:
        # One for the whole run, and none where no file has a template.
        analyst = functools.cache(lambda: stack.enter_context(_analyst()))
        chosen = (*mandate.rules.values(), *mandate.ignored.values())
        renders = any(Need.RENDER in rule.needs for rule in chosen)
        examiner = Examiner(mandate, against, analyst if renders else None)
        places = Targets()
        found = [
            _Item(number, located)
            for number, target in enumerate(targets)
            for located in _located(places, target, debug=mandate.debug)
        ]
        against.several = len(found) > 1
        uploads: list[SubjectReport] = []
        if mandate.matches is not None:
            found, uploads = _matched(found, targets, mandate.matches, mandate)
        mine = found if part is None else _part(found, *part)
        processes = _processes(jobs, len(mine))
        if processes > 1:
            against.read_ahead()
        whole = len(mine) == len(found)
        subjects = tuple(_subjects(mine, examiner, processes, progress, whole=whole))
    return Report(
        version=gguf_audit.__version__,
        runtimes=RUNTIMES,
        subjects=(*subjects, *(uploads if part is None or part[0] == 1 else ())),
        elsewhere=len(found) - len(mine),
    )


def _analyst() -> Analyst:
    # Only a file that has a template pays for what it takes to run a process.
    from gguf_audit.probes.templates import Analyst

    return Analyst()


def _located(places: Targets, target: str, *, debug: bool) -> Iterator[Located]:
    try:
        yield from places.locate(target)
    except Exception as error:
        # One target that we fail on must not hide the others.
        if debug:
            raise
        yield Located(target, CrashedError.of(error))


class _Item(Struct, frozen=True):
    """One file that was found, and the number of the target that it was found by."""

    target: int
    located: Located

    @property
    def model(self) -> tuple[object, ...]:
        """What files have in common whose names say that they are shards of one set."""
        folder, name = os.path.split(self.located.name)
        shard = shard_name(name) if self.located.found else None
        if shard is None:
            return (self.target, self.located.name)
        return (self.target, folder, shard.stem, shard.count)


def _matched(
    found: Sequence[_Item], targets: Sequence[str], folder: str, mandate: Mandate
) -> tuple[list[_Item], list[SubjectReport]]:
    """Hold repositories against a folder; what is the same is then read in the folder."""
    items: list[_Item] = []
    reports: list[SubjectReport] = []
    for number, target in enumerate(targets):
        own = [item for item in found if item.target == number]
        if all(item.located.error is not None for item in own):
            items += own  # Why there is nothing to compare is said already.
            continue
        tree = next((each.located.tree for each in own if each.located.tree is not None), None)
        report, paths = _upload(tree, target, folder, mandate)
        if report is not None:
            reports.append(report)
        items += [
            replace(item, located=replace(item.located, path=paths[item.located.file], tree=None))
            if item.located.file in paths
            else item
            for item in own
        ]
    return items, reports


def _upload(
    tree: Tree | None, target: str, folder: str, mandate: Mandate
) -> tuple[SubjectReport | None, dict[str, str]]:
    """Audit one upload, and return the paths of the files that are in the folder as well."""
    from gguf_audit.sources.hub import HubTree
    from gguf_audit.uploads import compared, same

    try:
        if not isinstance(tree, HubTree):
            raise SourceError(f"{target} is no repository that the Hub could be asked for")
        upload = compared(tree, target, folder)
        return audit_set(upload, mandate.rules.values(), mandate.severities), same(upload)
    except AuditError as error:
        problem = Problem.of(error, file=target)
        problem = replace(problem, message=f"--matches {folder}: {problem.message}")
        return SubjectReport(target=target, kind="set", errors=(problem,)), {}


def _part(found: Sequence[_Item], number: int, parts: int) -> list[_Item]:
    """Return the files of one part of several, a set's shards together."""
    models: dict[tuple[object, ...], int] = {}
    return [
        item for item in found if models.setdefault(item.model, len(models)) % parts == number - 1
    ]


def _processes(jobs: int | None, files: int) -> int:
    """Return how many processes shall work, one where more don't pay."""
    if jobs == 1 or files < 2 or (jobs is None and files < _MANY):
        return 1
    from gguf_audit.parallel import can_fork, cores

    return min(jobs or cores(), files) if can_fork() else 1


def _subjects(
    items: Sequence[_Item],
    examiner: Examiner,
    processes: int,
    progress: Progress | None,
    *,
    whole: bool,
) -> Iterator[SubjectReport]:
    """Audit what the targets mean: of a set in a folder one subject, not one per shard.

    What a set's own count says are its shards; a name alone could hide another model.
    ``whole`` says that no file that was found is left to others.
    """
    covered: set[tuple[int, str]] = set()
    target: list[tuple[Located, Examined]] = []
    before = 0
    for done, item, examined in _examined(items, examiner, processes, covered):
        report, located = examined.report, item.located
        if item.target != before:
            yield from _compared(target, examiner.mandate, whole=whole)
            target, before = [], item.target
        names = located.covers([file.name for file in report.files])
        covered.update((item.target, name) for name in names)
        target.append((located, examined))
        if progress is not None:
            progress(done, len(items), report.target)
        yield report
    yield from _compared(target, examiner.mandate, whole=whole)


def _examined(
    items: Sequence[_Item],
    examiner: Examiner,
    processes: int,
    covered: AbstractSet[tuple[int, str]],
) -> Iterator[tuple[int, _Item, Examined]]:
    """Yield each file that no set has covered before, its number, and what was found."""

    def skip(item: _Item) -> bool:
        return item.located.found and (item.target, item.located.name) in covered

    if processes == 1:
        for number, item in enumerate(items, 1):
            if not skip(item):
                yield number, item, examiner.examine(item.located)
        return
    for number, (item, examined) in enumerate(_forked(items, examiner, processes, skip), 1):
        yield number, item, examined


def _forked(
    items: Sequence[_Item], examiner: Examiner, processes: int, skip: Callable[[_Item], bool]
) -> Iterator[tuple[_Item, Examined]]:
    """Have several processes examine the files, and yield the results in their order."""
    from gguf_audit.parallel import in_order

    begun: set[tuple[object, ...]] = set()

    def later(item: _Item) -> bool:
        # Another shard of a set that is under way, most likely.
        known = item.model in begun
        begun.add(item.model)
        return known

    died = CrashedError("the process that audited it ended, out of memory perhaps")
    # Each process counts what it spends itself; what the listings took is known here.
    listings = {
        (item.target, item.located.name): item.located.traffic.take()
        for item in items
        if item.located.traffic is not None
    }
    results = in_order(
        lambda item: examiner.examine(item.located),
        items,
        jobs=processes,
        crashed=lambda item: examiner.failed(item.located, died),
        skip=skip,
        hold=later,
    )
    for item, examined in results:
        report, listing = examined.report, listings.get((item.target, item.located.name))
        if listing is not None and report.source is not None:
            source = replace(
                report.source,
                requests=report.source.requests + listing.requests,
                bytes=report.source.bytes + listing.bytes,
            )
            examined = replace(examined, report=replace(report, source=source))
        yield item, examined


def _compared(
    target: Sequence[tuple[Located, Examined]], mandate: Mandate, *, whole: bool
) -> Iterator[SubjectReport]:
    """Audit the files of one target that claim to be one model, or go with one."""
    members = [examined.member for _, examined in target if examined.member is not None]
    models = [each for each in members if isinstance(each, SetMember)]
    groups: list[Compared] = [*sets_of(models), *pairs_of(members)]
    if whole and mandate.compares(OnFolder):
        groups += folders_of(target, published=mandate.publishes)
    for several in groups:
        report = audit_set(several, mandate.rules.values(), mandate.severities)
        if report is not None:
            yield report
