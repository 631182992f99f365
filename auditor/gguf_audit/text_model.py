"""Which part of a ``config.json`` is the text model's, and which class it names.

``get_model_architecture`` and ``ModelBase.load_hparams`` (conversion/base.py of llama.cpp
build 11434). What is made of hyper-parameters and of special tokens hangs on the same
choice, so it is made here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gguf_audit.checkpoint import Json
from gguf_audit.errors import MalformedError
from gguf_audit.limits import LIMITS
from gguf_audit.where import Where

__all__ = ["class_of", "malformed", "text_part"]

#: Names under which checkpoints keep their language model's configuration, in the
#: order in which the converter renames them to ``text_config``: the last one wins.
TEXT_PARTS = ("llm_config", "lm_config", "thinker_config", "language_config", "lfm")

#: Classes whose root class decides although ``text_config`` names one of its own
#: (``get_model_architecture`` in conversion/base.py).
ROOT_DECIDES = frozenset(
    {
        "StepVLForConditionalGeneration",
        "Sarashina2VisionForCausalLM",
        "Exaone4_5_ForConditionalGeneration",
        "Step3p7ForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
    }
)


def class_of(raw: Mapping[str, Json]) -> str | None:
    """Return the class by which the converter picks its own (``get_model_architecture``).

    ``None`` where a ``config.json`` names none; raises MalformedError where it names
    one in a way that the converter couldn't read.
    """
    part = text_part(raw)
    found = _first_class(raw)
    if part is not None and found not in ROOT_DECIDES:
        found = _first_class(part) or found
    if found is None and "ssm_cfg" in raw:
        ssm = raw["ssm_cfg"]
        layer = ssm.get("layer") if isinstance(ssm, dict) else None
        return f"{layer if isinstance(layer, str) else 'Mamba'}ForCausalLM"
    return found


def _first_class(values: Mapping[str, Json]) -> str | None:
    classes = values.get("architectures")
    if classes is None:
        return None
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise malformed("architectures", classes, "an array of class names")
    return cast("list[str]", classes)[0] if classes else None


def text_part(raw: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return the language model's part of a ``config.json``, ``None`` for all of it.

    Raises MalformedError where that isn't an object.
    """
    part: Json = raw.get("text_config")
    name = "text_config"
    for candidate in TEXT_PARTS:
        if candidate in raw:
            name, part = candidate, raw[candidate]
            if candidate == "thinker_config":
                if not isinstance(part, dict):
                    raise malformed(name, part, "an object")
                part = part.get("text_config")
    if part is None:
        return None
    if not isinstance(part, dict):
        raise malformed(name, part, "an object")
    return part


def malformed(name: str, value: object, wanted: str) -> MalformedError:
    """Make the error for a value of ``config.json`` that can't be used."""
    shown = repr(value)
    if len(shown) > LIMITS.shown_characters:
        shown = shown[: LIMITS.shown_characters] + "..."
    message = f"{name} in config.json is {shown}, not {wanted}"
    return MalformedError(message, where=Where(file="config.json", key=name))
