"""All tensors of a small Llama, as llama.cpp wants them."""

from __future__ import annotations

__all__ = ["llama_tensors"]

Spec = tuple[str, tuple[int, ...], str]


def llama_tensors(
    *,
    blocks: int,
    embedding: int,
    queries: int,
    keys: int,
    feed_forward: int,
    vocabulary: int,
    type_: str = "F32",
) -> list[Spec]:
    """Return name, shape and type of each; ``queries`` and ``keys`` are rows.

    Norms are F32 whatever the type: llama.cpp's graph takes no other.
    """
    once = {"token_embd": (embedding, vocabulary), "output_norm": (embedding,)}
    each = {
        "attn_norm": (embedding,),
        "attn_q": (embedding, queries),
        "attn_k": (embedding, keys),
        "attn_v": (embedding, keys),
        "attn_output": (queries, embedding),
        "ffn_norm": (embedding,),
        "ffn_gate": (embedding, feed_forward),
        "ffn_up": (embedding, feed_forward),
        "ffn_down": (feed_forward, embedding),
    }
    names: dict[str, tuple[int, ...]] = {**once}
    for index in range(blocks):
        names |= {f"blk.{index}.{name}": shape for name, shape in each.items()}
    return [
        (f"{name}.weight", shape, "F32" if name.endswith("_norm") else type_)
        for name, shape in names.items()
    ]
