"""Special ids are those of gguf-py, and of the converter classes that know better."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gguf_audit.checkpoint import Json, Tokenizer
from gguf_audit.errors import LimitError, MalformedError
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._tokenizer_files import tokenizer_files
from gguf_audit.formats.tokenizer import from_config, read_tokenizer
from gguf_audit.parts import Absent
from gguf_audit.sources import MemoryTree

_TOKENS = ["<s>", "</s>", "<unk>", "<pad>", "<sep>", "<cls>", "<mask>", "<end>"]
_ADDED: list[Json] = [{"id": 10 + index, "content": token} for index, token in enumerate(_TOKENS)]
_NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask", "eot", "eom")

_TOKEN = st.sampled_from(_TOKENS)


def _special(token: str) -> Json:
    return {"SpecialToken": {"id": token}}


def _object(token: str) -> Json:
    return {"content": token}


def _template(single: list[Json], pair: list[Json]) -> Json:
    return {"type": "TemplateProcessing", "single": single, "pair": pair}


def _roberta(cls: str | None, sep: str | None) -> Json:
    processor: dict[str, Json] = {"type": "RobertaProcessing"}
    if cls is not None:
        processor["cls"] = [cls, 1]
    if sep is not None:
        processor["sep"] = [sep, 2]
    return processor


def _sequence(parts: list[Json]) -> Json:
    return {"type": "Sequence", "processors": parts}


def _nested(root: dict[str, Json], text: dict[str, Json] | None) -> dict[str, Json]:
    return root if text is None else {**root, "text_config": text}


def _members(suffix: str, values: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    return st.dictionaries(st.sampled_from([name + suffix for name in _NAMES]), values, max_size=9)


_TEXTS: list[Json] = [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "B"}}]
_PIECE: st.SearchStrategy[Json] = st.builds(_special, _TOKEN) | st.sampled_from(_TEXTS)
_BYTE_LEVEL: Json = {"type": "ByteLevel"}
_PROCESSOR: st.SearchStrategy[Json] = (
    st.just(_BYTE_LEVEL)
    | st.builds(_roberta, st.none() | _TOKEN, st.none() | _TOKEN)
    | st.builds(_template, st.lists(_PIECE, max_size=4), st.lists(_PIECE, max_size=6))
)
_POST: st.SearchStrategy[Json] = (
    st.none() | _PROCESSOR | st.builds(_sequence, st.lists(_PROCESSOR, max_size=3))
)
_ENTRY: st.SearchStrategy[Json] = st.none() | _TOKEN | st.just("") | st.builds(_object, _TOKEN)
_LIST: Json = [1, 2]
_ID: st.SearchStrategy[Json] = st.none() | st.integers(0, 17) | st.just(_LIST)
_CONFIG = st.builds(_nested, _members("_token_id", _ID), st.none() | _members("_token_id", _ID))


def _document(post: Json = None, *, added: Json = None, vocab: Json = None) -> dict[str, Json]:
    return {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1} if vocab is None else vocab},
        "added_tokens": _ADDED if added is None else added,
        "post_processor": post,
    }


def _read(
    config: Mapping[str, Json],
    tokenizer_config: Mapping[str, Json] | None = None,
    document: Mapping[str, Json] | None = None,
    *others: str,
) -> Tokenizer | Absent:
    files = dict.fromkeys(others, b"")
    if document is not None:
        files["tokenizer.json"] = json.dumps(document).encode()
    given_config = Absent("none") if tokenizer_config is None else tokenizer_config
    inventory = Inventory(names=frozenset(files))
    return read_tokenizer(
        tokenizer_files(MemoryTree(files), inventory), config=config, tokenizer_config=given_config
    )


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
@given(
    config=_CONFIG,
    tokenizer_config=st.none() | _members("_token", _ENTRY),
    post=_POST,
    with_document=st.booleans(),
)
def test_equals_gguf_py(
    tmp_path: Path,
    config: dict[str, Json],
    tokenizer_config: dict[str, Json] | None,
    post: Json,
    with_document: bool,
) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    (tmp_path / "config.json").write_text(json.dumps(config))
    if with_document:
        (tmp_path / "tokenizer.json").write_text(json.dumps(_document(post)))
    if tokenizer_config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    vocabulary: Any = importlib.import_module("gguf.vocab")
    logging.disable(logging.WARNING)  # pieces at random are odd templates
    theirs: dict[str, int] = vocabulary.SpecialVocab(tmp_path, n_vocab=18).special_token_ids
    logging.disable(logging.NOTSET)
    ours = _read(config, tokenizer_config, _document(post) if with_document else None, "vocab.txt")
    theirs.pop("cls", None)  # found, but never written: the writer has no key for it
    assert ours == Tokenizer(special_ids=theirs, size=18 if with_document else None)


def test_the_tokenizer_comes_before_the_config() -> None:
    config: dict[str, Json] = {"bos_token_id": 0, "eos_token_id": [1, 2], "pad_token_id": 1}
    found = _read(config, {"bos_token": "<s>", "eos_token": {"content": "</s>"}}, _document())
    assert found == Tokenizer(special_ids={"bos": 10, "eos": 11, "pad": 1}, size=18)


def test_a_template_that_ends_with_another_token_makes_it_eos() -> None:
    post: Json = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<end>"}}],
        "pair": [],
    }
    found = _read({}, {"eos_token": "</s>"}, _document(post))
    assert found == Tokenizer(special_ids={"eos": 17, "eot": 11}, size=18)


def test_a_template_for_two_texts_makes_eos_the_separator() -> None:
    pair: Json = [
        {"Sequence": {"id": "A"}},
        {"SpecialToken": {"id": "</s>"}},
        {"Sequence": {"id": "B"}},
    ]
    post: Json = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}], "pair": pair}
    found = _read({}, {"eos_token": "</s>"}, _document(post))
    assert found == Tokenizer(special_ids={"eos": 11, "sep": 11}, size=18)


def test_what_the_tokenizer_says_stays_with_a_converter_class() -> None:
    config: dict[str, Json] = {"architectures": ["Glm4MoeForCausalLM"]}
    added: Json = [*_GLM, {"id": 24, "content": "<s>"}]
    assert _read(config, {"bos_token": "<s>"}, _document(added=added)) == Tokenizer(
        special_ids={"bos": 24, "eot": 22, "unk": 20, "eom": 23}, size=25
    )


def test_a_bare_config_tells_names_and_no_ids() -> None:
    config: dict[str, Json] = {
        "bos_token_id": 1,
        "eos_token_id": [2],
        "text_config": {"pad_token_id": 0},
    }
    wanted = Tokenizer(special_ids={}, unsure_ids=frozenset({"bos", "pad"}), complete=False)
    assert from_config(config) == wanted
    assert _read(config) == wanted  # a folder without tokenizer files
    assert from_config(Absent("why")) == Absent("why")


def test_an_id_beyond_the_vocabulary_is_no_promise() -> None:
    config: dict[str, Json] = {"vocab_size": 3, "pad_token_id": 3, "bos_token_id": 2}
    assert from_config(config) == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos"}), complete=False
    )


def test_code_llama_is_told_by_its_vocabulary() -> None:
    config: dict[str, Json] = {"architectures": ["LlamaForCausalLM"], "vocab_size": 32016}
    assert _read(config, {}, _document()) == Tokenizer(special_ids={"eot": 32010}, size=18)


def test_an_id_beyond_the_vocabulary_is_not_written() -> None:
    config: dict[str, Json] = {
        "vocab_size": 20,
        "pad_token_id": 20,
        "unk_token_id": 19,
        "mask_token_id": -1,
    }
    found = _read(config, {}, _document())
    assert found == Tokenizer(special_ids={"unk": 19}, complete=False, size=18)


_GLM: list[Json] = [
    {"id": 20, "content": "<|endoftext|>"},
    {"id": 21, "content": "[gMASK]"},
    {"id": 22, "content": "<|user|>"},
    {"id": 23, "content": "<|observation|>"},
]


@pytest.mark.parametrize(
    ("architecture", "added", "files", "ids"),
    [
        ("Glm4ForCausalLM", _GLM, (), {"eos": 20, "eot": 22, "unk": 20, "bos": 20, "pad": 1}),
        ("Glm4MoeForCausalLM", _GLM, (), {"bos": 21, "eot": 22, "unk": 20, "eom": 23, "pad": 1}),
        ("GemmaForCausalLM", [], (), {"pad": 1, "eot": 107}),
        ("NemotronForCausalLM", [], (), {"pad": 0, "unk": 1}),
        ("Rwkv7ForCausalLM", [], (), {"pad": 1}),
        (
            "Rwkv7ForCausalLM",
            [],
            ("rwkv_vocab_v20230424.txt",),
            {"pad": 1, "bos": 0, "eos": 0, "eot": 261},
        ),
        ("LlamaForCausalLM", _GLM, (), {"pad": 1}),
    ],
)
def test_some_converter_classes_know_better(
    architecture: str, added: Json, files: tuple[str, ...], ids: dict[str, int]
) -> None:
    config: dict[str, Json] = {"architectures": [architecture], "pad_token_id": 1}
    found = _read(config, {}, _document(added=added), *files)
    assert found == Tokenizer(special_ids=ids, size=24 if added else 2)


def test_says_what_it_cannot_tell() -> None:
    config: dict[str, Json] = {
        "architectures": ["InternLM2ForCausalLM"],
        "bos_token_id": 1,
        "pad_token_id": 0,
    }
    assert _read(config, {}, _document()) == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos", "pad"}), complete=False, size=18
    )
    hunyuan: dict[str, Json] = {**config, "architectures": ["HunYuanDenseV1ForCausalLM"]}
    assert _read(hunyuan, {"eos_token": "</s>"}, _document()) == Tokenizer(
        special_ids={"bos": 1, "pad": 0}, unsure_ids=frozenset({"eos"}), complete=False, size=18
    )


def test_the_text_models_architecture_decides() -> None:
    config: dict[str, Json] = {
        "architectures": ["LlamaForCausalLM"],
        "text_config": {"architectures": ["GemmaForCausalLM"]},
    }
    assert _read(config, {}, _document()) == Tokenizer(special_ids={"eot": 107}, size=18)


@pytest.mark.parametrize(
    "config",
    [
        # InternVL: the class of its language model makes ids that we don't know.
        {
            "architectures": ["InternVLChatModel"],
            "llm_config": {"architectures": ["InternLM2ForCausalLM"], "vocab_size": 20},
        },
        {
            "architectures": ["Qwen2_5OmniModel"],
            "thinker_config": {"text_config": {"architectures": ["XverseForCausalLM"]}},
        },
        # Here the root decides, although its text model names a class that we know.
        {
            "architectures": ["KimiK3ForConditionalGeneration"],
            "text_config": {"architectures": ["KimiLinearForCausalLM"]},
        },
    ],
)
def test_the_class_that_converts_is_the_one_of_the_hyper_parameters(
    config: dict[str, Json],
) -> None:
    assert _read({**config, "bos_token_id": 1}, {}, _document()) == Tokenizer(
        special_ids={}, unsure_ids=frozenset({"bos"}), complete=False, size=18
    )


def test_the_vocabularys_size_is_the_text_models_by_any_of_its_names() -> None:
    config: dict[str, Json] = {"vocab_size": 9, "llm_config": {"vocab_size": 30}}
    found = _read({**config, "pad_token_id": 29, "unk_token_id": 30}, {}, _document())
    assert found == Tokenizer(special_ids={"pad": 29}, complete=False, size=18)


def test_ids_of_the_text_model_count_under_one_name_only() -> None:
    # SpecialVocab opens config.json itself and looks into text_config alone.
    config: dict[str, Json] = {"llm_config": {"pad_token_id": 2}, "vocab_size": 9}
    assert _read(config, {}, _document()) == Tokenizer(special_ids={}, size=18)


@pytest.mark.parametrize(
    "config", [{"text_config": 1}, {"llm_config": []}, {"architectures": "LlamaForCausalLM"}]
)
def test_a_config_of_no_class_is_malformed(config: dict[str, Json]) -> None:
    with pytest.raises(MalformedError):
        _read(config, {}, _document())


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"model": []}, "model"),
        (_document(vocab="x"), "model.vocab"),
        (_document(vocab={"a": 0, "b": True}), "model.vocab"),
        (_document(vocab={"a": 0, "b": -1}), "model.vocab"),
        (_document(added={"a": 1}), "added_tokens"),
        (_document(added=[*_ADDED, {"id": "1", "content": "x"}]), "added_tokens"),
        (_document(added=[*_ADDED, {"id": 1, "content": 2}]), "added_tokens"),
        (_document(added=[*_ADDED, 1]), "added_tokens"),
    ],
)
def test_refuses_what_is_no_tokenizer(document: dict[str, Json], key: str) -> None:
    with pytest.raises(MalformedError, match=f"^tokenizer.json: {key} has to be"):
        _read({}, {}, document)


def test_a_unigram_vocabulary_is_a_list() -> None:
    found = _read({}, {}, _document(vocab=[["a", 0.0], ["b", -1.0], ["c", -2.0]], added=[]))
    assert found == Tokenizer(special_ids={}, size=3)


def test_refuses_an_id_that_no_vocabulary_reaches() -> None:
    with pytest.raises(LimitError, match="a token with id 1099511627776"):
        _read({}, {}, _document(vocab={"a": 1 << 40}))


@pytest.mark.parametrize(
    "post", [1, [], {"processors": 1}, {"type": "TemplateProcessing", "single": 1, "pair": [1]}]
)
def test_a_post_processor_that_is_none_changes_nothing(post: Json) -> None:
    assert _read({}, {"bos_token": "<s>"}, _document(post)) == Tokenizer(
        special_ids={"bos": 10}, size=18
    )
