"""How many bits per weight a quantization has in its layers."""

from __future__ import annotations

from fractions import Fraction

from gguf_audit.formats.ggml_types import TYPES_BY_NAME

__all__ = ["bits_of"]

#: Mixes that have no tensor type of their name, or narrower layers than that: the narrowest
#: type that they give a layer (src/llama-quant.cpp, ``llama_tensor_get_type_impl``).
_MIXES = {
    "IQ2_S": "IQ2_XS",
    "IQ2_M": "IQ2_S",
    "IQ3_XXS": "IQ2_S",
    "IQ3_XS": "IQ3_XXS",
    "IQ3_M": "IQ3_S",
    "MXFP4_MOE": "MXFP4",
}


def bits_of(name: str) -> Fraction | None:
    """Return the bits per weight that a tensor type has, or a mix at least.

    ``Q4_K_M`` is 4.5 as ``Q4_K`` is: what a mix has beyond that depends on the model.
    ``None`` for a name that is neither.
    """
    name = name.upper()
    name = _MIXES.get(name, name)
    for known in (name, name.rpartition("_")[0]):
        found = TYPES_BY_NAME.get(known)
        if found is not None and found.block_elements and found.block_bytes:
            return Fraction(found.block_bytes * 8, found.block_elements)
    return None
