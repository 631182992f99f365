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

TENSOR_MAP = "_Z29llama_internal_get_tensor_mapB5cxx11PK11llama_model"
#: sizeof(std::pair<std::string, ggml_tensor *>), and where its tensor is.
PAIR_BYTES, TENSOR_AT = 40, 32
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
    function = getattr(dll, TENSOR_MAP)
    function.restype, function.argtypes = ctypes.POINTER(Vector), [ctypes.c_void_p]
    vector = function(loaded)[0]
    found: dict[str, list[int]] = {}
    for pair in range(vector.begin, vector.end, PAIR_BYTES):
        text, length = (ctypes.c_uint64 * 2).from_address(pair)
        tensor = ctypes.c_uint64.from_address(pair + TENSOR_AT).value
        name = ctypes.string_at(text, length).decode()
        found[name] = list((ctypes.c_int64 * 4).from_address(tensor + SHAPE_AT))
    return found


if __name__ == "__main__":
    library, model, *real = sys.argv[1:]
    answer = tensors(library, str(Path(model).absolute()), metadata_only=not real)
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)
