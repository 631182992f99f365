"""How a sentence transformer makes one vector of a text, as its folder says."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from gguf_audit.checkpoint import Json
from gguf_audit.errors import MalformedError
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._json import parse_json, read_bytes, read_object
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import Tree
from gguf_audit.where import Where

__all__ = ["pooling_reader"]

MODULES = "modules.json"
#: ``llama_pooling_type`` (include/llama.h) by the key, or by the value of
#: ``pooling_mode``; the first that applies.
KEYS = {"pooling_mode_mean_tokens": 1, "pooling_mode_cls_token": 2, "pooling_mode_lasttoken": 3}
MODES: Mapping[Json, int] = {"mean": 1, "cls": 2, "lasttoken": 3}


def pooling_reader(tree: Tree, files: Inventory) -> Callable[[], int | Absent | None]:
    """Return what reads a folder's pooling, once: ``Checkpoint.load_pooling``.

    conversion/base.py of llama.cpp, build 11434: ``_try_set_pooling_type``. AuditError
    where files aren't well-formed.
    """

    @functools.cache
    def read() -> int | Absent | None:
        if MODULES not in files.names:
            unknown = files.unknown(MODULES) is not None
            return Absent(files.missing(MODULES)) if unknown else None
        modules = parse_json(
            read_bytes(tree.open(MODULES), limit_bytes=LIMITS.config_bytes), name=MODULES
        )
        if not isinstance(modules, list):
            raise MalformedError(f"{MODULES} has to be a list", where=Where(file=MODULES))
        for module in modules:
            match module:
                case {"type": str() as kind, "path": str() as path} if kind.endswith("Pooling"):
                    return _pooling(tree, path.rstrip("/"))
                case _:
                    pass
        return None

    return read


def _pooling(tree: Tree, folder: str) -> int | Absent:
    name = f"{folder}/config.json" if folder else "config.json"
    if name not in tree.names(folder):
        return Absent(f"{name} isn't at hand")
    config = read_object(tree.open(name), limit_bytes=LIMITS.config_bytes)
    for key, value in KEYS.items():
        if config.get(key):
            return value
    mode = config.get("pooling_mode")
    known = MODES.get(mode) if isinstance(mode, str) else None
    return Absent(f"the converter knows no pooling as in {name}") if known is None else known
