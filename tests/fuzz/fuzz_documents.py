"""Changes JSON documents by their structure, and the headers of safetensors files with them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import cast

from gguf_audit.checkpoint import Json

__all__ = ["mutated"]

_ITEMS: list[Json] = [0, -1, "a"]
_CONTAINERS: tuple[Json, ...] = ([], {}, _ITEMS, {"a": 0}, {"type": "BPE"}, [_ITEMS, [_ITEMS]])
VALUES: tuple[Json, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 1000, 2**31, 2**32, 2**63, 2**64, 10**40),
    *(0.0, -0.0, 0.5, 1e-9, 1e308, float("inf"), float("nan")),
    *("", "a", "<s>", "llama", "../x", "x\0y", "\ud800", "{{ x }}", "\u202e"),
    *_CONTAINERS,
)
#: What configs say that changes how everything else is read.
KEYS = (
    *(
        "model_type",
        "architectures",
        "text_config",
        "rope_scaling",
        "rope_parameters",
        "layer_types",
    ),
    *("sliding_window", "num_key_value_heads", "head_dim", "num_hidden_layers", "vocab_size"),
    *(
        "quantization_config",
        "auto_map",
        "kv_lora_rank",
        "weight_map",
        "dtype",
        "shape",
        "added_tokens",
    ),
    *("data_offsets", "model", "vocab", "merges", "post_processor", "normalizer", "pre_tokenizer"),
)
TYPES = (
    *("llama", "gemma3_text", "gemma3", "qwen3", "qwen3_moe", "qwen3_5", "gpt_oss", "deepseek_v2"),
    *("deepseek_v3", "mistral", "mamba", "mamba2", "jamba", "falcon_h1", "lfm2", "phi3", "cohere2"),
    *(
        "nemotron_h",
        "granitemoehybrid",
        "kimi_linear",
        "minimax_m2",
        "bert",
        "t5",
        "rwkv7",
        "glm4_moe",
    ),
)


def mutated(data: bytes, seed: int) -> bytes | None:
    """Return a changed document behind the same first byte, ``None`` where it is none."""
    chance = random.Random(seed)  # noqa: S311 - a fuzzer's choice, no secret
    head, body = data[:1], data[1:]
    tail = b""
    framed = len(body) > 8 and body[8:9] == b"{"
    if framed:
        size = int.from_bytes(body[:8], "little")
        body, tail = body[8 : 8 + size], body[8 + size :]
    try:
        document = cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        return None
    for _ in range(chance.randint(1, 4)):
        document = _changed(document, chance)
    text = json.dumps(document).encode()
    if framed:
        size = len(text) if chance.random() < 0.9 else chance.choice((0, 1, 2**40, 2**63))
        text = size.to_bytes(8, "little") + text + tail
    return head + text


def _changed(document: Json, chance: random.Random) -> Json:
    """Return the document with one value, key or item of it changed."""
    places = list(_places(document))
    if not places or chance.random() < 0.02:
        return _value(chance)
    match chance.choice(places):
        case (dict() as members, str() as key):
            _change_member(members, key, chance)
        case (list() as items, int() as index):
            _change_item(items, index, chance)
        case _:
            raise AssertionError("a place is a container with a key of its own")
    return document


def _change_member(members: dict[str, Json], key: str, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0:
            del members[key]
        case 1:
            members[chance.choice(KEYS)] = _value(chance)
        case 2:
            members[chance.choice(KEYS)] = members.pop(key)
        case 3 if key in ("model_type", "architectures") or chance.random() < 0.2:
            members["model_type"] = chance.choice(TYPES)
            members.pop("architectures", None)
        case _:
            members[key] = _value(chance)


def _change_item(items: list[Json], index: int, chance: random.Random) -> None:
    match chance.randrange(3):
        case 0:
            del items[index]
        case 1:
            items.insert(index, _value(chance))
        case _:
            items[index] = _value(chance)


def _value(chance: random.Random) -> Json:
    # A copy: what is put in may be changed next.
    return copy.deepcopy(chance.choice(VALUES))


def _places(document: Json) -> Iterator[tuple[Json, str | int]]:
    """Yield every container with each of its keys."""
    todo = [document]
    while todo:
        match todo.pop():
            case dict() as members:
                yield from [(members, key) for key in members]
                todo += members.values()
            case list() as items:
                yield from [(items, index) for index in range(len(items))]
                todo += items
            case _:
                continue
