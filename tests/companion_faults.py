"""Puts one fault at a time into a file that goes with a model.

for fault in FAULTS:
    made = broken(open_gguf(right), fault)
    if made is not None:
        write_gguf(other, *made)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from gguf_audit.companions import classify
from gguf_audit.evidence import CompanionKind
from gguf_audit.gguf import Array, Gguf, ValueType
from gguf_audit.runtime.clip import encodings, required
from gguf_audit.testing import FieldValue, TensorSpec
from injector import Keys, copied

__all__ = ["FAULTS", "CompanionFault", "broken"]

Parts = tuple[Keys, list[TensorSpec]]
#: Returns the file with the fault, ``None`` where it can't have it.
Break = Callable[[Gguf, Keys, list[TensorSpec]], Parts | None]


@dataclass(frozen=True, slots=True)
class CompanionFault:
    """One thing to do to a file of one kind, and what has to be said of it."""

    name: str
    kind: CompanionKind
    #: Any of these rules tells it.
    told_by: tuple[str, ...]
    make: Break
    #: Only a reference tells.
    needs_reference: bool = False


def broken(gguf: Gguf, fault: CompanionFault) -> Parts | None:
    """Return keys and tensors of a file with the fault, ``None`` where it can't have it."""
    if classify(gguf).companion != fault.kind:
        return None
    return fault.make(gguf, *copied(gguf))


def _lose(*names: str) -> Break:
    """Lose a key, named without the encoder in front, of the first encoder that has it."""

    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        found = _find(gguf, names)
        if found is None:
            return None
        del keys[found]
        return keys, tensors

    return make


def _find(gguf: Gguf, names: tuple[str, ...]) -> str | None:
    spelled = (f"{front}{name}" for name in names for front in ("", "clip.vision.", "clip.audio."))
    return next((key for key in spelled if key in gguf.fields), None)


def _set(name: str, change: Callable[[Gguf, FieldValue], FieldValue | None]) -> Break:
    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        key = _find(gguf, (name,))
        value = None if key is None else change(gguf, keys[key])
        if key is None or value is None:
            return None
        keys[key] = value
        return keys, tensors

    return make


def _times(factor: float) -> Callable[[Gguf, FieldValue], FieldValue | None]:
    def change(gguf: Gguf, value: FieldValue) -> FieldValue | None:
        del gguf
        match value:
            case (ValueType() as type_, int() | float() as number):
                return (type_, type(number)(number * factor))
            case _:
                return None

    return change


def _plus(more: int) -> Callable[[Gguf, FieldValue], FieldValue | None]:
    def change(gguf: Gguf, value: FieldValue) -> FieldValue | None:
        del gguf
        match value:
            case (ValueType() as type_, int() as number):
                return (type_, number + more)
            case _:
                return None

    return change


def _fixed(value: FieldValue) -> Callable[[Gguf, FieldValue], FieldValue | None]:
    def change(gguf: Gguf, old: FieldValue) -> FieldValue | None:
        del gguf, old
        return value

    return change


def _mean_for_deviation(gguf: Gguf, value: FieldValue) -> FieldValue | None:
    mean = gguf.fields["clip.vision.image_mean"].value
    assert isinstance(mean, Array)
    swapped: FieldValue = (ValueType.FLOAT32, list(mean.items()))
    return None if swapped == value else swapped


def _quick(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
    """Lose the activation, or ask for one where none is right."""
    asked = [key for key in ("clip.use_gelu", "clip.use_silu") if keys.pop(key, None) is not None]
    if not asked and "clip.has_vision_encoder" not in keys:
        return None
    if not asked or gguf.string("clip.projector_type") == "mlp":
        keys["clip.use_gelu"] = True
    return keys, tensors


def _other_act(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
    del gguf
    if keys.pop("clip.use_gelu", None) is None:
        return None
    keys["clip.use_silu"] = True
    return keys, tensors


def _nothing(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts:
    del gguf, tensors
    return keys, []


def _projection(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
    """Lose the last tensor that the projector demands."""
    first = encodings(gguf)[0]
    if first.projector is None or not first.projector.needs:
        return None
    lost = first.projector.needs[-1]
    return keys, [each for each in tensors if each.name != lost]


def _optional(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
    """Lose a tensor of the first block that llama.cpp does without."""
    first = encodings(gguf)[0]
    demanded = frozenset(required(gguf, first))
    block = f"{first.prefix}.blk.0."
    names = [str(each.name) for each in tensors]
    lost = next((n for n in names if n.startswith(block) and n not in demanded), None)
    return None if lost is None else (keys, [each for each in tensors if each.name != lost])


def _wider(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
    first = encodings(gguf)[0]
    assert first.projector is not None
    name, dimension = next(each for each in first.projector.width if each[0] in gguf.tensors)
    return keys, [_doubled(each, dimension) if each.name == name else each for each in tensors]


def _doubled(tensor: TensorSpec, dimension: int) -> TensorSpec:
    shape = list(tensor.shape)
    shape[dimension] *= 2
    return replace(tensor, shape=tuple(shape))


def _dropping(*endings: str) -> Break:
    """Lose the last tensor with each of these endings."""

    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        del gguf
        lost = {
            ending: next((e.name for e in reversed(tensors) if str(e.name).endswith(ending)), None)
            for ending in endings
        }
        if None in lost.values():
            return None
        return keys, [each for each in tensors if each.name not in lost.values()]

    return make


def _dropping_all(ending: str) -> Break:
    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        del gguf
        kept = [each for each in tensors if not str(each.name).endswith(ending)]
        return None if len(kept) == len(tensors) else (keys, kept)

    return make


def _adding(name: str, *shape: int) -> Break:
    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        del gguf
        return keys, [*tensors, TensorSpec(name, shape)]

    return make


def _resized(ending: str, dimension: int) -> Break:
    def make(gguf: Gguf, keys: Keys, tensors: list[TensorSpec]) -> Parts | None:
        del gguf
        last = next((e for e in reversed(tensors) if str(e.name).endswith(ending)), None)
        if last is None or dimension >= len(last.shape) or last.tensor_type.block_elements != 1:
            return None
        return keys, [_doubled(each, dimension) if each is last else each for each in tensors]

    return make


FAULTS: tuple[CompanionFault, ...] = (
    CompanionFault("no mean", "mmproj", ("PKG032",), _lose("image_mean")),
    CompanionFault("no deviation", "mmproj", ("PKG032",), _lose("image_std")),
    CompanionFault(
        "a deviation of 0",
        "mmproj",
        ("PKG032", "PKG038"),
        _set("image_std", _fixed((ValueType.FLOAT32, [0.5, 0.5, 0.0]))),
    ),
    CompanionFault(
        "the mean for the deviation",
        "mmproj",
        ("PKG038",),
        _set("image_std", _mean_for_deviation),
        needs_reference=True,
    ),
    CompanionFault("no epsilon", "mmproj", ("PKG032",), _lose("attention.layer_norm_epsilon")),
    CompanionFault("no projection_dim", "mmproj", ("PKG032",), _lose("projection_dim")),
    CompanionFault(
        "no encoder",
        "mmproj",
        ("PKG031",),
        _lose("clip.has_vision_encoder", "clip.has_audio_encoder"),
    ),
    CompanionFault("no type", "mmproj", ("PKG031",), _lose("clip.projector_type")),
    CompanionFault(
        "an unknown type", "mmproj", ("PKG031",), _set("clip.projector_type", _fixed("new"))
    ),
    CompanionFault("no tensors", "mmproj", ("PKG030",), _nothing),
    CompanionFault("no projection", "mmproj", ("PKG033",), _projection),
    CompanionFault("no output", "mmproj", ("PKG033", "PKG037"), _dropping("attn_out.weight")),
    CompanionFault("no queries", "mmproj", ("PKG033", "PKG037"), _dropping("attn_q.weight")),
    CompanionFault("a tensor less in one block", "mmproj", ("PKG037", "PKG039"), _optional),
    CompanionFault(
        "a block too many", "mmproj", ("PKG033", "PKG038"), _set("block_count", _plus(1))
    ),
    CompanionFault(
        "a block too few",
        "mmproj",
        ("PKG037", "PKG038"),
        _set("block_count", _plus(-1)),
        needs_reference=True,
    ),
    CompanionFault(
        "twice the heads",
        "mmproj",
        ("PKG038",),
        _set("attention.head_count", _times(2)),
        needs_reference=True,
    ),
    CompanionFault(
        "another patch", "mmproj", ("PKG038",), _set("patch_size", _times(2)), needs_reference=True
    ),
    CompanionFault(
        "another image", "mmproj", ("PKG038",), _set("image_size", _times(2)), needs_reference=True
    ),
    CompanionFault("another activation", "mmproj", ("PKG038",), _quick, needs_reference=True),
    CompanionFault("silu for gelu", "mmproj", ("PKG038",), _other_act, needs_reference=True),
    CompanionFault("a wider output", "mmproj", ("PKG035",), _wider, needs_reference=True),
    CompanionFault(
        "other mels", "mmproj", ("PKG038",), _set("num_mel_bins", _times(2)), needs_reference=True
    ),
    CompanionFault("no alpha", "adapter", ("PKG040", "PKG041"), _lose("adapter.lora.alpha")),
    CompanionFault(
        "twice the alpha",
        "adapter",
        ("PKG041",),
        _set("adapter.lora.alpha", _times(2)),
        needs_reference=True,
    ),
    CompanionFault("half a pair", "adapter", ("PKG040",), _dropping(".lora_a")),
    CompanionFault(
        "a pair less", "adapter", ("PKG044",), _dropping(".lora_a", ".lora_b"), needs_reference=True
    ),
    CompanionFault("another rank", "adapter", ("PKG040",), _resized(".lora_a", 1)),
    CompanionFault("no label", "adapter", ("PKG040",), _lose("general.type")),
    CompanionFault("no adapter type", "adapter", ("PKG040",), _lose("adapter.type")),
    CompanionFault("a norm", "adapter", ("PKG043",), _adding("output_norm.weight", 64)),
    CompanionFault(
        "no norm behind", "mmproj", ("PKG039",), _dropping("post_ln.weight"), needs_reference=True
    ),
    CompanionFault(
        "no biases", "mmproj", ("PKG039",), _dropping_all("attn_out.bias"), needs_reference=True
    ),
    CompanionFault("no counts", "imatrix", ("PKG045",), _dropping(".counts")),
    CompanionFault("no chunk size", "imatrix", ("PKG045",), _lose("imatrix.chunk_size")),
    CompanionFault("other counts", "imatrix", ("PKG045",), _resized(".counts", 0)),
    CompanionFault(
        "a direction of layer 0", "controlvector", ("PKG047",), _adding("direction.0", 64)
    ),
    CompanionFault("a longer direction", "controlvector", ("PKG047",), _adding("direction.99", 65)),
)
