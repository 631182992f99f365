"""A child is heard, and ended, whatever it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gguf_audit.probes.child import Bounds, Talk, talk

BOUNDS = Bounds(memory_bytes=1 << 30, seconds=2, output_bytes=1 << 16)


@pytest.mark.parametrize(
    ("program", "heard"),
    [
        ("print('{\"a\": 1}')", Talk(answers=({"a": 1},), complaints="", code=0)),
        (
            "import os, time; os.close(1); os.close(2); time.sleep(60)",
            Talk(answers=(), complaints="", code=None, reason="it doesn't end"),
        ),
        (
            "import time; time.sleep(60)",
            Talk(answers=(), complaints="", code=None, reason="it took longer than 2 s"),
        ),
        (
            "while True: print('{}')",
            Talk(answers=(), complaints="", code=None, reason="it said over 65536 bytes"),
        ),
        (
            "print('{}'); print('[' * 60000)",
            Talk(answers=({},), complaints="", code=0),
        ),
        (
            "import os; os.kill(os.getpid(), 40)",
            Talk(answers=(), complaints="", code=-40),
        ),
    ],
)
def test_what_is_heard_of_a_child(program: str, heard: Talk, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(program, "utf-8")
    assert talk(script, {}, name="it", bounds=BOUNDS) == heard
