from __future__ import annotations

import pytest

from adapter_subjects import PEFT, PEFT_TENSORS, adapter
from companion_subjects import Tensors, adapting, companion
from gguf_audit.checkpoint import Json
from gguf_audit.gguf import Gguf, ValueType
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.adapter_changed import check
from rule_subjects import SETTINGS, UNKNOWN

INVOCATION = "adapter.alora.invocation_tokens"


def said(gguf: Gguf, tensors: Tensors | Absent = PEFT_TENSORS, **config: Json) -> list[object]:
    reference = adapting({**PEFT, **config}, tensors)
    return list(check(companion(gguf, "adapter", reference=reference), SETTINGS))


def test_fires_for_a_pair_that_is_lost() -> None:
    name = "blk.2.ffn_down.weight"
    assert said(adapter(lost=[f"{name}.lora_a", f"{name}.lora_b"])) == [
        Hit(
            message=(
                "the reference has 2048 parameters in 4 lora_B, the file 1536 in 3: pairs are lost"
            ),
            where=Where(),
            expected=2048,
            actual=1536,
            unit="parameter",
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use_dora", True),
        ("bias", "lora_only"),
        ("modules_to_save", ["lm_head"]),
        ("r", 16),
        ("alora_invocation_tokens", [1, 2, 3]),
    ],
)
def test_fires_for_what_the_file_doesnt_hold(key: str, value: Json) -> None:
    [hit] = said(adapter(), PEFT_TENSORS, **{key: value})
    assert isinstance(hit, Hit)
    assert hit.level is Severity.ERROR


def test_fires_for_other_tokens() -> None:
    gguf = adapter(changed={INVOCATION: (ValueType.UINT32, [1, 2])})
    [hit] = said(gguf, alora_invocation_tokens=[1, 2, 3])
    assert isinstance(hit, Hit)
    assert (hit.where.key, hit.actual) == (INVOCATION, [1, 2])


def test_silent_for_the_whole_adapter() -> None:
    assert said(adapter()) == []
    assert said(adapter(), use_dora=False, modules_to_save=None, alpha_pattern={}) == []


def test_silent_for_stacked_experts_and_a_fused_projection() -> None:
    # two experts become one tensor, and one projection three with the same A
    experts: Tensors = {
        **PEFT_TENSORS,
        **{f"experts.{index}.up_proj.lora_B.weight": (128, 8) for index in range(2)},
    }
    stacked: Tensors = {
        "blk.0.ffn_up_exps.weight.lora_a": (64, 8, 2),
        "blk.0.ffn_up_exps.weight.lora_b": (8, 128, 2),
    }
    assert said(adapter(shapes=stacked), experts) == []


def test_silent_for_the_rank_where_modules_have_their_own() -> None:
    assert said(adapter(), r=16, rank_pattern={"q_proj": 8}) == []


def test_silent_but_says_so_where_weights_arent_read() -> None:
    assert said(adapter(), UNKNOWN) == [NoEvidence("not given")]
