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
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Generic, TypeVar

__all__ = ["can_fork", "cores", "in_order"]

T = TypeVar("T")
R = TypeVar("R")

#: Items of each process that are under way or done and not yet asked for: enough to keep
#: it busy, few enough that memory doesn't grow with the number of items.
_AHEAD = 4
#: How long a thread of another library's, which stays, is waited for.
_PATIENCE_SECONDS = 0.5
#: What a process works with, there before it was forked.
_work: Callable[[int], Any] | None = None


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
    items: Sequence[T],
    *,
    jobs: int,
    crashed: Callable[[T], R],
    skip: Callable[[T], bool],
    hold: Callable[[T], bool],
) -> Iterator[tuple[T, R]]:
    """Yield each item with what became of it, in the items' order.

    ``skip`` is asked when an item's turn has come, so it may depend on the results so
    far; an item to ``hold`` isn't begun before. ``crashed`` is the result where the
    process that worked on an item died. Where no process can be had, this one does all.
    """
    # Only their numbers go to processes: an item may hold all that it was found in.
    with _Pool(lambda number: work(items[number]), jobs) as pool:
        waiting: deque[tuple[int, Future[R] | None]] = deque()

        def turn() -> Iterator[tuple[T, R]]:
            number, future = waiting.popleft()
            item = items[number]
            if not skip(item):
                try:
                    result = pool.result(number, future or pool.begin(number))
                except BrokenProcessPool:
                    result = crashed(item)
                yield item, result

        for number, item in enumerate(items):
            waiting.append((number, None if hold(item) else pool.begin(number)))
            if len(waiting) > _AHEAD * jobs:
                yield from turn()
        while waiting:
            yield from turn()


class _Pool(Generic[R]):
    """Processes that do one kind of work, made anew where one of them dies."""

    def __init__(self, work: Callable[[int], R], jobs: int) -> None:
        self._work = work
        self._jobs = jobs
        self._executor: ProcessPoolExecutor | None = None
        #: None could be started, for lack of memory say: it isn't tried again.
        self._refused = False
        self._others = frozenset(multiprocessing.active_children())

    def __enter__(self) -> _Pool[R]:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            # Whoever leaves early, by SIGINT say, doesn't wait for what is under way.
            self._kill()
        if self._executor is not None:
            # Its thread is waited for: one that is still there when we end complains.
            self._executor.shutdown(cancel_futures=True)

    def begin(self, number: int) -> Future[R] | None:
        """Let a process begin with an item; ``None`` where there is none that could."""
        # Once more where those that were there have died; if they do so again it can wait.
        for _ in range(2):
            self._executor = self._executor or self._processes()
            if self._executor is None:
                return None
            try:
                return self._executor.submit(_done, number)
            except BrokenProcessPool:
                # Its processes are being ended; none of them is left behind.
                self._executor.shutdown()
                self._executor = None
        return None

    def result(self, number: int, future: Future[R] | None) -> R:
        """Return what became of an item; BrokenProcessPool where its process died."""
        if future is not None:
            with contextlib.suppress(BrokenProcessPool):
                return future.result()
        # By itself: when a process dies, all that was under way is lost.
        with _Pool(self._work, 1) as alone:
            alone._refused = self._refused
            if future := alone.begin(number):
                return future.result()
            if not alone._refused:
                raise BrokenProcessPool
        return self._work(number)

    def _processes(self) -> ProcessPoolExecutor | None:
        if self._refused:
            return None
        _let_threads_end()
        with _inherited(self._work):
            try:
                executor = ProcessPoolExecutor(
                    self._jobs,
                    mp_context=multiprocessing.get_context("fork"),
                    initializer=_begin,
                )
                # They are forked when the first work is handed in, all at once.
                executor.submit(os.getpid)
            except (OSError, RuntimeError, MemoryError):
                self._refused = True
                # Some may be there already, with nobody who would ever end them.
                self._kill()
                return None
        return executor

    def _kill(self) -> None:
        ours = [each for each in multiprocessing.active_children() if each not in self._others]
        for process in ours:
            process.kill()
        for process in ours:
            process.join()


def _let_threads_end() -> None:
    """Wait a moment for the system's threads of what was asked for over the network.

    A thread that ends gives back what OpenSSL holds for it, under a lock of all threads. That
    lock is held for ever in a process that is forked meanwhile: it waits at its first request.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    with contextlib.suppress(OSError):
        while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:  # noqa: PTH208
            time.sleep(0.001)


@contextlib.contextmanager
def _inherited(work: Callable[[int], Any]) -> Generator[None, None, None]:
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
    # Where no more threads may be had it works all the same.
    with contextlib.suppress(RuntimeError):
        threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    """End when the first process does: one that is killed can't end the others."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _done(number: int) -> Any:
    assert _work is not None  # noqa: S101 - it was there when this process was forked
    return _work(number)
