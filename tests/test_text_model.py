from __future__ import annotations

import pytest

from gguf_audit.checkpoint import Json
from gguf_audit.errors import MalformedError
from gguf_audit.text_model import class_of, text_part


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({}, None),
        ({"architectures": []}, None),
        ({"architectures": ["A", "B"]}, "A"),
        ({"architectures": ["A"], "text_config": {"architectures": ["B"]}}, "B"),
        ({"architectures": ["A"], "text_config": {}}, "A"),
        ({"architectures": ["A"], "llm_config": {"architectures": ["B"]}}, "B"),
        ({"thinker_config": {"text_config": {"architectures": ["B"]}}}, "B"),
        # The last of several names wins.
        ({"lfm": {"architectures": ["L"]}, "llm_config": {"architectures": ["B"]}}, "L"),
        (
            {
                "architectures": ["Step3p7ForConditionalGeneration"],
                "text_config": {"architectures": ["B"]},
            },
            "Step3p7ForConditionalGeneration",
        ),
        ({"ssm_cfg": {}}, "MambaForCausalLM"),
        ({"ssm_cfg": {"layer": "Mamba2"}}, "Mamba2ForCausalLM"),
    ],
)
def test_the_class_that_converts(raw: dict[str, Json], name: str | None) -> None:
    assert class_of(raw) == name


def test_the_part_of_the_text_model() -> None:
    assert text_part({"a": 1}) is None
    assert text_part({"text_config": None}) is None
    assert text_part({"text_config": {"a": 1}, "language_config": {"a": 2}}) == {"a": 2}


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"architectures": "A"}, "architectures"),
        ({"architectures": [1]}, "architectures"),
        ({"text_config": []}, "text_config"),
        ({"thinker_config": 1}, "thinker_config"),
        ({"lfm": "x"}, "lfm"),
    ],
)
def test_what_the_converter_could_not_read(raw: dict[str, Json], key: str) -> None:
    with pytest.raises(MalformedError) as caught:
        class_of(raw)
    assert caught.value.where.key == key
