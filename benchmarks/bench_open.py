"""What opening a GGUF header costs: our reader beside gguf-py's, in one run.

    python benchmarks/bench_open.py [FILE]

Without a file it makes one with a vocabulary of 262,144 tokens, Gemma 3's size. Each
reader opens it in processes of its own: CPU seconds are those of the opening alone,
imports left out; the memory is the peak of the whole process, imports included. The
best of several runs counts, because other processes can only make a run slower.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gguf_audit.gguf import ValueType
from gguf_audit.testing import FieldValue, write_gguf

TOKENS = 262_144
#: Runs of each reader; gguf-py's takes seconds.
RUNS = {"gguf-audit": 7, "gguf-py": 2}

#: Run by ``python -c`` with the file as its argument.
PROGRAMS = {
    "gguf-audit": """
import json, resource, sys, time
from gguf_audit.formats.gguf import open_gguf
begin = time.process_time()
found = open_gguf(sys.argv[1])
seconds = time.process_time() - begin
keys, tensors = len(found.fields), len(found.tensors)
""",
    "gguf-py": """
import json, resource, sys, time
from gguf import GGUFReader
begin = time.process_time()
found = GGUFReader(sys.argv[1])
seconds = time.process_time() - begin
# gguf-py counts version and the two counts of the header as fields.
keys, tensors = len(found.fields) - 3, len(found.tensors)
""",
}
REPORT = """
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak": peak, "keys": keys, "tensors": tensors}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one reader took to open the file."""

    cpu_seconds: float
    peak_mib: float
    keys: int
    tensors: int


def main() -> int:
    """Print both costs and their ratio; 1 where the readers disagree."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("file", nargs="?", type=Path)
    given: Path | None = parser.parse_args().file
    if given is not None:
        return compare(given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocabulary.gguf"
        # In a process of its own: on Linux a child's peak begins at its parent's size.
        writer = multiprocessing.get_context("spawn").Process(target=vocabulary, args=(path,))
        writer.start()
        writer.join()
        return compare(path)


def compare(file: Path) -> int:
    """Measure both readers on one file and print what came out."""
    ours, theirs = (measure(reader, file) for reader in PROGRAMS)
    print(f"{file.name}: {ours.keys} keys, {ours.tensors} tensors")
    for reader, cost in (("gguf-audit", ours), ("gguf-py", theirs)):
        print(f"{reader:>10}  {cost.cpu_seconds:7.3f} CPU s  {cost.peak_mib:6.0f} MiB peak")
    print(f"{theirs.cpu_seconds / ours.cpu_seconds:10.0f} times less CPU time")
    return 0 if (ours.keys, ours.tensors) == (theirs.keys, theirs.tensors) else 1


def measure(reader: str, file: Path) -> Cost:
    """Return the least that a reader took in its runs."""
    command = [sys.executable, "-c", PROGRAMS[reader] + REPORT, str(file)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(RUNS[reader])
    ]
    return Cost(
        cpu_seconds=min(run["seconds"] for run in runs),
        peak_mib=min(run["peak"] for run in runs) / 1024,
        keys=runs[0]["keys"],
        tensors=runs[0]["tensors"],
    )


def vocabulary(path: Path) -> None:
    """Write a small model with as many tokens as Gemma 3 has."""
    tokens = [f"\N{LOWER ONE EIGHTH BLOCK}token{index}" for index in range(TOKENS)]
    fields: dict[str, FieldValue] = {
        "general.architecture": "gemma3",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*tokens],
        "tokenizer.ggml.scores": [-1000.0] * TOKENS,
        "tokenizer.ggml.token_type": (ValueType.INT32, [1] * TOKENS),
    }
    write_gguf(path, fields, [("token_embd.weight", (640, TOKENS), "Q8_0")])


if __name__ == "__main__":
    raise SystemExit(main())
