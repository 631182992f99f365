"""Checks a GGUF file against the checkpoint it was converted from.

    gguf = gguf_audit.open_gguf("model.gguf")
    plan = gguf_audit.plan_llama_cpp(gguf, context=32768)
    report = gguf_audit.audit("model.gguf", against="google/gemma-3-270m")

Names load when they are first used: ``import gguf_audit`` costs nothing.
"""

from __future__ import annotations

# Nothing is imported here, typing neither: until the command runs nobody catches an interrupt.
# Type checkers know this name all the same.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from gguf_audit.api import (
        audit,
        expected_layout,
        ideal_layout,
        implied_layout,
        open_checkpoint,
        open_gguf,
        plan_llama_cpp,
    )
    from gguf_audit.checkpoint import Checkpoint
    from gguf_audit.errors import AuditError, Refused
    from gguf_audit.gguf import Gguf
    from gguf_audit.layout import CacheLayout
    from gguf_audit.runtime.llama_cpp import Plan
    from gguf_audit.verdict import Report

__all__ = [
    "AuditError",
    "CacheLayout",
    "Checkpoint",
    "Gguf",
    "Plan",
    "Refused",
    "Report",
    "audit",
    "expected_layout",
    "ideal_layout",
    "implied_layout",
    "open_checkpoint",
    "open_gguf",
    "plan_llama_cpp",
]

__version__ = "0.1.0"

_HOMES = {
    "AuditError": "errors",
    "CacheLayout": "layout",
    "Checkpoint": "checkpoint",
    "Gguf": "gguf",
    "Plan": "runtime.llama_cpp",
    "Refused": "errors",
    "Report": "verdict",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'api')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
