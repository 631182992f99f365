"""The vocabularies that llama.cpp itself is tested with: nothing to complain about."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from gguf_audit import catalogue, open_gguf
from gguf_audit.checkpoint import Json
from gguf_audit.engine import audit_targets
from gguf_audit.gguf import Gguf
from gguf_audit.mandate import Mandate
from gguf_audit.parts import Absent
from gguf_audit.probes.llama_cpp import find_library, tokenize
from gguf_audit.runtime.pre_tokenizers import SPLITTERS, pre_tokenizer

pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("installed")]

#: Pinned, because what is asserted is how many there are.
PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"
COUNT = 19
#: Those of them that have texts and their ids beside them.
EXPECTED = 15
BYTE_PAIRS = 11


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files, taken out of the source distribution; it is kept for the next run."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = home / "gguf-audit-tests"
    archive = cache / f"{PACKAGE.replace('-', '_')}-{VERSION}.tar.gz"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
        command += ["--dest", str(cache), f"{PACKAGE}=={VERSION}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not archive.exists():
            pytest.skip(f"pip can't get {PACKAGE} {VERSION}: {done.stderr.strip()[-300:]}")
    folder = tmp_path_factory.mktemp("vocabularies")
    with tarfile.open(archive) as packed:
        for member in packed:
            if Path(member.name).match("vendor/llama.cpp/models/ggml-vocab-*.gguf*"):
                member.name = Path(member.name).name
                packed.extract(member, folder, filter="data")
    return sorted(folder.glob("*.gguf"))


def test_no_vocabulary_of_llama_cpp_is_wrong(vocabularies: list[Path]) -> None:
    report = audit_targets([str(path) for path in vocabularies], Mandate(rules=catalogue.load()))
    assert len(report.subjects) == COUNT
    assert {subject.kind for subject in report.subjects} == {"vocabulary"}
    assert [hit.message for hit in report.findings if hit.severity.value != "info"] == []
    assert [problem.message for subject in report.subjects for problem in subject.errors] == []
    assert report.exit_code() == 0


def expectations(vocabularies: list[Path]) -> list[tuple[Path, list[str], list[list[int]]]]:
    """Return each vocabulary that has some, with its texts and their ids."""
    found: list[tuple[Path, list[str], list[list[int]]]] = []
    for path in vocabularies:
        given, made = Path(f"{path}.inp"), Path(f"{path}.out")
        if given.exists() and made.exists():
            # Read as bytes: one of the texts is a carriage return.
            texts = given.read_bytes().decode().split("\n__ggml_vocab_test__\n")
            lines = made.read_text("utf-8").splitlines()
            # The last one ends where the next would begin.
            found.append(
                (path, texts[: len(lines)], [[int(id_) for id_ in line.split()] for line in lines])
            )
    return found


def test_the_installed_llama_cpp_makes_the_ids_that_it_is_tested_for(
    vocabularies: list[Path],
) -> None:
    library = find_library()
    assert not isinstance(library, Absent), library.reason
    expected = expectations(vocabularies)
    assert len(expected) == EXPECTED
    for path, texts, wanted in expected:
        _, ids = tokenize(library, path, texts)
        assert not isinstance(ids, Absent), ids.reason
        assert [list(each) for each in ids] == wanted, path.name


def byte_pairs(gguf: Gguf, steps: Json) -> Tokenizer:
    """Return a vocabulary as tokenizers has it, split by one of our splitters."""
    tokens, merges = gguf.array("tokenizer.ggml.tokens"), gguf.array("tokenizer.ggml.merges")
    types = gguf.array("tokenizer.ggml.token_type")
    assert tokens is not None
    assert merges is not None
    assert types is not None
    texts = [*map(str, tokens.items())]
    normal = {text: id_ for id_, text in enumerate(texts)}
    byte_level: Json = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    both: list[Json] = [steps, byte_level]
    splitter = SPLITTERS[gguf.string("tokenizer.ggml.pre") or ""]
    pairs: list[Json] = [*map(str, merges.items())]
    added: list[Json] = [
        {
            "id": id_,
            "content": texts[id_],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": type_ == 3,
        }
        for id_, type_ in enumerate(types.items())
        # Control tokens in a text aren't meant here.
        if type_ == 4
    ]
    document: Json = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": both},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "ignore_merges": splitter.ignore_merges,
            "vocab": {**normal},
            "merges": pairs,
        },
    }
    return Tokenizer.from_str(json.dumps(document))


def test_our_splitters_make_the_ids_that_llama_cpp_is_tested_for(vocabularies: list[Path]) -> None:
    seen = 0
    for path, texts, wanted in expectations(vocabularies):
        gguf = open_gguf(path)
        name = gguf.string("tokenizer.ggml.pre")
        if gguf.string("tokenizer.ggml.model") != "gpt2" or name is None:
            continue
        tokenizer = byte_pairs(gguf, pre_tokenizer(SPLITTERS[name]))
        made = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        assert made == wanted, path.name
        seen += 1
    assert seen == BYTE_PAIRS
