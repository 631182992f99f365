"""What a checkpoint's tensors become in a right conversion, and what a file lacks of it.

Every tensor of a checkpoint goes somewhere: into one tensor of the file, with its brothers
into one (experts are stacked), or into several (a fused projection is split). Such a group
has as many parameters before as after, whatever the converter transposes or reorders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from gguf_audit.arch.tensors._inventory import is_scale
from gguf_audit.arch.tensors._names import CONVERTED, Namer
from gguf_audit.checkpoint import StoredTensor
from gguf_audit.fields import Fields
from gguf_audit.gguf import Tensor
from gguf_audit.parts import Absent

__all__ = [
    "Changed",
    "Comparison",
    "Converted",
    "Group",
    "compare",
    "converted",
    "of_file",
    "stand_ins",
]

#: Tensors with a row for each token or place: rows are cut or padded as the vocabulary
#: asks for (``gemma3.py``, ``bert.py`` in conversion/).
ROWS_VARY = re.compile(
    r"(token_embd|output|per_layer_token_embd|position_embd|token_types)\.weight"
)
#: Tensors that no checkpoint has: the converter computes them from the config, and copies
#: three of RWKV-7's first block.
GENERATED = re.compile(
    r"rope_freqs\.weight|rope_factors_(long|short)\.weight|blk\.0\.time_mix_v[012]\.weight"
)
#: Types of which a stored element is no single parameter.
PACKED = frozenset({"U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F4"})
#: Tensors of a block -> the one that holds them all, in a file that fuses them or one of
#: an earlier layout.
FUSED = {
    "attn_q": "attn_qkv",
    "attn_k": "attn_qkv",
    "attn_v": "attn_qkv",
    "ffn_gate_exps": "ffn_gate_up_exps",
    "ffn_up_exps": "ffn_gate_up_exps",
    "attn_k_b": "attn_kv_b",
    "attn_v_b": "attn_kv_b",
}
_BLOCK = re.compile(r"blk\.([0-9]{1,9})\.")
#: The first of the experts of a block, where each is a tensor of its own.
SPLIT_EXPERTS = {f"ffn_{part}_exps": f"ffn_{part}.0" for part in ("gate", "down", "up")}


class Group(Struct, kw_only=True):
    """Tensors of a checkpoint and the tensors of a file that they become."""

    names: tuple[str, ...]
    layer: int | None
    #: One of the checkpoint's names.
    source: str
    sources: int = 0
    #: ``None`` where elements are packed.
    parameters: int | None = 0
    #: Dimensions other than 1 in ascending order, where one tensor becomes one.
    sizes: tuple[int, ...] | None = None


class Changed(Struct, frozen=True, kw_only=True):
    """A group whose tensors in the file have other sizes."""

    group: Group
    tensor: Tensor
    expected: tuple[int, ...] | int
    actual: tuple[int, ...] | int


class Comparison(Struct, frozen=True, kw_only=True):
    """A file beside what its checkpoint becomes."""

    lost: tuple[Group, ...]
    added: tuple[str, ...]
    changed: tuple[Changed, ...]
    #: Parameters of every group, and of the tensors that are in the file.
    parameters: int
    found: int


class Converted(Struct, frozen=True, kw_only=True):
    """What a checkpoint's tensors become."""

    groups: tuple[Group, ...]
    #: Names of tensors of which nobody knows what becomes.
    unknown: tuple[str, ...] = ()
    #: Blocks in front of those that predict further tokens.
    trunk: int

    def kept(self, file: Mapping[str, Tensor]) -> Iterator[Group]:
        """Yield the groups that a file of this layout should have.

        Blocks of multi-token prediction may be left out (``--no-mtp``, and always where
        llama.cpp has no use for them), or may be all there is (``--mtp``).
        """
        there = {int(found[1]) for name in file if (found := _BLOCK.match(name))}
        drafts = any(block >= self.trunk for block in there)
        trunk = not drafts or "blk.0.attn_norm.weight" in file or min(there) < self.trunk
        for group in self.groups:
            if group.layer is None or (trunk if group.layer < self.trunk else drafts):
                yield group


class _Expected(Struct):
    """Groups while they are gathered."""

    groups: dict[tuple[str, ...], Group] = field(default_factory=dict[tuple[str, ...], Group])
    unknown: list[str] = field(default_factory=list[str])


def converted(fields: Fields, tensors: Mapping[str, StoredTensor]) -> Converted | Absent:
    """Return what a checkpoint's tensors become.

    ``fields`` is the metadata of a right conversion. Absent where the conversion of the
    architecture hasn't been seen.
    """
    if fields.architecture not in CONVERTED:
        return Absent(f"what becomes of the tensors of {fields.architecture!r} isn't known")
    blocks = fields.integer("block_count") or 0
    trunk = blocks - (fields.integer("nextn_predict_layers") or 0)
    namer = Namer(
        fields.architecture,
        trunk=trunk,
        latent=bool(fields.integer("attention.key_length_mla")),
        experts=bool(fields.integer("expert_count")),
    )
    found = _Expected()
    for name, stored in tensors.items():
        _take(found, namer, name, stored)
    return Converted(groups=tuple(found.groups.values()), unknown=tuple(found.unknown), trunk=trunk)


def of_file(fields: Fields, tensors: Mapping[str, Tensor]) -> Converted:
    """Return what another file's tensors are: themselves."""
    groups = tuple(
        Group(
            names=(name,),
            layer=int(found[1]) if (found := _BLOCK.match(name)) else None,
            source=name,
            sources=1,
            parameters=tensor.elements,
            sizes=_sizes(tensor.shape),
        )
        for name, tensor in tensors.items()
        if not _needs_no_source(name)
    )
    blocks = fields.integer("block_count") or 0
    drafts = fields.integer("nextn_predict_layers") or 0
    return Converted(groups=groups, trunk=blocks - drafts)


def _take(found: _Expected, namer: Namer, name: str, stored: StoredTensor) -> None:
    block, becomes = namer.place(name)
    if becomes is None:
        # an output projection where llama.cpp takes the embedding for it
        if not (name.endswith("lm_head.weight") and "output.weight" not in namer.once):
            found.unknown.append(name)
        return
    if not becomes.names:
        return
    prefix = "" if block is None else f"blk.{block}."
    names = tuple(prefix + each for each in becomes.names)
    group = found.groups.get(names)
    if group is None:
        group = found.groups[names] = Group(names=names, layer=block, source=name)
    group.sources += 1
    if stored.dtype in PACKED or group.parameters is None:
        group.parameters = None
    else:
        group.parameters += math.prod(stored.shape)
    alone = group.sources == 1 and len(names) == 1
    group.sizes = _sizes(stored.shape) if alone and group.parameters is not None else None


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(size for size in shape if size != 1))


def compare(expected: Converted, file: Mapping[str, Tensor]) -> Comparison:
    """Compare what a checkpoint becomes with what is in a file."""
    lost: list[Group] = []
    changed: list[Changed] = []
    known: set[str] = set()
    wanted = found = 0
    for group in expected.kept(file):
        wanted += group.parameters or 0
        known.update(group.names)
        there = [file[name] for name in group.names if name in file]
        if len(there) < len(group.names):
            stand_in = [_stand_in(name, file) for name in group.names if name not in file]
            known.update(name for name in stand_in if name is not None)
            if None in stand_in:
                lost.append(group)
            else:
                found += group.parameters or 0
            continue
        found += sum(tensor.elements for tensor in there) if group.parameters is not None else 0
        difference = _difference(group, there)
        if difference is not None:
            changed.append(difference)
    added = tuple(name for name in file if name not in known and not _needs_no_source(name))
    return Comparison(
        lost=tuple(lost),
        added=() if expected.unknown else added,
        changed=tuple(changed),
        parameters=wanted,
        found=found,
    )


def _stand_in(name: str, file: Mapping[str, Tensor]) -> str | None:
    """Return the tensor that holds another one in a file of another layout."""
    for other in stand_ins(name):
        if other in file:
            return other
    return None


def stand_ins(name: str) -> Iterator[str]:
    """Yield the tensors that may hold another one in a file of another layout."""
    block, _, rest = name.partition(".")
    if block != "blk":
        return
    number, _, rest = rest.partition(".")
    base, _, suffix = rest.rpartition(".")
    for other in (FUSED.get(base), SPLIT_EXPERTS.get(base)):
        if other is not None:
            yield f"blk.{number}.{other}.{suffix}"


def _needs_no_source(name: str) -> bool:
    # the heads of classifiers are the converter's to keep or to drop
    return (
        name.startswith("cls.")
        or is_scale(name)
        or GENERATED.fullmatch(name) is not None
        or _is_split_expert(name)
    )


def _is_split_expert(name: str) -> bool:
    return re.fullmatch(r"blk\.\d+\.ffn_(gate|down|up)\.\d+\.\w+", name) is not None


def _difference(group: Group, there: list[Tensor]) -> Changed | None:
    if group.parameters is None:
        return None
    first = there[0]
    if ROWS_VARY.fullmatch(first.name):
        width = group.sizes[0] if group.sizes else None
        if width is None or not first.shape or first.shape[0] in (group.sizes or ()):
            return None
        return Changed(group=group, tensor=first, expected=group.sizes or 0, actual=first.shape)
    elements = sum(tensor.elements for tensor in there)
    if elements != group.parameters:
        if group.sizes is not None:
            return Changed(
                group=group, tensor=first, expected=group.sizes, actual=_sizes(first.shape)
            )
        return Changed(group=group, tensor=first, expected=group.parameters, actual=elements)
    return None
