"""The command ``gguf-audit``: parse, call, print, exit code; nothing else."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; an interrupt is no traceback, whenever it comes."""
    # Imports make many objects and no garbage: collecting meanwhile costs a short run 5%.
    gc.set_threshold(100_000)
    try:
        # Imported here because half of a short run is spent on imports.
        from gguf_audit.cli.application import app
        from gguf_audit.cli.outcome import exit_code

        sys.exit(exit_code(app))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # The interpreter collects once more when it ends: another 8%, for nothing.
        gc.freeze()
