"""What several commands can be asked for."""

from __future__ import annotations

import os
from typing import Annotated

import typer

__all__ = ["Debug", "Offline", "settle_hub"]

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of internal errors.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Never ask the Hub; HF_HUB_OFFLINE=1 does the same.")
]


def settle_hub(*, offline: bool) -> None:
    """Say to what talks to the Hub whether it may, and that it says nothing of itself."""
    if offline:
        # Read by whatever talks to the Hub, transformers included.
        os.environ["HF_HUB_OFFLINE"] = "1"
    # Nobody asked for it: huggingface_hub would look up what kind of agent calls it.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
