"""Ends a process of ours, whatever it does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

__all__ = ["end"]


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started in a session of its own, and all that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            # What a broken pipe couldn't take was for nobody.
            with contextlib.suppress(OSError):
                pipe.close()
    process.wait()
