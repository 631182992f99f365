from __future__ import annotations

import json

import jsonschema
import pytest
from msgspec.structs import replace

from gguf_audit.report import text
from gguf_audit.report.json import render, schema
from gguf_audit.report.style import Detail, Style
from gguf_audit.runtime.measured import Allocated, Declined, Outcome, Probe, Unmeasured
from report_examples import LOST, report

MIB = 1 << 20


def probed(*outcomes: Outcome) -> Probe:
    lengths = (4096, 32768, 131072, 262144)[: len(outcomes)]
    return Probe(runtime="llama.cpp 1.2 (a)", outcomes=dict(zip(lengths, outcomes, strict=True)))


MIXED = probed(
    Allocated(bytes=27 * MIB),
    Allocated(bytes=27 * MIB),
    Declined(message="no", kind="aborts"),
    Unmeasured("slow"),
)


def test_the_text_says_who_was_asked_and_what_it_took() -> None:
    subject = replace(LOST, probe=MIXED)
    assert (
        "    probed    llama.cpp 1.2 (a): 27 MiB at 4,096 and 32,768 tokens, "
        "dies at 131,072 tokens, not seen at 262,144 tokens\n"
    ) in text.render(report(subject))


def test_a_refusal_is_called_one() -> None:
    subject = replace(LOST, probe=probed(Declined(message="no")))
    assert "probed    llama.cpp 1.2 (a): refuses at 4,096 tokens\n" in text.render(report(subject))


@pytest.mark.parametrize("detail", [Detail.NORMAL, Detail.VERDICT])
def test_who_was_not_asked_is_not_named(detail: Detail) -> None:
    probe = MIXED if detail is Detail.VERDICT else None
    subject = replace(LOST, probe=probe)
    assert "probed" not in text.render(report(subject), style=Style(detail=detail))


def test_json_has_every_run() -> None:
    document = json.loads(render(report(replace(LOST, probe=MIXED))))
    jsonschema.validate(document, schema(), jsonschema.Draft202012Validator)
    assert document["subjects"][0]["probe"] == {
        "runtime": "llama.cpp 1.2 (a)",
        "runs": [
            {"tokens": 4096, "bytes": 27 * MIB, "kind": "allocated", "message": None},
            {"tokens": 32768, "bytes": 27 * MIB, "kind": "allocated", "message": None},
            {"tokens": 131072, "bytes": None, "kind": "aborts", "message": "no"},
            {"tokens": 262144, "bytes": None, "kind": "unmeasured", "message": "slow"},
        ],
    }
