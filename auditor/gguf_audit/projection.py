"""What the official converter writes into a projector file for a checkpoint.

Facts from llama.cpp build 11434: conversion/base.py, ``MmprojModel.set_gguf_parameters``,
and the classes that fill it in; compared with the files that they made of fourteen
checkpoints. Values that transformers' configuration classes fill in (5.24, and 4.57)
count as published. For a type that isn't here nothing is expected but mean and deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from gguf_audit.checkpoint import Json
from gguf_audit.parts import Absent

__all__ = [
    "ACTIVATION",
    "Wanted",
    "expected_projector",
    "projector_types",
    "takes_projector",
    "vision_part",
]

#: Stands for ``clip.use_gelu`` and ``clip.use_silu``: ``gelu``, ``silu``, or ``quick_gelu``
#: where neither is true.
ACTIVATION = "activation"

Scalar = int | float | str
#: Every value that is right.
Values = tuple[Scalar | tuple[Scalar, ...], ...]


class Wanted(Struct, frozen=True, kw_only=True):
    """What a right conversion says."""

    #: Key after ``clip.<encoder>.`` (or ``ACTIVATION``) -> the values that are right.
    values: Mapping[str, Values]
    #: What the runtime takes where the key is absent, for those that have such.
    defaults: Mapping[str, Scalar]
    #: Blocks that feed a layer of the text model of their own; ``None`` where unknown.
    fed: tuple[int, ...] | None = None
    #: What the runtime computes with otherwise, whatever a file says: name in the part of
    #: the configuration -> what that says, what the runtime takes.
    built_in: Mapping[str, tuple[float, float]]
    #: Of which keys nobody knows what is right, and why.
    unknown: str = ""


#: ``model_type`` of a checkpoint -> types of projectors that go with it.
_TYPES: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("gemma3",),
    "gemma3n": ("gemma3nv", "gemma3na"),
    "gemma4": ("gemma4v", "gemma4a"),
    "qwen2_vl": ("qwen2vl_merger",),
    "qwen2_5_vl": ("qwen2.5vl_merger",),
    "qwen2_5_omni": ("qwen2.5vl_merger", "qwen2a"),
    "qwen3_vl": ("qwen3vl_merger",),
    "qwen3_vl_moe": ("qwen3vl_merger",),
    "qwen3_5": ("qwen3vl_merger",),
    "qwen3_5_moe": ("qwen3vl_merger",),
    "mistral3": ("pixtral", "lightonocr"),
    "idefics3": ("idefics3",),
    "smolvlm": ("idefics3",),
    "lfm2_vl": ("lfm2",),
    "lfm2-vl": ("lfm2",),
    "internvl_chat": ("internvl",),
    "internvl": ("internvl",),
    "minicpmv4_6": ("minicpmv4_6",),
    "qwen2_audio": ("qwen2a",),
    "voxtral": ("voxtral",),
    "llama4": ("llama4",),
}
#: LLaVA's class holds Pixtral too; which of them says the type of its vision part.
_LLAVA: Mapping[str, tuple[str, ...]] = {
    "pixtral": ("pixtral",),
    "clip_vision_model": ("mlp", "ldp", "ldpv2"),
}

_SIGLIP: Mapping[str, Json] = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 16,
    "layer_norm_eps": 1e-6,
}
_IDEFICS: Mapping[str, Json] = {
    **_SIGLIP,
    "hidden_size": 1152,
    "num_attention_heads": 16,
    "patch_size": 32,
}
_QWEN: Mapping[str, Json] = {"depth": 32, "num_heads": 16, "patch_size": 14}
#: ``model_type`` of an encoder, or of the model that it is in -> what its class fills in.
_FILLED: Mapping[str, Mapping[str, Json]] = {
    "siglip_vision_model": _SIGLIP,
    "siglip2_vision_model": _SIGLIP,
    "clip_vision_model": {**_SIGLIP, "patch_size": 32, "layer_norm_eps": 1e-5},
    "pixtral": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": 1024,
        "patch_size": 16,
    },
    "idefics3_vision": _IDEFICS,
    "smolvlm_vision": _IDEFICS,
    "qwen2_vl": {**_QWEN, "embed_dim": 1280, "hidden_size": 3584},
    "qwen2_5_vl": {
        **_QWEN,
        "hidden_size": 3584,
        "intermediate_size": 3420,
        "fullatt_block_indexes": [7, 15, 23, 31],
    },
    "qwen3_vl": {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "patch_size": 16,
        "spatial_merge_size": 2,
    },
    "qwen2_audio_encoder": {
        "d_model": 1280,
        "encoder_layers": 32,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "num_mel_bins": 128,
    },
    "voxtral_encoder": {
        "hidden_size": 1280,
        "intermediate_size": 5120,
        "num_hidden_layers": 32,
        "num_attention_heads": 20,
        "num_mel_bins": 128,
    },
}

_WIDTH = ("hidden_size", "width", "vt_hidden_size", "d_model")
_FEED_FORWARD = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")
_HEADS = (
    *("num_attention_heads", "num_heads", "heads", "vt_num_attention_heads"),
    "encoder_attention_heads",
)
#: ``MmprojModel.n_block_keys``.
_BLOCKS = (
    *("n_layers", "num_hidden_layers", "n_layer", "num_layers", "depth", "layers"),
    *("encoder_layers", "vt_num_hidden_layers"),
)


class _Part:
    """One encoder's part of a ``config.json``, what its class fills in included."""

    def __init__(self, config: Mapping[str, Json], name: str) -> None:
        self.root = config
        own = config.get(name)
        self.own: Mapping[str, Json] = own if isinstance(own, dict) else {}
        type_ = str(self.own.get("model_type") or config.get("model_type") or "")
        self.filled = _FILLED.get(type_, {})

    def integer(self, *names: str, root: bool = False) -> int | None:
        """Return the first of these that is a number, written before filled in."""
        places = (self.root,) if root else (self.own, self.filled)
        for place in places:
            for name in names:
                value = place.get(name)
                if isinstance(value, list) and value:
                    value = value[0]
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return None

    def number(self, *names: str, root: bool = False) -> float | None:
        for place in (self.root,) if root else (self.own, self.filled):
            for name in names:
                value = place.get(name)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return float(value)
        return None

    def text_number(self, name: str) -> float | None:
        text = self.root.get("text_config")
        value = text.get(name) if isinstance(text, dict) else None
        return float(value) if isinstance(value, int | float) else None

    def string(self, name: str) -> str | None:
        value = self.own.get(name)
        return value if isinstance(value, str) else None

    def integers(self, name: str) -> tuple[int, ...] | None:
        value = self.own.get(name, self.filled.get(name))
        if not isinstance(value, list):
            return None
        return tuple(item for item in value if isinstance(item, int))


Draft = dict[str, Values | None]
Preprocessor = Mapping[str, Json]
Make = Callable[[_Part, Preprocessor], Draft]


def vision_part(config: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the config of the whole of which the encoders' parts are parts."""
    thinker = config.get("thinker_config")
    return thinker if isinstance(thinker, dict) else config


def projector_types(config: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the types of projectors that go with a checkpoint; empty where nobody knows."""
    type_ = config.get("model_type")
    if type_ == "llava":
        vision = config.get("vision_config")
        inner = vision.get("model_type") if isinstance(vision, dict) else None
        return _LLAVA.get(str(inner), ())
    return _TYPES.get(str(type_), ())


def takes_projector(config: Mapping[str, Json]) -> bool:
    """Tell whether a checkpoint has an encoder that the converter makes a projector file of.

    False too for encoders that this table doesn't know. A class that is called so has one
    whether or not its part is written down.
    """
    if not projector_types(config):
        return False
    whole, classes = vision_part(config), config.get("architectures")
    if any(isinstance(whole.get(part), dict) for part in ("vision_config", "audio_config")):
        return True
    first = classes[0] if isinstance(classes, list) and classes else None
    return isinstance(first, str) and first.endswith("ForConditionalGeneration")


def expected_projector(
    config: Mapping[str, Json], preprocessor: Preprocessor | Absent, type_: str, encoder: str
) -> Wanted:
    """Return what a right conversion says of one encoder with a projector of this type."""
    known: Preprocessor = {} if isinstance(preprocessor, Absent) else preprocessor
    name = "vision_config" if encoder == "vision" else "audio_config"
    part = _Part(vision_part(config), name)
    draft: Draft = {}
    unknown = ""
    make = _MAKERS.get(type_)
    if make is None:
        unknown = f"what the converter writes for projector {type_!r} isn't known here"
    elif not part.own:
        unknown = f"the reference's config.json has no {name}"
    else:
        draft = make(part, known)
    if encoder == "vision" and type_ not in _CONSTANT:
        draft |= {key: _triple(known.get(key)) for key in ("image_mean", "image_std")}
        if isinstance(preprocessor, Absent):
            unknown = "; ".join(filter(None, (unknown, preprocessor.reason)))
    return Wanted(
        values={key: values for key, values in draft.items() if values is not None},
        defaults=_DEFAULTS.get(type_, {}),
        fed=part.integers("deepstack_visual_indexes"),
        built_in=_differing(part, type_),
        unknown=unknown,
    )


def _differing(part: _Part, type_: str) -> Mapping[str, tuple[float, float]]:
    """Return what a part of a configuration says that no file can: see ``Wanted.built_in``."""
    found: dict[str, tuple[float, float]] = {}
    for name, taken in _BUILT_IN.get(type_, {}).items():
        said = part.number(name)
        if said is None:
            inner = part.own.get("rope_parameters")
            value = inner.get(name) if isinstance(inner, dict) else None
            said = value if isinstance(value, int | float) else taken
        if said != taken:
            found[name] = (said, taken)
    return found


#: What the graphs of a type compute with (``load_hparams``, models/qwen2vl.cpp).
_BUILT_IN: Mapping[str, Mapping[str, float]] = {
    "pixtral": {"rope_theta": 10000},
    "qwen2vl_merger": {"temporal_patch_size": 2},
    "qwen2.5vl_merger": {"temporal_patch_size": 2},
    "qwen3vl_merger": {"temporal_patch_size": 2},
}
#: Types for which the converter makes up mean and deviation, or looks elsewhere for them.
_CONSTANT = frozenset({"gemma3nv", "deepseek4v", "nemotron_v2_vl", "dots3note_v"})
#: What the loader takes where the key is absent (``load_hparams``).
_DEFAULTS: Mapping[str, Mapping[str, Scalar]] = {
    "gemma3": {"projector.scale_factor": 4},
    "idefics3": {"projector.scale_factor": 1},
    "internvl": {
        "projector.scale_factor": 1,
        "preproc_min_tiles": 1,
        "preproc_max_tiles": 12,
    },
    "lfm2": {"projector.scale_factor": 1},
    "llama4": {"projector.scale_factor": 1},
    "minicpmv4_6": {"projector.scale_factor": 4, "wa_layer_indexes": 0},
    "pixtral": {"spatial_merge_size": 1},
    "qwen2vl_merger": {"spatial_merge_size": 2},
    "qwen2.5vl_merger": {"spatial_merge_size": 2},
    "qwen3vl_merger": {"spatial_merge_size": 2},
}


def _triple(value: Json) -> Values | None:
    if not isinstance(value, list) or len(value) < 3:
        return None
    numbers = [float(item) for item in value if isinstance(item, int | float)]
    return (tuple(numbers),) if len(numbers) == len(value) else None


def _one(value: Scalar | None) -> Values | None:
    return None if value is None else (value,)


def _any(*values: Scalar | None) -> Values | None:
    found = tuple(dict.fromkeys(value for value in values if value is not None))
    return found or None


def _act(name: str | None) -> Values | None:
    return None if name is None else (("gelu",) if name.startswith("gelu") else (name,))


def _sizes(part: _Part) -> Draft:
    """Return what every encoder is measured by."""
    return {
        "embedding_length": _one(part.integer(*_WIDTH)),
        "feed_forward_length": _one(part.integer(*_FEED_FORWARD)),
        "block_count": _one(part.integer(*_BLOCKS)),
        "attention.head_count": _one(part.integer(*_HEADS)),
    }


def _vision(part: _Part, *, act: Values | None = ("gelu",), eps: Iterable[float] = ()) -> Draft:
    written = part.own.get("layer_norm_eps")
    filled = part.number("layer_norm_eps")
    return {
        **_sizes(part),
        "image_size": _one(part.integer("image_size")),
        "patch_size": _one(part.integer("patch_size")),
        # Where none is published, the converter's own default is as right as that of the class.
        "attention.layer_norm_epsilon": _any(filled, *(eps if written is None else ())),
        ACTIVATION: act,
    }


def _gemma3(part: _Part, preprocessor: Preprocessor) -> Draft:
    draft = _vision(part, eps=(1e-6,))
    image, patch = part.integer("image_size"), part.integer("patch_size")
    tokens = preprocessor.get("image_seq_length", 256)
    if preprocessor and image and patch and isinstance(tokens, int) and tokens > 0:
        factor = (image // patch) // math.isqrt(tokens)
        draft["projector.scale_factor"] = (factor or 4,)
    return draft


def _gemma4v(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    # No image has that size: the converter makes it up, the loader needs one.
    return _vision(part, act=None, eps=(1e-6,)) | {"image_size": (224,)}


def _gemma4a(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    width = part.integer("hidden_size")
    return {
        **_sizes(part),
        "feed_forward_length": None if width is None else (4 * width,),
        "num_mel_bins": (part.integer("input_feat_size") or 128,),
    }


def _qwen(part: _Part) -> Draft:
    # Epsilon is the text model's where the converter finds one, and 1e-6 in transformers.
    eps = (1e-6, part.number("rms_norm_eps", root=True), part.text_number("rms_norm_eps"))
    return {
        **_vision(part, act=None),
        "attention.layer_norm_epsilon": _any(*eps),
        "block_count": _one(part.integer("depth")),
        "attention.head_count": _one(part.integer("num_heads")),
        "spatial_merge_size": _one(part.integer("spatial_merge_size")),
    }


def _qwen2vl(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    return _qwen(part) | {
        "embedding_length": _one(part.integer("embed_dim")),
        # The converter writes the text model's width, an older one 0: llama.cpp reads it
        # and looks at the tensors.
        "feed_forward_length": None,
        "image_size": (part.integer("image_size") or 560,),
        ACTIVATION: ("quick_gelu",),
    }


def _qwen25vl(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    full = part.integers("fullatt_block_indexes")
    return _qwen(part) | {
        "image_size": (part.integer("image_size") or 560,),
        "n_wa_pattern": None if not full else (full[0] + 1,),
        ACTIVATION: ("silu",),
    }


def _qwen3vl(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    image, places = part.integer("image_size"), part.integer("num_position_embeddings")
    patch = part.integer("patch_size")
    if image is None and places and patch:
        image = int(places**0.5 * patch)
    return _qwen(part) | {"image_size": _one(image), ACTIVATION: ("gelu",)}


def _pixtral(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    merge = part.integer("spatial_merge_size", root=True)
    if merge is None:
        merge = 2 if part.root.get("model_type") == "mistral3" else 1
    draft = _vision(part, act=_act(part.string("hidden_act")), eps=(1e-5,))
    return draft | {"spatial_merge_size": (merge,)}


def _internvl(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    ratio = part.number("downsample_ratio", root=True)
    low = part.integer("min_dynamic_patch", root=True)
    high = part.integer("max_dynamic_patch", root=True)
    return _vision(part, act=_act(part.string("hidden_act")), eps=(1e-6,)) | {
        "projector.scale_factor": None if not ratio else (int(1.0 / ratio),),
        "preproc_min_tiles": _one(low or None),
        "preproc_max_tiles": _one(high or None),
    }


def _idefics3(part: _Part, preprocessor: Preprocessor) -> Draft:
    size = preprocessor.get("size")
    longest = size.get("longest_edge") if isinstance(size, dict) else None
    preprocessed = longest if isinstance(longest, int) else part.integer("image_size")
    return _vision(part, eps=(1e-5,)) | {
        "projector.scale_factor": (part.integer("scale_factor", root=True) or 2,),
        "preproc_image_size": _one(preprocessed if preprocessor else None),
    }


def _lfm2(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    blocks = part.integer(*_BLOCKS)
    layer = part.integer("vision_feature_layer", root=True)
    return _vision(part) | {
        "image_size": (256,),
        "block_count": None if blocks is None else (blocks + (-1 if layer is None else layer) + 1,),
        "projector.scale_factor": (part.integer("downsample_factor", root=True) or 2,),
    }


def _minicpmv(part: _Part, preprocessor: Preprocessor) -> Draft:
    layer = part.integer("insert_layer_id", root=True)
    layer = 6 if layer is None else layer
    # An absent one counts as the first, which is no array.
    draft = _vision(part, eps=(1e-6,)) | {
        "wa_layer_indexes": ((layer,), *((0,) if layer == 0 else ()))
    }
    if not preprocessor:
        return draft | {"image_size": None}
    size = preprocessor.get("scale_resolution")
    if isinstance(size, int):
        draft["image_size"] = (size,)
    factor = 2 if preprocessor.get("downsample_mode", "16x") == "4x" else 4
    return draft | {"projector.scale_factor": (factor,)}


def _llava(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    blocks = part.integer(*_BLOCKS)
    layer = part.integer("vision_feature_layer", root=True)
    used = None if blocks is None else blocks + (-2 if layer is None else layer) + 1
    return _vision(part, act=_act(part.string("hidden_act") or "quick_gelu")) | {
        # Scripts of old write the whole tower or what is used of it.
        "block_count": None if blocks is None else _any(used, blocks, blocks - 1),
    }


def _whisper(part: _Part, preprocessor: Preprocessor) -> Draft:
    del preprocessor
    return {
        **_sizes(part),
        "num_mel_bins": _one(part.integer("num_mel_bins")),
        "attention.layer_norm_epsilon": (part.number("layer_norm_eps") or 1e-5,),
    }


def _voxtral(part: _Part, preprocessor: Preprocessor) -> Draft:
    return _whisper(part, preprocessor) | {"projector.stack_factor": (4,)}


_MAKERS: Mapping[str, Make] = {
    "gemma3": _gemma3,
    "gemma4v": _gemma4v,
    "gemma4a": _gemma4a,
    "qwen2vl_merger": _qwen2vl,
    "qwen2.5vl_merger": _qwen25vl,
    "qwen3vl_merger": _qwen3vl,
    "pixtral": _pixtral,
    "internvl": _internvl,
    "idefics3": _idefics3,
    "lfm2": _lfm2,
    "minicpmv4_6": _minicpmv,
    "mlp": _llava,
    "qwen2a": _whisper,
    "musicflamingo": _whisper,
    "voxtral": _voxtral,
}
