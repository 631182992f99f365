"""What llama.cpp's multimodal loader makes of a projector file (mmproj).

Facts from llama.cpp build 11434: tools/mtmd/clip.cpp, ``load_hparams``, ``load_tensors``
and ``clip_n_mmproj_embd``; mtmd.cpp for the width that text model and projector share;
src/llama-hparams.cpp, ``n_embd_inp``. What it does with a file that lacks something was
measured by taking one thing at a time out of files that load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf, Tensor
from gguf_audit.limits import LIMITS
from gguf_audit.runtime.projectors import PROJECTORS, Encoder, Projector

__all__ = [
    "Encoding",
    "blocks_of",
    "encodings",
    "input_width",
    "merged_width",
    "required",
    "width_of",
]

#: Encoder -> the key that says there is one, the prefix of its blocks' tensors, and the
#: key of its projector where the file has several.
_ENCODERS: tuple[tuple[Encoder, str, str, str], ...] = (
    ("vision", "clip.has_vision_encoder", "v", "clip.vision.projector_type"),
    ("audio", "clip.has_audio_encoder", "a", "clip.audio.projector_type"),
    ("gen.audio", "clip.has_gen_audio_encoder", "a.gen.code", "clip.gen.audio.projector_type"),
)
_TYPE = "clip.projector_type"
#: Qwen2.5-Omni: one name for two projectors.
_OMNI = {"vision": "qwen2.5vl_merger", "audio": "qwen2a"}
_BLOCK = re.compile(r"(v|a|a\.gen\.code)\.blk\.(0|[1-9][0-9]{0,5})\.(.+)")
_DEEPSTACK = re.compile(r"v\.deepstack\.([0-9]{1,6})\.fc1\.weight")
#: Types whose graph merges patches where the file has this, and then takes a norm unseen
#: (models/pixtral.cpp).
_MERGING = frozenset({"pixtral", "lightonocr"})
_MERGER = "mm.patch_merger.weight"
#: What of a block isn't there where the block has experts.
_DENSE = frozenset({"ffn_up.weight", "ffn_down.weight"})
_EXPERTS = "ffn_gate_exps.weight"


class Encoding(Struct, frozen=True, kw_only=True):
    """One encoder of a file, with its projector."""

    encoder: Encoder
    #: In front of its blocks' tensors.
    prefix: str
    #: Key that names the projector, or should.
    key: str
    #: ``None`` where none is named.
    type: str | None
    #: ``None`` for a type that llama.cpp doesn't load.
    projector: Projector | None

    def named(self, name: str) -> str:
        """Return the full key of one of its hyper-parameters."""
        return f"clip.{self.encoder}.{name}"


def encodings(gguf: Gguf) -> tuple[Encoding, ...]:
    """Return the encoders that llama.cpp loads from a file."""
    found: list[Encoding] = []
    common = gguf.string(_TYPE)
    for encoder, flag, prefix, own in _ENCODERS:
        field = gguf.fields.get(flag)
        if field is None or field.value is not True:
            continue
        key, name = (_TYPE, common) if common else (own, gguf.string(own) or None)
        if name is None:
            key = _TYPE
        if encoder == "audio" and name == "gemma3na" and found:
            # skipped where the vision encoder is Gemma 3n's
            continue
        meant = _OMNI.get(encoder, name) if name == "qwen2.5o" else name
        projector = None if meant is None else PROJECTORS.get(meant)
        found.append(
            Encoding(encoder=encoder, prefix=prefix, key=key, type=meant, projector=projector)
        )
    return tuple(found)


def blocks_of(gguf: Gguf, prefix: str) -> Mapping[int, frozenset[str]]:
    """Return which tensors each block of an encoder has, without ``v.blk.0.``."""
    blocks: dict[int, set[str]] = {}
    for name in gguf.tensors:
        found = _BLOCK.fullmatch(name)
        if found is not None and found[1] == prefix:
            blocks.setdefault(int(found[2]), set()).add(found[3])
    return {index: frozenset(names) for index, names in sorted(blocks.items())}


def required(gguf: Gguf, encoding: Encoding) -> Iterator[str]:
    """Yield the tensors that llama.cpp doesn't do without.

    Of at most ``LIMITS.blocks`` blocks.
    """
    projector = encoding.projector
    if projector is None:
        return
    yield from projector.needs
    for name, dimension in projector.width[-1:]:
        del dimension
        there = any(other in gguf.tensors for other, _ in projector.width)
        if name not in projector.needs and not there:
            yield name
    count = gguf.integer(encoding.named("block_count")) or 0
    if projector.plain and projector.encoder == "vision":
        yield "v.patch_embd.weight"
    if encoding.type == "minicpmv4_6":
        yield from _merger(gguf)
    if encoding.type in _MERGING and _MERGER in gguf.tensors:
        yield "mm.input_norm.weight"
    if not projector.ordinary:
        return
    for index in range(min(count, LIMITS.blocks)):
        yield from _block(gguf, projector, f"{encoding.prefix}.blk.{index}.")


def _block(gguf: Gguf, projector: Projector, block: str) -> Iterator[str]:
    yield f"{block}attn_out.weight"
    if block + _EXPERTS not in gguf.tensors:
        yield from (block + name for name in sorted(_DENSE))
    if projector.plain and f"{block}attn_qkv.weight" not in gguf.tensors:
        yield from (f"{block}attn_{name}.weight" for name in "qkv")
    yield from (block + name for name in projector.block)


def _merger(gguf: Gguf) -> Iterator[str]:
    """Yield what MiniCPM-V 4.6 merges patches with inside the encoder, fourfold or not."""
    if (gguf.integer("clip.vision.projector.scale_factor") or 4) != 4:
        return
    for layer in ("ln1", "ds_ln"):
        yield from (f"v.vit_merger.{layer}.{part}" for part in ("weight", "bias"))
    for layer in ("attn_q", "attn_k", "attn_v", "attn_out", "ds_ffn_up", "ds_ffn_down"):
        yield f"v.vit_merger.{layer}.weight"


def merged_width(gguf: Gguf, encoding: Encoding) -> int | None:
    """Return how wide a patch is that is merged of several, by what the merging multiplies.

    That is the width of one, times the square of ``spatial_merge_size``: llama.cpp aborts
    on any other. ``None`` where nothing is merged so.
    """
    tensor = gguf.tensors.get(_MERGER)
    return None if tensor is None or encoding.type not in _MERGING else _size(tensor, 0)


def width_of(gguf: Gguf, encoding: Encoding) -> int | None:
    """Return how wide the text model's input has to be, ``None`` where nothing says so."""
    projector = encoding.projector
    if projector is None:
        return None
    if encoding.type == "granite4_vision":
        layers = gguf.array("clip.vision.feature_layer")
        each = gguf.integer("clip.vision.projection_dim")
        return None if layers is None or each is None else layers.count * each
    for name, dimension in projector.width:
        tensor = gguf.tensors.get(name)
        if tensor is not None:
            width = _size(tensor, dimension)
            return width * (1 + _deepstack(gguf)) if encoding.type == "qwen3vl_merger" else width
    return None


def _size(tensor: Tensor, dimension: int) -> int:
    return tensor.shape[dimension] if dimension < len(tensor.shape) else 1


def _deepstack(gguf: Gguf) -> int:
    """Count the blocks that feed a layer of the text model of their own."""
    blocks = gguf.integer("clip.vision.block_count") or 0
    found = (_DEEPSTACK.fullmatch(name) for name in gguf.tensors)
    return sum(int(match[1]) < blocks for match in found if match)


def input_width(fields: Fields) -> int | None:
    """Return how wide what a text model takes in place of tokens is.

    Only these architectures read how many layers are fed besides the first (``Refused``
    where llama.cpp would refuse the value).
    """
    width = fields.integer("embedding_length")
    if width is None:
        return None
    match fields.architecture:
        case "qwen3vl" | "qwen3vlmoe":
            return width * (1 + (fields.integer("n_deepstack_layers") or 0))
        case "granite" | "granite_swa":
            items = fields.items("deepstack_mapping") or ()
            fed = {item for item in items if isinstance(item, int) and item >= 0}
            return width * (1 + len(fed))
        case _:
            return width
