from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from gguf_audit.report.show import schema

Done = subprocess.CompletedProcess[str]


def test_a_model_is_shown(run: Callable[..., Done]) -> None:
    done = run("show", "sound.gguf")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "sound.gguf: model, llama"
    assert "    llama.attention.key_length              runtime default  32" in lines
    assert "    llama.cpp b11434 keeps: F" in lines


def test_json_fits_its_schema(run: Callable[..., Done]) -> None:
    done = run("show", "google/gemma-3-270m", "--offline", "--format", "json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert (done.returncode, document["version"]) == (0, 1)
    [subject] = document["subjects"]
    assert subject["reference"]["origin"] == "card"
    assert subject["cache"]["bytes"][1] == {
        "tokens": 32768,
        "implied": 116391936,
        "ideal": 108527616,
        "full_attention": 603979776,
    }


def test_what_is_to_be_said_of_a_repository_of_models(run: Callable[..., Done]) -> None:
    done = run("show", "owner/models", "--offline")
    told = " ".join(done.stdout.split())
    assert done.returncode == 3
    assert told.endswith(
        "; by owner/models alone show takes a checkpoint: of a model in a repository say which"
        " one, owner/models:FILE.gguf or owner/models:Q4_K_M"
    )
    assert "alone show takes" not in run("show", "nothing.json", "--offline").stdout


def test_a_folder_with_an_unreadable_file_ends_with_3(
    run: Callable[..., Done], models: Path
) -> None:
    (models / "broken.gguf").write_bytes(b"<html>")
    done = run("show", ".")
    assert done.returncode == 3
    assert [line for line in done.stdout.splitlines() if line.endswith(": model, llama")] == [
        "sound.gguf: model, llama",
        "wrong.gguf: model, llama",
    ]
    assert "not read" in done.stdout


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("sound.gguf", "--format", "yaml")])
def test_wrong_usage(run: Callable[..., Done], arguments: tuple[str, ...]) -> None:
    assert run("show", *arguments).returncode == 2


def test_a_pipe_gets_no_colours_and_a_forced_one_does(run: Callable[..., Done]) -> None:
    assert "\x1b" not in run("show", "sound.gguf").stdout
    assert "\x1b[1mmodel\x1b[0m" in run("show", "sound.gguf", FORCE_COLOR="1").stdout
