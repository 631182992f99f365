"""What the name of a file says: the model, and how it is quantized.

Qwen3-8B-UD-Q4_K_XL.gguf     model Qwen3-8B, label Q4_K_XL, dynamic
Nemo-12B.i1-IQ3_M.gguf       model Nemo-12B.i1, label IQ3_M
"""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

__all__ = ["LABEL", "Label", "Part", "label_of", "model_of", "part_of", "width_of"]

#: A quantization at the end of a file's or a folder's name, as llama-quantize, the
#: converter and the big publishers write it. ``q3_text`` is none: what follows the number
#: of bits is short.
LABEL = re.compile(
    r"(?:^|[-._ ])(?P<dynamic>UD-)?"
    r"(?P<label>I?Q[0-9](?:_(?:[A-Z0-9]{1,3}|HIFI)(?:_[A-Z0-9]{1,4})*)?|TQ[0-9]_[0-9]"
    r"|(?:BF|FP|F)(?:16|32)|MXFP4(?:_MOE)?|NVFP4)$",
    re.IGNORECASE,
)
#: ``a.gguf.part1of2``: what publishers cut a file into that is too large for the Hub.
_PART = re.compile(
    r"(?P<whole>.+\.gguf)\.part(?P<number>[0-9]{1,4})of(?P<count>[0-9]{1,4})", re.IGNORECASE
)
_SHARD = re.compile(r"-[0-9]{5}-of-[0-9]{5}$")
_WIDTH = re.compile(r"I?Q([0-9])|(TQ)|(?:BF|FP|F)(16|32)|(?:MX|NV)FP(4)")


class Label(Struct, frozen=True):
    """The quantization that a name ends in."""

    #: In capitals, as llama-quantize has it, or a publisher's own such as ``Q4_K_L``.
    text: str
    #: Unsloth's, whose layers have many types.
    dynamic: bool


class Part(Struct, frozen=True):
    """A part of a file that somebody has cut, by its name; not a shard, which is a file itself."""

    #: Name of the file that it is a part of.
    whole: str
    #: From 1 on.
    number: int
    count: int

    @property
    def advice(self) -> str:
        """Say how the file is put together again."""
        name = shlex.quote(self.whole)
        each = f"{name}.part{{1..{self.count}}}of{self.count}"
        return f"concatenate the parts: cat {each} > {name}"


def part_of(path: str) -> Part | None:
    """Return what a file's name says that it is a part of, ``None`` for a whole one."""
    found = _PART.fullmatch(re.split(r"[/\\]", path)[-1])
    return found and Part(found["whole"], int(found["number"]), int(found["count"]))


def label_of(path: str) -> Label | None:
    """Return the label of a file's name, ``None`` where it ends in none."""
    name = re.split(r"[/\\:]", path)[-1]
    found = LABEL.search(_SHARD.sub("", name.removesuffix(".gguf")))
    return None if found is None else Label(found["label"].upper(), found["dynamic"] is not None)


def model_of(path: str) -> str:
    """Return what a file's name calls its model: no quantization, no shard, small letters."""
    name = re.split(r"[/\\:]", path)[-1]
    return LABEL.sub("", _SHARD.sub("", name.removesuffix(".gguf"))).casefold()


def width_of(quantization: str) -> str | None:
    """Return what tells ``Q4_K_M`` from ``Q8_0`` at a glance, ``None`` for another name.

    The number of bits as names have it: ``4`` for ``IQ4_XS`` and ``MXFP4``, ``16`` for
    ``BF16``, and ``TQ`` for ternary ones.
    """
    found = _WIDTH.match(quantization)
    return None if found is None else next(filter(None, found.groups()))
