"""What llama.cpp makes of a file's metadata: layouts and refusals."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gguf_audit.arch import Trait, by_name, implied_layout, llama_model
from gguf_audit.errors import LimitError, Refused, UnknownArchitectureError
from gguf_audit.fields import Fields
from gguf_audit.gguf import Array, Field, Scalar, ValueType
from gguf_audit.layout import Full, Latent, Recurrent, Sliding, Store

Values = Mapping[str, Scalar | tuple[Scalar, ...]]

LLAMA: Values = {
    "block_count": 4,
    "context_length": 4096,
    "embedding_length": 512,
    "feed_forward_length": 1024,
    "attention.head_count": 8,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
}
GEMMA3: Values = {**LLAMA, "block_count": 12, "attention.sliding_window": 256}
DEEPSEEK2: Values = {
    **LLAMA,
    "attention.head_count_kv": 1,
    "attention.key_length": 160,
    "attention.value_length": 128,
    "attention.key_length_mla": 48,
    "attention.value_length_mla": 32,
    "attention.kv_lora_rank": 128,
    "attention.q_lora_rank": 64,
    "rope.dimension_count": 32,
    "leading_dense_block_count": 1,
    "expert_feed_forward_length": 64,
    "expert_shared_count": 1,
}
QWEN35: Values = {
    **LLAMA,
    "attention.key_length": 64,
    "rope.dimension_sections": (8, 4, 4, 0),
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.state_size": 16,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 4,
    "ssm.inner_size": 64,
}
MAMBA: Values = {
    "block_count": 4,
    "context_length": 4096,
    "embedding_length": 64,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 128,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 4,
    "attention.layer_norm_rms_epsilon": 1e-5,
}


def fields(architecture: str, values: Values, **changes: Scalar | tuple[Scalar, ...]) -> Fields:
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    keys = {f"{architecture}.{name}": value for name, value in {**values, **changed}.items()}
    return Fields.of(architecture, keys)


def without(architecture: str, values: Values, name: str) -> Fields:
    return fields(architecture, {key: value for key, value in values.items() if key != name})


def stores(subject: Fields) -> list[tuple[int, Store]]:
    return list(implied_layout(subject).stores())


def test_heads_are_as_long_as_the_embedding_allows() -> None:
    assert stores(fields("llama", LLAMA)) == [
        (index, Full(kv_heads=2, key_length=64, value_length=64)) for index in range(4)
    ]


def test_key_lengths_of_the_file_win() -> None:
    subject = fields("llama", LLAMA, attention__key_length=80, attention__value_length=72)
    assert stores(subject)[0] == (0, Full(kv_heads=2, key_length=80, value_length=72))


def test_without_kv_heads_every_head_keeps_its_own() -> None:
    _, store = stores(without("llama", LLAMA, "attention.head_count_kv"))[0]
    assert store == Full(kv_heads=8, key_length=64, value_length=64)


def test_heads_may_differ_by_layer() -> None:
    subject = fields("deci", LLAMA, attention__head_count_kv=(2, 0, 1, 2))
    assert [(index, getattr(store, "kv_heads", None)) for index, store in stores(subject)] == [
        (0, 2),
        (2, 1),
        (3, 2),
    ]


def test_gemma_3_has_a_full_layer_in_six() -> None:
    kinds = [type(store) for _, store in stores(fields("gemma3", GEMMA3))]
    assert kinds == ([Sliding] * 5 + [Full]) * 2


@pytest.mark.parametrize(
    "subject",
    [
        fields("gemma3", GEMMA3, attention__sliding_window=0),
        without("gemma3", GEMMA3, "attention.sliding_window"),
    ],
)
def test_gemma_3_without_a_window_keeps_everything(subject: Fields) -> None:
    assert {type(store) for _, store in stores(subject)} == {Full}


def test_a_pattern_of_the_file_wins() -> None:
    pattern = (True, False, False, False) * 3
    subject = fields("gemma3", GEMMA3, attention__sliding_window_pattern=pattern)
    windowed = [index for index, store in stores(subject) if isinstance(store, Sliding)]
    assert windowed == [0, 4, 8]


def test_llama_knows_no_window() -> None:
    subject = fields("llama", LLAMA, attention__sliding_window=4096)
    assert {type(store) for _, store in stores(subject)} == {Full}


def test_a_latent_is_one_row_per_token() -> None:
    _, store = stores(fields("deepseek2", DEEPSEEK2))[0]
    assert store == Latent(kv_heads=1, key_length=160)


def test_a_file_without_mla_keys_keeps_heads() -> None:
    legacy = {name: value for name, value in DEEPSEEK2.items() if not name.endswith("_mla")}
    subject = fields(
        "deepseek2",
        legacy,
        attention__head_count_kv=8,
        attention__key_length=48,
        attention__value_length=32,
    )
    _, store = stores(subject)[0]
    assert store == Full(kv_heads=8, key_length=48, value_length=32)


def test_a_hybrid_has_states_and_attention() -> None:
    kinds = [type(store) for _, store in stores(fields("qwen35", QWEN35))]
    assert kinds == [Recurrent, Recurrent, Recurrent, Full]


def test_a_state_has_a_convolution_and_a_scan() -> None:
    _, store = stores(fields("mamba", MAMBA))[0]
    assert isinstance(store, Recurrent)
    assert [(part.name, part.elements) for part in store.parts] == [
        ("conv", 3 * 128),
        ("ssm", 16 * 128),
    ]


def test_an_encoder_keeps_nothing() -> None:
    subject = fields("bert", LLAMA, attention__layer_norm_epsilon=1e-12, attention__causal=False)
    model = llama_model(subject)
    assert list(model.layout.stores()) == []
    assert Trait.NO_CACHE in model.traits


@pytest.mark.parametrize(
    ("architecture", "values", "name"),
    [
        ("llama", LLAMA, "block_count"),
        ("llama", LLAMA, "context_length"),
        ("llama", LLAMA, "embedding_length"),
        ("llama", LLAMA, "attention.layer_norm_rms_epsilon"),
        ("deepseek2", DEEPSEEK2, "attention.kv_lora_rank"),
        ("qwen35", QWEN35, "ssm.state_size"),
        ("mamba", MAMBA, "ssm.inner_size"),
    ],
)
def test_a_missing_key_is_refused_and_named(architecture: str, values: Values, name: str) -> None:
    with pytest.raises(Refused, match=name) as caught:
        implied_layout(without(architecture, values, name))
    assert caught.value.kind == "refused"
    assert caught.value.where.key == f"{architecture}.{name}"


@pytest.mark.parametrize(
    ("name", "value", "type_"),
    [
        ("block_count", 4, ValueType.UINT64),
        ("attention.head_count_kv", 2, ValueType.INT32),
        ("attention.head_count_kv", "2", ValueType.STRING),
        ("attention.layer_norm_rms_epsilon", 1e-5, ValueType.FLOAT64),
        ("attention.key_length", 64.0, ValueType.FLOAT32),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Scalar, type_: ValueType) -> None:
    key = f"llama.{name}"
    kept = {field.key: field for field in fields("llama", LLAMA)}
    kept[key] = Field(key=key, type=type_, value=value, offset=77)
    with pytest.raises(Refused) as caught:
        implied_layout(Fields("llama", kept))
    assert caught.value.where.key == key
    assert caught.value.where.offset == 77


@pytest.mark.parametrize("items", [(2, 2, 2, 2.0), (2, 2, 2, "2")])
def test_an_array_per_block_holds_integers(items: tuple[Scalar, ...]) -> None:
    with pytest.raises(Refused, match="array of integers"):
        implied_layout(fields("llama", LLAMA, attention__head_count_kv=items))


@pytest.mark.parametrize("item_type", [ValueType.UINT64, ValueType.FLOAT32, ValueType.STRING])
def test_an_array_per_block_has_32_bit_items(item_type: ValueType) -> None:
    key = "llama.attention.head_count_kv"
    stored = Array(item_type=item_type, count=4, offset=0, size_bytes=32, load=lambda: (2,) * 4)
    kept = {field.key: field for field in fields("llama", LLAMA)}
    kept[key] = Field(key=key, type=ValueType.ARRAY, value=stored)
    with pytest.raises(Refused, match="array of u32, i32 or bool"):
        implied_layout(Fields("llama", kept))


def test_a_negative_item_has_the_bits_of_a_large_one() -> None:
    subject = fields("deci", LLAMA, attention__head_count_kv=(2, 2, 2, -1))
    _, store = stores(subject)[3]
    assert store == Full(kv_heads=2**32 - 1, key_length=64, value_length=64)


@pytest.mark.parametrize("count", [3, 5])
def test_an_array_has_one_item_per_block(count: int) -> None:
    with pytest.raises(Refused, match="one per block, 4"):
        implied_layout(fields("llama", LLAMA, attention__head_count_kv=(2,) * count))


def test_a_pattern_with_a_window_but_without_its_size_is_none() -> None:
    subject = fields(
        "gemma3",
        GEMMA3,
        attention__sliding_window=0,
        attention__sliding_window_pattern=(True,) * 12,
    )
    assert {type(store) for _, store in stores(subject)} == {Full}


def test_heads_that_arent_there_end_the_process() -> None:
    with pytest.raises(Refused) as caught:
        implied_layout(without("llama", LLAMA, "attention.head_count"))
    assert caught.value.where.key == "llama.attention.head_count"


@pytest.mark.parametrize("blocks", [10_001, 2**31, 2**32 - 1])
def test_a_hostile_block_count_is_never_counted_to(blocks: int) -> None:
    with pytest.raises((LimitError, Refused)):
        implied_layout(fields("llama", LLAMA, block_count=blocks))


@pytest.mark.parametrize("blocks", [0, 513])
def test_a_block_count_that_llama_cpp_asserts_against(blocks: int) -> None:
    with pytest.raises(Refused, match=f"{blocks} blocks") as caught:
        implied_layout(fields("llama", LLAMA, block_count=blocks))
    assert caught.value.kind == "aborts"


def test_llama_rotates_whole_heads() -> None:
    with pytest.raises(Refused, match="rotates 32 of a head's 64"):
        implied_layout(fields("llama", LLAMA, rope__dimension_count=32))
    assert stores(fields("qwen3", LLAMA, rope__dimension_count=32))


def test_an_unknown_architecture_is_said_to_be() -> None:
    with pytest.raises(UnknownArchitectureError, match="'spaceship'") as caught:
        implied_layout(fields("spaceship", LLAMA))
    assert caught.value.where.key == "general.architecture"


@pytest.mark.parametrize(
    ("name", "saves"),
    [
        ("gemma3", {"window"}),
        ("deepseek2", {"latent"}),
        ("mamba", {"state"}),
        ("llama", set[str]()),
    ],
)
def test_an_architecture_knows_what_its_models_save(name: str, saves: set[str]) -> None:
    found = by_name(name)
    assert found is not None
    assert found.saves == saves


def test_a_model_with_a_spared_block_count_saves_nothing() -> None:
    found = by_name("gemma3")
    assert found is not None
    assert found.savings(fields("gemma3", GEMMA3)) == {"window"}
    assert found.savings(fields("gemma3", GEMMA3, block_count=32)) == frozenset()
