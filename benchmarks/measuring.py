"""What a command takes, ours or another's, from its start to its end.

Imports little: on Linux the peak of a child begins at what its parent has.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

__all__ = ["MEBIBYTE", "PROGRAM", "Cost", "cost", "is_within", "other_commands", "typical"]

MEBIBYTE = 1 << 20
PROGRAM = str(Path(sys.executable).with_name("gguf-audit"))
#: Where ``make bench`` installs what others have published.
_OTHERS = Path(__file__).parents[1] / "build" / "others" / "bin"
_RUNS = 7
#: ``ru_maxrss`` counts bytes on macOS and kibibytes elsewhere.
_UNIT = 1 if sys.platform == "darwin" else 1024


class Cost(NamedTuple):
    """What one run has taken."""

    #: User and system time of the process and of all that it has waited for.
    cpu_seconds: float
    #: By the clock.
    seconds: float
    #: Of the process, or of the largest that it has waited for.
    peak_bytes: float
    exit_code: int


def cost(command: list[str]) -> Cost:
    """Run a command, a path first, and return what it takes; what it says goes nowhere."""
    start = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    return Cost(
        cpu_seconds=used.ru_utime + used.ru_stime,
        seconds=time.monotonic() - start,
        peak_bytes=used.ru_maxrss * _UNIT,
        exit_code=os.waitstatus_to_exitcode(status),
    )


def typical(runs: list[Cost]) -> Cost:
    """Return the median of each figure, and the worst exit code."""
    return Cost(
        cpu_seconds=median(run.cpu_seconds for run in runs),
        seconds=median(run.seconds for run in runs),
        peak_bytes=median(run.peak_bytes for run in runs),
        exit_code=max((run.exit_code for run in runs), key=abs),
    )


def is_within(arguments: list[str], shown: str, *, most_seconds: float, most_bytes: int) -> bool:
    """Print what our command takes, and return whether it is right and within its budgets."""
    found = typical([cost([PROGRAM, *arguments]) for _ in range(_RUNS)])
    if found.exit_code:
        print(f"exit code {found.exit_code}: gguf-audit {shown}")
        return False
    within = found.cpu_seconds <= most_seconds and found.peak_bytes <= most_bytes
    print(
        f"{found.cpu_seconds:.3f} s and {found.peak_bytes / MEBIBYTE:.0f} MiB, "
        f"{'within' if within else 'OVER'} {most_seconds:.2f} s and {most_bytes // MEBIBYTE} MiB: "
        f"gguf-audit {shown}"
    )
    return within


def other_commands() -> dict[str, list[str]]:
    """Return what others look at a file with, the path of which is still to come.

    ``gguf-inspect`` prints what is in a header; ``c4nary scan`` looks for what is dangerous,
    and hashes the whole file.
    """
    return {
        "gguf-inspect": [str(_OTHERS / "gguf-inspect")],
        "c4nary scan": [str(_OTHERS / "c4nary"), "scan"],
    }
