"""Faults that people have published, made again in a small way: which rule finds each.

Every row is a right conversion with one thing changed. Rows that end in no rule are
files that are right, however odd they look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_subjects import ALL
from gguf_audit import arch
from gguf_audit.engine import audit_targets
from gguf_audit.formats.card import find_card
from gguf_audit.rule import Severity
from gguf_audit.subject import Absent, Json, ValueType
from gguf_audit.testing import FieldValue, TensorSpec, build_gguf, write_gguf, write_split_gguf
from gguf_audit.verdict import Report
from model_configs import MISTRAL_7B_V01
from recipes import read_recipe

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
    #: A ``config.json``, or the card that has it.
    of: Config | str
    lost: Sequence[str] = ()
    set: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    #: Rules that fire against the reference, and without one.
    found: str = ""
    alone: str = ""


METADATA = [
    # RoPE and context
    Metadata(
        about="the converter of the day ignored rope_theta",
        of=MISTRAL_7B_V01 | {"rope_theta": 1e6},
        lost=["rope.freq_base"],
        found="CTX002",
    ),
    Metadata(
        about="rope_theta has moved into rope_parameters, and nobody looked there",
        of=QWEN_YARN,
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
        set={"rope.freq_base": 10000.0},
        found="CTX002",
    ),
    Metadata(
        about="whole heads are rotated where the model rotates half of each",
        of=GLM_4,
        set={"rope.dimension_count": 128},
        found="CTX004",
    ),
    Metadata(
        about="the window was taken for the training context",
        of=MISTRAL_7B_V01,
        set={"context_length": 4096},
        found="CTX001",
    ),
    Metadata(about="a right one, with YaRN in rope_parameters", of=QWEN_YARN),
    # Sliding window
    Metadata(
        about="made before the window of Gemma 2 was known: the runtime has it built in",
        of=GEMMA_2,
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
        set={"attention.sliding_window": 257},
        found="KV104",
    ),
    Metadata(
        about="no base for the windowed layers and no pattern: the architecture's constants",
        of="google/gemma-3-270m",
        lost=["rope.freq_base_swa"],
    ),
    Metadata(
        about="a window's pattern as its period, where the loader takes both",
        of="openai/gpt-oss-20b",
        set={"attention.sliding_window_pattern": 2},
    ),
    Metadata(
        about="a pattern as its period, where the loader wants an array",
        of=GEMMA_4,
        set={"attention.sliding_window_pattern": 6},
        found="ARCH004",
        alone="ARCH004",
    ),
    Metadata(
        about="a window without its pattern, where the runtime has the same one built in",
        of=OLMO_3,
        lost=["attention.sliding_window_pattern"],
    ),
    Metadata(about="a hybrid model without any window", of=QWEN_HYBRID),
    # Latent attention
    Metadata(
        about="made before the latent was kept: keys and values per head",
        of=DEEPSEEK,
        lost=["attention.key_length_mla", "attention.value_length_mla"],
        set={
            "attention.head_count_kv": 128,
            "attention.key_length": 192,
            "attention.value_length": 128,
        },
        found="KV102",
        alone="KV107",
    ),
    Metadata(about="the layout of today, which some forks can't use", of=DEEPSEEK),
    # Recurrent layers
    Metadata(
        about="the number of key and value heads was overwritten by zeros",
        of=NEMOTRON,
        set={"attention.head_count_kv": [0] * 52},
        found="KV105",
    ),
    Metadata(
        about="the time step's rank from the attention's head size, not from the state's",
        of=NEMOTRON,
        set={"ssm.time_step_rank": 32},
        found="ARCH006",
    ),
    Metadata(
        about="an epsilon that older runtimes couldn't do without, and this one can",
        of=NEMOTRON,
        lost=["attention.layer_norm_rms_epsilon"],
    ),
    Metadata(about="layer 0 has no heads: it is recurrent", of=NEMOTRON),
    # Mixtures of experts
    Metadata(
        about="no gating function: softmax where the model was trained with sigmoid",
        of="moonshotai/Kimi-K2-Instruct",
        lost=["expert_gating_func"],
        found="ARCH006",
    ),
    Metadata(
        about="a count that a tool wrote with a sign",
        of=QWEN_MIXTURE,
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
        set={"attention.layer_norm_rms_epsilon": 1e-6},
        found="ARCH006",
    ),
    Metadata(
        about="another converter's file, without any epsilon",
        of="google/gemma-3-4b-it",
        lost=["attention.layer_norm_rms_epsilon"],
        found="ARCH006",
        alone="ARCH004",
    ),
    Metadata(
        about="the epsilon of the other kind of norm",
        of="openai-community/gpt2",
        lost=["attention.layer_norm_epsilon"],
        set={"attention.layer_norm_rms_epsilon": 1e-5},
        found="ARCH006",
        alone="ARCH004",
    ),
    Metadata(
        about="a merge that kept only the keys it knew",
        of=LLAMA,
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


@pytest.mark.parametrize("case", METADATA, ids=lambda case: case.about)
def test_metadata(case: Metadata, tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model.gguf", keys_of(case))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(config_of(case.of)), "utf-8")
    against = audit_targets([str(file)], against=str(config), rules=ALL)
    alone = audit_targets([str(file)], rules=ALL)
    assert (told(against), told(alone)) == (case.found, case.alone)
    assert [subject.errors for subject in (*against.subjects, *alone.subjects)] == [(), ()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A right model, tensors and all, with something lost, set, dropped or added."""

    about: str
    #: A recipe of ``fixtures``.
    of: str
    lost: Sequence[str] = ()
    set: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    #: How the names of dropped tensors begin.
    dropped: Sequence[str] = ()
    added: Sequence[TensorSpec] = ()
    found: str = ""
    alone: str = ""


#: Three recurrent layers, then one with attention; the prediction block isn't counted.
RECURRENT = [True, True, True, False] * 8
MODELS = [
    Model(
        about="no tensor of RoPE factors: long prompts fall apart",
        of="llama-3.1-8b-instruct",
        dropped=["rope_freqs.weight"],
        found="CTX005",
    ),
    Model(
        about="a prediction block is announced and counted, its tensors were merged away",
        of="qwen3.5-9b",
        dropped=["blk.32."],
        found="ARCH003",
        alone="ARCH003",
    ),
    Model(
        about="a prediction block is announced and not counted",
        of="qwen3.5-9b",
        set={"qwen35.block_count": 32, "qwen35.attention.recurrent_layers": RECURRENT},
        dropped=["blk.32."],
        found="ARCH002",
        alone="WT001",
    ),
    Model(
        about="a prediction block is there and not announced",
        of="qwen3.5-9b",
        set={"qwen35.block_count": 32, "qwen35.attention.recurrent_layers": RECURRENT},
        lost=["qwen35.nextn_predict_layers"],
        found="ARCH003",
        alone="ARCH003",
    ),
    Model(about="no prediction block at all, on purpose", of="qwen3.5-9b-without-mtp"),
    Model(
        about="a tool read the first shard only and wrote what it saw",
        of="qwen3.5-9b",
        dropped=["blk.20.ffn_", "blk.21.ffn_"],
        found="WT001",
        alone="WT001",
    ),
    Model(
        about="names of another engine's tensors",
        of="qwen3.5-9b",
        added=[TensorSpec("blk.0.linear_attn.in_proj.weight", (64, 64))],
        found="WT002",
        alone="WT002",
    ),
    Model(
        about="a name from a branch that was never merged",
        of="deepseek-v2-lite",
        added=[TensorSpec("blk.0.attn_k_b_trans.weight", (128, 512))],
        found="WT002",
        alone="WT002",
    ),
    Model(
        about="an architecture that only its own converter knows",
        of="small-llama",
        set={"general.architecture": "zamba2"},
        found="ARCH005",
        alone="ARCH001",
    ),
    # Right, however odd
    Model(
        about="experts in place of dense layers, in a type that old engines lack", of="gpt-oss-20b"
    ),
    Model(about="a hybrid whose tensors an old engine misses", of="qwen3.5-9b"),
    Model(about="YaRN added on purpose", of="llama-3.1-8b-instruct-yarn"),
    Model(
        about="an output layer though the embedding is tied to it",
        of="gemma-3-270m",
        added=[TensorSpec("output.weight", (640, 262144), "Q8_0")],
    ),
    Model(
        about="a vocabulary split by score without the name of a pre-tokenizer",
        of="gemma-3-270m",
        lost=["tokenizer.ggml.pre"],
    ),
    Model(
        about="a vocabulary split by merges without scores and without types",
        of="qwen3-8b",
        lost=["tokenizer.ggml.token_type"],
    ),
    Model(about="more rows than tokens, filled up with placeholders", of="qwen3-8b"),
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
    against = audit_targets([str(file)], against=recipe.against, rules=ALL)
    alone = audit_targets([str(file)], rules=ALL)
    assert (told(against), told(alone)) == (case.found, case.alone)


# Splits and integrity

KEYS = read_recipe("small-llama").fields
TENSORS = read_recipe("small-llama").tensors


def outcome(*targets: Path) -> tuple[str, list[str], int]:
    """Return the rules that fired, why something wasn't audited, and the exit code."""
    report = audit_targets([str(target) for target in targets], rules=ALL)
    codes = [error.code for subject in report.subjects for error in subject.errors]
    return told(report), codes, report.exit_code()


@pytest.mark.parametrize("missing", [1, 4096, 4_000_000])
def test_a_download_that_broke_off(tmp_path: Path, missing: int) -> None:
    content = build_gguf(KEYS, TENSORS)
    file = tmp_path / "model.gguf.part1of2"
    file.write_bytes(content[: len(content) - missing])
    assert outcome(file) == ("GGUF001", [], 1)


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><html></html>",
        b'{"error":"Repository not found"}',
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        b"",
    ],
)
def test_something_else_was_saved_as_a_model(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    rules, codes, code = outcome(file)
    assert (rules, len(codes), code) == ("", 1, 3)


@pytest.mark.parametrize("content", [b"", b"GGUF", build_gguf(KEYS, TENSORS, data="none")])
def test_a_shard_was_emptied_or_overwritten(tmp_path: Path, content: bytes) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    shards[1].write_bytes(content)
    rules, codes, code = outcome(shards[0])
    assert (rules, len(codes), code) == ("", 1, 3)


def test_a_whole_file_that_kept_a_shards_name(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model-00001-of-00013.gguf", KEYS, TENSORS)
    assert outcome(file) == ("", [], 0)


def test_shards_whose_metadata_stand_in_the_first_alone(tmp_path: Path) -> None:
    shards = write_split_gguf(tmp_path, KEYS, TENSORS, shards=3)
    assert outcome(shards[2]) == ("", [], 0)
