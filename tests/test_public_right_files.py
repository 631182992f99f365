"""What tools have got wrong about files that are right, and we don't."""

from __future__ import annotations

from collections import Counter

from gguf_audit import arch
from gguf_audit.fields import Fields, Origin
from gguf_audit_rules.wt import tensor_lost
from public_faults import config_of
from public_reports import rows
from rule_subjects import SETTINGS
from wt_subjects import converted, llama, stored


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
