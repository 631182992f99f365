from __future__ import annotations

from collections.abc import Mapping

import pytest

from adapter_subjects import adapter
from companion_subjects import Tensors, based, companion, file
from gguf_audit.gguf import Gguf, Scalar
from gguf_audit.rule import Hit, NoEvidence, Replace, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.adapter_base_mismatch import check
from llama_tensors import llama_tensors
from rule_subjects import LLAMA, SETTINGS, UNKNOWN, checkpoint

TIED: Tensors = {
    name: shape
    for name, shape, _ in llama_tensors(
        blocks=3, embedding=64, queries=64, keys=32, feed_forward=128, vocabulary=100
    )
}
UNTIED: Tensors = {**TIED, "output.weight": (64, 100)}
EMBEDDING: Tensors = {
    "token_embd.weight.lora_a": (8, 100),
    "token_embd.weight.lora_b": (8, 64),
}


def said(gguf: Gguf, tensors: Tensors = TIED, fields: Mapping[str, Scalar] = LLAMA) -> list[Hit]:
    name = next(iter(fields)).partition(".")[0]
    base = based(file({"general.architecture": name, **fields}, tensors))
    found = list(check(companion(gguf, "adapter", reference=base, base=fields), SETTINGS))
    return [hit for hit in found if isinstance(hit, Hit)]


def test_fires_for_another_architecture() -> None:
    assert said(adapter(), fields={"qwen3.block_count": 3}) == [
        Hit(
            message="the model is 'qwen3', the adapter is for 'llama'",
            where=Where(key="general.architecture"),
            expected="qwen3",
            actual="llama",
            level=Severity.ERROR,
            repair=Replace(),
        )
    ]


@pytest.mark.parametrize(
    "shapes",
    [
        {"blk.2.attn_q.weight.lora_a": (128, 8)},
        {"blk.2.attn_q.weight.lora_b": (8, 32)},
        {"token_embd.weight.lora_a": (8, 64), "token_embd.weight.lora_b": (8, 100)},
    ],
)
def test_fires_for_other_shapes(shapes: Tensors) -> None:
    [hit] = said(adapter(shapes=shapes), UNTIED)
    assert hit.message.startswith("needs the shapes of the model's tensors, others for ")


@pytest.mark.parametrize("name", ["blk.3.attn_q.weight", "output.weight", "blk.0.attn_qkv.weight"])
def test_fires_for_tensors_that_the_model_hasnt(name: str) -> None:
    more = {f"{name}.lora_a": (64, 8), f"{name}.lora_b": (8, 100)}
    [hit] = said(adapter(shapes=more))
    assert hit.message == f"the model has no {name}, which the adapter changes"


def test_fires_for_an_embedding_whose_output_is_tied() -> None:
    [hit] = said(adapter(shapes=EMBEDDING))
    assert hit.message == (
        "the model's output is tied, llama.cpp aborts on a pair for token_embd.weight"
    )


def test_silent_on_its_own_model() -> None:
    assert said(adapter()) == []
    assert said(adapter(shapes=EMBEDDING), UNTIED) == []
    output = {"output.weight.lora_a": (64, 8), "output.weight.lora_b": (8, 100)}
    assert said(adapter(shapes=output), UNTIED) == []


def test_silent_but_says_so_where_the_model_isnt_known() -> None:
    found = check(companion(adapter(), "adapter", reference=checkpoint(), base=UNKNOWN), SETTINGS)
    assert list(found) == [NoEvidence("the adapter's model isn't known: not given")]
