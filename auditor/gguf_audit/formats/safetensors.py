"""Headers of safetensors files: names, dtypes and shapes, never a value.

The ``safetensors`` package isn't used here. It wants the whole file (``safe_open``
maps it, ``deserialize`` takes all of its bytes), so it can neither read the header
of a remote shard nor bound what a hostile one costs; it keeps the last of two equal
keys and accepts 200,000 dimensions. Tests hold the two readers equal.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import NoReturn

from gguf_audit.checkpoint import Json, StoredTensor
from gguf_audit.errors import LimitError, MalformedError, ReferenceUnavailableError
from gguf_audit.formats._json import parse_object, read_object
from gguf_audit.limits import LIMITS
from gguf_audit.parts import Absent
from gguf_audit.sources import ByteSource, Distant, Tree, contained
from gguf_audit.where import Where

__all__ = ["INDEX", "read_header", "read_tensors"]

INDEX = "model.safetensors.index.json"

#: What an entry has to have; the library passes over what else is there.
_MEMBERS = frozenset({"dtype", "shape", "data_offsets"})
#: Bits of one element (safetensors/src/tensor.rs, ``Dtype::bitsize``).
_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E8M0": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


def read_header(source: ByteSource) -> dict[str, StoredTensor]:
    """Return name -> dtype and shape of one file, out of its header alone.

    Format: 8 bytes little-endian header length, the header in JSON, then the data of
    all tensors without a gap (safetensors/src/tensor.rs, ``Metadata::validate``).
    """
    header, data_bytes = _read_json(source)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _malformed(source.name, "__metadata__ is no object of strings")
    if len(header) > LIMITS.tensors:
        raise LimitError(
            f"{source.name} has {len(header)} tensors, more than {LIMITS.tensors} are not read",
            where=Where(file=source.name),
        )
    tensors: dict[str, StoredTensor] = {}
    extents: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        tensors[name], begin, end = _tensor(source, name, entry)
        extents.append((begin, end, name))
    _check_cover(source, extents, data_bytes)
    return tensors


def read_tensors(tree: Tree) -> Mapping[str, StoredTensor] | Absent:
    """Return name -> dtype and shape over every shard of a checkpoint folder.

    The converter takes what the index names, or without an index every file called
    ``model*.safetensors`` (conversion/base.py, ``get_model_part_names``). Raises
    ReferenceUnavailableError for a shard that isn't there and MalformedError where
    index and shards contradict each other.
    """
    names = set(tree.names())
    if INDEX in names:
        index = _read_index(tree.open(INDEX))
        return _merge(tree, _shards_there(index, names), index)
    parts = sorted(n for n in names if n.startswith("model") and n.endswith(".safetensors"))
    if parts:
        _few_enough(parts, parts[0])
        return _merge(tree, parts, None)
    pickled = sorted(n for n in names if n.endswith((".bin", ".ckpt", ".pkl", ".pt", ".pth")))
    if pickled:
        return Absent(f"only pickled weights ({pickled[0]}), which are never opened")
    return Absent("no model.safetensors in the folder")


def _read_json(source: ByteSource) -> tuple[dict[str, Json], int]:
    if source.size < 8:
        _malformed(
            source.name, f"{source.size} bytes, expected at least the 8 of the header length"
        )
    length = int.from_bytes(source.read(0, 8), "little")
    if length > source.size - 8:
        _malformed(
            source.name,
            f"header length is {length}, only {source.size - 8} bytes are left in the file",
        )
    if length > LIMITS.safetensors_header_bytes:
        raise LimitError(
            f"{source.name} has a header of {length} bytes,"
            f" more than {LIMITS.safetensors_header_bytes} are not read",
            where=Where(file=source.name, offset=0),
        )
    data = source.read(8, length)
    if not data.startswith(b"{"):
        _malformed(source.name, "header doesn't begin with {", offset=8)
    header = parse_object(data, name=source.name, offset=8, finite=True)
    return header, source.size - 8 - length


def _tensor(source: ByteSource, name: str, entry: Json) -> tuple[StoredTensor, int, int]:
    if not isinstance(entry, dict) or not entry.keys() >= _MEMBERS:
        _malformed(source.name, "expected dtype, shape and data_offsets", tensor=name)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        _malformed(source.name, "dtype isn't one that safetensors knows", tensor=name)
    dimensions = _counts(shape)
    if dimensions is None:
        _malformed(source.name, "shape is no list of counts", tensor=name)
    if len(dimensions) > LIMITS.safetensors_dimensions:
        raise LimitError(
            f"{source.name} has a tensor of {len(dimensions)} dimensions,"
            f" more than {LIMITS.safetensors_dimensions} are not read",
            where=Where(file=source.name, tensor=name),
        )
    extent = _counts(offsets)
    if extent is None or len(extent) != 2 or extent[0] > extent[1]:
        _malformed(source.name, "data_offsets are no pair of begin and end", tensor=name)
    bits = _BITS[dtype] * math.prod(dimensions)
    begin, end = extent
    if bits != 8 * (end - begin):
        needed = str(-(-bits // 8)) if bits >> 64 == 0 else "more than any file's"
        _malformed(
            source.name,
            f"data_offsets give {end - begin} bytes, dtype and shape need {needed}",
            tensor=name,
        )
    return StoredTensor(dtype=dtype, shape=dimensions), begin, end


def _counts(value: Json) -> tuple[int, ...] | None:
    """Return a list of non-negative integers; ``true`` is none."""
    if not isinstance(value, list):
        return None
    counts = tuple(item for item in value if type(item) is int and item >= 0)
    return counts if len(counts) == len(value) else None


def _check_cover(source: ByteSource, extents: list[tuple[int, int, str]], data_bytes: int) -> None:
    """Refuse data that overlaps, leaves a gap or doesn't end with the file."""
    reached = 0
    for begin, end, name in sorted(extents):
        if begin != reached:
            _malformed(
                source.name,
                f"data begins at {begin}, expected {reached}: no gap, no overlap",
                tensor=name,
            )
        reached = end
    if reached != data_bytes:
        _malformed(
            source.name, f"tensors take {reached} bytes, the file has {data_bytes} after its header"
        )


def _read_index(source: ByteSource) -> dict[str, str]:
    """Return tensor name -> shard name of an index file."""
    index = read_object(source, limit_bytes=LIMITS.index_bytes)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict):
        _malformed(source.name, "weight_map is no object")
    shards: dict[str, str] = {}
    for tensor, shard in weight_map.items():
        if not isinstance(shard, str):
            _malformed(source.name, "weight_map names no file", tensor=tensor)
        try:
            shards[tensor] = contained(shard)
        except MalformedError as error:
            _malformed(source.name, error.message, tensor=tensor)
    return shards


def _shards_there(index: Mapping[str, str], names: set[str]) -> list[str]:
    shards = sorted(set(index.values()))
    _few_enough(shards, INDEX)
    missing = [shard for shard in shards if shard not in names]
    if missing:
        raise ReferenceUnavailableError(
            f"{_few(missing)} not there, {INDEX} names {len(shards)} shards",
            where=Where(file=missing[0]),
        )
    return shards


def _few_enough(shards: Sequence[str], file: str) -> None:
    if len(shards) > LIMITS.shards:
        raise LimitError(
            f"there are {len(shards)} shards, more than {LIMITS.shards} are not read",
            where=Where(file=file),
        )


def _merge(
    tree: Tree, shards: Sequence[str], index: Mapping[str, str] | None
) -> Mapping[str, StoredTensor]:
    named: dict[str, set[str]] = {shard: set() for shard in shards}
    for tensor, shard in (index or {}).items():
        named[shard].add(tensor)
    tensors: dict[str, StoredTensor] = {}
    with closing(_headers(tree, shards)) as headers:
        for shard, header in zip(shards, headers, strict=True):
            twice = tensors.keys() & header.keys()
            if twice:
                _malformed(shard, "another shard has this tensor too", tensor=min(twice))
            astray = sorted(named[shard] ^ header.keys()) if index is not None else []
            if astray:
                _malformed(shard, f"{INDEX} and the shard disagree on {_few(astray)}")
            tensors |= header
            if len(tensors) > LIMITS.tensors:
                raise LimitError(
                    f"more than {LIMITS.tensors} tensors are not read", where=Where(file=shard)
                )
    return tensors


def _headers(tree: Tree, shards: Sequence[str]) -> Generator[dict[str, StoredTensor], None, None]:
    if isinstance(tree, Distant):
        return tree.each(shards, read_header)
    return (read_header(tree.open(shard)) for shard in shards)


def _few(names: list[str]) -> str:
    shown = ", ".join(ascii(name)[1:-1] for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} (and {len(names) - 5} more)"


def _malformed(
    file: str, what: str, *, tensor: str | None = None, offset: int | None = None
) -> NoReturn:
    place = "" if tensor is None else f" tensor {tensor[: LIMITS.shown_characters]!a}:"
    raise MalformedError(
        f"{file}:{place} {what}",
        where=Where(file=file, tensor=tensor, offset=offset),
    )
