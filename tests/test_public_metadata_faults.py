"""Faults in metadata that people have published, made again: which rule finds each.

Every row is a right conversion with some keys lost or set. Rows that end in no rule are
files that are right, however odd they look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_subjects import ALL
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.testing import FieldValue, write_gguf
from model_configs import MISTRAL_7B_V01
from public_configs import (
    DEEPSEEK_NESTED,
    GEMMA_2,
    GEMMA_2_CHANGED,
    GEMMA_3_PRUNED,
    GLM_4,
    LLAMA_4_WITHOUT_NORM,
    OLMO,
    PHI_3_MINI,
    QWEN_YARN,
    Config,
)
from public_faults import config_of, keys_of, noted, told

PHI_3_LONG = "microsoft/Phi-3-mini-128k-instruct"
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


@pytest.mark.parametrize("case", METADATA, ids=lambda case: case.about)
def test_metadata(case: Metadata, tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "model.gguf", keys_of(case.of, lost=case.lost, changed=case.set))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(config_of(case.of)), "utf-8")
    against = audit_targets([str(file)], Mandate(against=str(config), rules=ALL))
    alone = audit_targets([str(file)], Mandate(rules=ALL))
    assert (told(against), told(alone)) == (case.found, case.alone)
    assert case.noted in (None, noted(against))
    assert [subject.errors for subject in (*against.subjects, *alone.subjects)] == [(), ()]
