"""What many headers cost in one run: a folder, on one core and on all of them.

    python benchmarks/bench_many.py [--files 1000]

Makes a model with a vocabulary of 262,144 tokens and links it under a thousand names. The
command audits the folder with one process and with as many as there are cores, and a tenth
of it too, so that memory that grows with the number of files shows. ``gguf-inspect`` and
``c4nary scan`` run beside it, one process for each file as they work, where ``make bench`` has
installed them.
CPU seconds are user and system time of all processes; the memory is the peak of the largest.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from pathlib import Path

from bench_open import vocabulary
from gguf_audit.parallel import cores
from measuring import MEBIBYTE, PROGRAM, Cost, cost, other_commands

#: Other programs are asked about so many files only: each takes a process.
BESIDE = 20


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
        peaks: list[float] = []
        for part, jobs in (("tenth", 1), ("all", 1), ("tenth", cores()), ("all", cores())):
            count = files if part == "all" else files // 10
            # Of the report nothing but its size grows with the files.
            command = [PROGRAM, "check", str(folder / part), "--jobs", str(jobs), "-q"]
            run = cost(command)
            peaks.append(run.peak_bytes / MEBIBYTE)
            told(f"gguf-audit, {count} files, {jobs} processes", [run], count)
        for name, command in other_commands().items():
            if not Path(command[0]).exists():
                print(f"{name} isn't there")
                continue
            linked = (str(folder / "all" / f"m{number:05}.gguf") for number in range(BESIDE))
            told(f"{name}, {BESIDE} files", [cost([*command, each]) for each in linked], BESIDE)
    return 1 if peaks[1] > peaks[0] + 32 or peaks[3] > peaks[2] + 32 else 0


def told(name: str, runs: list[Cost], files: int) -> None:
    """Print one line for all runs together."""
    cpu_seconds = sum(run.cpu_seconds for run in runs)
    print(
        f"{name:40}  {cpu_seconds:7.2f} CPU s  {1000 * cpu_seconds / files:6.1f} CPU ms each"
        f"  {sum(run.seconds for run in runs):7.2f} s"
        f"  {max(run.peak_bytes for run in runs) / MEBIBYTE:4.0f} MiB"
    )


if __name__ == "__main__":
    raise SystemExit(main())
