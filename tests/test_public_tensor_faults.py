"""Faults in tensors that people have published, made again: which rule finds each.

Every row is a right model with something lost, set, dropped or added. Rows that end in no
rule are files that are right, however odd they look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine_subjects import ALL
from gguf_audit import arch
from gguf_audit.arch.tensors import inventory
from gguf_audit.engine import audit_targets
from gguf_audit.fields import Fields
from gguf_audit.gguf import ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.testing import FieldValue, TensorSpec, make_gguf, write_gguf
from public_faults import keys_of, told
from recipes import read_recipe

PHI_3_LONG = "microsoft/Phi-3-mini-128k-instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
QWEN_MIXTURE = "Qwen/Qwen3-30B-A3B"


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
    keys = keys_of(case.of, lost=case.lost)
    file = write_gguf(tmp_path / "model.gguf", keys, [*tensors_of(case, keys), *case.added])
    against = audit_targets([str(file)], Mandate(against=case.of, rules=WITHOUT_VOCABULARY))
    alone = audit_targets([str(file)], Mandate(rules=WITHOUT_VOCABULARY))
    assert (told(against), told(alone)) == (case.found, case.alone)
