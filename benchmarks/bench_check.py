"""What a check of a file by itself takes, its start included, beside what others do with it.

    python benchmarks/bench_check.py FILE...

The programs take turns, so that whatever else the machine does is done to all of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from measuring import MEBIBYTE, PROGRAM, Cost, cost, other_commands, typical

#: CPU seconds of one run, and bytes at its peak.
MOST_SECONDS = 0.30
MOST_BYTES = 40 << 20
RUNS = 11
OURS = "gguf-audit check"


def main() -> int:
    """Print a table for each file; 1 if ours finds fault with one or is over a budget."""
    return max(compare(file) for file in sys.argv[1:])


def compare(file: str) -> int:
    """Measure all programs on one file and print what they take; 1 as above."""
    commands = {OURS: [PROGRAM, "check"], **other_commands()}
    runs: dict[str, list[Cost]] = {
        name: [] for name, (program, *_) in commands.items() if Path(program).exists()
    }
    for _ in range(RUNS):
        for name, costs in runs.items():
            costs.append(cost([*commands[name], file]))
    ours = typical(runs[OURS])
    within = ours.cpu_seconds <= MOST_SECONDS and ours.peak_bytes <= MOST_BYTES
    print(f"{Path(file).name}, medians of {RUNS} runs")
    for name in commands:
        if name not in runs:
            print(f"  {name:16}  not measured: make bench couldn't install it")
            continue
        found = typical(runs[name])
        print(
            f"  {name:16}  {found.cpu_seconds:6.3f} CPU s"
            f", least {min(run.cpu_seconds for run in runs[name]):.3f}"
            f"  {found.cpu_seconds / ours.cpu_seconds:4.1f} times"
            f"  {found.peak_bytes / MEBIBYTE:6.1f} MiB"
            + (f"  exit code {found.exit_code}" if found.exit_code else "")
        )
    budget = f"{MOST_SECONDS:.2f} CPU s and {MOST_BYTES // MEBIBYTE} MiB"
    print(f"  {OURS} is {'within' if within else 'OVER'} {budget}")
    return 0 if within and not ours.exit_code else 1


if __name__ == "__main__":
    sys.exit(main())
