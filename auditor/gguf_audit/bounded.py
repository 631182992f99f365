"""Bounds its own process, then becomes the script that it was given: a child's first step.

Started by ``probes.child`` as ``bounded.py SCRIPT LIMITS``, the limits in JSON:
``memory_bytes`` and ``cpu_seconds``. Imports nothing but the standard library.
"""

from __future__ import annotations

import json
import resource
import runpy
import sys
from collections.abc import Mapping

__all__ = ["bound"]


def bound(limits: Mapping[int, int]) -> None:
    """Set limits of this process (``resource.RLIMIT_...``), as far as its own allow them."""
    for what, most in limits.items():
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    _, script, given = sys.argv
    sys.argv = [script]
    bounds = json.loads(given)
    # Besides: no file written, no core dumped.
    bound(
        {
            resource.RLIMIT_AS: bounds["memory_bytes"],
            resource.RLIMIT_CPU: bounds["cpu_seconds"],
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_NOFILE: 64,
        }
    )
    runpy.run_path(script, run_name="__main__")
