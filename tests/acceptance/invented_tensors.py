"""Prints the tensors that a real llama.cpp creates for a file's metadata: a child process.

    python invented_tensors.py LIBRARY MODEL

One JSON object of name -> shape, or a string that says why there is none. Reads
``llama_internal_get_tensor_map`` (src/llama-model.h), a vector of pairs of a name and a
tensor, as libstdc++ lays it out.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

from gguf_audit.probes import _libllama

#: Name of the function -> bytes of one pair of the vector. libstdc++ has two kinds of
#: strings: of 32 bytes, and a pointer whose length stands 24 bytes in front of the text.
TENSOR_MAPS = {
    "_Z29llama_internal_get_tensor_mapB5cxx11PK11llama_model": 40,
    "_Z29llama_internal_get_tensor_mapPK11llama_model": 16,
}
#: Of ``ne`` in ``ggml_tensor`` (ggml/include/ggml.h).
SHAPE_AT = 16


class Vector(ctypes.Structure):
    """A ``std::vector``."""

    _fields_ = [("begin", ctypes.c_uint64), ("end", ctypes.c_uint64), ("room", ctypes.c_uint64)]


def tensors(library: str, model: str, *, metadata_only: bool) -> dict[str, list[int]] | str:
    known = _libllama.Library(library)
    dll = ctypes.CDLL(library)
    loaded = known.load(model, metadata_only=metadata_only)
    if not loaded:
        return known.log.errors()
    [(name, size)] = [found for found in TENSOR_MAPS.items() if hasattr(dll, found[0])]
    function = getattr(dll, name)
    function.restype, function.argtypes = ctypes.POINTER(Vector), [ctypes.c_void_p]
    vector = function(loaded)[0]
    return dict(named(pair, size) for pair in range(vector.begin, vector.end, size))


def named(pair: int, size: int) -> tuple[str, list[int]]:
    """Return the name and the shape of the tensor that a pair holds."""
    text = number(pair)
    length = number(pair + 8) if size == max(TENSOR_MAPS.values()) else number(text - 24)
    tensor = number(pair + size - 8)
    shape = (ctypes.c_int64 * 4).from_address(tensor + SHAPE_AT)
    return ctypes.string_at(text, length).decode(), list(shape)


def number(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


if __name__ == "__main__":
    library, model, *real = sys.argv[1:]
    answer = tensors(library, str(Path(model).absolute()), metadata_only=not real)
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)
