from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.name_misleads import check
from rule_subjects import LLAMA, SETTINGS, model


def said(name: str, file_type: str | None, *types: str) -> list[Outcome]:
    tensors = [(f"blk.{index}.attn_q.weight", (256, 2), each) for index, each in enumerate(types)]
    subject = model(LLAMA, tensors)
    named = replace(subject.gguf, name=name)
    return list(check(replace(subject, gguf=named, file_type=file_type), SETTINGS))


def test_fires_where_name_and_file_type_differ() -> None:
    assert said("models/x-Q4_K_M.gguf", "Q8_0") == [
        Hit(
            message="needs a file of Q4_K_M as its name says, general.file_type is Q8_0",
            where=Where(key="general.file_type"),
            expected="Q4_K_M",
            actual="Q8_0",
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize(
    ("name", "file_type"),
    [("x-F32.gguf", "F16"), ("x-Q3_K_XL.gguf", "Q4_K_M"), ("x-TQ1_0.gguf", "Q2_K")],
)
def test_fires_for_any_other_width(name: str, file_type: str) -> None:
    assert len(said(name, file_type)) == 1


@pytest.mark.parametrize(
    ("name", "file_type"),
    [
        ("x-Q4_K_M.gguf", "Q4_K_M"),
        # bartowski, mradermacher, and what quants of a MoE get
        ("x-Q4_K_L.gguf", "Q4_K_M"),
        ("x-Q3_K_XL.gguf", "Q3_K_L"),
        ("x.i1-IQ4_XS.gguf", "IQ4_XS"),
        ("x-UD-Q4_K_XL.gguf", "Q2_K"),
        ("x-MXFP4.gguf", "MXFP4_MOE"),
        ("x-BF16-00001-of-00002.gguf", "BF16"),
        ("x-fp16.gguf", "F16"),
        ("x.gguf", "Q8_0"),
        ("x-Q4_K_M.gguf", "guessed"),
        ("x-Q4_K_M.gguf", None),
    ],
)
def test_silent_about_what_publishers_do(name: str, file_type: str | None) -> None:
    assert said(name, file_type) == []


def test_silent_where_layers_stay_as_they_were_published() -> None:
    assert said("gpt-oss-20b-Q8_0.gguf", "MXFP4_MOE", "Q8_0", "MXFP4") == []
    assert len(said("x-Q8_0.gguf", "MXFP4_MOE", "Q8_0", "Q8_0")) == 1
