from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from adapter_subjects import adapter
from companion_subjects import Tensors, companion
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.pkg.adapter_unloadable import check
from rule_subjects import LLAMA, SETTINGS

QUERY = "blk.2.attn_q.weight"
ALPHA = "adapter.lora.alpha"


def said(gguf: Gguf) -> list[Hit]:
    found = list(check(companion(gguf, "adapter"), SETTINGS))
    return [hit for hit in found if isinstance(hit, Hit)]


@pytest.mark.parametrize(
    ("lost", "changed", "key"),
    [
        (["general.type"], {}, "general.type"),
        ([], {"general.type": "model"}, "general.type"),
        (["adapter.type"], {}, "adapter.type"),
        ([], {"adapter.type": "control"}, "adapter.type"),
        (["general.architecture"], {}, "general.architecture"),
        ([], {ALPHA: (ValueType.FLOAT64, 16.0)}, ALPHA),
        ([], {"adapter.lora.task_name": 7}, "adapter.lora.task_name"),
        (
            [],
            {"adapter.alora.invocation_tokens": (ValueType.INT32, [1, 2])},
            "adapter.alora.invocation_tokens",
        ),
    ],
)
def test_fires_for_each_key(lost: Sequence[str], changed: dict[str, FieldValue], key: str) -> None:
    [hit] = said(adapter(lost=lost, changed=changed))
    assert (hit.where.key, hit.level) == (key, Severity.ERROR)


def test_fires_with_the_type_of_an_array() -> None:
    key = "adapter.alora.invocation_tokens"
    gguf = adapter(changed={key: (ValueType.INT32, [1, 2])})
    assert said(gguf) == [
        Hit(
            message=f"needs an array of u32, {key} is an array of int32",
            where=Where(key=key, offset=gguf.fields[key].offset),
            expected="an array of u32",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(("lost", "changed"), [([ALPHA], {}), ([], {ALPHA: 0.0})])
def test_fires_as_a_warning_for_a_lost_alpha(
    lost: Sequence[str], changed: dict[str, FieldValue]
) -> None:
    gguf = adapter(lost=lost, changed=changed)
    field = gguf.fields.get(ALPHA)
    assert said(gguf) == [
        Hit(
            message=(
                f"needs the adapter's alpha, {ALPHA} {'is 0' if field else 'is absent'}:"
                " llama.cpp adds it at full size"
            ),
            where=Where(key=ALPHA, offset=None if field is None else field.offset),
            actual=None if field is None else 0.0,
            level=Severity.WARNING,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize("half", ["lora_a", "lora_b"])
def test_fires_for_half_a_pair(half: str) -> None:
    name = f"{QUERY}.{half}"
    assert said(adapter(lost=[name])) == [
        Hit(
            message=f"pairs need both halves, {name} not in the file",
            where=Where(tensor=name),
            actual=[name],
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    "shapes",
    [
        {"blk.1.attn_q.bias": (64,)},
        {f"{QUERY}.lora_a": (64, 4)},
        # stored as the finetune example of old did
        {f"{QUERY}.lora_a": (8, 64)},
        {"output.weight.lora_a": (64, 8), "output.weight.lora_b": (4, 100)},
    ],
)
def test_fires_for_tensors_that_are_refused(shapes: Tensors) -> None:
    [hit] = said(adapter(shapes=shapes))
    assert hit.level is Severity.ERROR


def test_fires_for_no_pairs() -> None:
    names = list(adapter().tensors)
    assert [hit.message for hit in said(adapter(lost=names))] == [
        "needs pairs of lora_a and lora_b, the file has none"
    ]


EMBEDDING: Tensors = {
    "token_embd.weight.lora_a": (8, 100),
    "token_embd.weight.lora_b": (8, 64),
}


def test_fires_as_an_info_for_an_embedding_that_may_be_tied() -> None:
    assert said(adapter(shapes=EMBEDDING)) == [
        Hit(
            message=(
                "llama.cpp aborts on a pair for token_embd.weight if the model's output is tied to it"
            ),
            where=Where(tensor="token_embd.weight.lora_a"),
            level=Severity.INFO,
        )
    ]


def test_silent_for_an_embedding_where_the_model_is_known() -> None:
    held = companion(adapter(shapes=EMBEDDING), "adapter", base=LLAMA)
    assert list(check(held, SETTINGS)) == []


def test_silent_for_right_adapters() -> None:
    assert said(adapter()) == []
    output = {"output.weight.lora_a": (64, 8), "output.weight.lora_b": (8, 100)}
    assert said(adapter(shapes={**EMBEDDING, **output})) == []
    experts = {
        "blk.0.ffn_up_exps.weight.lora_a": (64, 2, 8),
        "blk.0.ffn_up_exps.weight.lora_b": (2, 64, 8),
    }
    assert said(adapter(shapes=experts)) == []


def test_silent_for_texts_and_norms() -> None:
    more: Mapping[str, FieldValue] = {"adapter.lora.task_name": "rerank"}
    assert said(adapter(changed=more, shapes={"output_norm.weight": (64,)})) == []
