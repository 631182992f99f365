"""Loads a model in a real llama.cpp, and says what it makes of that: a child process.

Started by ``probes.llama_cpp`` as a script, in a process of its own: a failed assertion
of llama.cpp ends the process it happens in. Imports nothing but the standard library.

Reads one JSON document from stdin: ``library`` and ``model`` (paths), ``metadata_only``
(let llama.cpp invent the tensors) and ``runs``, whose items have the names of
``runtime.llama_cpp.plan``. Answers one JSON document a line: ``version`` and ``build``,
then ``loaded`` or ``refused``, then one per run: ``bytes`` or ``refused``. ``unusable``
ends it: this library isn't as we know it. With ``texts`` in place of ``runs`` only the
vocabulary is loaded, and each text answered with its ``ids``.

llama.cpp's structures are known by offset and looked up before use: what
``llama_model_default_params`` and ``llama_context_default_params`` return must hold
their defaults where we believe the fields to be (include/llama.h, builds 10900 to 11739).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import Any

#: More than any version's parameters take. They are passed by value as the last
#: argument, so llama.cpp reads its part and never sees the rest.
PARAMS_BYTES = 1024
#: Byte offset -> format and values of the fields there.
Defaults = Mapping[int, tuple[str, tuple[object, ...]]]
#: The fields by which ``llama_model_params`` is known.
MODEL_DEFAULTS: Defaults = {
    0: ("<QQ", (0, 0)),  # devices, tensor_buft_overrides
    16: ("<ii", (-1, 1)),  # n_gpu_layers, split_mode
    40: ("<QQQQ", (0, 0, 0, 0)),  # tensor_split, progress callback, kv_overrides
    72: ("<5?", (False, False, True, False, False)),  # vocab_only ... no_alloc
}
MODEL_DEVICES, MODEL_GPU_LAYERS, MODEL_LOAD_MODE = 0, 16, 24
MODEL_VOCAB_ONLY, MODEL_NO_ALLOC = 72, 76
#: ``LLAMA_LOAD_MODE_NONE``: neither mapped nor locked.
LOAD_MODE_NONE = 0
CONTEXT_DEFAULTS: Defaults = {
    0: ("<4I", (512, 2048, 512, 1)),  # n_ctx, n_batch, n_ubatch, n_seq_max
    16: ("<3I", (0, 0, 1)),  # n_rs_seq, n_outputs_max, n_outputs_max_per_seq
    40: ("<4i", (-1, -1, -1, -1)),  # RoPE scaling, pooling, attention, flash attention
    56: ("<5f", (0.0, 0.0, -1.0, -1.0, -1.0)),  # rope_freq_base ... yarn_beta_fast
    104: ("<ii", (1, 1)),  # type_k, type_v
}
CONTEXT_SIZES, CONTEXT_THREADS, CONTEXT_FLASH, CONTEXT_TYPES = 0, 28, 52, 104
#: embeddings, offload_kqv, no_perf, op_offload, swa_full, kv_unified; a
#: ``moe_cache_size`` came before them between builds 11434 and 11549.
CONTEXT_FLAGS, FLAG_DEFAULTS = (128, 136), (False, True, True, True, True, False)
SWA_FULL, KV_UNIFIED = 4, 5

FLASH = {"auto": -1, "off": 0, "on": 1}
#: ``enum ggml_type`` (ggml/include/ggml.h).
TYPES = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
    "bf16": 30,
}
#: ``enum ggml_log_level`` (ggml/include/ggml.h); the last goes on with a line.
LOG_ERROR, LOG_CONT = 4, 5
#: Log lines that are kept for an error message.
KEPT_LINES = 6
#: Devices of one breakdown; more means that we read something else.
MOST_BUFFER_TYPES = 256

#: ``llama_get_memory_breakdown`` and ``llama_build_number`` are C++ and named so.
BREAKDOWN = "_Z26llama_get_memory_breakdownPK13llama_context"
BUILD_NUMBER = "_Z18llama_build_numberv"

Answer = dict[str, Any]


class UnusableError(Exception):
    """The library isn't as we know it."""


class Params(ctypes.Structure):
    """Parameters of some version, by value."""

    _fields_ = [("words", ctypes.c_uint64 * (PARAMS_BYTES // 8))]

    def at(self, offset: int, form: str) -> tuple[Any, ...]:
        """Return the values at an offset."""
        return struct.unpack_from(form, bytes(self), offset)

    def put(self, offset: int, form: str, *values: object) -> None:
        """Write values at an offset."""
        struct.pack_into(form, memoryview(self).cast("B"), offset, *values)

    def expect(self, name: str, defaults: Defaults) -> None:
        """Raise UnusableError unless the defaults stand where we believe them to be."""
        for offset, (form, values) in defaults.items():
            found = self.at(offset, form)
            if found != values:
                raise UnusableError(f"{name} has {found} at offset {offset}, known is {values}")


class GgufParams(ctypes.Structure):
    """``gguf_init_params`` (ggml/include/gguf.h)."""

    _fields_ = [("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p)]


class TreeMap(ctypes.Structure):
    """A ``std::map`` of libstdc++: comparison, root's parent links, number of nodes."""

    _fields_ = [
        ("compare", ctypes.c_uint64),
        ("color", ctypes.c_uint64),
        ("root", ctypes.c_uint64),
        ("leftmost", ctypes.c_uint64),
        ("rightmost", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
    ]


class TreeNode(ctypes.Structure):
    """One node of ``llama_memory_breakdown`` (src/llama-ext.h)."""

    _fields_ = [
        ("color", ctypes.c_uint64),
        ("parent", ctypes.c_uint64),
        ("left", ctypes.c_uint64),
        ("right", ctypes.c_uint64),
        ("buffer_type", ctypes.c_uint64),
        ("model", ctypes.c_uint64),
        ("context", ctypes.c_uint64),
        ("compute", ctypes.c_uint64),
    ]


LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
TensorCallback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Log:
    """What llama.cpp says while it works."""

    SIZE = re.compile(r"size = +([0-9]{1,12}\.[0-9]{2}) MiB(?: |$)")

    def __init__(self) -> None:
        self.callback = LogCallback(self.take)
        self.clear()

    def clear(self) -> None:
        """Forget what was said."""
        self._lines: list[str] = []
        self._errors: list[str] = []

    def take(self, level: int, text: bytes | None, _data: object = None) -> None:
        """Keep what a line says of caches or errors."""
        line = (text or b"").decode("utf-8", "replace").rstrip("\n")
        if level == LOG_CONT:
            return
        if level == LOG_ERROR:
            self._errors = [*self._errors, line][-KEPT_LINES:]
        elif self.SIZE.search(line):
            self._lines.append(line)

    def errors(self) -> str:
        """Return the last errors in one line."""
        return "; ".join(self._errors) or "it gave no reason"

    def caches(self) -> list[str]:
        """Return the lines that tell the size of a cache."""
        return [line for line in self._lines if "layers" in line]

    def mebibytes(self) -> list[float]:
        """Return the sizes in those lines, rounded to two decimals as they are."""
        return [float(found[1]) for line in self.caches() if (found := self.SIZE.search(line))]


class Library:
    """The part of libllama's interface that it takes to make a context."""

    def __init__(self, path: str) -> None:
        try:
            self._dll = ctypes.CDLL(path)
            self._declare()
        except (OSError, AttributeError) as error:
            raise UnusableError(str(error)) from error
        self.log = Log()
        self._dll.llama_log_set(self.log.callback, None)
        self.model_params = self._dll.llama_model_default_params()
        self.context_params = self._dll.llama_context_default_params()
        self.model_params.expect("llama_model_params", MODEL_DEFAULTS)
        self.context_params.expect("llama_context_params", CONTEXT_DEFAULTS)
        self._flags = self._find_flags()
        self._dll.llama_backend_init()
        if not self._dll.ggml_backend_reg_count():
            # Without this, backends that are libraries of their own are nowhere to be found.
            self._dll.ggml_backend_load_all_from_path(os.fsencode(os.path.dirname(path)))  # noqa: PTH120 - bytes for C

    def _declare(self) -> None:
        dll, pointer = self._dll, ctypes.c_void_p
        for name, result, arguments in (
            ("llama_log_set", None, [LogCallback, pointer]),
            ("llama_backend_init", None, []),
            ("llama_model_default_params", Params, []),
            ("llama_context_default_params", Params, []),
            ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Params]),
            ("llama_model_init_from_user", pointer, [pointer, TensorCallback, pointer, Params]),
            ("llama_init_from_model", pointer, [pointer, Params]),
            (BREAKDOWN, TreeMap, [pointer]),
            ("llama_free", None, [pointer]),
            ("gguf_init_from_file", pointer, [ctypes.c_char_p, GgufParams]),
            ("llama_model_get_vocab", pointer, [pointer]),
            (
                "llama_tokenize",
                ctypes.c_int32,
                [
                    *(pointer, ctypes.c_char_p, ctypes.c_int32),
                    *(ctypes.POINTER(ctypes.c_int32), ctypes.c_int32),
                    *(ctypes.c_bool, ctypes.c_bool),
                ],
            ),
            ("ggml_backend_reg_count", ctypes.c_size_t, []),
            ("ggml_backend_load_all_from_path", None, [ctypes.c_char_p]),
        ):
            function = getattr(dll, name)
            function.restype, function.argtypes = result, arguments

    def _find_flags(self) -> int:
        for offset in CONTEXT_FLAGS:
            if self.context_params.at(offset, "<6?") == FLAG_DEFAULTS:
                return offset
        raise UnusableError("llama_context_params has its flags where we don't know them")

    def version(self) -> Answer:
        """Return what the library calls itself, as far as it does."""
        answer: Answer = {"version": None, "build": None}
        if hasattr(self._dll, "llama_version"):
            self._dll.llama_version.restype = ctypes.c_char_p
            answer["version"] = self._dll.llama_version().decode("utf-8", "replace")
        if hasattr(self._dll, BUILD_NUMBER):
            answer["build"] = getattr(self._dll, BUILD_NUMBER)() or None
        return answer

    def load(self, path: str, *, metadata_only: bool) -> int:
        """Return a model without tensor data, 0 where llama.cpp refuses it."""
        no_device = (ctypes.c_void_p * 1)(None)
        params = self.model_params
        params.put(MODEL_DEVICES, "<Q", ctypes.addressof(no_device))
        params.put(MODEL_GPU_LAYERS, "<i", 0)
        params.put(MODEL_LOAD_MODE, "<i", LOAD_MODE_NONE)
        params.put(MODEL_NO_ALLOC, "<?", True)
        if not metadata_only:
            return self._dll.llama_model_load_from_file(os.fsencode(path), params) or 0
        metadata = self._dll.gguf_init_from_file(os.fsencode(path), GgufParams(True, None))
        if not metadata:
            return 0
        # Nobody asks for data that isn't allocated.
        nothing = TensorCallback()
        return self._dll.llama_model_init_from_user(metadata, nothing, None, params) or 0

    def load_vocabulary(self, path: str) -> int:
        """Return a model that is a vocabulary and nothing else, 0 where it is refused."""
        self.model_params.put(MODEL_VOCAB_ONLY, "<?", True)
        return self.load(path, metadata_only=False)

    def tokenize(self, model: int, text: str) -> Answer:
        """Return the ids of a text in which control tokens are meant, nothing around it."""
        vocabulary = self._dll.llama_model_get_vocab(model)
        encoded = text.encode()
        # A token holds a byte at least, and a space may come in front.
        most = 2 * len(encoded) + 8
        ids = (ctypes.c_int32 * most)()
        count = self._dll.llama_tokenize(vocabulary, encoded, len(encoded), ids, most, False, True)
        return {"ids": ids[:count]} if count >= 0 else {"refused": f"{-count} tokens"}

    def run(self, model: int, run: Answer) -> Answer:
        """Make one context and return its bytes, or why there is none."""
        params = self.context_params
        sizes = (run["context"], run["batch"], run["ubatch"], run["parallel"])
        params.put(CONTEXT_SIZES, "<4I", *sizes)
        params.put(CONTEXT_THREADS, "<2i", 1, 1)
        params.put(CONTEXT_FLASH, "<i", FLASH[run["flash_attn"]])
        params.put(CONTEXT_TYPES, "<2i", TYPES[run["cache_type_k"]], TYPES[run["cache_type_v"]])
        params.put(self._flags + SWA_FULL, "<2?", run["swa_full"], run["kv_unified"])
        self.log.clear()
        context = self._dll.llama_init_from_model(model, params)
        if not context:
            return {"refused": self.log.errors()}
        breakdown = getattr(self._dll, BREAKDOWN)(context)
        total = sum(node.context for node in nodes(breakdown))
        self._confirm(total)
        self._dll.llama_free(context)
        return {"bytes": total, "caches": self.log.caches()}

    def _confirm(self, total: int) -> None:
        """Raise UnusableError where the log tells another size than we have read."""
        logged = self.log.mebibytes()
        # Each line is rounded to 0.005 MiB.
        if abs(sum(logged) - total / 2**20) > 0.006 * max(1, len(logged)):
            raise UnusableError(f"its log tells {sum(logged):.2f} MiB, we read {total} bytes")


def nodes(breakdown: TreeMap) -> Iterator[TreeNode]:
    """Yield every node; UnusableError where it can't be the map that we know."""
    if breakdown.count > MOST_BUFFER_TYPES:
        raise UnusableError("llama_memory_breakdown isn't laid out as we know it")
    waiting, seen = [breakdown.root], 0
    while waiting:
        address = waiting.pop()
        if not address:
            continue
        node = TreeNode.from_address(address)
        waiting += [node.left, node.right]
        seen += 1
        if seen > breakdown.count:
            raise UnusableError("llama_memory_breakdown isn't laid out as we know it")
        yield node


def _answers(request: Answer) -> Iterator[Answer]:
    try:
        library = Library(request["library"])
        yield library.version()
        if "texts" in request:
            model = library.load_vocabulary(request["model"])
        else:
            model = library.load(request["model"], metadata_only=request["metadata_only"])
        if not model:
            yield {"refused": library.log.errors()}
            return
        yield {"loaded": True}
        for text in request.get("texts", ()):
            yield library.tokenize(model, text)
        for run in request.get("runs", ()):
            yield library.run(model, run)
    except UnusableError as error:
        yield {"unusable": str(error)}


def main() -> None:
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    # What llama.cpp prints itself must not stand between our lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for answer in _answers(request):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # No destructors: they have nothing to save and may crash.
    os._exit(0)


if __name__ == "__main__":
    main()
