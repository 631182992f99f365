"""The rules that come with gguf-audit: one module per rule, one folder per family."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from gguf_audit.rule import Rule

__all__ = ["load"]


def load() -> Iterator[Rule]:
    """Yield every rule of this package, in order of module names.

    A rule's module has its ``RULE``; one whose name begins with an underscore is
    shared by the rules of its family and has none.
    """
    modules = pkgutil.walk_packages(__path__, f"{__name__}.")
    for name in sorted(module.name for module in modules if not module.ispkg):
        if not name.rpartition(".")[2].startswith("_"):
            rule: Rule = importlib.import_module(name).RULE
            yield rule
