"""Granite: plain, of experts, with windows, and hybrid with Mamba 2.

src/models/granite.cpp, granite-moe.cpp, granite-swa.cpp and granite-hybrid.cpp of
llama.cpp build 11434; ``GraniteModel`` and the classes after it in
conversion/granite.py. A hybrid all of whose layers attend is written as a plain one.
"""

from __future__ import annotations

from gguf_audit.arch import _ideal
from gguf_audit.arch._attention import RMS, Window, check, needs_heads, plain, windowed
from gguf_audit.arch._base import Draft, base_keys
from gguf_audit.arch._config import Config, malformed
from gguf_audit.arch._keys import Keys
from gguf_audit.arch._model import Hyper, LlamaModel
from gguf_audit.arch._recipe import filled, head_length, sizes
from gguf_audit.arch._states import SSM, hybrid, selective, without_kv
from gguf_audit.arch.architecture import Architecture, Converter
from gguf_audit.arch.mamba import NO_LIMIT
from gguf_audit.checkpoint import Json
from gguf_audit.layout import CacheLayout, Full, Recurrent

__all__ = ["ARCHITECTURES", "grouped", "hybrid_keys", "mamba2_state"]

#: GraniteConfig, GraniteMoeConfig and GraniteMoeSharedConfig of transformers 4.57.6.
MULTIPLIERS: dict[str, Json] = {
    "logits_scaling": 1.0,
    "embedding_multiplier": 1.0,
    "attention_multiplier": 1.0,
    "residual_multiplier": 1.0,
}
GRANITE: dict[str, Json] = {
    **sizes(32000, 4096, 11008, 32, 32, None, None, 2048, 1e-6, 1e4),
    **MULTIPLIERS,
}
EXPERTS: dict[str, Json] = {**GRANITE, "num_local_experts": 8, "num_experts_per_tok": 2}

SCALES = {
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}


def _headless(config: Config) -> Config:
    """Return the config without a head's length, which the converter ignores."""
    return config.without("head_dim")


def granite_keys(config: Config) -> Draft:
    """Return what ``GraniteMoeModel.set_gguf_parameters`` writes."""
    config = _headless(config)
    keys = base_keys(config)
    keys["vocab_size"] = config.need("vocab_size")
    keys["rope.dimension_count"] = head_length(config)
    for key, name in SCALES.items():
        scale = config.number(name)
        if scale:
            keys[key] = scale
    shared = config.integer("shared_intermediate_size")
    if shared:
        keys["expert_shared_feed_forward_length"] = shared
    return keys


def _plain_keys(config: Config) -> Keys:
    return granite_keys(filled(config, head_dim=False))


def _window_keys(config: Config) -> Keys:
    keys = granite_keys(filled(config, head_dim=False))
    tokens = config.integer("sliding_window")
    keys["attention.sliding_window"] = 128 if tokens is None else tokens
    types = _types(config)
    keys["attention.sliding_window_pattern"] = tuple(kind == "sliding_attention" for kind in types)
    rotated = config.items("no_rope_layers")
    if rotated:
        keys["attention.rope_pattern"] = tuple(bool(layer) for layer in rotated)
    return keys


def _types(config: Config) -> tuple[str, ...]:
    return _ideal.layer_types(
        config,
        lambda blocks: [
            "full_attention" if index % 4 == 0 else "sliding_attention" for index in range(blocks)
        ],
    )


def _windows(config: Config) -> CacheLayout:
    tokens = config.integer("sliding_window")
    return _ideal.windowed(_headless(config), _types(config), 128 if tokens is None else tokens)


def _full(config: Config) -> CacheLayout:
    return _ideal.full(_headless(config))


def attention_layers(config: Config) -> frozenset[int]:
    """Return the layers of a hybrid that attend (``get_attn_layers``)."""
    types = config.strings("layer_types")
    if types:
        return frozenset(index for index, kind in enumerate(types) if kind == "attention")
    listed = config.counts("attn_layer_indices")
    if listed:
        return frozenset(listed)
    period = config.need("attn_layer_period")
    offset = config.need("attn_layer_offset")
    if period == 0:
        raise malformed("attn_layer_period", 0, "a number of layers")
    return frozenset(index for index in range(config.blocks()) if index % period == offset)


def _writes(config: Config) -> str:
    if len(attention_layers(config)) < config.blocks():
        return "granitehybrid"
    experts = config.get("num_experts_per_tok") or config.get("num_experts_per_token")
    return "granitemoe" if experts else "granite"


def _sizes(config: Config) -> tuple[int, int, int, int]:
    """Return kernel, inner width, state size and groups of the Mamba 2 layers."""
    width = config.need("mamba_head_dim", "hidden_size", "d_model")
    inner = config.need("expand", "num_heads", "mamba_expand", "mamba_num_heads") * width
    return (
        config.need("conv_kernel", "d_conv", "mamba_conv_kernel", "mamba_d_conv"),
        inner,
        config.need(
            "state_size",
            "d_state",
            "state_dim",
            "ssm_state_size",
            "mamba_state_size",
            "mamba_d_state",
        ),
        config.need("n_groups", "num_groups", "mamba_n_groups", "mamba_num_groups"),
    )


def hybrid_keys(config: Config, attends: frozenset[int], *, blocks: int, inner: int) -> Draft:
    """Return what ``GraniteHybridModel.set_gguf_parameters`` writes."""
    kernel, _, state, groups = _sizes(config)
    kv_heads = config.need("num_key_value_heads", "n_head_kv")
    ranks = ("n_heads", "num_heads", "mamba_n_heads", "mamba_num_heads")
    keys = granite_keys(config) | {
        "ssm.conv_kernel": kernel,
        "ssm.state_size": state,
        "ssm.group_count": groups,
        "ssm.inner_size": inner,
        "ssm.time_step_rank": config.need(*ranks),
        "attention.head_count_kv": tuple(
            kv_heads if index in attends else 0 for index in range(blocks)
        ),
    }
    rotated = config.integer("attn_rotary_emb")
    if rotated:
        keys["rope.dimension_count"] = rotated
    classes = config.strings("architectures") or ()
    uses_rope = "BambaForCausalLM" in classes or len(attends) >= blocks
    keys["rope.scaling.finetuned"] = uses_rope
    if not uses_rope:
        keys["context_length"] = NO_LIMIT
    return keys


def _hybrid_keys(config: Config) -> Keys:
    _, inner, _, _ = _sizes(config)
    return hybrid_keys(config, attention_layers(config), blocks=config.blocks(), inner=inner)


def mamba2_state(kernel: int, inner: int, state: int, groups: int) -> Recurrent:
    """Return the state of one Mamba 2 layer."""
    return _ideal.state(conv=(kernel - 1) * (inner + 2 * groups * state), ssm=inner * state)


def _hybrid_ideal(config: Config) -> CacheLayout:
    attends = attention_layers(config)
    heads = _ideal.heads(_headless(config))
    if len(attends) >= config.blocks():
        return _ideal.layout(heads for _ in range(config.blocks()))
    kept = mamba2_state(*_sizes(config))
    return _ideal.layout(heads if index in attends else kept for index in range(config.blocks()))


def grouped(hyper: Hyper) -> LlamaModel:
    """Return a hybrid of Mamba 2 and attention: 0 key-value heads make a state."""
    check(hyper, (RMS, *SSM, "ssm.group_count"))
    needs_heads(hyper)
    attention: list[Full] = [hyper.full(index) for index in range(hyper.blocks)]
    return hybrid(hyper, without_kv(hyper), selective(hyper), attention=attention)


GRANITE_CONVERTER = Converter(
    takes=("GraniteForCausalLM",),
    writes="granite",
    defaults={"granite": GRANITE},
    keys=_plain_keys,
    ideal=_full,
)
MOE_CONVERTER = Converter(
    takes=("GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"),
    writes="granitemoe",
    defaults={"granitemoe": EXPERTS, "granitemoeshared": EXPERTS},
    keys=_plain_keys,
    ideal=_full,
)
WINDOW_CONVERTER = Converter(
    takes=("GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM"),
    writes="granite_swa",
    keys=_window_keys,
    ideal=_windows,
)
# conversion reads config.json without class defaults here
HYBRID_CONVERTER = Converter(
    takes=("BambaForCausalLM", "GraniteMoeHybridForCausalLM"),
    writes=_writes,
    keys=_hybrid_keys,
    ideal=_hybrid_ideal,
)

#: Says whether there is RoPE at all; with it where the key is absent.
ROTATES = {"rope.scaling.finetuned": True}

ARCHITECTURES = (
    Architecture(
        names=("granite",),
        implied=plain(RMS, "logit_scale"),
        converters=(GRANITE_CONVERTER,),
        defaults=ROTATES,
    ),
    Architecture(
        names=("granitemoe",), implied=plain(RMS, "logit_scale"), converters=(MOE_CONVERTER,)
    ),
    Architecture(
        names=("granite_swa",),
        implied=windowed(Window(period=None), RMS, "logit_scale"),
        converters=(WINDOW_CONVERTER,),
        saves=frozenset({"window"}),
    ),
    Architecture(
        names=("granitehybrid",),
        implied=grouped,
        converters=(HYBRID_CONVERTER,),
        defaults=ROTATES,
    ),
)
