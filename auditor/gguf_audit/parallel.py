"""The same work on many items: in one process or several, results in the items' order.

Processes are forked where that is safe: what the work needs is then there, loaded once,
and a process starts in milliseconds. An item whose process dies is told so; the others
are worked on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, TypeVar

__all__ = ["can_fork", "cores", "in_order"]

T = TypeVar("T")
R = TypeVar("R")

#: Items of each process that are under way or done and not yet asked for: enough to keep
#: it busy, few enough that memory doesn't grow with the number of items.
_AHEAD = 4
#: What a process works with, there before it was forked.
_work: Callable[[Any], Any] | None = None


def cores() -> int:
    """Return the number of processors that we may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def can_fork() -> bool:
    """Tell whether processes can be forked here and take their work from one queue."""
    if sys.platform != "linux":
        # On macOS system libraries don't survive it, and Windows has none.
        return False
    try:
        # It lives in /dev/shm, which some containers lack or don't let everybody write to.
        multiprocessing.get_context("fork").Lock()
    except OSError:
        return False
    return True


def in_order(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    jobs: int,
    crashed: Callable[[T], R],
    skip: Callable[[T], bool],
    hold: Callable[[T], bool],
) -> Iterator[tuple[T, R]]:
    """Yield each item with what became of it, in the items' order.

    ``skip`` is asked when an item's turn has come, so it may depend on the results so
    far; an item to ``hold`` isn't begun before. ``crashed`` is the result where the
    process that worked on an item died.
    """
    with _Pool(work, jobs, crashed) as pool:
        waiting: deque[tuple[T, Future[R] | None]] = deque()

        def turn() -> Iterator[tuple[T, R]]:
            item, future = waiting.popleft()
            if not skip(item):
                yield item, pool.result(item, future or pool.begin(item))

        for item in items:
            waiting.append((item, None if hold(item) else pool.begin(item)))
            if len(waiting) > _AHEAD * jobs:
                yield from turn()
        while waiting:
            yield from turn()


class _Pool(Generic[T, R]):
    """Processes that do one kind of work, made anew where one of them dies."""

    def __init__(self, work: Callable[[T], R], jobs: int, crashed: Callable[[T], R]) -> None:
        self._work = work
        self._jobs = jobs
        self._crashed = crashed
        self._executor: ProcessPoolExecutor | None = None
        self._others = frozenset(multiprocessing.active_children())

    def __enter__(self) -> _Pool[T, R]:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._executor is None:
            return
        if kind is None:
            self._executor.shutdown()
            return
        # Whoever leaves early, by SIGINT say, doesn't wait for what is under way.
        self._executor.shutdown(wait=False, cancel_futures=True)
        ours = [each for each in multiprocessing.active_children() if each not in self._others]
        for process in ours:
            process.kill()
        for process in ours:
            process.join()

    def begin(self, item: T) -> Future[R]:
        """Let a process begin with an item."""
        executor = self._executor = self._executor or self._processes(self._jobs)
        try:
            return executor.submit(_done, item)
        except BrokenProcessPool:
            # Its processes are being ended; none of them is left behind.
            executor.shutdown()
            executor = self._executor = self._processes(self._jobs)
            return executor.submit(_done, item)

    def result(self, item: T, future: Future[R]) -> R:
        """Return what became of an item."""
        try:
            return future.result()
        except BrokenProcessPool:
            return self._alone(item)

    def _alone(self, item: T) -> R:
        """Work on one item again: when a process dies, all that was under way is lost."""
        with self._processes(1) as executor:
            try:
                found: R = executor.submit(_done, item).result()
            except BrokenProcessPool:
                return self._crashed(item)
        return found

    def _processes(self, jobs: int) -> ProcessPoolExecutor:
        with _inherited(self._work):
            executor = ProcessPoolExecutor(
                jobs, mp_context=multiprocessing.get_context("fork"), initializer=_begin
            )
            # They are forked when the first work is handed in, all at once.
            executor.submit(os.getpid)
        return executor


@contextlib.contextmanager
def _inherited(work: Callable[[Any], Any]) -> Generator[None, None, None]:
    """Let processes that are forked meanwhile have the work, which can't be sent to them."""
    global _work
    _work = work
    try:
        yield
    finally:
        _work = None


def _begin() -> None:
    """Leave it to the first process to react to SIGINT: it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    """End when the first process does: one that is killed can't end the others."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _done(item: Any) -> Any:
    assert _work is not None  # noqa: S101 - it was there when this process was forked
    return _work(item)
