"""What a GGUF file is if it is no model: named by its type, its architecture, its tensors.

general.type     adapter | mmproj | imatrix
architecture     clip | imatrix | controlvector | one of image models and their like
tensors          blk.0.attn_q.weight.lora_a | blk.0.attn_q.weight.in_sum2 | direction.1
"""

from __future__ import annotations

import re

from msgspec import Struct

from gguf_audit import arch
from gguf_audit.checkpoint import Checkpoint
from gguf_audit.errors import AuditError
from gguf_audit.evidence import (
    NO_REFERENCE,
    UNREAD_REFERENCE,
    Companion,
    CompanionKind,
    ProjectorMember,
)
from gguf_audit.expectation import expected_fields
from gguf_audit.fields import Fields
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.projection import takes_projector
from gguf_audit.runtime.clip import encodings, width_of
from gguf_audit.verdict import SubjectKind

__all__ = [
    "Classified",
    "classify",
    "companion_of",
    "encoder_of",
    "is_old_imatrix",
    "projector_of",
]

#: Weights of a model that runs. Adapters add ``.lora_a``, imatrices ``.counts`` to the
#: names; projectors and control vectors have other ones.
_WEIGHT = re.compile(r"(?:token_embd|blk\.[0-9]+\..+)\.(?:weight|bias)")
_LORA = (".lora_a", ".lora_b")
#: What the converter puts into an adapter besides pairs.
_NORM = "_norm.weight"
_IMATRIX = (".in_sum", ".in_sum2", ".counts", ".stats")
_DIRECTION = re.compile(r"direction\.[0-9]+")
#: ``general.architecture`` of files that no language model is in: those that
#: city96/ComfyUI-GGUF knows (``IMG_ARCH_LIST`` in loader.py; ``pig`` it looks into).
#: Others are told by their tensors, or by having nothing of a language model:
#: stable-diffusion.cpp writes no architecture at all.
_FOREIGN = {
    **dict.fromkeys(
        ("aura", "cosmos", "flux", "hidream", "lumina2", "qwen_image", "sd1", "sd3", "sdxl"),
        "an image model",
    ),
    **dict.fromkeys(("hyvid", "ltxv", "wan"), "a video model"),
    "pig": "an image or video model",
    "whisper": "a speech model",
}
#: In front of the tensors of diffusion models, whatever the file calls itself.
_DIFFUSION = (
    "double_blocks.",
    "single_blocks.",
    "joint_blocks.",
    "transformer_blocks.",
    "model.diffusion_model.",
    "input_blocks.",
    "first_stage_model.",
)
#: Architectures of nothing but the text halves of models that see or hear.
_HALVES = frozenset({"cogvlm", "hunyuan_vl", "qwen2vl", "qwen3vl", "qwen3vlmoe"})
#: Those whose checkpoints come with an encoder or without, and the tags of the Hub
#: (``pipeline_tag``) that the converter copies from the card of one with it. What carries
#: such a tag elsewhere may have an encoder that llama.cpp doesn't know.
_TAGGED = frozenset(
    {"gemma3", "gemma3n", "gemma4", "lfm2", "llama4", "mistral3", "qwen35", "qwen35moe"}
)
_TAGS = frozenset({"any-to-any", "audio-text-to-text", "image-text-to-text", "video-text-to-text"})
#: Names of a checkpoint's tensors that are an encoder's.
_TOWER = re.compile(r"visual\.|vision_|audio_|vpm\.")


class Classified(Struct, frozen=True):
    """What a file is."""

    kind: SubjectKind
    #: ``None`` for a model, and for what goes with none.
    companion: CompanionKind | None = None
    #: What it is, where nothing but its structure can be looked at; else "".
    foreign: str = ""


def classify(gguf: Gguf) -> Classified:
    """Say what a file is, by what it holds, ``general.type`` and its architecture."""
    type_, architecture = gguf.string("general.type"), gguf.architecture
    names = gguf.tensors
    if _is_adapter(gguf):
        return Classified("adapter", "adapter")
    if any(_WEIGHT.fullmatch(name) for name in names):
        # Whatever it calls itself: a label must not switch an audit off.
        return Classified("model")
    if type_ == "mmproj" or architecture == "clip" or _is_projector(gguf):
        return Classified("mmproj", "mmproj")
    if type_ == "imatrix" or architecture == "imatrix" or _all_end(gguf, _IMATRIX):
        return Classified("imatrix", "imatrix")
    if architecture == "controlvector" or (names and all(map(_DIRECTION.fullmatch, names))):
        return Classified("other", "controlvector")
    if not names and gguf.array("tokenizer.ggml.tokens") is not None:
        return Classified("vocabulary")
    foreign = _foreign(gguf)
    if foreign:
        named = f"{architecture}: " if architecture else ""
        return Classified("other", foreign=named + foreign)
    return Classified("model" if architecture is not None or names else "other")


def _foreign(gguf: Gguf) -> str:
    """Return what a file without any weights of a language model is; "" for a broken one."""
    known = _FOREIGN.get(gguf.architecture or "")
    if known is None and any(name.startswith(_DIFFUSION) for name in gguf.tensors):
        known = "an image or video model"
    if known is not None:
        return f"{known}, none of llama.cpp's"
    if not gguf.tensors or any(key.startswith("tokenizer.") for key in gguf.fields):
        return ""
    if gguf.architecture is not None and arch.by_name(gguf.architecture) is not None:
        return ""
    return "no language model, it has neither a tokenizer nor the tensors of one"


def _is_adapter(gguf: Gguf) -> bool:
    """Tell whether every tensor is half of a pair, or a norm beside such.

    A label alone says so only of a file without any weights.
    """
    if _all_end(gguf, (*_LORA, _NORM)) and any(name.endswith(_LORA) for name in gguf.tensors):
        return True
    labelled = gguf.string("general.type") == "adapter"
    return labelled and not any(_WEIGHT.fullmatch(name) for name in gguf.tensors)


def _all_end(gguf: Gguf, endings: tuple[str, ...]) -> bool:
    return bool(gguf.tensors) and all(name.endswith(endings) for name in gguf.tensors)


def _is_projector(gguf: Gguf) -> bool:
    return any(
        key in ("clip.projector_type", "clip.has_vision_encoder", "clip.has_audio_encoder")
        for key in gguf.fields
    )


def is_old_imatrix(path: str) -> bool:
    """Tell whether a file's name is that of an importance matrix from before GGUF."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    return name.endswith(".dat") and "imatrix" in name


def companion_of(
    gguf: Gguf, kind: CompanionKind, reference: Checkpoint | AuditError | None
) -> Companion:
    """Return a file that goes with a model, and what is known of that model."""
    if not isinstance(reference, Checkpoint):
        missing = NO_REFERENCE if reference is None else UNREAD_REFERENCE
        return Companion(kind=kind, gguf=gguf, checkpoint=missing, base=missing)
    return Companion(kind=kind, gguf=gguf, checkpoint=reference, base=_base(reference))


def _base(reference: Checkpoint) -> Fields | Absent:
    """Return the metadata of the model that a companion goes with."""
    if isinstance(reference.config, Absent) and reference.gguf is None:
        return reference.config
    try:
        return expected_fields(reference)
    except AuditError as error:
        # The companion isn't made of what can't be read here: its rules say what they miss.
        return Absent(error.message)


def projector_of(gguf: Gguf, path: str) -> ProjectorMember | None:
    """Return what a projector file wants of a text model, ``None`` where it doesn't say."""
    found = encodings(gguf)
    widths = [width_of(gguf, each) for each in found]
    known = tuple(width for width in widths if width is not None)
    if not known:
        return None
    return ProjectorMember(name=path, widths=known, type=found[0].type or "")


def encoder_of(gguf: Gguf, checkpoint: Checkpoint | None) -> str:
    """Return what says that a model has an encoder that llama.cpp takes from another file.

    That is the model itself or the checkpoint that it was made from; "" for nothing.
    Raises AuditError where the file can't be read any more.
    """
    architecture = gguf.architecture
    if architecture in _HALVES:
        return f"its architecture is {architecture}"
    tags = gguf.array("general.tags") if architecture in _TAGGED else None
    for tag in () if tags is None else tags.texts():
        if (text := tag.decode("utf-8", "replace")) in _TAGS:
            return f"general.tags has {text}"
    if checkpoint is None or isinstance(checkpoint.config, Absent):
        return ""
    if not takes_projector(checkpoint.config) or not _has_tower(checkpoint):
        return ""
    return f"{checkpoint.id} has an encoder"


def _has_tower(checkpoint: Checkpoint) -> bool:
    """Tell whether nothing is known against an encoder: a model may have been cut out of one."""
    try:
        tensors = checkpoint.tensors
    except AuditError:
        return True  # Whoever compares tensors says what is the matter with them.
    return isinstance(tensors, Absent) or not tensors or any(map(_TOWER.search, tensors))
