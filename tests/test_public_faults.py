"""Faults that people have published, made again in a small way: which rule finds each.

Every row is a right conversion with one thing changed. Rows that end in no rule are
files that are right, however odd they look.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_subjects import ALL
from gguf_audit import arch
from gguf_audit.arch.tensors import inventory
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.fields import Fields, Origin
from gguf_audit.formats.card import find_card
from gguf_audit.gguf import ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.rule import Severity
from gguf_audit.testing import (
    FieldValue,
    TensorSpec,
    build_gguf,
    make_gguf,
    write_gguf,
    write_split_gguf,
)
from gguf_audit.verdict import Report
from gguf_audit_rules.wt import tensor_lost
from model_configs import MISTRAL_7B_V01
from public_reports import rows
from recipes import read_recipe
from rule_subjects import SETTINGS
from wt_subjects import converted, llama, stored

Config = Mapping[str, Json]
GLM_4: Config = {
    "architectures": ["Glm4ForCausalLM"],
    "model_type": "glm4",
    "hidden_size": 4096,
    "intermediate_size": 13696,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 40,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "vocab_size": 151552,
}
GEMMA_2: Config = {
    "architectures": ["Gemma2ForCausalLM"],
    "model_type": "gemma2",
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "head_dim": 256,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "max_position_embeddings": 8192,
    "num_attention_heads": 8,
    "num_hidden_layers": 26,
    "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "vocab_size": 256000,
}
#: One whose softcaps aren't those that llama.cpp has built in.
GEMMA_2_CHANGED: Config = {**GEMMA_2, "final_logit_softcapping": 20.0}
QWEN_YARN: Config = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "head_dim": 128,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 131072,
    "num_attention_heads": 16,
    "num_hidden_layers": 4,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 1000000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
    },
    "vocab_size": 151936,
}
#: The short sibling of the card's model, with a window and without longrope.
PHI_3_MINI: Config = {
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "original_max_position_embeddings": 4096,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "sliding_window": 2047,
    "vocab_size": 32064,
}
#: Gemma 3 27B with fourteen of its blocks removed.
GEMMA_3_PRUNED: Config = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "head_dim": 128,
    "hidden_size": 5376,
    "intermediate_size": 21504,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 48,
    "num_key_value_heads": 16,
    "query_pre_attn_scalar": 168,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "rope_theta": 1000000.0,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "vocab_size": 262208,
}
#: The first one, which clamps.
OLMO: Config = {
    "architectures": ["OlmoForCausalLM"],
    "model_type": "olmo",
    "clip_qkv": 8.0,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "rope_theta": 10000.0,
    "vocab_size": 50304,
}
LLAMA_4_WITHOUT_NORM: Config = {
    "architectures": ["Llama4ForCausalLM"],
    "model_type": "llama4_text",
    "attention_chunk_size": 8192,
    "head_dim": 128,
    "hidden_size": 5120,
    "interleave_moe_layer_step": 1,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "max_position_embeddings": 262144,
    "num_attention_heads": 40,
    "num_experts_per_tok": 1,
    "num_hidden_layers": 8,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "use_qk_norm": False,
    "vocab_size": 202048,
}
PHI_3_LONG = "microsoft/Phi-3-mini-128k-instruct"
#: DeepSeek V3's configuration as transformers 5 writes it.
DEEPSEEK_NESTED: Config = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "moe_intermediate_size": 2048,
    "n_group": 8,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 40.0,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    },
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "topk_group": 4,
    "v_head_dim": 128,
    "vocab_size": 129280,
}
OLMO_3 = "allenai/Olmo-3.1-32B-Instruct"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
NEMOTRON = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
QWEN_HYBRID = "Qwen/Qwen3.5-9B"
QWEN_MIXTURE = "Qwen/Qwen3-30B-A3B"
GEMMA_4 = "google/gemma-4-26B-A4B"
SCALING = ("rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A right conversion's metadata with some keys lost and some set."""

    about: str
    #: Ids of published reports, of which this is one made again.
    rows: str = ""
    #: A ``config.json``, or the card that has it.
    of: Config | str
    lost: Sequence[str] = ()
    set: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    #: Rules that fire against the reference, and without one.
    found: str = ""
    alone: str = ""
    #: Rules that only note something, against the reference; asked for where given.
    noted: str | None = None


METADATA = [
    # RoPE and context
    Metadata(
        about="the converter of the day ignored rope_theta",
        of=MISTRAL_7B_V01 | {"rope_theta": 1e6},
        rows="rope-004",
        lost=["rope.freq_base"],
        found="CTX002",
    ),
    Metadata(
        about="rope_theta has moved into rope_parameters, and nobody looked there",
        of=QWEN_YARN,
        rows="rope-011",
        lost=["rope.freq_base"],
        found="CTX002",
    ),
    Metadata(
        about="YaRN stands in rope_parameters, and nobody looked there",
        of=QWEN_YARN,
        lost=SCALING,
        found="CTX003",
    ),
    Metadata(
        about="YaRN without its original length",
        of=QWEN_YARN,
        lost=["rope.scaling.original_context_length"],
        found="CTX003",
    ),
    Metadata(
        about="keys written twice, and the last one was another layer type's base",
        of=GEMMA_4,
        rows="rope-008",
        set={"rope.freq_base": 10000.0},
        found="CTX002",
    ),
    Metadata(
        about="whole heads are rotated where the model rotates half of each",
        of=GLM_4,
        rows="rope-010",
        set={"rope.dimension_count": 128},
        found="CTX004",
    ),
    Metadata(
        about="the window was taken for the training context",
        of=MISTRAL_7B_V01,
        rows="swa-013",
        set={"context_length": 4096},
        found="CTX001",
    ),
    Metadata(about="a right one, with YaRN in rope_parameters", of=QWEN_YARN),
    Metadata(
        about="YaRN stands there under the name of a later library, and nobody looked there",
        of=DEEPSEEK_NESTED,
        rows="rope-007",
        lost=SCALING,
        found="CTX003",
    ),
    Metadata(
        about="longrope without its factor for attention",
        of=PHI_3_LONG,
        rows="rope-014",
        lost=["rope.scaling.attn_factor"],
        found="CTX003",
    ),
    Metadata(
        about="a window that llama.cpp leaves out, whoever converted",
        of=MISTRAL_7B_V01,
        rows="rope-016",
        noted="KV109",
    ),
    # Sliding window
    Metadata(
        about="a vendor's file without the window: llama.cpp leaves it out anyway",
        of=PHI_3_MINI,
        rows="swa-002 swa-004",
        lost=["attention.sliding_window"],
        noted="KV109",
    ),
    Metadata(
        about="made before the window of Gemma 2 was known: the runtime has it built in",
        of=GEMMA_2,
        rows="swa-005",
        lost=["attention.sliding_window", "attn_logit_softcapping", "final_logit_softcapping"],
    ),
    Metadata(
        about="the same of a model with another softcap",
        of=GEMMA_2_CHANGED,
        lost=["final_logit_softcapping"],
        found="ARCH006",
    ),
    Metadata(
        about="half the window, as a configuration class of the library computes it",
        of="google/gemma-3-270m",
        rows="swa-006",
        set={"attention.sliding_window": 257},
        found="KV104",
    ),
    Metadata(
        about="no base for the windowed layers and no pattern: the architecture's constants",
        of="google/gemma-3-270m",
        rows="swa-009",
        lost=["rope.freq_base_swa"],
    ),
    Metadata(
        about="a window's pattern as its period, where the loader takes both",
        of="openai/gpt-oss-20b",
        rows="typ-005",
        set={"attention.sliding_window_pattern": 2},
    ),
    Metadata(
        about="a pattern as its period, where the loader wants an array",
        of=GEMMA_4,
        rows="swa-007",
        set={"attention.sliding_window_pattern": 6},
        found="ARCH004",
        alone="ARCH004",
    ),
    Metadata(
        about="a window without its pattern, where the runtime has the same one built in",
        of=OLMO_3,
        rows="swa-014",
        lost=["attention.sliding_window_pattern"],
    ),
    Metadata(about="a hybrid model without any window", of=QWEN_HYBRID, rows="swa-011"),
    Metadata(
        about="a softcap that is absent: the runtime has the same one built in",
        of=GEMMA_4,
        rows="num-002",
        lost=["final_logit_softcapping"],
    ),
    Metadata(
        about="bools that are neither 0 nor 1",
        of=GEMMA_4,
        rows="swa-008",
        set={"attention.sliding_window_pattern": (ValueType.BOOL, ([255] * 5 + [0]) * 5)},
        found="ARCH007",
        alone="ARCH007",
    ),
    # Latent attention
    Metadata(
        about="made before the latent was kept: keys and values per head",
        of=DEEPSEEK,
        rows="mla-003",
        lost=["attention.key_length_mla", "attention.value_length_mla"],
        set={
            "attention.head_count_kv": 128,
            "attention.key_length": 192,
            "attention.value_length": 128,
        },
        found="KV102",
        alone="KV107",
    ),
    Metadata(about="the layout of today, which some forks can't use", of=DEEPSEEK, rows="mla-002"),
    # Recurrent layers
    Metadata(
        about="the number of key and value heads was overwritten by zeros",
        of=NEMOTRON,
        rows="hyb-001",
        set={"attention.head_count_kv": [0] * 52},
        found="KV105",
    ),
    Metadata(
        about="the time step's rank from the attention's head size, not from the state's",
        of=NEMOTRON,
        rows="hyb-002",
        set={"ssm.time_step_rank": 32},
        found="ARCH006",
    ),
    Metadata(
        about="an epsilon that older runtimes couldn't do without, and this one can",
        of=NEMOTRON,
        rows="hyb-014",
        lost=["attention.layer_norm_rms_epsilon"],
    ),
    Metadata(about="layer 0 has no heads: it is recurrent", of=NEMOTRON, rows="hyb-003"),
    # Mixtures of experts
    Metadata(
        about="no gating function: softmax where the model was trained with sigmoid",
        of="moonshotai/Kimi-K2-Instruct",
        rows="moe-001 moe-002",
        lost=["expert_gating_func"],
        found="ARCH006",
    ),
    Metadata(
        about="a count that a tool wrote with a sign",
        of=QWEN_MIXTURE,
        rows="moe-012",
        set={"expert_used_count": (ValueType.INT32, 8)},
        found="ARCH007",
        alone="ARCH007",
    ),
    Metadata(
        about="one expert of eight is used",
        of=QWEN_MIXTURE,
        set={"expert_used_count": 1},
        found="ARCH006",
    ),
    # Constants
    Metadata(
        about="the epsilon of another model",
        of="meta-llama/Llama-3.2-1B-Instruct",
        rows="num-006",
        set={"attention.layer_norm_rms_epsilon": 1e-6},
        found="ARCH006",
    ),
    Metadata(
        about="the clamp of queries, keys and values was not written",
        of=OLMO,
        lost=["attention.clamp_kqv"],
        found="ARCH006",
    ),
    Metadata(
        about="another converter's file, without any epsilon",
        of="google/gemma-3-4b-it",
        rows="num-005",
        lost=["attention.layer_norm_rms_epsilon"],
        found="ARCH006",
        alone="ARCH004",
    ),
    Metadata(
        about="the epsilon of the other kind of norm",
        of="openai-community/gpt2",
        rows="num-012",
        lost=["attention.layer_norm_epsilon"],
        set={"attention.layer_norm_rms_epsilon": 1e-5},
        found="ARCH006",
        alone="ARCH004",
    ),
    Metadata(
        about="a scale that llama.cpp takes from the number of blocks, some of which were cut out",
        of=GEMMA_3_PRUNED,
        rows="num-008",
        noted="ARCH010",
    ),
    Metadata(
        about="a norm that llama.cpp takes from the number of experts",
        of=LLAMA_4_WITHOUT_NORM,
        rows="num-013",
        noted="ARCH010",
    ),
    Metadata(
        about="a merge that kept only the keys it knew",
        of=LLAMA,
        rows="spl-012",
        lost=["attention.head_count", "feed_forward_length", "block_count"],
        found="ARCH004 ARCH006",
        alone="ARCH004",
    ),
]


def config_of(of: Config | str) -> Config:
    if not isinstance(of, str):
        return of
    card = find_card(of)
    assert card is not None
    assert not isinstance(card.config, Absent)
    return card.config


def keys_of(case: Metadata) -> dict[str, FieldValue]:
    fields = arch.expected_fields(config_of(case.of))
    keys: dict[str, FieldValue] = {"general.architecture": fields.architecture}
    for found in fields:
        assert isinstance(found.value, int | float | str | tuple)
        keys[found.key] = found.value
    for name in case.lost:
        del keys[fields.key(name)]
    return keys | {fields.key(name): value for name, value in case.set.items()}


def told(report: Report) -> str:
    """Return the rules that fired, but for those that only note something."""
    return " ".join(
        sorted({found.rule for found in report.findings if found.severity is not Severity.INFO})
    )


def noted(report: Report) -> str:
    """Return the rules that only note something."""
    return " ".join(
        sorted({found.rule for found in report.findings if found.severity is Severity.INFO})
    )


@pytest.mark.parametrize("case", METADATA, ids=lambda case: case.about)
def test_metadata(case: Metadata, tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model.gguf", keys_of(case))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(config_of(case.of)), "utf-8")
    against = audit_targets([str(file)], Mandate(against=str(config), rules=ALL))
    alone = audit_targets([str(file)], Mandate(rules=ALL))
    assert (told(against), told(alone)) == (case.found, case.alone)
    assert case.noted in (None, noted(against))
    assert [subject.errors for subject in (*against.subjects, *alone.subjects)] == [(), ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A right model, tensors and all, with something lost, set, dropped or added."""

    about: str
    rows: str = ""
    #: A recipe of ``fixtures``.
    of: str
    lost: Sequence[str] = ()
    set: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    #: How the names of dropped tensors begin.
    dropped: Sequence[str] = ()
    added: Sequence[TensorSpec] = ()
    found: str = ""
    alone: str = ""


def placeholders(*, of: str, kept: int) -> dict[str, FieldValue]:
    """Return a recipe's vocabulary of which only so many tokens are the tokenizer's own."""
    found = make_gguf(read_recipe(of).fields)
    tokens, merges = (found.array(f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    assert tokens is not None
    assert merges is not None
    own, more = tokens.items()[:kept], range(kept, tokens.count)
    known = {*own}
    made = [merge for merge in merges.items() if str(merge).replace(" ", "") in known]
    return {
        "tokenizer.ggml.tokens": (ValueType.STRING, [*own, *(f"[PAD{id_}]" for id_ in more)]),
        "tokenizer.ggml.token_type": (ValueType.INT32, [1] * kept + [5] * len(more)),
        "tokenizer.ggml.merges": (ValueType.STRING, made),
    }


#: Three recurrent layers, then one with attention; the prediction block isn't counted.
RECURRENT = [True, True, True, False] * 8
MODELS = [
    Model(
        about="no tensor of RoPE factors: long prompts fall apart",
        of="llama-3.1-8b-instruct",
        rows="rope-001",
        dropped=["rope_freqs.weight"],
        found="CTX005",
    ),
    Model(
        about="a prediction block is announced and counted, its tensors were merged away",
        of="qwen3.5-9b",
        rows="moe-003 moe-005",
        dropped=["blk.32."],
        found="ARCH003",
        alone="ARCH003",
    ),
    Model(
        about="a prediction block is announced and not counted",
        of="qwen3.5-9b",
        rows="moe-004",
        set={"qwen35.block_count": 32, "qwen35.attention.recurrent_layers": RECURRENT},
        dropped=["blk.32."],
        found="ARCH002",
        alone="WT001",
    ),
    Model(
        about="a prediction block is there and not announced",
        of="qwen3.5-9b",
        rows="moe-007",
        set={"qwen35.block_count": 32, "qwen35.attention.recurrent_layers": RECURRENT},
        lost=["qwen35.nextn_predict_layers"],
        found="ARCH003",
        alone="ARCH003",
    ),
    Model(about="no prediction block at all, on purpose", of="qwen3.5-9b-without-mtp"),
    Model(
        about="a tool read the first shard only and wrote what it saw",
        of="qwen3.5-9b",
        rows="moe-013",
        dropped=["blk.20.ffn_", "blk.21.ffn_"],
        found="WT001",
        alone="WT001",
    ),
    Model(
        about="names of another engine's tensors",
        of="qwen3.5-9b",
        rows="hyb-010",
        added=[TensorSpec("blk.0.linear_attn.in_proj.weight", (64, 64))],
        found="WT002",
        alone="WT002",
    ),
    Model(
        about="a name from a branch that was never merged",
        of="deepseek-v2-lite",
        rows="mla-004",
        added=[TensorSpec("blk.0.attn_k_b_trans.weight", (128, 512))],
        found="WT002",
        alone="WT002",
    ),
    Model(
        about="an architecture that only its own converter knows",
        of="small-llama",
        rows="hyb-016",
        set={"general.architecture": "zamba2"},
        found="ARCH005",
        alone="ARCH001",
    ),
    Model(
        about="a convolution that was written the other way round",
        of="qwen3.5-9b",
        rows="hyb-008",
        dropped=["blk.0.ssm_conv1d."],
        added=[TensorSpec("blk.0.ssm_conv1d.weight", (8192, 4))],
        found="WT003",
        alone="WT003",
    ),
    Model(
        about="a projection that a merge has flattened",
        of="qwen3.5-9b",
        dropped=["blk.0.ssm_alpha."],
        added=[TensorSpec("blk.0.ssm_alpha.weight", (131072,))],
        found="WT003",
        alone="WT003",
    ),
    # Right, however odd
    Model(
        about="experts in place of dense layers, in a type that old engines lack",
        of="gpt-oss-20b",
        rows="moe-014 ten-018",
    ),
    Model(about="a hybrid whose tensors an old engine misses", of="qwen3.5-9b", rows="hyb-009"),
    Model(about="YaRN added on purpose", of="llama-3.1-8b-instruct-yarn", rows="rope-009"),
    Model(
        about="an output layer though the embedding is tied to it",
        of="gemma-3-270m",
        rows="ten-015",
        added=[TensorSpec("output.weight", (640, 262144), "Q8_0")],
    ),
    Model(
        about="a vocabulary split by score without the name of a pre-tokenizer",
        of="gemma-3-270m",
        rows="pre-010",
        lost=["tokenizer.ggml.pre"],
    ),
    Model(
        about="a vocabulary split by score that names the default",
        of="gemma-3-270m",
        set={"tokenizer.ggml.pre": "default"},
    ),
    Model(
        about="a vocabulary split by merges without scores and without types",
        of="qwen3-8b",
        rows="typ-008",
        lost=["tokenizer.ggml.token_type"],
    ),
    Model(
        about="more rows than tokens, filled up with placeholders",
        of="qwen3-8b",
        rows="tok-032",
        set=placeholders(of="qwen3-8b", kept=151669),
    ),
]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.about)
def test_model(case: Model, tmp_path: Path) -> None:
    recipe = read_recipe(case.of)
    keys = {key: value for key, value in recipe.fields.items() if key not in case.lost}
    dropped = tuple(case.dropped)
    kept = [
        spec for spec in recipe.tensors if not dropped or not str(spec.name).startswith(dropped)
    ]
    file = write_gguf(tmp_path / "model.gguf", {**keys, **case.set}, [*kept, *case.added])
    against = audit_targets([str(file)], Mandate(against=recipe.against, rules=ALL))
    alone = audit_targets([str(file)], Mandate(rules=ALL))
    assert (told(against), told(alone)) == (case.found, case.alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invented:
    """All tensors that llama.cpp wants for a right conversion's metadata, then a change."""

    about: str
    #: A card.
    of: str
    rows: str = ""
    lost: Sequence[str] = ()
    #: How the names of dropped tensors go on behind their block.
    dropped: Sequence[str] = ()
    #: Tensors that aren't wanted in every model.
    added: Sequence[TensorSpec] = ()
    #: From this block on, gate and up of all experts are one tensor.
    fused: int | None = None
    #: Of tensors, by how their names end: the type that isn't F32.
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    found: str = ""
    alone: str = ""


def experts(blocks: int, count: int, wide: int, narrow: int) -> list[TensorSpec]:
    """Return experts one by one, as Mixtral was first stored."""
    return [
        TensorSpec(
            f"blk.{block}.ffn_{part}.{number}.weight",
            (narrow, wide) if part == "down" else (wide, narrow),
        )
        for block in range(blocks)
        for part in ("gate", "down", "up")
        for number in range(count)
    ]


INVENTED = [
    Invented(
        about="longrope without the tensors that hold its factors",
        of=PHI_3_LONG,
        found="CTX005",
    ),
    Invented(
        about="experts one by one, as the first mixtures were stored",
        of="mistralai/Mixtral-8x7B-v0.1",
        rows="moe-009",
        dropped=["ffn_gate_exps.", "ffn_down_exps.", "ffn_up_exps."],
        added=experts(32, 8, 4096, 14336),
        found="ARCH009",
        alone="ARCH009",
    ),
    Invented(
        about="scales of 8-bit weights that nobody multiplied in",
        of=DEEPSEEK,
        rows="mla-006",
        added=[TensorSpec("blk.0.ffn_up.weight_scale_inv", (56, 144))],
        found="WT002",
        alone="WT002",
    ),
    Invented(
        about="another converter's file, with the encoder of images inside",
        of="google/gemma-3-4b-it",
        added=[TensorSpec("v.blk.0.attn_q.weight", (1152, 1152))],
        found="WT002",
        alone="WT002",
    ),
    Invented(
        about="small tensors of a recurrent model in half precision",
        of="tiiuae/falcon-mamba-7b",
        rows="hyb-013",
        types={"ssm_conv1d.weight": "F16", "ssm_d": "F16"},
        found="WT007",
        alone="WT007",
    ),
    # Right, however odd
    Invented(about="experts in place of dense layers", of=QWEN_MIXTURE),
    Invented(
        about="no output layer: the embedding is tied to it, and old bindings miss it",
        of="openai-community/gpt2",
        rows="ten-013",
    ),
    Invented(
        about="both halves of the experts in one tensor, which some engines can't read",
        of=DEEPSEEK,
        rows="moe-011",
        fused=3,
    ),
]
#: No vocabulary is made for them.
WITHOUT_VOCABULARY = {name: rule for name, rule in ALL.items() if not name.startswith("TOK")}


def type_of(name: str, types: Mapping[str, str]) -> str:
    return next((type_ for end, type_ in types.items() if name.endswith(end)), "F32")


def tensors_of(case: Invented, keys: Mapping[str, FieldValue]) -> list[TensorSpec]:
    gguf = make_gguf(keys)
    fields = Fields(gguf.architecture or "", gguf.fields)
    blocks = fields.integer("block_count") or 0
    fused = range(blocks if case.fused is None else case.fused, blocks)
    names = {f"blk.{block}.ffn_gate_up_exps.weight" for block in fused}
    found = inventory(fields, arch.implied_layout(fields), names)
    assert not isinstance(found, Absent)
    made = [
        TensorSpec(slot.name, [size or 0 for size in slot.shape], type_of(slot.name, case.types))
        for slot in found.slots.values()
        if slot.required or slot.name in names
    ]
    dropped = tuple(case.dropped)
    return [
        spec
        for spec in made
        if not dropped or not str(spec.name).split(".", 2)[-1].startswith(dropped)
    ]


@pytest.mark.parametrize("case", INVENTED, ids=lambda case: case.about)
def test_invented(case: Invented, tmp_path: Path) -> None:
    keys = keys_of(Metadata(about="", of=case.of, lost=case.lost))
    file = write_gguf(tmp_path / "model.gguf", keys, [*tensors_of(case, keys), *case.added])
    against = audit_targets([str(file)], Mandate(against=case.of, rules=WITHOUT_VOCABULARY))
    alone = audit_targets([str(file)], Mandate(rules=WITHOUT_VOCABULARY))
    assert (told(against), told(alone)) == (case.found, case.alone)


# What tools get wrong about right files


@rows("swa-010")
def test_layers_with_a_window_keep_only_that() -> None:
    kept = {
        of: Counter(
            type(store).__name__
            for _, store in arch.implied_layout(arch.expected_fields(config_of(of))).stores()
        )
        for of in ("openai/gpt-oss-20b", "google/gemma-3-270m")
    }
    assert kept == {
        "openai/gpt-oss-20b": {"Sliding": 12, "Full": 12},
        "google/gemma-3-270m": {"Sliding": 15, "Full": 3},
    }


@rows("moe-015")
def test_a_gating_function_that_an_architecture_has_by_itself() -> None:
    found = arch.effective(Fields("cohere2moe", {}), "expert_gating_func")
    assert found is not None
    assert (found.value, found.origin) == (2, Origin.RUNTIME_DEFAULT)


@rows("ten-014")
def test_a_tied_embedding_whose_copy_the_checkpoint_has_too() -> None:
    copy = stored(lm_head__weight=(8, 64))
    subject = converted(llama(), copy, config={"tie_word_embeddings": True})
    assert list(tensor_lost.check(subject, SETTINGS)) == []


# Splits and integrity

KEYS = read_recipe("small-llama").fields
TENSORS = read_recipe("small-llama").tensors


def outcome(*targets: Path) -> tuple[str, list[str], int]:
    """Return the rules that fired, why something wasn't audited, and the exit code."""
    report = audit_targets([str(target) for target in targets], Mandate(rules=ALL))
    codes = [error.code for subject in report.subjects for error in subject.errors]
    return told(report), codes, report.exit_code()


@rows("spl-001 spl-002 spl-005 spl-006 spl-017")
@pytest.mark.parametrize("missing", [1, 4096, 4_000_000])
def test_a_download_that_broke_off(tmp_path: Path, missing: int) -> None:
    content = build_gguf(KEYS, TENSORS)
    file = tmp_path / "model.gguf.part1of2"
    file.write_bytes(content[: len(content) - missing])
    assert outcome(file) == ("GGUF001", [], 1)


@rows("spl-003 spl-004")
@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html></html>",
        b'{"error":"Repository not found"}',
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        b"",
        b"FGUG" + build_gguf(KEYS, TENSORS)[4:],
    ],
)
def test_something_else_was_saved_as_a_model(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    rules, codes, code = outcome(file)
    assert (rules, len(codes), code) == ("", 1, 3)


@rows("spl-007 spl-008")
@pytest.mark.parametrize("content", [b"", b"GGUF", build_gguf(KEYS, TENSORS, data="none")])
def test_a_shard_was_emptied_or_overwritten(tmp_path: Path, content: bytes) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    shards[1].write_bytes(content)
    rules, codes, code = outcome(shards[0])
    assert (rules, len(codes), code) == ("", 1, 3)


@rows("spl-009")
def test_a_whole_file_that_kept_a_shards_name(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model-00001-of-00013.gguf", KEYS, TENSORS)
    report = audit_targets([str(file)], Mandate(rules=ALL))
    assert (told(report), noted(report), report.exit_code()) == ("", "PKG005", 0)


@rows("spl-018")
def test_pieces_of_a_file_that_was_cut_by_bytes(tmp_path: Path) -> None:
    content = build_gguf(KEYS, TENSORS)
    first, second = tmp_path / "model.gguf-split-a", tmp_path / "model.gguf-split-b"
    first.write_bytes(content[: len(content) // 2])
    second.write_bytes(content[len(content) // 2 :])
    assert outcome(first) == ("GGUF001", [], 1)
    assert outcome(second) == ("", ["malformed"], 3)


@rows("spl-014")
def test_a_file_for_machines_of_the_other_byte_order(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model.gguf", KEYS, TENSORS, byte_order="big")
    assert outcome(file) == ("", [], 0)


@rows("ten-017")
def test_a_type_that_only_its_own_engine_knows(tmp_path: Path) -> None:
    tensors = [
        TensorSpec(spec.name, spec.shape, 250 if spec.name == "blk.0.ffn_up.weight" else spec.type)
        for spec in TENSORS
    ]
    file = write_gguf(tmp_path / "model.gguf", KEYS, tensors)
    assert outcome(file) == ("", [], 3)


@rows("ten-019")
def test_a_model_that_makes_images(tmp_path: Path) -> None:
    tensors = [TensorSpec("x_pad_token", (3840,))]
    file = write_gguf(tmp_path / "model.gguf", {"general.architecture": "lumina2"}, tensors)
    assert outcome(file) == ("", [], 0)


def test_shards_whose_metadata_stand_in_the_first_alone(tmp_path: Path) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    assert outcome(shards[2]) == ("", [], 0)
