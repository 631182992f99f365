"""What many headers cost in one run: a folder, on one core and on all of them.

    python benchmarks/bench_many.py [--files 1000]

Makes a model with a vocabulary of 262,144 tokens and links it under a thousand names. The
command audits the folder with one process and with as many as there are cores, and a tenth
of it too, so that memory that grows with the number of files shows. ``gguf-inspect`` and
``c4nary`` run beside it, one process for each file as they work, where ``PATH`` has them.
CPU seconds are user and system time of all processes; the memory is the peak of the largest.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench_open import vocabulary

from gguf_audit.parallel import cores

#: Other programs are asked about so many files only: each takes a process.
BESIDE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run has taken."""

    cpu_seconds: float
    seconds: float
    peak_mib: float


def main() -> int:
    """Print a line for each run; 1 where memory grew with the number of files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    files: int = parser.parse_args().files
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = multiprocessing.get_context("spawn").Process(
            target=vocabulary, args=(folder / "model",)
        )
        writer.start()
        writer.join()
        for part, count in (("tenth", files // 10), ("all", files)):
            (folder / part).mkdir()
            for number in range(count):
                os.link(folder / "model", folder / part / f"m{number:05}.gguf")
        program = shutil.which("gguf-audit", path=str(Path(sys.executable).parent))
        command = [program or "gguf-audit", "check"]
        peaks: list[float] = []
        for part, jobs in (("tenth", 1), ("all", 1), ("tenth", cores()), ("all", cores())):
            count = files if part == "all" else files // 10
            # Of the report nothing but its size grows with the files.
            arguments = [str(folder / part), "--jobs", str(jobs), "-q"]
            cost = measured([*command, *arguments])
            peaks.append(cost.peak_mib)
            told(f"gguf-audit, {count} files, {jobs} processes", count, cost)
        for other, arguments in (("gguf-inspect", []), ("c4nary", ["scan"])):
            found = shutil.which(other)
            if found is None:
                print(f"{other} isn't there")
                continue
            costs = [
                measured([found, *arguments, str(folder / "all" / f"m{number:05}.gguf")])
                for number in range(BESIDE)
            ]
            told(
                f"{other}, {BESIDE} files",
                BESIDE,
                Cost(
                    cpu_seconds=sum(cost.cpu_seconds for cost in costs),
                    seconds=sum(cost.seconds for cost in costs),
                    peak_mib=max(cost.peak_mib for cost in costs),
                ),
            )
    return 1 if peaks[1] > peaks[0] + 32 or peaks[3] > peaks[2] + 32 else 0


def told(name: str, files: int, cost: Cost) -> None:
    """Print one line."""
    each = 1000 * cost.cpu_seconds / files
    print(
        f"{name:40}  {cost.cpu_seconds:7.2f} CPU s  {each:6.1f} CPU ms each"
        f"  {cost.seconds:7.2f} s  {cost.peak_mib:4.0f} MiB"
    )


def measured(command: list[str]) -> Cost:
    """Return what a command takes; its children are counted, the largest alone for memory."""
    start = time.monotonic()
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    # Of the process and of all that it has waited for.
    _, _, used = os.wait4(pid, 0)
    return Cost(
        cpu_seconds=used.ru_utime + used.ru_stime,
        seconds=time.monotonic() - start,
        peak_mib=used.ru_maxrss / 1024,
    )


if __name__ == "__main__":
    raise SystemExit(main())
