from __future__ import annotations

import pytest

from gguf_audit.naming import Label, Part, label_of, part_of, width_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", Label("Q4_K_M", dynamic=False)),
        ("Qwen_Qwen3-8B-Q4_K_L.gguf", Label("Q4_K_L", dynamic=False)),
        ("Qwen3-8B-UD-Q4_K_XL.gguf", Label("Q4_K_XL", dynamic=True)),
        ("Nemo-12B.i1-IQ3_M.gguf", Label("IQ3_M", dynamic=False)),
        ("model.f16.gguf", Label("F16", dynamic=False)),
        ("a/b-Q8_0-00001-of-00002.gguf", Label("Q8_0", dynamic=False)),
        ("owner/repo:model-bf16.gguf", Label("BF16", dynamic=False)),
        ("gpt-oss-20b-mxfp4.gguf", Label("MXFP4", dynamic=False)),
        ("Q4_0.gguf", Label("Q4_0", dynamic=False)),
        ("Qwen3-8B-IQ3_XXS.gguf", Label("IQ3_XXS", dynamic=False)),
        ("Qwen3-8B-Q4_0_4_4.gguf", Label("Q4_0_4_4", dynamic=False)),
        ("Qwen3-8B-Q3_K_HIFI.gguf", Label("Q3_K_HIFI", dynamic=False)),
        ("q3_text", None),
        ("q3_text_nodeep", None),
        ("q3_k_nodeep", None),
        ("model.gguf", None),
        ("Q4_0-model.gguf", None),
        ("imatrix-Qwen3.gguf", None),
    ],
)
def test_a_label_stands_at_the_end_of_a_name(name: str, expected: Label | None) -> None:
    assert label_of(name) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Q4_K_M", "4"),
        ("IQ4_XS", "4"),
        ("MXFP4_MOE", "4"),
        ("NVFP4", "4"),
        ("TQ2_0", "TQ"),
        ("BF16", "16"),
        ("F32", "32"),
        ("guessed", None),
    ],
)
def test_a_width_is_what_names_have(label: str, expected: str | None) -> None:
    assert width_of(label) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b.Q6_K.gguf.part1of2", Part("b.Q6_K.gguf", 1, 2)),
        ("b.gguf.PART12of12", Part("b.gguf", 12, 12)),
        ("b.gguf", None),
        ("b-00001-of-00002.gguf", None),
        ("b.gguf.part1", None),
        ("b.part1of2.gguf", None),
    ],
)
def test_a_part_stands_behind_the_name_of_the_whole(name: str, expected: Part | None) -> None:
    assert part_of(name) == expected


def test_parts_are_concatenated() -> None:
    part = Part("a b.gguf", 2, 11)
    assert part.advice == "concatenate the parts: cat 'a b.gguf'.part{1..11}of11 > 'a b.gguf'"
