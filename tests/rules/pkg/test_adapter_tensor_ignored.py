from __future__ import annotations

from adapter_subjects import adapter
from companion_subjects import companion
from gguf_audit.rule import Hit, Reconvert, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.adapter_tensor_ignored import check
from rule_subjects import SETTINGS


def test_fires_for_norms() -> None:
    norms = {"blk.0.attn_norm.weight": (64,), "output_norm.weight": (64,)}
    assert list(check(companion(adapter(shapes=norms), "adapter"), SETTINGS)) == [
        Hit(
            message=(
                "llama.cpp takes only pairs from an adapter, blk.0.attn_norm.weight,"
                " output_norm.weight have no effect"
            ),
            where=Where(tensor="blk.0.attn_norm.weight"),
            actual=["blk.0.attn_norm.weight", "output_norm.weight"],
            level=Severity.WARNING,
            repair=Reconvert(hint="after merging the adapter into its model"),
        )
    ]


def test_silent_for_pairs_alone() -> None:
    assert list(check(companion(adapter(), "adapter"), SETTINGS)) == []
