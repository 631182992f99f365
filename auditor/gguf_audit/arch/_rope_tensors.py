"""RoPE factors that the converter stores as tensors, because no key can hold them.

``generate_extra_tensors`` of conversion/llama.py, deci.py, exaone.py, step3.py, gemma.py,
phi.py and minicpm.py, llama.cpp build 11434.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gguf_audit.arch._base import rope_of_full_layers, rope_parameters
from gguf_audit.arch._config import Config
from gguf_audit.checkpoint import Json

__all__ = ["FACTORS", "FREQUENCIES", "LLAMA3", "rope_factors", "rope_tensors"]

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


#: Doesn't rotate: a frequency divided by it is none (``generate_extra_tensors`` of gemma.py).
STILL = 1e30
#: Rotate parts of their heads, padded with ones (step3.py).
PADDED = frozenset({"step35"})


def rope_factors(
    architecture: str, config: Config, name: str, count: int
) -> tuple[float, ...] | None:
    """Return the values of a tensor that ``rope_tensors`` names, ``count`` of them.

    ``None`` where the config doesn't state all that they are made of. Raises
    MalformedError for parameters that are no object.
    """
    parameters = rope_of_full_layers(rope_parameters(config))
    match rope_tensors(architecture, config).get(name):
        case None:
            return None
        case "llama3":
            return None if architecture in PADDED else _llama3(parameters, count)
        case "proportional":
            part = _number(parameters, "partial_rotary_factor")
            if part is None or not 0 <= part <= 1:
                return None
            rotated = int(count * part)
            return (1.0,) * rotated + (STILL,) * (count - rotated)
        case _:
            return _stated(parameters, "long_factor" if name == FACTORS[0] else "short_factor")


def _llama3(parameters: Mapping[str, Json], count: int) -> tuple[float, ...] | None:
    names = ("rope_theta", "factor", "low_freq_factor", "high_freq_factor")
    found = [_number(parameters, name) for name in names]
    original = _number(parameters, "original_max_position_embeddings")
    base, factor, low, high = (value or 0.0 for value in found)
    if not (base and factor and low and high and original) or low > high:
        return None
    factors: list[float] = []
    for index in range(count):
        wavelength = 2 * math.pi * base ** (index / count)
        # from 0 where the longest waves are stretched whole to 1 where the short ones stay
        if low == high:
            smooth = 1.0 if wavelength < original / high else 0.0
        else:
            smooth = min(1.0, max(0.0, (original / wavelength - low) / (high - low)))
        factors.append(1 / ((1 - smooth) / factor + smooth))
    return tuple(factors)


def _stated(parameters: Mapping[str, Json], name: str) -> tuple[float, ...] | None:
    found = parameters.get(name)
    if not isinstance(found, list):
        return None
    values = tuple(float(each) for each in found if isinstance(each, int | float))
    return values if len(values) == len(found) else None


def _number(parameters: Mapping[str, Json], name: str) -> float | None:
    found = parameters.get(name)
    if not isinstance(found, int | float) or not 0 < found < math.inf:
        return None
    return float(found)
