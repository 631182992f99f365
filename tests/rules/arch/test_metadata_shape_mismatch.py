from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from gguf_audit.fields import Origin
from gguf_audit.gguf import ValueType
from gguf_audit.layout import Full, Latent, Recurrent, StatePart
from gguf_audit.rule import Hit, Reconvert, Repair, SetKey, Severity
from gguf_audit.testing import FieldValue
from gguf_audit.where import Where
from gguf_audit_rules.arch.metadata_shape_mismatch import check
from rule_subjects import LLAMA, SETTINGS, info_offset, layers, model, without

Shapes = Mapping[str, Sequence[int]]
Q, K, V, OUT = "attn_q", "attn_k", "attn_v", "attn_output"
HEADS, KV_HEADS = "llama.attention.head_count", "llama.attention.head_count_kv"
KEY, VALUE = "llama.attention.key_length", "llama.attention.value_length"


def tensors(
    every: Shapes | None = None,
    *,
    blocks: int = 3,
    last: Shapes | None = None,
    embedding: int = 64,
) -> list[tuple[str, Sequence[int], str]]:
    """Return the tensors of a right Llama, other shapes in every or in the last block."""
    right = {
        Q: (64, 64),
        K: (64, 32),
        V: (64, 32),
        OUT: (64, 64),
        "ffn_up": (64, 128),
        **(every or {}),
    }
    found: list[tuple[str, Sequence[int]]] = [("token_embd.weight", (embedding, 8))]
    for block in range(blocks):
        shapes = {**right, **(last or {})} if block == blocks - 1 else right
        found += [(f"blk.{block}.{name}.weight", shape) for name, shape in shapes.items() if shape]
    return [(name, shape, "F32") for name, shape in found]


def found(
    keys: Mapping[str, FieldValue], given: Sequence[tuple[str, Sequence[int], str]]
) -> list[Hit]:
    hits = list(check(model(keys, given), SETTINGS))
    assert all(isinstance(hit, Hit) for hit in hits)
    return [hit for hit in hits if isinstance(hit, Hit)]


def test_silent_for_what_fits() -> None:
    assert found(LLAMA, tensors()) == []


def test_silent_for_a_vocabulary() -> None:
    assert found(LLAMA, []) == []


def test_silent_for_an_unknown_architecture() -> None:
    assert found({"odd.block_count": 9}, tensors()) == []


def test_silent_where_the_keys_themselves_are_wrong() -> None:
    wrong = {**LLAMA, "llama.block_count": (ValueType.INT32, 9), "llama.embedding_length": 1.0}
    assert found(wrong, tensors()) == []


# Embedding and blocks


def test_fires_for_another_embedding() -> None:
    subject = model(LLAMA, tensors(embedding=96))
    assert list(check(subject, SETTINGS)) == [
        Hit(
            message="needs rows of 64 elements as llama.embedding_length says, "
            "token_embd.weight has rows of 96",
            where=Where(
                key="llama.embedding_length",
                tensor="token_embd.weight",
                offset=info_offset(subject, "token_embd.weight"),
            ),
            expected=96,
            actual=64,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_heads_that_are_a_share_of_a_wrong_embedding_are_no_second_cause() -> None:
    keys = {**without(LLAMA, KEY, VALUE), "llama.embedding_length": 96}
    assert [hit.where.key for hit in found(keys, tensors())] == ["llama.embedding_length"]


def test_heads_of_their_own_length_are_looked_at_all_the_same() -> None:
    keys = {**LLAMA, "llama.embedding_length": 96, KV_HEADS: 1}
    assert [hit.where.key for hit in found(keys, tensors())] == ["llama.embedding_length", KV_HEADS]


@pytest.mark.parametrize("stated", [2, 4])
def test_fires_for_another_number_of_blocks(stated: int) -> None:
    assert found({**LLAMA, "llama.block_count": stated}, tensors()) == [
        Hit(
            message=f"needs tensors of {stated} blocks as llama.block_count says, "
            "the last one is blk.2",
            where=Where(key="llama.block_count"),
            expected=3,
            actual=stated,
            origin=Origin.KEY,
            level=Severity.ERROR,
            repair=Reconvert(),
        )
    ]


def test_draft_blocks_count() -> None:
    keys = {
        **{key.replace("llama", "glm4moe"): value for key, value in LLAMA.items()},
        "glm4moe.nextn_predict_layers": 1,
        "glm4moe.expert_feed_forward_length": 32,
        "glm4moe.expert_shared_count": 1,
    }
    assert found(keys, tensors()) == []


def test_blocks_without_heads_and_feed_forward_have_no_tensors() -> None:
    keys: dict[str, FieldValue] = {
        **{key.replace("llama", "deci"): value for key, value in LLAMA.items()},
        "deci.block_count": 4,
        "deci.attention.head_count": [4, 4, 4, 0],
        "deci.attention.head_count_kv": [2, 2, 2, 0],
        "deci.feed_forward_length": [128, 128, 128, 0],
    }
    assert found(keys, tensors()) == []
    keys["deci.feed_forward_length"] = [128, 128, 128, 128]
    assert [hit.where.key for hit in found(keys, tensors())] == ["deci.block_count"]


def test_unrolled_blocks_are_more_than_are_stored() -> None:
    keys = {
        **{key.replace("llama", "hrm_text"): value for key, value in LLAMA.items()},
        "hrm_text.block_count": 12,
        "hrm_text.hrm.layers_per_stack": 3,
        "hrm_text.hrm.h_cycles": 2,
        "hrm_text.hrm.l_cycles": 1,
    }
    assert found(keys, tensors()) == []


def test_files_without_numbered_blocks_are_left_alone() -> None:
    assert found(LLAMA, [("token_embd.weight", (64, 8), "F32")]) == []
    assert found(LLAMA, [("enc.blk.7.attn_q.weight", (64, 64), "F32")]) == []


# Projections


def hit(
    subject: list[tuple[str, Sequence[int], str]],
    keys: Mapping[str, FieldValue],
    tensor: str,
    *,
    key: str,
    heads: int,
    length: int,
    repair: Repair,
    layer: int = 0,
) -> Hit:
    """Return what is said where a projection contradicts a key."""
    name = f"blk.{layer}.{tensor}.weight"
    rows = next(shape for found, shape, _ in subject if found == name)[1]
    state = "says so" if key in keys else "is absent, so by default"
    return Hit(
        message=f"needs {heads * length} rows ({heads} heads of {length} elements, {key} {state}), "
        f"{name} has {rows}",
        where=Where(
            key=key, tensor=name, layer=layer, offset=info_offset(model(keys, subject), name)
        ),
        expected=rows,
        actual=heads * length,
        unit="row",
        origin=Origin.KEY if key in keys else Origin.RUNTIME_DEFAULT,
        level=Severity.ERROR,
        repair=repair,
        also=tuple(other for other in (HEADS, KV_HEADS, KEY, VALUE) if other != key),
    )


def set_key(key: str, value: int) -> SetKey:
    return SetKey(key=key, value=value, present=True)


def test_a_wrong_number_of_key_value_heads() -> None:
    keys = {**LLAMA, KV_HEADS: 1}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, K, key=KV_HEADS, heads=1, length=16, repair=set_key(KV_HEADS, 2))
    ]


def test_lost_key_value_heads_are_as_many_as_query_heads() -> None:
    keys = without(LLAMA, KV_HEADS)
    assert found(keys, tensors()) == [
        hit(tensors(), keys, K, key=KV_HEADS, heads=4, length=16, repair=Reconvert())
    ]


def test_lost_key_value_heads_are_no_fault_where_all_heads_have_their_own() -> None:
    keys = without(LLAMA, KV_HEADS)
    assert found(keys, tensors({K: (64, 64), V: (64, 64)})) == []


def test_only_the_last_block_is_wrong() -> None:
    keys: dict[str, FieldValue] = {**LLAMA, KV_HEADS: [2, 2, 1]}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, K, key=KV_HEADS, heads=1, length=16, repair=Reconvert(), layer=2)
    ]


def test_one_finding_for_all_blocks() -> None:
    assert len(found({**LLAMA, KV_HEADS: 4}, tensors())) == 1


def test_blocks_without_key_value_heads_may_have_no_projections() -> None:
    keys: dict[str, FieldValue] = {**LLAMA, KV_HEADS: [2, 0, 2]}
    given = [tensor for tensor in tensors() if not tensor[0].startswith("blk.1.attn")]
    assert found(keys, given) == []


def test_a_wrong_key_length() -> None:
    keys = {**LLAMA, KEY: 32}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, K, key=KEY, heads=2, length=32, repair=set_key(KEY, 16))
    ]


def test_a_lost_key_length_is_a_share_of_the_embedding() -> None:
    # As Qwen 3 has it: heads are longer than the embedding's share.
    wide = tensors({Q: (64, 128), K: (64, 64), V: (64, 64), OUT: (128, 64)})
    keys = without(LLAMA, KEY, VALUE)
    assert found(keys, wide) == [
        hit(wide, keys, K, key=KEY, heads=2, length=16, repair=Reconvert())
    ]


def test_lost_lengths_that_differ_are_two_keys() -> None:
    # As DeepSeek has them: a key is longer than a value.
    uneven = tensors({Q: (64, 96), K: (64, 48), V: (64, 40), OUT: (80, 64)})
    keys = without(LLAMA, KEY, VALUE)
    assert found(keys, uneven) == [
        hit(uneven, keys, K, key=KEY, heads=2, length=16, repair=Reconvert()),
        hit(uneven, keys, V, key=VALUE, heads=2, length=16, repair=Reconvert()),
    ]


def test_a_wrong_value_length() -> None:
    keys = {**LLAMA, VALUE: 8}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, V, key=VALUE, heads=2, length=8, repair=set_key(VALUE, 16))
    ]


def test_both_lengths_wrong_are_two_keys() -> None:
    keys = {**LLAMA, KEY: 32, VALUE: 32}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, K, key=KEY, heads=2, length=32, repair=set_key(KEY, 16)),
        hit(tensors(), keys, V, key=VALUE, heads=2, length=32, repair=set_key(VALUE, 16)),
    ]


def test_too_many_query_heads() -> None:
    keys = {**LLAMA, HEADS: 8}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, Q, key=HEADS, heads=8, length=16, repair=set_key(HEADS, 4))
    ]


def test_half_the_query_heads_are_no_gate() -> None:
    keys = {**LLAMA, HEADS: 2}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, Q, key=HEADS, heads=2, length=16, repair=set_key(HEADS, 4))
    ]


def test_a_gate_may_stand_behind_the_query() -> None:
    assert found(LLAMA, tensors({Q: (64, 128)})) == []
    assert found(LLAMA, tensors({Q: (64, 128), OUT: ()})) == []


def test_a_wrong_key_length_behind_a_gate() -> None:
    keys, gated = {**LLAMA, KEY: 32}, tensors({Q: (64, 128)})
    # 128 rows would be four heads of 32 as well, but no two heads of 32 are 32 rows.
    assert found(keys, gated) == [
        hit(gated, keys, K, key=KEY, heads=2, length=32, repair=set_key(KEY, 16))
    ]


def test_heads_that_move_with_the_embeddings_share_are_not_set() -> None:
    # Two heads of 32 or four of 16: only a reference can tell.
    keys = {**without(LLAMA, KEY, VALUE), HEADS: 2}
    plain = hit(tensors(), keys, K, key=KV_HEADS, heads=2, length=32, repair=Reconvert())
    assert found(keys, tensors()) == [
        replace(plain, message=f"{plain.message}; or {HEADS} is wrong"),
    ]


@pytest.mark.parametrize("rotated", [True, False])
def test_heads_are_to_blame_where_something_else_has_the_length(*, rotated: bool) -> None:
    norms = [(f"blk.{block}.attn_k_norm.weight", (16,), "F32") for block in range(3)]
    subject = tensors() if rotated else [*tensors(), *norms]
    keys = {**without(LLAMA, KEY, VALUE), HEADS: 2, "general.architecture": "qwen2"}
    keys = {name.replace("llama.", "qwen2."): value for name, value in keys.items()}
    if rotated:
        keys["qwen2.rope.dimension_count"] = 16
    heads = HEADS.replace("llama.", "qwen2.")
    [only] = found(keys, subject)
    assert only.message == (
        f"needs 64 rows (2 heads of 32 elements, {heads} shares the embedding out so), "
        "blk.0.attn_k.weight has 32"
    )
    assert (only.where.key, only.repair) == (
        heads,
        SetKey(key=heads, value=4, present=True),
    )


def test_rows_that_no_number_of_heads_explains() -> None:
    odd = tensors(last={K: (64, 40), V: (64, 40)})
    assert found(LLAMA, odd) == [
        hit(odd, LLAMA, K, key=KV_HEADS, heads=2, length=16, repair=Reconvert(), layer=2)
    ]


def test_values_alone() -> None:
    odd = tensors({K: (), V: (64, 48)})
    assert found(LLAMA, odd) == [
        hit(odd, LLAMA, V, key=KV_HEADS, heads=2, length=16, repair=set_key(KV_HEADS, 3))
    ]


def test_keys_that_queries_and_values_contradict_are_not_set() -> None:
    odd = tensors({K: (64, 64)})
    assert found(LLAMA, odd) == [
        hit(odd, LLAMA, K, key=KV_HEADS, heads=2, length=16, repair=Reconvert())
    ]


def test_fused_and_split_projections_are_left_alone() -> None:
    fused = tensors({Q: (), K: (), V: (), "attn_qkv": (64, 7)})
    assert found(LLAMA, fused) == []
    assert found(LLAMA, tensors({K: (64, 32, 9)})) == []


def test_windowed_layers_have_heads_of_another_length() -> None:
    keys: dict[str, FieldValue] = {
        "gemma4.block_count": 2,
        "gemma4.context_length": 8192,
        "gemma4.embedding_length": 64,
        "gemma4.feed_forward_length": 128,
        "gemma4.attention.head_count": 4,
        "gemma4.attention.head_count_kv": 1,
        "gemma4.attention.key_length": 32,
        "gemma4.attention.value_length": 32,
        "gemma4.attention.key_length_swa": 16,
        "gemma4.attention.value_length_swa": 16,
        "gemma4.attention.layer_norm_rms_epsilon": 1e-6,
        "gemma4.attention.sliding_window": 512,
        "gemma4.attention.sliding_window_pattern": [True, False],
        "gemma4.embedding_length_per_layer_input": 0,
        "gemma4.attention.shared_kv_layers": 0,
    }
    local = {Q: (64, 64), K: (64, 16), V: (64, 16), OUT: (64, 64)}
    wide = {Q: (64, 128), K: (64, 32), V: (), OUT: (128, 64)}
    given = tensors(local, blocks=2, last=wide)
    assert found(keys, given) == []
    wrong = ("gemma4.attention.key_length_swa", "gemma4.attention.value_length_swa")
    keys |= dict.fromkeys(wrong, 8)
    assert [(hit.where.key, hit.where.layer, hit.repair) for hit in found(keys, given)] == [
        (key, 0, set_key(key, 16)) for key in wrong
    ]


def test_odd_files_crash_nothing() -> None:
    assert found(LLAMA, [("token_embd.weight", (), "F32")]) == []
    headless: dict[str, FieldValue] = {**without(LLAMA, HEADS), "llama.block_count": 4}
    assert [hit.where.key for hit in found(headless, tensors())] == ["llama.block_count"]
    lean: dict[str, FieldValue] = {
        **without(LLAMA, "llama.feed_forward_length"),
        "llama.block_count": 4,
    }
    assert [hit.where.key for hit in found(lean, tensors())] == ["llama.block_count"]
    assert [(hit.where.key, hit.repair) for hit in found({**LLAMA, KEY: 0}, tensors())] == [
        (KEY, set_key(KEY, 16))
    ]


def test_a_value_length_of_its_own_is_set_whatever_the_keys_do() -> None:
    keys = {**without(LLAMA, KEY), VALUE: 8}
    assert found(keys, tensors()) == [
        hit(tensors(), keys, V, key=VALUE, heads=2, length=8, repair=set_key(VALUE, 16))
    ]


STATE = Recurrent(parts=(StatePart(name="ssm", elements=64),))
LATENT = Latent(kv_heads=1, key_length=24)
SPLIT = [("blk.0.attn_norm.weight", (64,), "F32"), ("blk.1.attn_k_b.weight", (16, 16, 4), "F32")]


def test_states_and_latents_have_projections_of_their_own() -> None:
    # Kimi's linear attention has attn_q, attn_k and attn_v too, of other heads.
    given = tensors({Q: (64, 96), K: (64, 96), V: (64, 96)})
    subject = model(LLAMA, given, implied=layers(STATE, LATENT, None))
    assert list(check(subject, SETTINGS)) == []


def test_a_latents_tensors_need_its_keys() -> None:
    keys: dict[str, FieldValue] = {"deepseek2.block_count": 2}
    heads = Full(kv_heads=4, key_length=24, value_length=16)
    assert list(check(model(keys, SPLIT, implied=layers(LATENT, LATENT)), SETTINGS)) == []
    for given, state, origin in (
        (keys, "absent", Origin.RUNTIME_DEFAULT),
        ({**keys, "deepseek2.attention.key_length_mla": 24}, "not in effect", Origin.KEY),
    ):
        subject = model(given, SPLIT, implied=layers(heads, heads))
        key, tensor = "deepseek2.attention.key_length_mla", "blk.1.attn_k_b.weight"
        assert list(check(subject, SETTINGS)) == [
            Hit(
                message=f"needs {key} to go with {tensor}, which projects from a latent, "
                f"but it is {state}: llama.cpp expects other shapes and refuses the file",
                where=Where(key=key, tensor=tensor, layer=1, offset=info_offset(subject, tensor)),
                expected="a latent (MLA)",
                actual="unpacked heads",
                origin=origin,
                level=Severity.ERROR,
                repair=Reconvert(),
            )
        ]


def test_a_gated_query_is_one_whatever_the_length_of_values_says() -> None:
    # As Qwen 3.5 has it: the gate is behind the query.
    gated = tensors({Q: (64, 128), K: (64, 32), V: (64, 32), OUT: (64, 64)})
    assert found(LLAMA, gated) == []
    keys = {**LLAMA, VALUE: 32}
    assert found(keys, gated) == [
        hit(gated, keys, V, key=VALUE, heads=2, length=32, repair=set_key(VALUE, 16))
    ]


def encoder(**changed: FieldValue) -> dict[str, FieldValue]:
    """Return an embedding model, which keeps nothing."""
    names: dict[str, FieldValue] = {
        key.removeprefix("llama."): value for key, value in LLAMA.items()
    }
    names |= {"attention.sliding_window": 512, "pooling_type": 1}
    names |= {f"attention.{name}": value for name, value in changed.items()}
    return {f"gemma-embedding.{name}": value for name, value in names.items()}


@pytest.mark.parametrize(
    ("name", "value", "projection", "rows"),
    [
        ("head_count_kv", 4, K, 64),
        ("key_length", 8, K, 16),
        ("value_length", 8, V, 16),
        ("head_count", 2, Q, 32),
    ],
)
def test_an_encoder_keeps_nothing_and_has_heads(
    name: str, value: int, projection: str, rows: int
) -> None:
    assert found(encoder(), tensors()) == []
    [hit] = found(encoder(**{name: value}), tensors())
    key = f"gemma-embedding.attention.{name}"
    assert (hit.where.key, hit.where.tensor) == (key, f"blk.0.{projection}.weight")
    assert (hit.actual, hit.expected) == (rows, 64 if projection == Q else 32)


def test_an_encoder_without_a_number_of_heads_is_left_to_others() -> None:
    headless = {key: value for key, value in encoder().items() if "head_count" not in key}
    assert found(headless, tensors()) == []
    lost = {key: value for key, value in encoder().items() if not key.endswith("head_count_kv")}
    assert [hit.where.key for hit in found(lost, tensors())] == [
        "gemma-embedding.attention.head_count_kv"
    ]
