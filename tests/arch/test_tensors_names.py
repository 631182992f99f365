"""What becomes of a checkpoint's tensors, beside gguf-py's own mapping of names."""

from __future__ import annotations

import re

import gguf
import pytest

from gguf_audit.arch.tensors import converted
from gguf_audit.arch.tensors._names import CONVERTED, Becomes, Namer
from gguf_audit.arch.tensors._tables import rows_of
from gguf_audit.checkpoint import StoredTensor
from gguf_audit.fields import Fields
from gguf_audit.parts import Absent

ARCHITECTURES = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}
#: Prefixes of blocks in the checkpoints of the covered classes.
BLOCK = re.compile(
    r"(?:model\.|transformer\.|backbone\.|gpt_neox\.|encoder\.)?(?:layers|layer|h)\.0\."
)
#: Names that gguf-py has in two meanings for one architecture, of which a checkpoint has
#: the other, and those that the converter splits before it asks for their names.
AMBIGUOUS = (
    ".mixer.out_proj",
    ".feed_forward.down_proj",
    ".experts.gate_up_proj",
    ".linear_attn.in_proj_qkvz",
    ".weight",
)


def namer(architecture: str, *, latent: bool = False, experts: bool = True) -> Namer:
    return Namer(architecture, trunk=4, latent=latent, experts=experts)


@pytest.mark.parametrize("architecture", sorted(CONVERTED & ARCHITECTURES.keys()))
def test_names_are_gguf_py_s(architecture: str) -> None:
    mapping = gguf.get_tensor_name_map(ARCHITECTURES[architecture], 1).mapping
    rows = {row.name for row in rows_of(architecture) or ()}
    ours = namer(architecture)
    different: dict[str, tuple[str, object]] = {}
    for name, (_, theirs) in mapping.items():
        base = theirs.removeprefix("blk.0.")
        full = f"{base}.weight"
        if not BLOCK.match(name) or full not in rows or name.endswith(AMBIGUOUS):
            continue
        _, becomes = ours.place(f"{name}.weight")
        if becomes is not None and becomes != Becomes((full,)):
            different[name] = (full, becomes)
    assert different == {}


@pytest.mark.parametrize(
    ("architecture", "name", "block", "names"),
    [
        ("llama", "model.layers.2.self_attn.q_proj.bias", 2, ("attn_q.bias",)),
        ("llama", "model.embed_tokens.weight", None, ("token_embd.weight",)),
        ("llama", "lm_head.weight", None, ("output.weight",)),
        ("llama", "model.layers.1.block_sparse_moe.experts.7.w2.weight", 1, ("ffn_down_exps.weight",)),
        ("gemma2", "model.layers.0.post_attention_layernorm.weight", 0, ("post_attention_norm.weight",)),
        ("llama", "model.layers.0.post_attention_layernorm.weight", 0, ("ffn_norm.weight",)),
        ("qwen35", "model.language_model.layers.0.linear_attn.dt_bias", 0, ("ssm_dt.bias",)),
        ("qwen3next", "mtp.layers.0.self_attn.q_proj.weight", 4, ("attn_q.weight",)),
        ("qwen3next", "mtp.fc.weight", 4, ("nextn.eh_proj.weight",)),
        ("qwen3next", "model.layers.0.linear_attn.in_proj_qkvz.weight", 0, ("attn_qkv.weight", "attn_gate.weight")),
        ("gpt-oss", "model.layers.0.mlp.experts.gate_up_proj_bias", 0, ("ffn_gate_exps.bias", "ffn_up_exps.bias")),
        ("gpt-oss", "model.layers.0.mlp.experts.down_proj_scales", 0, ()),
        ("rwkv7", "model.layers.0.attn.v_lora.lora.0.weight", 0, ()),
        ("rwkv7", "model.layers.1.attn.v_lora.lora.2.bias", 1, ("time_mix_v0.weight",)),
        ("rwkv7", "model.layers.0.pre_norm.weight", None, ("token_embd_norm.weight",)),
    ],
)  # fmt: skip
def test_what_becomes_of(
    architecture: str, name: str, block: int | None, names: tuple[str, ...]
) -> None:
    assert namer(architecture).place(name) == (block, Becomes(names))


def test_a_latent_splits_the_projection() -> None:
    name = "model.layers.0.self_attn.kv_b_proj.weight"
    split = Becomes(("attn_k_b.weight", "attn_v_b.weight"))
    assert namer("deepseek2", latent=True).place(name) == (0, split)
    assert namer("deepseek2").place(name) == (0, Becomes(("attn_kv_b.weight",)))


def test_a_shared_part_without_experts_is_the_dense_one() -> None:
    name = "model.layers.0.shared_mlp.output_linear.weight"
    assert namer("granitehybrid").place(name) == (0, Becomes(("ffn_down_shexp.weight",)))
    dense = namer("granitehybrid", experts=False)
    assert dense.place(name) == (0, Becomes(("ffn_down.weight",)))


@pytest.mark.parametrize("name", ["model.layers.0.odd.weight", "odd.weight", "mtp.odd.weight"])
def test_who_knows(name: str) -> None:
    assert namer("llama").place(name)[1] is None


def test_parameters_add_up() -> None:
    experts = {
        f"model.layers.0.mlp.experts.{index}.{part}_proj.weight": (6, 4)
        for index in range(3)
        for part in ("gate", "up")
    }
    tensors = {n: StoredTensor(dtype="BF16", shape=s) for n, s in experts.items()}
    fields = Fields.of("qwen3moe", {"qwen3moe.block_count": 1, "qwen3moe.expert_count": 3})
    found = converted(fields, tensors)
    assert not isinstance(found, Absent)
    assert {(g.names, g.sources, g.parameters, g.sizes) for g in found.groups} == {
        (("blk.0.ffn_gate_exps.weight",), 3, 72, None),
        (("blk.0.ffn_up_exps.weight",), 3, 72, None),
    }


def test_conversions_that_nobody_has_seen() -> None:
    fields = Fields.of("baichuan", {"baichuan.block_count": 1})
    assert converted(fields, {}) == Absent("what becomes of the tensors of 'baichuan' isn't known")
