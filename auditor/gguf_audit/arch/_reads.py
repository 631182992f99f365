"""Which hyper-parameters llama.cpp reads for which architecture, and of what type.

``llama_model_base::load_hparams`` (src/llama-model.cpp) and ``load_arch_hparams`` of
src/models/*.cpp, build 11434. What an architecture doesn't read changes nothing.
"""

from __future__ import annotations

import enum
import functools

from gguf_audit.arch._readers import BOTH_NORMS, READERS

__all__ = ["Kind", "kind", "reads", "rotates"]

RMS = "attention.layer_norm_rms_epsilon"
NORM = "attention.layer_norm_epsilon"


class Kind(enum.Enum):
    """What type llama.cpp demands of a value (``get_key``, ``get_arr``: both throw)."""

    COUNT = "u32"
    NUMBER = "f32"
    FLAG = "bool"
    TEXT = "str"
    #: One for all blocks or an array with one for each.
    COUNTS = "u32, or an array of u32, i32 or bool"
    NUMBERS = "f32, or an array of f32"
    #: Nothing but an array.
    LIST = "an array of u32, i32 or bool"
    WHOLE_LIST = "an array of u32 or i32"
    LONG_LIST = "an array of u64"
    TEXT_LIST = "an array of str"


#: Read whatever the architecture.
BY_ALL = frozenset(
    {
        "attention.causal",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.key_length_swa",
        "attention.value_length",
        "attention.value_length_swa",
        "block_count",
        "classifier.output_labels",
        "classifier.pooling_type",
        "context_length",
        "embedding_length",
        "embedding_length_out",
        "expert_count",
        "expert_group_count",
        "expert_group_used_count",
        "expert_used_count",
        "feed_forward_length",
        "nextn_predict_layers",
        "pooling_type",
        "rope.dimension_count",
        "rope.dimension_count_swa",
        "rope.freq_base",
        "rope.scale_linear",
        "rope.scaling.alpha",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        "rope.scaling.original_context_length",
        "rope.scaling.type",
    }
)
NUMBERS = frozenset(
    {
        "activation.situ_beta",
        "activation.situ_linear_beta",
        "adapters.router_gain",
        "attention.clamp_kqv",
        "attention.compress_rope_freq_base",
        "attention.group_norm_epsilon",
        "attention.layer_norm_epsilon",
        "attention.layer_norm_rms_epsilon",
        "attention.max_alibi_bias",
        "attention.output_scale",
        "attention.scale",
        "attention.temperature_scale",
        "attention.value_scale",
        "attn_logit_softcapping",
        "embedding_scale",
        "expert_group_scale",
        "expert_weights_scale",
        "final_logit_softcapping",
        "hyper_connection.epsilon",
        "hyper_connection.magnitude",
        "kda.gate_lower_bound",
        "logit_scale",
        "residual_scale",
        "rope.freq_base",
        "rope.freq_base_swa",
        "rope.scale_linear",
        "rope.scaling.alpha",
        "rope.scaling.attn_factor",
        "rope.scaling.factor",
        "rope.scaling.yarn_attn_factor",
        "rope.scaling.yarn_beta_fast",
        "rope.scaling.yarn_beta_slow",
        "rope.scaling.yarn_ext_factor",
        "rope.scaling.yarn_log_multiplier",
        "router_logit_softcapping",
    }
)
FLAGS = frozenset(
    {
        "attention.causal",
        "attention.indexer.kpool_select_tail",
        "expert_weights_norm",
        "hrm.prefix_lm",
        "kda.safe_gate",
        "norm_before_fc",
        "norm_before_residual",
        "rope.scaling.finetuned",
        "skip_loop_final_norm",
        "ssm.dt_b_c_rms",
        "swin_norm",
        "use_parallel_residual",
    }
)
OTHERS = {
    Kind.TEXT: ("hidden_activation", "rope.scaling.type"),
    Kind.COUNTS: (
        "attention.compress_ratios",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.indexer.types",
        "attention.recurrent_layers",
        "attention.sliding_window_pattern",
        "expert_feed_forward_length",
        "expert_used_count",
        "feed_forward_length",
        "rope.dimension_sections",
    ),
    Kind.NUMBERS: (
        "swiglu_clamp_exp",
        "swiglu_clamp_shexp",
        "xielu.alpha_n",
        "xielu.alpha_p",
        "xielu.beta",
        "xielu.eps",
    ),
    Kind.LIST: ("attention.rope_pattern", "deepstack_mapping"),
    Kind.WHOLE_LIST: (
        "adapters.token_ids_activate",
        "adapters.token_ids_substitute",
        "ple.layers",
        "target_layers",
    ),
    Kind.LONG_LIST: ("ple.head_offsets", "ple.head_vocab_sizes", "ple.layer_multipliers"),
    Kind.TEXT_LIST: ("classifier.output_labels",),
}


def kind(name: str) -> Kind:
    """Return the type of a key named without its prefix."""
    return _kinds().get(name, Kind.COUNT)


@functools.cache
def _kinds() -> dict[str, Kind]:
    kinds = dict.fromkeys(NUMBERS, Kind.NUMBER) | dict.fromkeys(FLAGS, Kind.FLAG)
    for each, names in OTHERS.items():
        kinds |= dict.fromkeys(names, each)
    return kinds


@functools.cache
def _readers() -> dict[str, frozenset[str]]:
    readers: dict[str, frozenset[str]] = {}
    for line in READERS.replace("\n    ", " ").strip().splitlines():
        names, _, architectures = line.partition(" : ")
        readers |= dict.fromkeys(names.split(), frozenset(architectures.split()))
    return readers


def reads(architecture: str, name: str) -> bool:
    """Tell whether an architecture's loader reads a key named without its prefix."""
    if name == RMS:
        return architecture in BOTH_NORMS or not reads(architecture, NORM)
    return name in BY_ALL or architecture in _readers().get(name, ())


#: Know positions otherwise or not at all (llama_model_rope_type, src/llama-model.cpp).
WITHOUT_ROPE = frozenset(
    {
        "arwkv7",
        "bloom",
        "glm5-next",
        "gpt2",
        "jais",
        "jamba",
        "jina-bert-v2",
        "kimi-k3",
        "kimi-linear",
        "mamba",
        "mamba2",
        "mpt",
        "nemotron_h",
        "nemotron_h_moe",
        "refact",
        "rwkv6",
        "rwkv6qwen2",
        "rwkv7",
        "t5",
        "t5encoder",
        "wavtokenizer-dec",
    }
)


def rotates(architecture: str) -> bool:
    """Tell whether an architecture uses RoPE at all."""
    return architecture not in WITHOUT_ROPE
