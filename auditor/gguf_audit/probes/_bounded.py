"""Bounds its own process, then becomes the script that it was given: a child's first step.

Started by ``probes.child`` as ``_bounded.py SCRIPT LIMITS``, the limits in JSON:
``memory_bytes`` and ``cpu_seconds``. Imports nothing but the standard library.
"""

from __future__ import annotations

import json
import resource
import runpy
import sys


def bound(memory_bytes: int, cpu_seconds: int) -> None:
    """Let this process take no more than that, write no file and dump no core."""
    for what, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    _, script, limits = sys.argv
    sys.argv = [script]
    bound(**json.loads(limits))
    runpy.run_path(script, run_name="__main__")
