"""The vocabulary is that of the converter, class by class."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from gguf_audit.checkpoint import Json, Vocabulary
from gguf_audit.errors import MalformedError
from gguf_audit.formats._inventory import Inventory
from gguf_audit.formats._tokenizer_files import tokenizer_files
from gguf_audit.formats.vocabulary import read_vocabulary, stored_vocabulary
from gguf_audit.gguf import ValueType
from gguf_audit.parts import Absent
from gguf_audit.sources import MemorySource, MemoryTree
from rule_subjects import gguf
from sentencepiece_models import Piece, sentencepiece

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

BPE: dict[str, Json] = {
    "model": {
        "type": "BPE",
        "vocab": {"a": 0, "b": 1, "ab": 2},
        "merges": [["a", "b"]],
    },
    "added_tokens": [
        {"id": 3, "content": "<s>", "special": True},
        {"id": 5, "content": "▁▁", "special": False},
        {"id": 6, "content": "<|look|>", "special": False},
    ],
}
FALLBACK: dict[str, Json] = {
    "model": {
        "type": "BPE",
        "byte_fallback": True,
        "vocab": {"<unk>": 0, "<0x0A>": 1, "▁a": 2},
        "merges": ["▁ a"],
    },
    "added_tokens": [
        {"id": 0, "content": "<unk>", "special": True},
        {"id": 3, "content": "<|channel>", "special": True},
        {"id": 4, "content": "more", "special": False},
    ],
    "decoder": {"type": "Sequence"},
}
PIECES = [
    Piece("<unk>", 0.0, UNKNOWN),
    Piece("<s>", 0.0, CONTROL),
    Piece("▁a", -1.5),
    Piece("<0x0A>", 0.0, BYTE),
    Piece("x", -2.0, USER_DEFINED),
]


def _read(
    name: str,
    files: Mapping[str, Json | bytes],
    settings: Mapping[str, Json] | None = None,
    **config: Json,
) -> Vocabulary | Absent:
    contents = {
        file: content if isinstance(content, bytes) else json.dumps(content).encode()
        for file, content in files.items()
    }
    return read_vocabulary(
        tokenizer_files(MemoryTree(contents), Inventory(names=frozenset(contents))),
        config={"architectures": [name], **config},
        tokenizer_config=Absent("none") if settings is None else settings,
    )


def _made(
    name: str,
    files: Mapping[str, Json | bytes],
    settings: Mapping[str, Json] | None = None,
    **config: Json,
) -> Vocabulary:
    found = _read(name, files, settings, **config)
    assert isinstance(found, Vocabulary)
    return found


def _texts(found: Vocabulary) -> Sequence[str | None]:
    return list(found.texts)


def test_byte_pairs_with_added_tokens() -> None:
    found = _made("Qwen2MoeForCausalLM", {"tokenizer.json": BPE})
    assert found.model == "gpt2"
    assert _texts(found) == ["a", "b", "ab", "<s>", None, "  ", "<|look|>"]
    assert found.types == [NORMAL, NORMAL, NORMAL, CONTROL, UNUSED, USER_DEFINED, CONTROL]
    assert (found.scores, found.merges) == (None, ("a b",))
    assert found.other_texts == {5: frozenset({"▁▁", ""})}
    assert found.other_types == {}


def test_files_that_disagree_on_a_flag_allow_both() -> None:
    settings: dict[str, Json] = {
        "added_tokens_decoder": {
            "3": {"content": "<s>", "special": False},
            "7": {"content": "<more>", "special": True},
        },
        "pad_token": "ab",
    }
    found = _made("Qwen2MoeForCausalLM", {"tokenizer.json": BPE}, settings)
    assert found.texts[7] == "<more>"
    assert found.types[7] == CONTROL
    assert found.other_types == {
        3: frozenset({USER_DEFINED, CONTROL}),
        2: frozenset({NORMAL, CONTROL}),
    }
    assert found.strays == {"<s>", "<more>"}


def test_spaces_in_merges_are_written_as_another_character() -> None:
    merges: Json = [["a", "b"], ["a ", " b"]]
    document: Json = {**BPE, "model": {**_model(BPE), "merges": merges}}
    found = _made("Qwen2MoeForCausalLM", {"tokenizer.json": document})
    assert found.merges == ("a b", "aĠ Ġb")


def _model(document: Mapping[str, Json]) -> dict[str, Json]:
    model = document["model"]
    assert isinstance(model, dict)
    return model


def test_a_vocabulary_in_its_old_files() -> None:
    files: dict[str, Json | bytes] = {
        "vocab.json": {"a": 0, "b": 1, "ab": 2},
        "merges.txt": b"#version: 0.2\na b\nodd\n\n",
        "added_tokens.json": {"<s>": 3},
    }
    found = _made("GPT2LMHeadModel", files)
    assert _texts(found) == ["a", "b", "ab", "<s>"]
    assert found.merges == ("a b",)
    assert found.other_types == {3: frozenset({USER_DEFINED, CONTROL})}


def test_word_pieces_begin_with_a_space() -> None:
    document: Json = {
        "model": {"type": "WordPiece", "vocab": {"[CLS]": 0, "a": 1, "##b": 2}},
        "added_tokens": [{"id": 0, "content": "[CLS]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "lowercase": False, "strip_accents": None},
    }
    found = _made("BertModel", {"tokenizer.json": document})
    assert (found.model, _texts(found)) == ("bert", ["[CLS]", "▁a", "b"])
    assert found.types == [CONTROL, NORMAL, NORMAL]
    assert found.switches["normalizer.lowercase"] == (False,)
    assert _texts(_made("BertModel", {"vocab.txt": b"[CLS]\na\n##b\n"})) == ["▁[CLS]", "▁a", "b"]


def test_sentencepiece_with_added_tokens() -> None:
    files: dict[str, Json | bytes] = {
        "tokenizer.model": sentencepiece(PIECES),
        "added_tokens.json": {"<more>": 5, "<beyond>": 9},
    }
    settings: dict[str, Json] = {
        "added_tokens_decoder": {
            "1": {"content": "<s>", "special": True},
            "4": {"content": "▁x", "special": False},
            "6": {"content": "<|y|>", "special": False},
        },
        "add_bos_token": True,
        "add_prefix_space": False,
    }
    found = _made("LlamaForCausalLM", files, settings, vocab_size=8)
    assert found.model == "llama"
    assert _texts(found) == ["<unk>", "<s>", "▁a", "<0x0A>", " x", "<more>", "<|y|>", None]
    assert found.types == [
        *(UNKNOWN, CONTROL, NORMAL, BYTE, USER_DEFINED, USER_DEFINED, CONTROL, UNUSED),
    ]
    assert found.scores == [0.0, -1000.0, -1.5, 0.0, -1000.0, -1000.0, -1000.0, -10000.0]
    assert found.merges is None
    assert found.switches["add_bos_token"] == (True,)
    assert found.switches["add_space_prefix"] == (False,)


def test_phi_3_takes_flags_as_they_are() -> None:
    files: dict[str, Json | bytes] = {
        "tokenizer.model": sentencepiece(PIECES),
        "tokenizer.json": {**BPE, "added_tokens": [{"id": 6, "content": "<|y|>"}]},
    }
    settings: dict[str, Json] = {
        "tokenizer_class": "LlamaTokenizer",
        "added_tokens_decoder": {"5": {"content": "<|x|>", "special": False}},
    }
    found = _made("Phi3ForCausalLM", files, settings, vocab_size=7)
    assert _texts(found)[5:] == ["<|x|>", "<|y|>"]
    assert found.types[5:] == [USER_DEFINED, USER_DEFINED]
    settings["tokenizer_class"] = "GPT2Tokenizer"
    assert _made("Phi3ForCausalLM", files, settings, vocab_size=7).model == "gpt2"


def test_byte_pairs_with_byte_fallback_are_pieces_of_one_score() -> None:
    found = _made("LlamaForCausalLM", {"tokenizer.json": FALLBACK}, {"unk_token": "<unk>"})
    assert (found.model, found.merges) == ("llama", None)
    assert found.types == [CONTROL, BYTE, NORMAL, USER_DEFINED, USER_DEFINED]
    assert found.scores == [-1000.0] * 5
    assert found.other_types == {
        0: frozenset({NORMAL, CONTROL}),
        3: frozenset({USER_DEFINED, CONTROL}),
    }


def test_pieces_without_a_decoder_are_pieces() -> None:
    document = {key: value for key, value in FALLBACK.items() if key != "decoder"}
    found = _made("LlamaForCausalLM", {"tokenizer.json": document}, {"unk_token": "<unk>"})
    assert (found.model, found.merges) == ("llama", None)


def test_gemma_4_has_merges_as_well_and_shows_its_channels() -> None:
    found = _made("Gemma4ForCausalLM", {"tokenizer.json": FALLBACK})
    assert (found.model, found.merges) == ("gemma4", ("▁ a",))
    assert found.types[3] == USER_DEFINED
    assert found.switches["add_bos_token"] == (True,)
    assert found.switches["add_space_prefix"] == (False,)


def test_llama_3_is_byte_pairs() -> None:
    found = _made("LlamaForCausalLM", {"tokenizer.json": BPE})
    assert found.model == "gpt2"


def test_unigrams() -> None:
    data = sentencepiece(PIECES, remove_extra_whitespaces=False)
    found = _made("T5ForConditionalGeneration", {"spiece.model": data}, vocab_size=6)
    assert found.model == "t5"
    assert _texts(found) == ["<unk>", "<s>", "▁a", "<0x0A>", "x", None]
    assert found.switches["add_space_prefix"] == (True,)
    assert found.switches["remove_extra_whitespaces"] == (False,)


def test_xlm_roberta_puts_four_of_its_own_in_front() -> None:
    found = _made("XLMRobertaModel", {"sentencepiece.bpe.model": sentencepiece(PIECES)})
    assert _texts(found) == ["<s>", "<pad>", "</s>", "<unk>", "<0x0A>"]
    assert found.types == [CONTROL, CONTROL, CONTROL, UNKNOWN, BYTE]


def test_xlm_roberta_of_a_tokenizer_json() -> None:
    document: Json = {
        "model": {
            "type": "Unigram",
            "unk_id": 1,
            "vocab": [["<s>", 0.0], ["<unk>", 0.0], ["▁a", -1]],
        },
        "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
    }
    for name in ("XLMRobertaModel", "NomicBertModel"):
        found = _made(name, {"tokenizer.json": document}, {"bos_token": "<s>"})
        assert (found.model, _texts(found)) == ("t5", ["<s>", "<unk>", "▁a"])
        assert found.types == [CONTROL, UNKNOWN, NORMAL]
        assert found.scores == [0.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("QWenLMHeadModel", {"tokenizer.json": BPE}, "by code of its own"),
        ("XLMRobertaModel", {"tokenizer.json": BPE}, "wants the pieces of a Unigram model"),
        ("LlamaForCausalLM", {"tekken.json": {}}, "read by mistral-common"),
        ("NemotronForCausalLM", {"tokenizer.json": BPE}, "are missing"),
        ("Qwen2ForCausalLM", {"tokenizer.json": FALLBACK}, "takes the pieces of tokenizer.json"),
    ],
)
def test_what_the_converter_reads_otherwise_is_absent(
    name: str, files: Mapping[str, Json], reason: str
) -> None:
    found = _read(name, files)
    assert isinstance(found, Absent)
    assert reason in found.reason


def test_a_key_that_is_no_number_of_a_token_is_none() -> None:
    settings: Json = {
        "added_tokens_decoder": {
            key: {"content": f"<{number}>", "special": True}
            for number, key in enumerate(("9" * 5000, "4194304", "\u0663", "-1", "x"))
        }
    }
    assert isinstance(settings, dict)
    found = _made("Qwen2ForCausalLM", {"tokenizer.json": BPE}, settings)
    assert _texts(found) == _texts(_made("Qwen2ForCausalLM", {"tokenizer.json": BPE}))


def test_what_cannot_be_read_is_read_once() -> None:
    class Counted(MemoryTree):
        opened = 0

        def open(self, name: str) -> MemorySource:
            self.opened += 1
            return super().open(name)

    tree = Counted({"tokenizer.json": b"[", "tokenizer.model": b"\x0b"})
    files = tokenizer_files(tree, Inventory(names=frozenset(tree.names())))
    for _ in range(3):
        with pytest.raises(MalformedError, match="no JSON"):
            _ = files.json
        with pytest.raises(MalformedError, match="wire type 3"):
            files.load_sentencepiece("tokenizer.model")
    assert tree.opened == 2


def test_an_absurd_vocabulary_size_is_malformed() -> None:
    with pytest.raises(MalformedError, match="vocab_size is 1000000000"):
        _read("GemmaForCausalLM", {"tokenizer.model": sentencepiece(PIECES)}, vocab_size=10**9)


def test_a_file_is_its_own_vocabulary() -> None:
    found = stored_vocabulary(
        gguf(
            {
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.tokens": ["a", "b"],
                "tokenizer.ggml.merges": ["a b"],
                "tokenizer.ggml.token_type": (ValueType.INT32, [1, 3]),
                "tokenizer.ggml.add_bos_token": True,
            }
        )
    )
    assert isinstance(found, Vocabulary)
    assert (found.model, found.texts, found.types, found.merges) == (
        *("gpt2", ["a", "b"], [1, 3], ("a b",)),
    )
    assert (found.switches["add_bos_token"], found.switches["add_eos_token"]) == ((True,), (None,))
    assert isinstance(stored_vocabulary(gguf({"tokenizer.ggml.model": "gpt2"})), Absent)
