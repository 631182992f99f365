"""What a checkpoint's folder says of files that go with a model: adapters, projectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gguf_audit.checkpoint import Json, PeftAdapter, StoredTensor
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._json import read_object
from gguf_audit.formats.safetensors import read_header
from gguf_audit.limits import LIMITS
from gguf_audit.once import once
from gguf_audit.parts import Absent
from gguf_audit.sources import Tree

__all__ = ["ADAPTER", "adapter_reader", "preprocessor_reader"]

#: A folder with this file holds a PEFT adapter.
ADAPTER = "adapter_config.json"
_ADAPTER_WEIGHTS = "adapter_model.safetensors"
#: The later file wins; within a file, so does what stands under this key
#: (conversion/base.py, ``MmprojModel.__init__``).
_PREPROCESSORS = (
    ("preprocessor_config.json", "media_proc_cfg"),
    ("processor_config.json", "image_processor"),
)


def adapter_reader(tree: Tree, files: Inventory) -> Callable[[], PeftAdapter | Absent]:
    """Return what reads a folder's adapter, once; AuditError where it isn't well-formed."""

    @once
    def read() -> PeftAdapter | Absent:
        if ADAPTER not in files.names:
            return Absent(files.missing(ADAPTER))
        config = read_object(tree.open(ADAPTER), limit_bytes=LIMITS.config_bytes)
        return PeftAdapter(config=config, tensors=_weights(tree, files))

    return read


def _weights(tree: Tree, files: Inventory) -> Mapping[str, StoredTensor] | Absent:
    if _ADAPTER_WEIGHTS in files.names:
        return read_header(tree.open(_ADAPTER_WEIGHTS))
    if "adapter_model.bin" in files.names:
        return Absent("only pickled weights (adapter_model.bin), which are never opened")
    return Absent(files.missing(_ADAPTER_WEIGHTS))


def preprocessor_reader(tree: Tree, files: Inventory) -> Callable[[], Mapping[str, Json] | Absent]:
    """Return what reads how a folder's model prepares images, once, as the converter does."""

    @once
    def read() -> Mapping[str, Json] | Absent:
        there = [each for each in _PREPROCESSORS if each[0] in files.names]
        unknown = files.unknown(*(name for name, _ in _PREPROCESSORS))
        if unknown is not None:
            return Absent(files.missing(unknown))
        if not there:
            return Absent(files.missing(_PREPROCESSORS[0][0]))
        merged: dict[str, Json] = {}
        for name, nested in there:
            document = read_object(tree.open(name), limit_bytes=LIMITS.config_bytes)
            inner = document.get(nested)
            merged |= document | (inner if isinstance(inner, dict) else {})
        return merged

    return read
