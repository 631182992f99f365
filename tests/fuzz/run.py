"""Fuzzes one target with atheris: ``python tests/fuzz/run.py TARGET RUNS [SEED]``.

What is found is left in ``build/fuzz``, and becomes a test of what it broke.
"""

from __future__ import annotations

import importlib
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

#: Without types, and not there where nobody fuzzes.
atheris: Any = importlib.import_module("atheris")
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("auditor", "rules", "tests/fuzz", "fixtures")]

with atheris.instrument_imports(include=["gguf_audit", "gguf_audit_rules"]):
    import fuzz_targets  # what is imported here is watched for coverage

#: What one input may take; the limit of memory is for all together.
SECONDS, MEMORY_MIB = 5, 512


def main() -> None:
    """Run a target so many times, beginning with our own fixtures."""
    target, runs, seed = sys.argv[1], int(sys.argv[2]), int((sys.argv[3:] or ["1"])[0])
    known = list(fuzz_targets.seeds(target))
    out = ROOT / "build" / "fuzz"
    out.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    def mutate(data: bytes, max_size: int, chance: int) -> bytes:
        if chance % 4:
            other = known[chance // 4 % len(known)]
            changed = fuzz_targets.mutated(target, data, other, chance)
            if changed is not None:
                return changed[:max_size]
        return bytes(atheris.Mutate(data, max_size))

    with tempfile.TemporaryDirectory() as corpus:
        for number, content in enumerate(known):
            Path(corpus, str(number)).write_bytes(content)
        options = [
            f"-runs={runs}",
            f"-seed={seed}",
            f"-timeout={SECONDS}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-artifact_prefix={out}/{target}-",
            "-max_len=65536",
            "-len_control=0",
        ]
        atheris.Setup(
            [sys.argv[0], *options, corpus], fuzz_targets.TARGETS[target], custom_mutator=mutate
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
