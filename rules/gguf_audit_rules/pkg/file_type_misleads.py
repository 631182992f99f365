"""No layer has the type that `general.file_type` names.

## What it does
Looks for the main tensor type of `general.file_type` among the matrices inside the blocks. A mix
such as `Q4_K_M` has other types too, and llama-quantize takes another quantized one for rows that
aren't a multiple of 256, half precision only for rows that aren't one of 32; it is enough that the
main type, or what takes its place, is there at all. Dynamic quants (`UD-` in the name) are left
out.

## Why it matters
llama.cpp prints the file type and believes it; tools choose by it. It is only a label: a file
that was requantized or edited can carry any.

## Fix
Quantize with llama-quantize, which sets the key.

## Authority
llama.cpp b11434, `src/llama-quant.cpp: llama_ftype_get_default_type` and the fallback types in
`tensor_type_fallback`; `src/llama-model-loader.cpp`, where the key wins over the guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gguf_audit.evidence import Model, Settings
from gguf_audit.gguf import Tensor
from gguf_audit.naming import label_of
from gguf_audit.rule import Hit, OnModel, Outcome, Rule, Severity
from gguf_audit.where import Where

_KEY = "general.file_type"
#: Mixes whose main type isn't their name less the last letter.
_MAIN = {
    "IQ2_S": ("IQ2_XS", "IQ2_S"),
    "IQ2_M": ("IQ2_S",),
    "IQ3_XS": ("IQ3_S", "IQ3_XXS"),
    "IQ3_M": ("IQ3_S",),
    "MXFP4_MOE": ("MXFP4",),
    # Half precision of either kind serves for the other where a machine lacks one.
    "F16": ("F16", "BF16", "F32"),
    "BF16": ("BF16", "F16", "F32"),
}
#: Elements of a row that k-quants and their like need a multiple of.
_ROW = 256
#: And of what takes their place; below that it is F16.
_SHORTER_ROW = 32
#: Values of one row and of the tensor types that stand in for those.
_SMALL = frozenset({"F32", "F16", "BF16", "I32"})


def check(model: Model, settings: Settings) -> Iterator[Outcome]:
    """Yield a hit where no layer has the type that the file names."""
    del settings
    label = label_of(model.gguf.name)
    if model.file_type in (None, "guessed") or (label is not None and label.dynamic):
        return
    matrices = [
        tensor
        for name, tensor in model.gguf.tensors.items()
        if name.startswith("blk.") and name.endswith(".weight") and len(tensor.shape) > 1
    ]
    file_type = model.file_type or ""
    main = _MAIN.get(file_type, (file_type, file_type.rpartition("_")[0]))
    if not matrices or any(matrix.type.name in main for matrix in matrices):
        return
    if (
        any(matrix.shape[0] % _ROW for matrix in matrices)
        and file_type not in _SMALL
        and not _unquantized(matrices)
    ):
        return  # Rows that its types can't hold have become something else.
    elements: dict[str, int] = {}
    for matrix in matrices:
        elements[matrix.type.name] = elements.get(matrix.type.name, 0) + matrix.elements
    most = max(elements, key=lambda name: elements[name])
    yield Hit(
        message=f"needs layers of {main[0]} as {_KEY} says ({file_type}), most are {most}",
        where=Where(key=_KEY),
        expected=file_type,
        actual=most,
        level=Severity.INFO,
    )


def _unquantized(matrices: Sequence[Tensor]) -> bool:
    """Tell whether nothing is quantized of what is, and whether that is most of the model.

    Small matrices, such as an expert router's, never are.
    """
    could = [matrix for matrix in matrices if matrix.shape[0] % _SHORTER_ROW == 0]
    most = 2 * sum(each.elements for each in could) > sum(each.elements for each in matrices)
    return most and all(each.type.name in _SMALL for each in could)


RULE = Rule(
    id="PKG003",
    name="file-type-misleads",
    levels=(Severity.INFO,),
    check=OnModel(check),
    authority="llama.cpp b11434 src/llama-quant.cpp llama_ftype_get_default_type",
)
