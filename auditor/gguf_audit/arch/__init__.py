"""What llama.cpp's architectures keep, and what the converter writes for them.

One module per family; plain attention needs none of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Architecture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One family of llama.cpp architectures."""

    #: Names in ``general.architecture``.
    names: tuple[str, ...]
