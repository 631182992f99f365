"""Every recipe of docs/recipes.md, run as it is written there, with stand-ins on PATH."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from recipes import read_recipe

yaml: Any = importlib.import_module("yaml")  # which has no types of its own
ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "recipes.md").read_text("utf-8")
SHELL = "bash", "--noprofile", "--norc", "-eo", "pipefail"  # as GitHub runs a step

#: Writes the same model as a real llama-quantize would name it: other types, other file type.
QUANTIZE = """\
import sys
from pathlib import Path
from gguf_audit.testing import TensorSpec, write_gguf
from recipes import read_recipe

source, target, quant = sys.argv[1:]
recipe = read_recipe(Path(source).stem.rpartition("-")[0])
type_, number = {"Q4_0": ("Q4_0", 2), "Q8_0": ("Q8_0", 7)}[quant]
tensors = [
    TensorSpec(each.name, each.shape, type_ if len(each.shape) > 1 else "F32")
    for each in recipe.tensors
]
named = {"general.license": "mit", "general.base_model.count": 1}
write_gguf(target, {**recipe.fields, **named, "general.file_type": number}, tensors)
"""
CONVERT = """\
import sys
from pathlib import Path
from recipes import read_recipe

case = Path("case").read_text()
checkpoint, *_, outfile = sys.argv[1:]
assert Path(checkpoint, "config.json").is_file()
assert Path(outfile).parent.is_dir()  # it makes no folder
read_recipe(case).write(Path(outfile).parent).rename(outfile)
"""


def recipe(name: str) -> str:
    """Return the block of the page with this name."""
    found = re.search(rf"<!-- run: {re.escape(name)} -->\n```[a-z]+\n(.*?)```\n", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


class Workplace:
    """A folder with the programs that recipes call."""

    def __init__(self, folder: Path, shell: dict[str, str]) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.environment = {**shell, "LOG": str(folder / "log")}
        self.program("llama-quantize", QUANTIZE)
        # A link would lose the environment that it is the python of.
        self.script("python", f'exec "{sys.executable}" "$@"\n')
        for name in ("hf", "llama-server", "pip", "pipx"):
            self.script(name, f'echo {name} "$@" >> "$LOG"\n')

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!{sys.executable}\n{text}\n", "utf-8")
        (self.bin / name).chmod(0o755)

    def script(self, name: str, text: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/usr/bin/env bash\n{text}", "utf-8")
        path.chmod(0o755)
        return path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def log(self) -> list[str]:
        """What the stand-ins were called with."""
        path = self.folder / "log"
        return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.fixture
def place(tmp_path: Path, shell: dict[str, str]) -> Workplace:
    return Workplace(tmp_path, shell)


def converted(case: str, folder: Path) -> Path:
    """Write a conversion under the name that a publisher would give it."""
    found = read_recipe(case)
    fields = {**found.fields, "general.license": "mit", "general.base_model.count": 1}
    path = replace(found, fields=fields).write(folder)
    return path.rename(folder / f"{case}-F16.gguf")


CHECKPOINT = ROOT / "fixtures" / "structure" / "small-llama" / "checkpoint"


# A publisher


def published(place: Workplace, case: str) -> subprocess.CompletedProcess[str]:
    source = converted(case, place.folder)
    script = place.script("publish.sh", recipe("publish.sh"))
    return place.run(script, CHECKPOINT, source.name, "me/repo", "Q4_0", "Q8_0")


def test_a_right_conversion_is_quantized_and_uploaded(place: Workplace) -> None:
    done = published(place, "small-llama")
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.log == ["hf upload me/repo upload ."]
    assert sorted(path.name for path in (place.folder / "upload").iterdir()) == [
        "audit.json",
        "small-llama-Q4_0.gguf",
        "small-llama-Q8_0.gguf",
    ]


def test_a_wrong_conversion_is_not_even_quantized(place: Workplace) -> None:
    done = published(place, "rope-base-wrong")
    assert (done.returncode, place.log) == (1, [])
    assert not (place.folder / "upload").exists()


def test_a_quant_that_went_wrong_is_not_uploaded(place: Workplace) -> None:
    broken = (
        QUANTIZE
        + '\nif quant == "Q8_0":\n    import os\n    os.truncate(target, os.path.getsize(target) - 100000)\n'
    )
    place.program("llama-quantize", broken)
    done = published(place, "small-llama")
    assert (done.returncode, place.log) == (1, [])


@pytest.mark.parametrize(
    ("name", "arguments", "usage"),
    [
        ("publish.sh", (), "CHECKPOINT MODEL-F16.gguf OWNER/REPO QUANT..."),
        ("publish.sh", ("a", "b", "me/repo"), "CHECKPOINT MODEL-F16.gguf OWNER/REPO QUANT..."),
        ("serve.sh", ("a",), "MODEL.gguf CONTEXT [llama-server options]"),
    ],
)
def test_a_script_with_too_few_arguments_says_what_it_takes(
    place: Workplace, name: str, arguments: tuple[str, ...], usage: str
) -> None:
    script = place.script(name, recipe(name))
    done = place.run(script, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"usage: {script} {usage}\n")
    assert place.log == []


# A deployment


@pytest.mark.parametrize(
    ("case", "context", "code", "word", "why"),
    [
        ("gemma-3-270m", "32768", 0, "CLEAN  ", ""),
        ("gemma-3-270m-window-lost", "32768", 1, "ERROR  ", "  error KV103 window-lost\n"),
        ("unknown-architecture", "4096", 3, "WARNING  ", "    not done  "),
    ],
)
def test_a_server_starts_behind_the_gate(
    place: Workplace, case: str, context: str, code: int, word: str, why: str
) -> None:
    model = read_recipe(case).write(place.folder)
    script = place.script("serve.sh", recipe("serve.sh"))
    done = place.run(script, model, context, "--port", "8080")
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.startswith(word)
    assert why in done.stdout
    started = f"llama-server -m {model} -c {context} --parallel 1 --port 8080"
    assert place.log == ([started] if code == 0 else [])


def test_a_server_starts_within_its_budget(place: Workplace) -> None:
    model = read_recipe("llama-3.1-8b-instruct").write(place.folder)
    script = place.script("serve.sh", recipe("serve.sh"))
    done = place.run(script, model, "131072")
    assert (done.returncode, place.log) == (1, [])
    assert place.run(script, model, "8192").returncode == 0


@pytest.mark.parametrize(("case", "code"), [("gemma-3-270m", 0), ("gemma-3-270m-window-lost", 1)])
def test_a_pod_waits_for_its_init_container(place: Workplace, case: str, code: int) -> None:
    pod: Any = yaml.safe_load(recipe("pod.yaml"))
    [audit] = pod["spec"]["initContainers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in audit["volumeMounts"]}
    assert mounts["models"] == "/models"
    read_recipe(case).write(place.folder).rename(place.folder / "model.gguf")
    arguments = [str(each).replace("/models", str(place.folder)) for each in audit["args"]]
    done = place.run("gguf-audit", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    # What is left of the log where it ends badly says why: its last 2048 bytes, 80 lines at most.
    assert ("error KV103" in done.stdout[-2048:]) == (code == 1)
    assert audit["terminationMessagePolicy"] == "FallbackToLogsOnError"
    [server] = pod["spec"]["containers"]
    checked = dict(zip(audit["args"], audit["args"][1:], strict=False))
    served = dict(zip(server["args"], server["args"][1:], strict=False))
    assert (served["-m"], served["-c"]) == (checked["check"], checked["--ctx"])


# A converter


@pytest.mark.parametrize(
    ("case", "code"), [("small-llama", 0), ("rope-base-wrong", 1), ("vocabulary-lost", 1)]
)
def test_a_converter_is_told_what_it_wrote(place: Workplace, case: str, code: int) -> None:
    shutil.copytree(CHECKPOINT, place.folder / "checkpoint")
    (place.folder / "convert_hf_to_gguf.py").write_text(CONVERT, "utf-8")
    (place.folder / "case").write_text(case, "utf-8")
    workflow: Any = yaml.safe_load(recipe("convert.yml"))
    steps = [step["run"] for step in workflow["jobs"]["convert"]["steps"] if "run" in step]
    codes: list[int] = []
    for step in steps:
        done = place.run(*SHELL, "-c", step)
        codes.append(done.returncode)
    assert codes == [0, 0, code]
    assert place.log == [
        "pip install -r requirements.txt",
        "pipx install git+https://github.com/OWNER/gguf-audit@v0.1.0",
    ]
