from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine_subjects import ALL, KEYS, TENSORS, rule, write_checkpoint
from gguf_audit import engine, parallel
from gguf_audit.engine import audit_targets
from gguf_audit.evidence import Model, Settings
from gguf_audit.mandate import Mandate
from gguf_audit.parallel import can_fork, cores, in_order
from gguf_audit.rule import OnModel, Outcome, Rule, Severity
from gguf_audit.testing import write_gguf, write_split_gguf
from gguf_audit.verdict import Problem
from gguf_audit.where import Where

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are forked on Linux alone")


#: Of other tests that ran in this process.
_OTHERS: set[BaseProcess] = set()


@pytest.fixture(autouse=True)
def _know_the_others() -> None:
    _OTHERS.clear()
    _OTHERS.update(multiprocessing.active_children())


def left_behind() -> list[BaseProcess]:
    """Return the processes of this test that don't end; one that is ending may take a moment.

    Its end is seen by one thread and told to the others a little later.
    """
    ours = [each for each in multiprocessing.active_children() if each not in _OTHERS]
    deadline = time.monotonic() + 10
    while any(each.is_alive() for each in ours) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [each for each in ours if each.is_alive()]


def never(item: int) -> bool:
    return item < 0


def lost(item: int) -> int:
    return -item


def run(work: object, items: list[int], jobs: int = 2) -> list[tuple[int, object]]:
    assert callable(work)
    return list(in_order(work, items, jobs=jobs, crashed=lost, skip=never, hold=never))


def test_results_come_in_the_items_order_from_several_processes() -> None:
    def work(item: int) -> int:
        time.sleep(0.05 if item % 3 == 0 else 0)
        return os.getpid()

    found = run(work, list(range(30)))
    assert [item for item, _ in found] == list(range(30))
    processes = {str(result) for _, result in found}
    assert 1 <= len(processes) <= 2
    assert str(os.getpid()) not in processes
    assert left_behind() == []


def test_an_item_whose_process_dies_is_told_and_no_other_is_lost() -> None:
    def work(item: int) -> int:
        if item in (3, 4, 19):
            os.kill(os.getpid(), signal.SIGKILL)
        return item * 10

    found = run(work, list(range(1, 20)))
    assert found == [(item, -item if item in (3, 4, 19) else item * 10) for item in range(1, 20)]


#: Two processes that work for two minutes, after each has said that it is there.
_BUSY = """
import os, sys, time
from gguf_audit.parallel import in_order
def work(item):
    os.write(1, b"%d" % item)
    time.sleep(120)
no = lambda item: False
try:
    list(in_order(work, [1, 2], jobs=2, crashed=print, skip=no, hold=no))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_processes_end_with_the_one_that_is_killed() -> None:
    roots = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY],
        env={**os.environ, "PYTHONPATH": roots},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        begun = sorted(process.stdout.read(1) for _ in range(2))
        process.kill()
        # They have the pipe as well: it ends with the last of them.
        said, _ = process.communicate(timeout=60)
        assert (begun, said) == (["1", "2"], "")


#: A process that dies of its first item and is busy with it for two minutes afterwards.
_BUSY_AGAIN = """
import os, sys, time
from gguf_audit.parallel import in_order
def work(item):
    if not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
    os.write(1, b"again")
    time.sleep(120)
no = lambda item: False
try:
    list(in_order(work, [1], jobs=2, crashed=print, skip=no, hold=no))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("code", "said"), [(_BUSY, {"1", "2"}), (_BUSY_AGAIN, {"again"})])
def test_an_interrupt_ends_processes_without_a_word(
    tmp_path: Path, code: str, said: set[str]
) -> None:
    roots = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": roots},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        size = len(max(said))
        assert {os.read(process.stdout.fileno(), size).decode() for _ in said} == said
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"")
        assert process.returncode == 130


def test_an_exception_is_raised_where_the_result_would_be() -> None:
    def work(item: int) -> int:
        return 10 // item

    with pytest.raises(ZeroDivisionError):
        run(work, [5, 2, 0, 1])
    assert left_behind() == []


def test_no_more_is_under_way_than_the_processes_need() -> None:
    begun: list[int] = []

    def begins(item: int) -> bool:
        begun.append(item)
        return False

    found = in_order(lost, range(100), jobs=2, crashed=lost, skip=never, hold=begins)
    assert next(found) == (0, 0)
    assert len(begun) < 12
    found.close()  # type: ignore[attr-defined] # it is a generator
    assert left_behind() == []


def test_only_numbers_go_to_processes() -> None:
    class Unsendable:
        def __reduce__(self) -> NoReturn:
            raise AssertionError("it was to be sent to a process")

    items = [Unsendable() for _ in range(20)]
    results = in_order(
        items.index,
        items,
        jobs=2,
        crashed=items.index,
        skip=lambda _: False,
        hold=lambda _: False,
    )
    assert [result for _, result in results] == list(range(20))


class Fragile(ProcessPoolExecutor):
    """Several processes that die before they are given work; one alone lives."""

    def __init__(self, max_workers: int, **options: Any) -> None:
        super().__init__(max_workers, **options)
        self.lives = max_workers == 1

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if fn is not os.getpid and not self.lives:
            raise BrokenProcessPool
        return super().submit(fn, *args, **kwargs)


def test_processes_that_always_die_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Fragile)

    def work(item: int) -> tuple[int, int]:
        if item == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return item, os.getpid()

    found = run(work, [1, 2, 3])
    assert [item for item, _ in found] == [1, 2, 3]
    assert found[1] == (2, -2)
    assert (2, (2, os.getpid())) not in found
    assert left_behind() == []


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("os.fork", BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")),
        (
            "concurrent.futures.process._ExecutorManagerThread.start",
            RuntimeError("can't start new thread"),
        ),
    ],
)
def test_where_no_process_can_be_had_this_one_does_all(
    monkeypatch: pytest.MonkeyPatch, place: str, error: Exception
) -> None:
    def fail(*_: object) -> NoReturn:
        raise error

    def work(item: int) -> tuple[int, int]:
        return item, os.getpid()

    monkeypatch.setattr(place, fail)
    here = os.getpid()
    assert run(work, [1, 2, 3]) == [(item, (item, here)) for item in (1, 2, 3)]
    monkeypatch.undo()
    assert left_behind() == []


def test_what_is_held_is_begun_when_its_turn_has_come() -> None:
    done: list[int] = []
    results = in_order(
        lost,
        [1, 2, 3, 4],
        jobs=2,
        crashed=lost,
        skip=lambda item: item == 3 and 2 in done,
        hold=lambda item: item in (3, 4),
    )
    for item, _ in results:
        done.append(item)
    assert done == [1, 2, 4]


def test_there_are_cores() -> None:
    assert cores() >= 1


# The engine with several


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    for number in range(6):
        write_gguf(
            folder / f"m{number}.gguf", {**KEYS, "tokenizer.ggml.eos_token_id": 10**6}, TENSORS
        )
    write_split_gguf(folder, KEYS, TENSORS, shards=3, stem="set")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    return folder


def test_several_processes_say_the_same(models: Path, tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    reference = str(write_checkpoint(tmp_path / "reference"))
    targets = [str(models), str(models / "m1.gguf"), str(tmp_path / "none.gguf")]
    one, several = (
        audit_targets(targets, Mandate(against=reference, rules=ALL), jobs=jobs).to_dict()
        for jobs in (1, 3)
    )
    assert several == one


def test_a_model_whose_process_dies_is_not_audited(models: Path) -> None:
    def dies(subject: Model, settings: Settings) -> Iterator[Outcome]:
        del settings
        if subject.gguf.name.endswith("m2.gguf"):
            os.kill(os.getpid(), signal.SIGKILL)
        return iter(())

    deadly = Rule(
        id="AA001",
        name="aa",
        levels=tuple(Severity),
        check=OnModel(dies),
        authority="none",
    )
    report = audit_targets([str(models)], Mandate(rules={"AA001": deadly}), jobs=2)
    told = {Path(subject.target).name: subject.errors for subject in report.subjects}
    assert told.pop("m2.gguf") == (
        Problem(
            code="crashed",
            message="the process that audited it ended, out of memory perhaps",
            where=Where(file=str(models / "m2.gguf")),
        ),
    )
    assert len(told.pop("broken.gguf")) == 1
    assert set(told.values()) == {()}
    assert len(told) == 6  # m0 to m5 without m2, and the set.


def test_parts_are_disjoint_whole_and_keep_sets_together(models: Path) -> None:
    rules = {"AA001": rule("AA001")}
    whole = audit_targets([str(models)], Mandate(rules=rules))
    parts = [
        audit_targets([str(models)], Mandate(rules=rules), part=(number, 3)) for number in (1, 2, 3)
    ]
    targets = [[subject.target for subject in part.subjects] for part in parts]
    assert sorted(name for part in targets for name in part) == sorted(
        subject.target for subject in whole.subjects
    )
    assert [len(part) for part in targets] == [3, 3, 2]
    assert all(part.elsewhere for part in parts)
    beyond = audit_targets([str(models / "m1.gguf")], Mandate(rules=rules), part=(2, 2))
    assert (beyond.subjects, beyond.exit_code()) == ((), 0)


def test_progress_is_told_of_each_file(models: Path) -> None:
    told: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, name: str) -> None:
        told.append((done, total, name))

    rules = {"AA001": rule("AA001")}
    for jobs in (1, 2):
        audit_targets([str(models)], Mandate(rules=rules), jobs=jobs, progress=progress)
    assert [name for _, _, name in told[: len(told) // 2]] == [
        name for _, _, name in told[len(told) // 2 :]
    ]
    assert {total for _, total, _ in told} == {10}


@pytest.fixture
def processes() -> list[int]:
    """Return a list that no other process shares."""
    return []


@pytest.fixture
def look(processes: list[int]) -> Rule:
    """Return a rule that tells the list where it looks."""

    def seen(subject: Model, settings: Settings) -> Iterator[Outcome]:
        del subject, settings
        processes.append(os.getpid())
        return iter(())

    return Rule(
        id="AA001",
        name="aa",
        levels=tuple(Severity),
        check=OnModel(seen),
        authority="none",
    )


def test_few_files_are_not_worth_a_process(
    models: Path, look: Rule, processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_targets([str(models)], Mandate(rules={"AA001": look}), jobs=None)
    assert len(processes) == 7
    processes.clear()
    monkeypatch.setattr(engine, "_MANY", 2)
    audit_targets([str(models)], Mandate(rules={"AA001": look}), jobs=None)
    assert processes == []


def test_where_no_semaphore_can_be_made_one_process_does_all(
    models: Path, look: Rule, processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name in a folder of /dev/shm that isn't there: the same answer as without /dev/shm.
    monkeypatch.setattr(
        "multiprocessing.synchronize.SemLock._make_name", staticmethod(lambda: "/none/such")
    )
    assert not can_fork()
    audit_targets([str(models)], Mandate(rules={"AA001": look}), jobs=2)
    assert len(processes) == 7


def test_no_thread_is_under_way_when_processes_are_forked() -> None:
    code = """
import os, threading, time
from gguf_audit.parallel import in_order
threads = []
os.register_at_fork(before=lambda: threads.append(len(os.listdir("/proc/self/task"))))
threading.Thread(target=time.sleep, args=(0.2,)).start()
no = lambda item: False
done = list(in_order(lambda item: item, [1, 2], jobs=2, crashed=print, skip=no, hold=no))
print(done, threads)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[(1, 1), (2, 2)] [1, 1]\n", "")
