"""What rules of companions are shown in tests: a small projector, an adapter, their references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gguf_audit.checkpoint import Checkpoint, Json, PeftAdapter, StoredTensor
from gguf_audit.evidence import NO_REFERENCE, Companion, CompanionKind
from gguf_audit.fields import Fields
from gguf_audit.formats.checkpoint import checkpoint_of
from gguf_audit.gguf import Gguf, Scalar, ValueType
from gguf_audit.parts import Absent
from gguf_audit.testing import FieldValue, make_gguf
from rule_subjects import UNKNOWN, checkpoint

Tensors = Mapping[str, Sequence[int]]


def encoder(prefix: str, *, blocks: int = 2, width: int = 32) -> Tensors:
    """Return the tensors of an encoder's blocks, the ordinary ones."""
    layers: dict[str, Sequence[int]] = {}
    for index in range(blocks):
        block = f"{prefix}.blk.{index}"
        for layer in ("attn_q", "attn_k", "attn_v", "attn_out"):
            layers[f"{block}.{layer}.weight"] = (width, width)
            layers[f"{block}.{layer}.bias"] = (width,)
        for layer in ("ln1", "ln2"):
            layers[f"{block}.{layer}.weight"] = (width,)
        layers[f"{block}.ffn_up.weight"] = (width, 2 * width)
        layers[f"{block}.ffn_down.weight"] = (2 * width, width)
    return layers


#: A right projector of a small Gemma 3, as the converter writes it.
GEMMA: Mapping[str, FieldValue] = {
    "general.architecture": "clip",
    "general.type": "mmproj",
    "clip.has_vision_encoder": True,
    "clip.vision.projection_dim": 64,
    "clip.vision.image_size": 32,
    "clip.vision.patch_size": 8,
    "clip.vision.embedding_length": 32,
    "clip.vision.feed_forward_length": 64,
    "clip.vision.block_count": 2,
    "clip.vision.attention.head_count": 2,
    "clip.vision.image_mean": (ValueType.FLOAT32, [0.5, 0.5, 0.5]),
    "clip.vision.image_std": (ValueType.FLOAT32, [0.25, 0.5, 0.75]),
    "clip.projector_type": "gemma3",
    "clip.vision.attention.layer_norm_epsilon": 1e-6,
    "clip.use_gelu": True,
    "clip.vision.projector.scale_factor": 2,
}
GEMMA_TENSORS: Tensors = {
    "mm.input_projection.weight": (64, 32),
    "mm.soft_emb_norm.weight": (32,),
    "v.patch_embd.bias": (32,),
    "v.patch_embd.weight": (8, 8, 3, 32),
    "v.position_embd.weight": (32, 16),
    "v.post_ln.weight": (32,),
    **encoder("v"),
}
GEMMA_CONFIG: Mapping[str, Json] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 32,
        "image_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "patch_size": 8,
    },
}
GEMMA_COLOURS: Mapping[str, Json] = {
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.25, 0.5, 0.75],
    "image_seq_length": 4,
}
#: The projector of a small Qwen2-Audio.
AUDIO: Mapping[str, FieldValue] = {
    "general.architecture": "clip",
    "general.type": "mmproj",
    "clip.has_audio_encoder": True,
    "clip.audio.projection_dim": 64,
    "clip.audio.embedding_length": 32,
    "clip.audio.feed_forward_length": 64,
    "clip.audio.block_count": 2,
    "clip.audio.attention.head_count": 2,
    "clip.projector_type": "qwen2a",
    "clip.audio.num_mel_bins": 32,
    "clip.audio.attention.layer_norm_epsilon": 1e-5,
}
AUDIO_TENSORS: Tensors = {
    "a.conv1d.1.weight": (3, 32, 32),
    "a.conv1d.1.bias": (1, 32),
    "a.conv1d.2.weight": (3, 32, 32),
    "a.conv1d.2.bias": (1, 32),
    "a.position_embd.weight": (32, 1500),
    "a.post_ln.weight": (32,),
    **encoder("a"),
    "mm.a.fc.weight": (32, 64),
    "mm.a.fc.bias": (64,),
}


_LAYERS: Tensors = {
    "self_attn.q_proj": (32, 32),
    "self_attn.k_proj": (32, 32),
    "self_attn.v_proj": (32, 32),
    "self_attn.out_proj": (32, 32),
    "mlp.fc1": (64, 32),
    "mlp.fc2": (32, 64),
    "layer_norm1": (32,),
    "layer_norm2": (32,),
}


def stored(layers: str) -> Tensors:
    """Return the tensors of a checkpoint that become the blocks of an encoder."""
    return {
        f"{layers}.{index}.{layer}.weight": shape
        for index in range(2)
        for layer, shape in _LAYERS.items()
    } | {
        f"{layers}.{index}.self_attn.{name}_proj.bias": (32,)
        for index in range(2)
        for name in ("q", "k", "v", "out")
    }


_TOWER = "vision_tower.vision_model"
#: What the small projectors were made of.
GEMMA_STORED: Tensors = {
    f"{_TOWER}.embeddings.patch_embedding.weight": (32, 3, 8, 8),
    f"{_TOWER}.embeddings.patch_embedding.bias": (32,),
    f"{_TOWER}.embeddings.position_embedding.weight": (16, 32),
    f"{_TOWER}.post_layernorm.weight": (32,),
    **stored(f"{_TOWER}.encoder.layers"),
    "language_model.model.layers.0.self_attn.q_proj.weight": (64, 64),
}
AUDIO_STORED: Tensors = {
    "audio_tower.layer_norm.weight": (32,),
    "audio_tower.embed_positions.weight": (1500, 32),
    **stored("audio_tower.layers"),
}


def file(
    fields: Mapping[str, FieldValue],
    tensors: Tensors,
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] | None = None,
    shapes: Tensors | None = None,
) -> Gguf:
    """Return a file like another, without some keys and tensors, with others changed."""
    keys = {key: value for key, value in {**fields, **(changed or {})}.items() if key not in lost}
    kept = {name: size for name, size in {**tensors, **(shapes or {})}.items() if name not in lost}
    return make_gguf(keys, [(name, tuple(size), "F32") for name, size in kept.items()])


def gemma(
    *,
    lost: Sequence[str] = (),
    changed: Mapping[str, FieldValue] | None = None,
    shapes: Tensors | None = None,
) -> Gguf:
    """Return the small projector, without some keys and tensors, with others changed."""
    return file(GEMMA, GEMMA_TENSORS, lost=lost, changed=changed, shapes=shapes)


def companion(
    gguf: Gguf,
    kind: CompanionKind = "mmproj",
    *,
    reference: Checkpoint | Absent = NO_REFERENCE,
    base: Mapping[str, Scalar] | Absent = NO_REFERENCE,
) -> Companion:
    """Return a file that goes with a model, beside its reference and that model's metadata."""
    fields: Fields | Absent
    if isinstance(base, Absent):
        fields = base
    else:
        fields = Fields.of(next(iter(base)).partition(".")[0], base)
    return Companion(kind=kind, gguf=gguf, checkpoint=reference, base=fields)


def seeing(
    config: Mapping[str, Json], preprocessor: Mapping[str, Json] | Absent = UNKNOWN
) -> Checkpoint:
    """Return a reference that says how images are seen."""
    return replace(checkpoint(), config=config, load_preprocessor=lambda: preprocessor)


def adapting(
    config: Mapping[str, Json], tensors: Mapping[str, Sequence[int]] | Absent = UNKNOWN
) -> Checkpoint:
    """Return a reference that holds a PEFT adapter."""
    stored: Mapping[str, StoredTensor] | Absent
    if isinstance(tensors, Absent):
        stored = tensors
    else:
        stored = {
            name: StoredTensor(dtype="F32", shape=tuple(shape)) for name, shape in tensors.items()
        }
    adapter = PeftAdapter(config=config, tensors=stored)
    return replace(checkpoint(), load_adapter=lambda: adapter)


def based(gguf: Gguf) -> Checkpoint:
    """Return another GGUF as the reference: the model that a companion goes with."""
    return checkpoint_of(gguf)


__all__ = [
    "AUDIO",
    "AUDIO_STORED",
    "AUDIO_TENSORS",
    "GEMMA",
    "GEMMA_COLOURS",
    "GEMMA_CONFIG",
    "GEMMA_STORED",
    "GEMMA_TENSORS",
    "Tensors",
    "adapting",
    "based",
    "companion",
    "encoder",
    "file",
    "gemma",
    "seeing",
]
