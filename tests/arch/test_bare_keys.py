from __future__ import annotations

import pytest

from gguf_audit import arch
from gguf_audit.errors import Refused
from gguf_audit.fields import Fields
from llama_recipes import PLAIN, recipe
from rule_subjects import model

ACTIVATION = ("xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps")


def test_apertus_activation_has_no_architecture_in_front() -> None:
    keys = recipe("apertus", PLAIN)
    assert {key for key in keys if "xielu" in key} == set(ACTIVATION)
    assert len(arch.implied_layout(model(keys).fields).layers) == PLAIN.blocks


@pytest.mark.parametrize("lost", ACTIVATION)
def test_apertus_is_refused_without_it(lost: str) -> None:
    keys = {key: value for key, value in recipe("apertus", PLAIN).items() if key != lost}
    with pytest.raises(Refused, match=f"^{lost} is absent$") as refused:
        arch.implied_layout(model(keys).fields)
    assert refused.value.where.key == lost


def test_other_names_have_one() -> None:
    fields = Fields.of("llama", {})
    assert fields.key("block_count") == "llama.block_count"
    assert fields.key("xielu.beta") == "xielu.beta"
