from __future__ import annotations

import pytest

from adapter_subjects import PEFT, PEFT_TENSORS, adapter
from companion_subjects import adapting, companion
from gguf_audit.checkpoint import Json
from gguf_audit.gguf import Gguf
from gguf_audit.parts import Absent
from gguf_audit.rule import Hit, NoEvidence, Reconvert, SetKey, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.adapter_scale_changed import SCALED, check
from rule_subjects import SETTINGS, UNKNOWN, checkpoint

ALPHA = "adapter.lora.alpha"
EVERY: dict[str, Json] = {"q_proj": 64, "down_proj": 64}


def said(gguf: Gguf, **config: Json) -> list[object]:
    reference = adapting({**PEFT, **config}, PEFT_TENSORS)
    return list(check(companion(gguf, "adapter", reference=reference), SETTINGS))


def test_fires_for_a_rank_stabilised_scale_with_its_repair() -> None:
    gguf = adapter()
    rooted = 16 / 8**0.5
    assert said(gguf, use_rslora=True) == [
        Hit(
            message=(
                f"needs scale {rooted:g} at rank 8, llama.cpp takes 2: the adapter has alpha 16,"
                " rank-stabilised"
            ),
            where=Where(key=ALPHA, offset=gguf.fields[ALPHA].offset),
            expected=[rooted],
            actual=[2.0],
            level=Severity.ERROR,
            repair=SetKey(key=ALPHA, value=round(16 * 8**0.5, 6), present=True),
        )
    ]


def test_fires_for_a_module_with_another_alpha() -> None:
    gguf = adapter()
    [hit] = said(gguf, alpha_pattern={"layers.1.self_attn.q_proj": 64})
    assert isinstance(hit, Hit)
    assert hit.expected == {"layers.1.self_attn.q_proj": 64.0}
    assert hit.repair == Reconvert(hint=SCALED)


@pytest.mark.parametrize(
    "patterns",
    [
        EVERY,
        {"self_attn.q_proj": 64, "mlp.down_proj": 64, "q_proj": 8},
        {"q_proj": 64, "down_proj": 64, "lm_head": 4},
    ],
)
def test_fires_with_its_repair_where_all_modules_have_another_alpha(
    patterns: dict[str, Json],
) -> None:
    gguf = adapter()
    assert said(gguf, alpha_pattern=patterns) == [
        Hit(
            message="needs scale 8 at rank 8, llama.cpp takes 2: the adapter has alpha 64",
            where=Where(key=ALPHA, offset=gguf.fields[ALPHA].offset),
            expected=[8.0],
            actual=[2.0],
            level=Severity.ERROR,
            repair=SetKey(key=ALPHA, value=64.0, present=True),
        )
    ]


def test_silent_where_the_alpha_of_all_modules_was_set() -> None:
    assert said(adapter(changed={ALPHA: 64.0}), alpha_pattern=EVERY) == []


def test_fires_where_nobody_knows_which_modules_have_another_alpha() -> None:
    for pattern in (r"layers\.[0-9]\.self_attn\.q_proj", "layers.1.self_attn.q_proj"):
        [hit] = said(adapter(changed={ALPHA: 64.0}), alpha_pattern={pattern: 64})
        assert isinstance(hit, Hit)
        assert hit.repair == Reconvert(hint=SCALED)
    reference = adapting({**PEFT, "alpha_pattern": EVERY}, UNKNOWN)
    subject = companion(adapter(changed={ALPHA: 64.0}), "adapter", reference=reference)
    assert len(list(check(subject, SETTINGS))) == 1


@pytest.mark.parametrize("stored", [1.0, 8.0, 32.0])
def test_fires_for_another_alpha(stored: float) -> None:
    [hit] = said(adapter(changed={ALPHA: stored}))
    assert isinstance(hit, Hit)
    assert hit.repair == SetKey(key=ALPHA, value=16.0, present=True)


def test_fires_for_a_lost_alpha() -> None:
    assert said(adapter(lost=[ALPHA])) == [
        Hit(
            message="needs scale 2 at rank 8, llama.cpp takes 1: the adapter has alpha 16",
            where=Where(key=ALPHA),
            expected=[2.0],
            actual=[1.0],
            level=Severity.ERROR,
            repair=Reconvert(
                hint=f"{ALPHA} has to be 16; until then run it with --lora-scaled FILE 2"
            ),
        )
    ]


def test_fires_for_a_lost_alpha_of_several_ranks() -> None:
    narrow = {"blk.2.attn_q.weight.lora_a": (64, 4), "blk.2.attn_q.weight.lora_b": (4, 64)}
    [hit] = said(adapter(lost=[ALPHA], shapes=narrow))
    assert isinstance(hit, Hit)
    assert hit.repair == Reconvert(hint=f"{ALPHA} has to be 16")
    [hit] = said(adapter(shapes=narrow), use_rslora=True)
    assert isinstance(hit, Hit)
    assert hit.repair == Reconvert(hint="after scaling lora_B, no single alpha says it")


def test_silent_for_a_right_scale() -> None:
    assert said(adapter()) == []
    # alpha is the rank: without alpha the scale is 1 as well
    assert said(adapter(lost=[ALPHA]), lora_alpha=8) == []


def test_silent_where_the_alpha_was_set_for_the_root() -> None:
    assert said(adapter(changed={ALPHA: 16 * 8**0.5}), use_rslora=True) == []


def test_silent_for_other_ranks_and_patterns_that_match_nothing() -> None:
    narrow = {"blk.2.attn_q.weight.lora_a": (64, 4), "blk.2.attn_q.weight.lora_b": (4, 64)}
    assert said(adapter(shapes=narrow), rank_pattern={"layers.2.self_attn.q_proj": 4}) == []
    assert said(adapter(), alpha_pattern={"lm_head": 64}) == []
    assert said(adapter(), alpha_pattern={"q_proj": 16}) == []


def test_silent_but_says_so_where_nothing_is_known() -> None:
    reference = adapting({"r": 8})
    found = list(check(companion(adapter(), "adapter", reference=reference), SETTINGS))
    assert found == [NoEvidence("adapter_config.json doesn't say lora_alpha and r")]
    none = checkpoint()
    assert isinstance(none.adapter, Absent)
    found = list(check(companion(adapter(), "adapter", reference=none), SETTINGS))
    assert found == [NoEvidence(none.adapter.reason)]
