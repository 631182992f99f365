"""CPU time of the command against its budget: ``python docs/bench.py FILE``."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

#: What to run, and how many seconds of CPU it may take.
BUDGETS = {("--help",): 0.25, ("check", "FILE"): 0.40}
RUNS = 7


def cpu_seconds(command: list[str]) -> float:
    """Return user and system time of one run, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Print the median of each command; 1 if one is over its budget."""
    program = str(Path(sys.executable).with_name("gguf-audit"))
    over = 0
    for arguments, budget in BUDGETS.items():
        command = [program, *(sys.argv[1] if part == "FILE" else part for part in arguments)]
        median = statistics.median(cpu_seconds(command) for _ in range(RUNS))
        verdict = "OVER" if median > budget else "within"
        over += median > budget
        print(f"{median:.3f} s, {verdict} {budget:.2f} s: gguf-audit {' '.join(command[1:])}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
