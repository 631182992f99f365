"""The tensor types of ggml: how many elements make a block of how many bytes.

Sources: ``enum ggml_type`` (ggml/include/ggml.h) and the ``block_*`` structs
(ggml/src/ggml-common.h) of llama.cpp build 11434, and of ik_llama.cpp at 8337e4c,
whose ``row_meta_size`` (ggml/src/ggml.c) is our ``row_header_bytes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gguf_audit.gguf import TensorType

__all__ = ["REMOVED", "TYPES", "TYPES_BY_NAME", "tensor_type"]

IK_LLAMA = "ik_llama.cpp"

#: Id, name, elements per block, bytes per block.
_LLAMA_CPP = (
    (0, "F32", 1, 4),
    (1, "F16", 1, 2),
    (2, "Q4_0", 32, 18),
    (3, "Q4_1", 32, 20),
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 40),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (16, "IQ2_XXS", 256, 66),
    (17, "IQ2_XS", 256, 74),
    (18, "IQ3_XXS", 256, 98),
    (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18),
    (21, "IQ3_S", 256, 110),
    (22, "IQ2_S", 256, 82),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
    (29, "IQ1_M", 256, 56),
    (30, "BF16", 1, 2),
    (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66),
    (39, "MXFP4", 32, 17),
    (40, "NVFP4", 64, 36),
    (41, "Q1_0", 128, 18),
    (42, "Q2_0", 64, 18),
)

#: Id, name, elements per block, bytes per block, bytes in front of each row.
_IK_LLAMA = (
    (97, "Q8_0_X4", 32, 34, 0),
    (98, "Q8_1_X4", 32, 36, 0),
    (99, "Q8_2_X4", 32, 36, 0),
    (133, "Q6_0", 32, 26, 0),
    (134, "IQ1_BN", 64, 13, 2),
    (135, "IQ2_BN", 64, 16, 4),
    (136, "Q8_K64", 64, 68, 0),
    (137, "IQ2_K", 256, 76, 0),
    (138, "IQ3_K", 256, 110, 0),
    (139, "IQ4_K", 256, 144, 0),
    (140, "IQ5_K", 256, 176, 0),
    (141, "IQ6_K", 256, 212, 0),
    (144, "IQ4_KS", 256, 136, 4),
    (145, "IQ2_KS", 256, 70, 2),
    (146, "IQ4_KSS", 256, 128, 4),
    (147, "Q8_K16", 64, 64, 20),
    (148, "Q8_K32", 256, 296, 0),
    (149, "Q8_KR8", 256, 296, 0),
    (150, "Q8_K128", 128, 140, 0),
    (151, "Q8_KV", 32, 32, 8),
    (152, "IQ5_KS", 256, 168, 4),
    (153, "IQ2_KT", 256, 68, 4),
    (154, "IQ3_KT", 256, 100, 4),
    (155, "IQ4_KT", 256, 128, 4),
    (156, "IQ3_KS", 256, 102, 2),
    (157, "IQ2_KL", 256, 86, 2),
    (158, "IQ1_KT", 256, 56, 4),
    (202, "Q4_0_R8", 32, 18, 0),
    (206, "Q5_0_R4", 32, 22, 0),
    (208, "Q8_0_R8", 32, 34, 0),
    (210, "Q2_K_R4", 256, 84, 0),
    (211, "Q3_K_R4", 256, 110, 0),
    (212, "Q4_K_R4", 256, 144, 0),
    (213, "Q5_K_R4", 256, 176, 0),
    (214, "Q6_K_R4", 256, 210, 0),
    (216, "IQ2_XXS_R4", 256, 66, 0),
    (217, "IQ2_XS_R4", 256, 74, 0),
    (218, "IQ3_XXS_R4", 256, 98, 0),
    (219, "IQ1_S_R4", 32, 6, 2),
    (220, "IQ4_NL_R4", 32, 18, 0),
    (221, "IQ3_S_R4", 256, 110, 0),
    (222, "IQ2_S_R4", 256, 82, 0),
    (223, "IQ4_XS_R8", 256, 136, 0),
    (229, "IQ1_M_R4", 32, 7, 2),
    (230, "BF16_R16", 1, 2, 0),
    (233, "Q6_0_R4", 32, 26, 0),
    (335, "IQ2_BN_R4", 64, 16, 4),
    (337, "IQ2_K_R4", 256, 76, 0),
    (338, "IQ3_K_R4", 256, 110, 0),
    (339, "IQ4_K_R4", 256, 144, 0),
    (340, "IQ5_K_R4", 256, 176, 0),
    (344, "IQ4_KS_R4", 256, 136, 4),
    (352, "IQ5_KS_R4", 256, 168, 4),
    (353, "MXFP4_R8", 32, 17, 0),
    (397, "Q8_K_R16", 256, 258, 0),
    (398, "Q8_KV_R8", 32, 32, 4),
    (399, "Q8_K_R8", 256, 258, 0),
)

#: Ids that ggml no longer reads -> the name each had. ``blck_size`` is 0 for them.
#: NOTE: ik_llama.cpp reads 36 as BitNet's I2_S; mainline's IQ4_NL_4_4 came first.
REMOVED: Mapping[int, str] = MappingProxyType(
    {
        4: "Q4_2",
        5: "Q4_3",
        31: "Q4_0_4_4",
        32: "Q4_0_4_8",
        33: "Q4_0_8_8",
        36: "IQ4_NL_4_4",
        37: "IQ4_NL_4_8",
        38: "IQ4_NL_8_8",
    }
)


def _table() -> dict[int, TensorType]:
    types = {
        id_: TensorType(id=id_, name=name, block_elements=elements, block_bytes=size)
        for id_, name, elements, size in _LLAMA_CPP
    }
    for id_, name, elements, size, row_header in _IK_LLAMA:
        types[id_] = TensorType(
            id=id_,
            name=name,
            block_elements=elements,
            block_bytes=size,
            row_header_bytes=row_header,
            needs=IK_LLAMA,
        )
    return types


#: Id -> type, for every type that some engine reads today.
TYPES: Mapping[int, TensorType] = MappingProxyType(_table())

#: Name -> type, for the same types.
TYPES_BY_NAME: Mapping[str, TensorType] = MappingProxyType(
    {found.name: found for found in TYPES.values()}
)


def tensor_type(id_: int) -> TensorType:
    """Return the type of an id; a removed or unknown one has no block size."""
    known = TYPES.get(id_)
    if known is not None:
        return known
    name = REMOVED.get(id_, f"type {id_}")
    return TensorType(
        id=id_, name=name, block_elements=None, block_bytes=None, removed=id_ in REMOVED
    )
