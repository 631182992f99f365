from __future__ import annotations

import pytest

from gguf_audit.evidence import Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.layout import CacheLayout, Full, Latent, Recurrent, StatePart
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.kv.full_attention_unconfirmed import check
from rule_subjects import GEMMA, LLAMA, SETTINGS, UNKNOWN, layers, model, without

KEY = "gemma3.attention.sliding_window"
FULL = Full(kv_heads=16, key_length=192, value_length=128)
REPAIR = Reconvert(hint="confirm first: gguf-audit check FILE --against OWNER/REPO")
SPARED = {**without(GEMMA, KEY), "gemma3.block_count": 32}


@pytest.mark.parametrize(
    "keys",
    [
        GEMMA,
        LLAMA,
        # Of 32 blocks there is a Gemma 3 without windows.
        SPARED,
        without(SPARED, "gemma3.context_length"),
        {"odd.block_count": 3},
    ],
)
def test_silent(keys: dict[str, Scalar]) -> None:
    assert list(check(model(keys), SETTINGS)) == []


def test_silent_where_a_reference_says() -> None:
    told = Settings(has_expected_layout=True)
    assert list(check(model(without(GEMMA, KEY)), told)) == []


def test_silent_where_no_layout_is_known() -> None:
    assert list(check(model(GEMMA, implied=UNKNOWN), SETTINGS)) == []
    assert list(check(model(GEMMA, implied=layers(None, None)), SETTINGS)) == []


@pytest.mark.parametrize(
    ("keys", "state", "origin"),
    [
        (without(GEMMA, KEY), "absent", Origin.RUNTIME_DEFAULT),
        ({**GEMMA, KEY: 0}, "not in effect", Origin.KEY),
    ],
)
def test_fires_for_a_lost_window(keys: dict[str, Scalar], state: str, origin: Origin) -> None:
    assert list(check(model(keys), SETTINGS)) == [
        Hit(
            message="every known gemma3 model has a sliding window, this file makes llama.cpp "
            f"keep full attention on all 18 layers, 576 MiB at 32768 tokens: {KEY} is {state}",
            where=Where(key=KEY),
            expected="a sliding window",
            actual="full attention",
            origin=origin,
            level=Severity.WARNING,
            repair=REPAIR,
        )
    ]


@pytest.mark.parametrize(
    "saving",
    [
        layers(FULL, FULL, Latent(kv_heads=1, key_length=576)),
        layers(Recurrent(parts=(StatePart(name="ssm", elements=1),)), FULL, FULL),
    ],
)
def test_one_layer_that_saves_is_enough(saving: CacheLayout) -> None:
    lost = without(GEMMA, KEY)
    assert list(check(model(lost, implied=saving), SETTINGS)) == []


def test_a_latent_goes_by_its_own_key() -> None:
    lost = {"deepseek2.block_count": 3, "deepseek2.context_length": 4096}
    [hit] = list(check(model(lost, implied=layers(FULL, FULL, FULL)), SETTINGS))
    assert hit == Hit(
        message="every known deepseek2 model has a latent (MLA), this file makes llama.cpp "
        "keep full attention on all 3 layers: deepseek2.attention.key_length_mla is absent",
        where=Where(key="deepseek2.attention.key_length_mla"),
        expected="a latent (MLA)",
        actual="full attention",
        origin=Origin.RUNTIME_DEFAULT,
        level=Severity.WARNING,
        repair=REPAIR,
    )
