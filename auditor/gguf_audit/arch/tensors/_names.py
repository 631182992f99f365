"""Names: what becomes of a checkpoint's tensor in the converter.

``conversion/*.py`` (``modify_tensors``, ``filter_tensors``) and gguf-py's tensor mapping,
llama.cpp build 11434; held against conversions tensor by tensor.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from msgspec import Struct

from gguf_audit.arch.tensors._tables import rows_of

__all__ = ["CONVERTED", "Becomes", "Namer"]

#: Architectures whose conversion we have seen, tensor by tensor.
CONVERTED = frozenset(
    [
        "afmoe",
        "apertus",
        "arcee",
        "bert",
        "bloom",
        "chatglm",
        "cohere2",
        "cohere2moe",
        "command-r",
        "deepseek2",
        "deepseek32",
        "dots1",
        "ernie4_5",
        "ernie4_5-moe",
        "exaone-moe",
        "exaone4",
        "falcon",
        "falcon-h1",
        "gemma",
        "gemma-embedding",
        "gemma2",
        "gemma3",
        "gemma3n",
        "gemma4",
        "glm-dsa",
        "glm4",
        "glm4moe",
        "gpt-oss",
        "gpt2",
        "gptneox",
        "granite",
        "granite_swa",
        "granitehybrid",
        "granitemoe",
        "hunyuan-dense",
        "jais2",
        "jamba",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "llama",
        "llama4",
        "mamba",
        "mamba2",
        "mimo2",
        "minicpm3",
        "minimax-m2",
        "mistral3",
        "modern-bert",
        "mpt",
        "nemotron",
        "nemotron_h",
        "nomic-bert",
        "olmo",
        "olmo2",
        "olmoe",
        "phi2",
        "phi3",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen35",
        "qwen35moe",
        "qwen3moe",
        "qwen3next",
        "qwen3vl",
        "rwkv7",
        "seed_oss",
        "smollm3",
        "stablelm",
        "starcoder",
        "starcoder2",
    ]
)

#: Tensors that the converter never writes: buffers, towers of other modalities (they go
#: to a file of their own), pooling heads, the numbers by which quantized weights are scaled.
DROPPED = re.compile(
    r"""
    .*(\.attention\.(masked_)?bias|\.attn\.(masked_)?bias|rotary_emb\.inv_freq)$
  | ^(mlp|vit\.|vpm\.|siglip2\.|conformer\.|merger\.|resampler\.|sound_encoder\.|sound_projection\.)
  | ^speech_embeddings\.
  | .*(visual\.|vision\.|audio\.|talker\.|vision_|audio_|token2wav\.|code2wav\.|projector\.)
  | .*(pre_mm_projector_norm|image_newline|view_seperator|patch_embed|patch_merge|model\.connector\.)
  | .*(embeddings\.position_ids|^pooler\.|\.pooler\.|cls\.predictions|cls\.seq_relationship)
  | ^pooler\.dense\.
  | .*(_scale_inv|weight_scale|input_scale|activation_scale|k_scale|v_scale|weight_scale_2)$
  | .*act_fn\.(alpha_n|alpha_p|beta|eps)$
    """,
    re.VERBOSE,
)

#: What a model of several modalities calls its language model.
_TEXT_PARTS = ("language_model.", "text_model.")
#: In front of a block's number.
_BLOCK = re.compile(r"((?:.*?\.)?(?:layers|layer|h|blocks|block)\.)([0-9]{1,5})(\..+)")
#: Multi-token prediction in a part of its own, whose blocks come after the trunk's.
_MTP = re.compile(r"(?:model\.)?mtp\.(?:layers\.([0-9]{1,5}))?(.*)")
_MTP_PARTS = {
    "fc": ".eh_proj",
    "pre_fc_norm_embedding": ".enorm",
    "pre_fc_norm_hidden": ".hnorm",
    "norm": ".shared_head.norm",
}
#: What the released code of RWKV-7 calls the parts of a block -> its names of old, which
#: the mapping has (``filter_tensors`` in conversion/rwkv.py).
_RWKV = (
    (re.compile(r"\.attn\.g_norm\."), ".attention.ln_x."),
    (re.compile(r"\.(?:attn|self_attn)\."), ".attention."),
    (re.compile(r"\.attn_norm\."), ".attention_norm."),
    (re.compile(r"\.ffn\."), ".feed_forward."),
    (re.compile(r"\.ffn_norm\."), ".ln2."),
    (re.compile(r"\.pre_norm\."), ".ln0."),
)
#: Names that mean another tensor in one architecture than in the others.
_OWN = {("glm4", ".post_attention_layernorm"): ("ffn_norm",)}
#: In front of a model that a head for some task wraps.
_PREFIX = re.compile(r"^(?:model|transformer|bert|roberta|distilbert)\.")
_EXPERT = re.compile(
    r"\.(?:mlp|feed_forward|block_sparse_moe|moe|mixer)\.experts\.[0-9]{1,5}"
    r"\.(w[123]|gate_proj|up_proj|down_proj)\.weight"
)
_EXPERT_PARTS = {"w1": "gate", "gate_proj": "gate", "w2": "down", "down_proj": "down"}
#: A block's tensor that becomes several, or one that has no name in the mapping.
_SPLITS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), tuple(targets.split()))
    for pattern, targets in (
        (r"\.(?:mlp|feed_forward)\.experts\.gate_up_proj(?:\.weight|_blocks)?", "ffn_gate_exps.weight ffn_up_exps.weight"),
        (r"\.experts\.gate_up_proj(?:\.weight)?", "ffn_gate_exps.weight ffn_up_exps.weight"),
        (r"\.mlp\.experts\.gate_up_proj_bias", "ffn_gate_exps.bias ffn_up_exps.bias"),
        (r"\.(?:(?:mlp|feed_forward)\.)?experts\.down_proj(?:\.weight|_blocks)?", "ffn_down_exps.weight"),
        (r"\.mlp\.experts\.down_proj_bias", "ffn_down_exps.bias"),
        (r"\.mlp\.experts\.(?:gate_up|down)_proj_scales", ""),
        (r"\.block_sparse_moe\.input_linear\.weight", "ffn_gate_exps.weight ffn_up_exps.weight"),
        (r"\.linear_attn\.in_proj_qkvz\.weight", "attn_qkv.weight attn_gate.weight"),
        (r"\.(?:linear_attn|self_attn|mixer|mamba)\.dt_bias", "ssm_dt.bias"),
        (r"\.router\.scale", "ffn_gate_inp.scale"),
        (r"\..*per_expert_scale", "ffn_down_exps.scale"),
        (r"\.attention\.x_[rwkvag]", "time_mix_lerp_fused.weight"),
        *(
            (rf"\.attention\.{lora}_lora\.lora\.{part}", f"time_mix_{lora}{index}.weight")
            for lora in "wavg"
            for part, index in ((r"0\.weight", 1), (r"2\.weight", 2), (r"2\.bias", 0))
        ),
    )
)  # fmt: skip


class Becomes(Struct, frozen=True):
    """What one tensor of a checkpoint becomes: names without the block, or nothing."""

    names: tuple[str, ...]


class Namer:
    """Names the tensors of one architecture's checkpoints as the converter does."""

    def __init__(self, architecture: str, *, trunk: int, latent: bool, experts: bool) -> None:
        rows = rows_of(architecture) or ()
        self.architecture = architecture
        self.trunk = trunk
        #: Keys and values are projected from a latent by tensors of their own.
        self.latent = latent
        self.experts = experts
        self.once = frozenset(row.name for row in rows if row.scope == "model")
        self.each = frozenset(row.name for row in rows if row.scope != "model")
        self._blocks: dict[tuple[str, str], Becomes | None] = {}

    def place(self, name: str) -> tuple[int | None, Becomes | None]:
        """Return the block and what the tensor becomes there, ``None`` for who knows."""
        for part in _TEXT_PARTS:
            if part in name:
                name = name.replace(part, "")
        found = _BLOCK.fullmatch(name)
        if found is not None and "mtp." not in name:
            prefix, block, rest = found.groups()
            if self.architecture == "rwkv7":
                return self._of_rwkv(block, rest)
            return int(block), self._in_block(rest, prefix)
        if DROPPED.match(name):
            return None, Becomes(())
        draft = _MTP.fullmatch(name)
        if draft is None:
            return None, self._named(name, self.once)
        rest = draft[2]
        if draft[1] is None:
            stem, _, suffix = rest.rpartition(".")
            if stem not in _MTP_PARTS:
                return None, None
            rest = f"{_MTP_PARTS[stem]}.{suffix}"
        return self.trunk + int(draft[1] or 0), self._in_block(rest)

    def _of_rwkv(self, block: str, rest: str) -> tuple[int | None, Becomes | None]:
        for pattern, old in _RWKV:
            rest = pattern.sub(old, rest)
        if block == "0" and ".v_lora." in rest:
            # the first block mixes no value in; the converter fills its place
            return 0, Becomes(())
        if block == "0" and rest.startswith(".ln0."):
            return None, self._known_once(f"token_embd_norm{rest[4:]}")
        return int(block), self._in_block(rest)

    def _known_once(self, name: str) -> Becomes | None:
        return Becomes((name,)) if name in self.once else None

    def _in_block(self, rest: str, prefix: str = "") -> Becomes | None:
        # experts make tens of thousands of names, but every block has the same
        if (prefix, rest) not in self._blocks:
            dropped = DROPPED.match(f"{prefix}0{rest}") is not None
            self._blocks[prefix, rest] = Becomes(()) if dropped else self._of_block(rest)
        return self._blocks[prefix, rest]

    def _of_block(self, rest: str) -> Becomes | None:
        expert = _EXPERT.fullmatch(rest)
        if expert is not None:
            return self._known(f"ffn_{_EXPERT_PARTS.get(expert[1], 'up')}_exps.weight")
        for pattern, targets in _SPLITS:
            if pattern.fullmatch(rest):
                return self._known(*targets)
        if rest == ".self_attn.kv_b_proj.weight" and self.latent:
            return self._known("attn_k_b.weight", "attn_v_b.weight")
        if rest.startswith(".shared_mlp."):
            return self._shared(rest)
        return self._named(rest, self.each)

    def _shared(self, rest: str) -> Becomes | None:
        """Return what becomes of the feed-forward part that Granite's experts share."""
        parts = ("gate", "up") if rest == ".shared_mlp.input_linear.weight" else ("down",)
        suffix = "_shexp" if self.experts else ""
        return self._known(*(f"ffn_{part}{suffix}.weight" for part in parts))

    def _known(self, *targets: str) -> Becomes | None:
        scales = (".scale", ".input_scale")
        there = all(name in self.each or name.endswith(scales) for name in targets)
        return Becomes(targets) if there else None

    def _named(self, name: str, there: frozenset[str]) -> Becomes | None:
        if name.endswith("e_score_correction_bias"):
            name = f"{name.removesuffix('_bias')}.bias"
        stem, _, suffix = name.rpartition(".")
        if suffix not in ("weight", "bias"):
            stem, suffix = name, ""
        for base in _OWN.get((self.architecture, stem)) or _bases(stem):
            full = (f"{base}.{suffix}",) if suffix else (base, f"{base}.weight", f"{base}.bias")
            for candidate in full:
                if candidate in there:
                    return Becomes((candidate,))
        return None


def _bases(stem: str) -> tuple[str, ...]:
    """Return what a tensor may be called, whatever model class it is in."""
    found = _mapping().get(stem)
    if found is None and not stem.startswith("."):
        found = _mapping().get(_PREFIX.sub("", stem)) or _mapping().get(f"model.{stem}")
    return found or ()


@functools.cache
def _mapping() -> dict[str, tuple[str, ...]]:
    """Return a checkpoint's name -> names in a GGUF file, the preferred one first."""
    text = Path(__file__).with_name("names.txt").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.replace("\n    ", " ").splitlines():
        name, colon, aliases = line.partition(": ")
        if colon and not line.startswith("#"):
            for alias in aliases.split():
                found[alias] = (*found.get(alias, ()), name)
    return found
