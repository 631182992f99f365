"""RoPE factors that the converter stores as tensors, because no key can hold them.

``generate_extra_tensors`` of conversion/llama.py, deci.py, exaone.py, step3.py, gemma.py,
phi.py and minicpm.py, llama.cpp build 11434.
"""

from __future__ import annotations

from collections.abc import Mapping

from gguf_audit.arch._base import rope_of_full_layers, rope_parameters
from gguf_audit.arch._config import Config

__all__ = ["FACTORS", "FREQUENCIES", "LLAMA3", "rope_tensors"]

#: Divides the frequency of each pair of elements.
FREQUENCIES = "rope_freqs.weight"
#: The same beyond the original context, and within it.
FACTORS = ("rope_factors_long.weight", "rope_factors_short.weight")
#: Llama 3.1's scaling: their converter writes the tensor, their loader takes it.
LLAMA3 = frozenset(
    {
        "apertus",
        "arcee",
        "cogvlm",
        "deci",
        "exaone",
        "exaone-moe",
        "exaone4",
        "granite",
        "granitehybrid",
        "granitemoe",
        "llama",
        "llama-embed",
        "llama4",
        "mistral3",
        "nanbeige",
        "step35",
    }
)
LONG = frozenset({"minicpm", "minicpm3", "phi3", "phimoe"})


def rope_tensors(architecture: str, config: Config) -> Mapping[str, str]:
    """Return the tensors that a right conversion has -> the scaling they stand for.

    Raises MalformedError for parameters that are no object.
    """
    parameters = rope_of_full_layers(rope_parameters(config))
    kind = parameters.get("rope_type")
    kind = kind.lower() if isinstance(kind, str) else ""
    if architecture in LLAMA3 and kind == "llama3":
        return {FREQUENCIES: "llama3"}
    if architecture == "gemma4" and kind == "proportional":
        return {FREQUENCIES: "proportional"}
    if architecture in LONG and parameters.get("long_factor"):
        return dict.fromkeys(FACTORS, kind or "longrope")
    return {}
