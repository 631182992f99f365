"""Small metadata of our own for every architecture: what llama.cpp is asked about.

Two sizes of each, so that no agreement is a coincidence: ``PLAIN`` and ``VARIANT``
differ in every dimension, in the number of layers (patterns show only over several
of them) and, where an architecture has them, in its periods and per-layer arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue

__all__ = ["PLAIN", "VARIANT", "Dims", "recipe"]

Keys = dict[str, FieldValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dims:
    """The sizes from which a recipe is made."""

    blocks: int
    heads: int
    kv_heads: int
    head: int
    context: int
    window: int
    #: Every how many layers the other kind comes.
    period: int
    #: Rank of a latent, and of its rotary part.
    rank: int
    rope: int

    @property
    def embedding(self) -> int:
        """Width of the model."""
        return self.heads * self.head

    def every(self, value: int, other: int = 0) -> list[int]:
        """Return one number per layer: ``value`` in the last of every period."""
        return [value if (index + 1) % self.period == 0 else other for index in range(self.blocks)]

    def local(self) -> list[bool]:
        """Return which layers have a window: all but the last of every period."""
        return [not full for full in self.every(1)]


PLAIN = Dims(
    blocks=12, heads=8, kv_heads=2, head=64, context=65536, window=1024, period=4, rank=96, rope=32
)
VARIANT = Dims(
    blocks=9, heads=6, kv_heads=3, head=128, context=8192, window=384, period=3, rank=160, rope=64
)


def recipe(architecture: str, dims: Dims) -> Keys:
    """Return metadata, by full key, that llama.cpp takes for a model of this architecture."""
    keys = _common(dims)
    for names, more in _MORE:
        if architecture in names.split():
            keys |= more(dims)
    # These two have no architecture in front (LLM_KV_NAMES in src/llama-arch.cpp).
    bare = ("tokenizer.", "xielu.")
    return {
        "general.architecture": architecture,
        "tokenizer.ggml.model": "none",
        **{
            key if key.startswith(bare) else f"{architecture}.{key}": value
            for key, value in keys.items()
        },
    }


def _common(d: Dims) -> Keys:
    """Return what most architectures read; the others ignore it."""
    return {
        "context_length": d.context,
        "embedding_length": d.embedding,
        "block_count": d.blocks,
        "feed_forward_length": 2 * d.embedding,
        "vocab_size": 256,
        "attention.head_count": d.heads,
        "attention.head_count_kv": d.kv_heads,
        "attention.key_length": d.head,
        "attention.value_length": d.head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.layer_norm_epsilon": 1e-5,
        "rope.dimension_count": d.head,
        "rope.dimension_sections": [d.head // 8] * 4,
        "expert_count": 8,
        "expert_used_count": 2,
        "expert_feed_forward_length": 128,
        "expert_shared_feed_forward_length": 128,
        "expert_shared_count": 1,
        "expert_gating_func": 2,
        "expert_weights_scale": 1.0,
        "expert_weights_norm": True,
        "leading_dense_block_count": 1,
        "logit_scale": 1.0,
        "residual_scale": 1.0,
        "embedding_scale": 1.0,
    }


def _window(d: Dims) -> Keys:
    return {"attention.sliding_window": d.window}


def _pattern(d: Dims) -> Keys:
    return {"attention.sliding_window": d.window, "attention.sliding_window_pattern": d.local()}


def _latent(d: Dims) -> Keys:
    """Return the keys of a latent (MLA) that is kept packed."""
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": d.rank + d.rope,
        "attention.value_length": d.rank,
        "attention.key_length_mla": d.head + d.rope,
        "attention.value_length_mla": d.head,
        "attention.q_lora_rank": 64,
        "attention.kv_lora_rank": d.rank,
        "rope.dimension_count": d.rope,
    }


def _unpacked(d: Dims) -> Keys:
    """Return the keys of a latent whose heads are kept unpacked."""
    return {
        "attention.head_count_kv": d.heads,
        "attention.key_length": d.head + d.rope,
        "attention.value_length": d.head,
        "attention.q_lora_rank": 64,
        "attention.kv_lora_rank": d.rank,
        "rope.dimension_count": d.rope,
    }


def _indexer(d: Dims) -> Keys:
    return {
        "attention.indexer.head_count": 4,
        "attention.indexer.key_length": 2 * d.rope,
        "attention.indexer.top_k": 128,
    }


def _delta(d: Dims) -> Keys:
    """Return the keys of a gated delta net beside full attention."""
    return {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": d.heads * d.head,
        "ssm.state_size": d.head,
        "ssm.time_step_rank": d.heads,
        "ssm.group_count": d.heads // 2,
        "full_attention_interval": d.period,
    }


def _mamba(d: Dims) -> Keys:
    return {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 2 * d.embedding,
        "ssm.state_size": d.head // 4,
        "ssm.time_step_rank": d.head // 2,
        "ssm.group_count": 1,
    }


def _mamba2(d: Dims) -> Keys:
    return _mamba(d) | {"ssm.time_step_rank": 2 * d.heads, "ssm.group_count": d.heads // 2}


def _some_attention(d: Dims) -> Keys:
    """Mark the layers that have attention by their heads."""
    return {"attention.head_count_kv": d.every(d.kv_heads)}


def _kda(d: Dims) -> Keys:
    return _latent(d) | {
        "attention.head_count_kv": d.every(1),
        "ssm.conv_kernel": 4,
        "kda.head_dim": d.head,
        "kda.gate_lower_bound": -5.0,
    }


def _hyper_connections(_: Dims) -> Keys:
    return {
        "hyper_connection.count": 4,
        "hyper_connection.sinkhorn_iterations": 4,
        "hyper_connection.epsilon": 1e-6,
        "hyper_connection.magnitude": 1.0,
        "hyper_connection.low_rank": 32,
    }


def _rwkv(d: Dims) -> Keys:
    return {
        "attention.head_count": 0,
        "attention.head_count_kv": 0,
        "wkv.head_size": d.head,
        "time_mix_extra_dim": 32,
        "time_decay_extra_dim": 64,
        "attention.decay_lora_rank": 32,
        "attention.iclr_lora_rank": 32,
        "attention.value_residual_mix_lora_rank": 32,
        "attention.gate_lora_rank": 64,
    }


def _encoder(_: Dims) -> Keys:
    return {"tokenizer.ggml.token_type_count": 2}


def _heads_alike(d: Dims) -> Keys:
    return {"attention.head_count_kv": d.heads}


def _indexer_types(d: Dims) -> Keys:
    """Let some layers read what the indexer of an earlier one has picked."""
    return {"attention.indexer.types": [index % (2 * d.period) == 0 for index in range(d.blocks)]}


def _latent_window(d: Dims) -> Keys:
    return {
        "attention.sliding_window": d.window,
        "attention.sliding_window_pattern": [index % d.period > 0 for index in range(d.blocks)],
        "attention.indexer.types": [index % d.period == 0 for index in range(d.blocks)],
        "attention.kv_lora_rank_swa": d.rank // 2,
        "attention.key_length_swa": d.rank // 2 + d.rope,
        "attention.value_length_swa": d.rank // 2,
        "attention.key_length_mla_swa": d.head + d.rope,
        "attention.value_length_mla_swa": d.head,
        "rope.freq_base_swa": 10000.0,
    }


def _deepseek4(d: Dims) -> Keys:
    return {
        "attention.head_count_kv": 1,
        "attention.key_length": 2 * d.head,
        "attention.value_length": 2 * d.head,
        "attention.q_lora_rank": 64,
        "attention.sliding_window": d.window // 4,
        "attention.output_group_count": 2,
        "attention.output_lora_rank": 64,
        "attention.compress_rope_freq_base": 40000.0,
        "attention.compress_ratios": [(0, 4, 128)[index % 3] for index in range(d.blocks)],
        "rope.dimension_count": d.rope,
        "hash_layer_count": 0,
        "expert_gating_func": 4,
        "swiglu_clamp_exp": [7.0] * d.blocks,
    }


def _gemma4(d: Dims) -> Keys:
    shared = d.period if d is VARIANT else 0
    return {
        "embedding_length_per_layer_input": 32,
        "attention.key_length": 2 * d.head,
        "attention.value_length": 2 * d.head,
        "attention.key_length_swa": d.head,
        "attention.value_length_swa": d.head,
        "rope.dimension_count": 2 * d.head,
        "rope.dimension_count_swa": d.head,
        "attention.shared_kv_layers": shared,
    }


def _nemotron(d: Dims) -> Keys:
    """Let attention, feed-forward and state layers take turns."""
    kinds = [index % d.period for index in range(d.blocks)]
    return {
        "attention.head_count_kv": [d.kv_heads if kind == 1 else 0 for kind in kinds],
        "feed_forward_length": [2 * d.embedding if kind == 2 else 0 for kind in kinds],
    }


def _qwen4(d: Dims) -> Keys:
    """Pool the indexer's keys, and add n-gram embeddings to one layer of the variant."""
    keys: Keys = {"attention.compress_ratios": d.every(4)}
    if d is PLAIN:
        return keys
    return keys | {
        # Four hashes of this width make one row of the model.
        "embedding_length_per_layer_input": d.embedding // 4,
        "ple.layers": [1],
        "ple.ngram_size": 3,
        "ple.heads_per_ngram": 2,
        "ple.conv_kernel": 4,
        "ple.eos_token_id": 2,
        "ple.layer_multipliers": (ValueType.UINT64, [3, 5, 7]),
        "ple.head_offsets": (ValueType.UINT64, [0, 101, 204, 311]),
        "ple.head_vocab_sizes": (ValueType.UINT64, [101, 103, 107, 109]),
    }


def _loops(d: Dims) -> Keys:
    """Unroll two stacks of cycles into as many slots as there are blocks."""
    return {"hrm.layers_per_stack": d.blocks // 3, "hrm.h_cycles": 1, "hrm.l_cycles": 2}


def _codec(_: Dims) -> Keys:
    return {
        "features_length": 64,
        "attention.group_norm_epsilon": 1e-6,
        "attention.group_norm_groups": 8,
        "posnet.embedding_length": 128,
        "posnet.block_count": 6,
        "convnext.embedding_length": 128,
        "convnext.block_count": 4,
    }


def _xielu(d: Dims) -> Keys:
    return {f"xielu.{name}": [0.5] * d.blocks for name in ("alpha_n", "alpha_p", "beta", "eps")}


#: Architectures -> what they want beyond the common keys; later entries win.
_MORE: tuple[tuple[str, Callable[[Dims], Keys]], ...] = (
    (
        "gemma2 gemma3 gemma3n gemma-embedding gpt-oss olmo2 plamo3 mellum exaone4 exaone-moe",
        _window,
    ),
    ("cohere2 cohere2moe llama4 smallthinker afmoe muse-glimmer modern-bert", _window),
    ("gemma4 gemma4-assistant maple mimo2 step35 spark2_5 laguna granite_swa", _pattern),
    ("deepseek2 mistral4 deepseek32 glm-dsa hy_v4 dots3note", _latent),
    ("deepseek32 glm-dsa hy_v4 dots3note deepseek4 qwen4exp glm5-next minimax-m3", _indexer),
    ("minicpm3 plm", _unpacked),
    ("qwen3next qwen35 qwen35moe qwen4exp clef", _delta),
    ("mamba jamba", _mamba),
    ("mamba2 falcon-h1 granitehybrid plamo2 nemotron_h nemotron_h_moe", _mamba2),
    ("jamba granitehybrid plamo2 nemotron_h nemotron_h_moe lfm2 lfm2moe", _some_attention),
    ("kimi-linear kimi-k3 bailingmoe3 glm5-next", _kda),
    ("deepseek4 hy_v4 glm5-next qwen4exp", _hyper_connections),
    ("rwkv6 rwkv7 rwkv6qwen2 arwkv7", _rwkv),
    ("bert jina-bert-v2 jina-bert-v3 nomic-bert nomic-bert-moe", _encoder),
    ("jina-bert-v2 olmoe dots1 deepseek2-ocr t5 t5encoder", _heads_alike),
    ("hy_v4", _indexer_types),
    ("dots3note", _latent_window),
    ("deepseek4", _deepseek4),
    ("gemma4 gemma4-assistant", _gemma4),
    ("nemotron_h nemotron_h_moe", _nemotron),
    ("qwen4exp", _qwen4),
    ("hrm_text", _loops),
    ("wavtokenizer-dec", _codec),
    ("apertus", _xielu),
    ("plamo2", lambda _: {"ssm.group_count": 0}),
    ("rwkv6qwen2 arwkv7", lambda d: {"token_shift_count": 1, "attention.head_count": d.heads}),
    ("kimi-k3", lambda _: {"attn_res.block_size": 4, "activation.situ_beta": 1.0}),
    ("kimi-k3", lambda _: {"activation.situ_linear_beta": 1.0}),
    ("glm5-next", lambda _: {"attention.indexer.kpool": 4, "rope.dimension_count": 0}),
    ("glm5-next", lambda d: {"attention.key_length": d.rank, "attention.key_length_mla": d.head}),
    ("lfm2 lfm2moe", lambda d: {"shortconv.l_cache": d.period}),
    ("minimax-m3", lambda d: {"attention.indexer.head_count": d.kv_heads}),
    ("minimax-m3", lambda _: {"attention.indexer.block_size": 64}),
    ("minimax-m3", lambda _: {"attention.indexer.local_blocks": 1}),
    ("dbrx", lambda _: {"attention.clamp_kqv": 8.0}),
    ("ernie4_5-moe llama4", lambda _: {"interleave_moe_layer_step": 1}),
    ("gptneox", lambda _: {"use_parallel_residual": True}),
    ("grovemoe", lambda _: {"expert_group_scale": 0.05, "experts_per_group": 2}),
    ("t5 t5encoder", lambda _: {"attention.relative_buckets_count": 32}),
    ("maple", lambda d: {"swiglu_clamp_exp": [7.0] * d.blocks}),
    # The image tokens of the first stand at fixed ids, the codes of the second too.
    ("chameleon", lambda _: {"vocab_size": 65536}),
    ("qwen3tts", lambda _: {"vocab_size": 4096}),
    ("graniteswitch", lambda _: {"adapters.count": 2, "adapters.lora_rank": 8}),
    ("graniteswitch", lambda _: {"adapters.token_ids_activate": [10, 11]}),
    ("graniteswitch", lambda _: {"adapters.token_ids_substitute": [12, 13]}),
    ("eagle3", lambda d: {"target_layers": [1, 2, 3], "target_hidden_size": d.embedding}),
    ("dflash", lambda _: {"target_layers": [1, 2, 3]}),
    ("clef", lambda _: {"decision.routing_block_count": 1, "decision.block_count": 1}),
    ("clef", lambda _: {"decision.head_count": 4}),
)
