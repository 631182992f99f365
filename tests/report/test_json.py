from __future__ import annotations

import copy
import json
from typing import Any, cast

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gguf_audit import rule
from gguf_audit.report.json import line_schema, render, render_lines, schema
from gguf_audit.verdict import Accepted, BaselineFacts, PolicyFacts
from report_examples import CONTEXT, LOST, UNREADABLE, everywhere, report

REPAIRS: list[rule.Repair] = [
    rule.SetKey(key="k", value=1.5, present=True),
    rule.SetArray(key="k", items=(1, 2)),
    rule.SetArray(key="k", items=tuple(range(100))),
    rule.RemoveKey(key="k"),
    rule.SetSpecialId(name="eos", id=1),
    rule.SetPreTokenizer(name="qwen2"),
    rule.SetChatTemplate(template="{{ x }}"),
    rule.Reconvert(hint="why"),
    rule.Reconvert(first="what before"),
    rule.Replace(),
    rule.Advice(text="what to do"),
]


def document() -> Any:
    return json.loads(render(report(LOST, UNREADABLE)))


VALIDATOR: Any = jsonschema.Draft202012Validator(schema())


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_report_with_everything_fits_the_schema() -> None:
    jsonschema.validate(document(), schema(), jsonschema.Draft202012Validator)


@pytest.mark.parametrize("repair", REPAIRS, ids=lambda repair: type(repair).__name__)
def test_every_repair_fits_the_schema(repair: rule.Repair) -> None:
    finding = replace(CONTEXT, repair=repair)
    subject = replace(LOST, findings=(finding,))
    jsonschema.validate(json.loads(render(report(subject))), schema())


def test_the_document_whole() -> None:
    found = document()
    assert list(found) == [
        "version",
        "tool",
        "runtimes",
        "policy",
        "baseline",
        "subjects",
        "summary",
    ]
    assert found["version"] == 1
    assert found["tool"] == {"name": "gguf-audit", "version": "0.1.0"}
    assert found["summary"] == {
        "errors": 1,
        "warnings": 1,
        "infos": 0,
        "not_audited": 1,
        "skipped": 2,
        "suppressed": 0,
    }
    assert found["subjects"][0]["findings"][1] == {
        "rule": "KV103",
        "name": "window-lost",
        "severity": "error",
        "message": "needs a 512-token window on 15 of 18 layers, the key is absent",
        "where": {
            "file": "lost.gguf",
            "offset": None,
            "key": "gemma3.attention.sliding_window",
            "tensor": None,
            "layer": None,
            "block": None,
        },
        "key": "gemma3.attention.sliding_window",
        "tensor": None,
        "layer": None,
        "expected": 512,
        "actual": None,
        "unit": None,
        "origin": "runtime default",
        "consequences": ["the layers rotate with the global RoPE base"],
        "repair": {"kind": "reconvert", "hint": "no metadata tool can add this key"},
        "fix": "reconvert (no metadata tool can add this key)",
        "authority": "llama.cpp b11434, src/models/gemma3.cpp",
        "help": "gguf-audit rules KV103",
        "fingerprint": "0123456789abcdef",
    }
    assert found["subjects"][0]["cache"]["bytes"][1] == {
        "tokens": 32768,
        "implied": 603979776,
        "expected": 116392448,
        "ideal": None,
        "full_attention": 603979776,
    }
    assert found["subjects"][0]["cache"]["implied"]["layers"][1]["stores"] == [
        {
            "kind": "latent",
            "kv_heads": 1,
            "key_length": 576,
            "value_length": 0,
            "window_tokens": 128,
            "tokens_per_cell": 1,
        },
        {
            "kind": "indexer",
            "kv_heads": 1,
            "key_length": 128,
            "value_length": 0,
            "window_tokens": None,
            "tokens_per_cell": 1,
        },
        {
            "kind": "compressed",
            "kv_heads": 1,
            "key_length": 512,
            "value_length": 0,
            "window_tokens": None,
            "tokens_per_cell": 4,
        },
        {"kind": "recurrent", "parts": [{"name": "conv", "elements": 24576, "type": "bf16"}]},
    ]
    assert found["subjects"][1] == {
        "target": "cut.gguf",
        "kind": "other",
        "files": [],
        "source": None,
        "reference": None,
        "status": "not-audited",
        "errors": [
            {
                "code": "malformed",
                "message": "the header ends in the middle of a key",
                "where": {
                    "file": "cut.gguf",
                    "offset": 77,
                    "key": None,
                    "tensor": None,
                    "layer": None,
                    "block": None,
                },
            }
        ],
        "architecture": None,
        "cache": None,
        "probe": None,
        "findings": [],
        "skips": [],
        "suppressed": [],
    }


def objects(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all objects whose fields are ours."""
    entries = not isinstance(node, list)
    here = [path] if entries and path != ("runtimes",) else []
    steps: list[str | int] = list(
        cast("dict[str, object]", node) if entries else range(len(cast("list[object]", node)))
    )
    inner = [step for step in steps if isinstance(node[step], dict | list)]
    for step in inner:
        if step not in ("expected", "actual", "items"):
            here += objects(node[step], (*path, step))
    return here


def test_the_schema_knows_every_field_and_allows_no_other() -> None:
    whole = document()
    for path in objects(whole):
        for field in [*_at(whole, path), None]:
            changed = copy.deepcopy(whole)
            if field is None:
                _at(changed, path)["surplus"] = 1
            else:
                del _at(changed, path)[field]
            assert not VALIDATOR.is_valid(changed), (path, field)


def _at(node: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        node = node[step]
    return node


def test_the_text_is_ascii() -> None:
    odd = replace(LOST, target="日本語\udcff.gguf")
    assert json.loads(render(report(odd)).encode("ascii"))["subjects"][0]["target"] == (
        "日本語\\xff.gguf"
    )


def test_what_was_accepted_fits_the_schema() -> None:
    by_policy = Accepted(finding=CONTEXT, by="policy", reason="known", expires="2027-03-01")
    by_baseline = Accepted(finding=CONTEXT, by="baseline")
    subject = replace(LOST, suppressed=(by_policy, by_baseline))
    whole = replace(
        report(subject),
        policy=PolicyFacts(file="p.toml", found=True, profile="deploy", notes=("expired",)),
        baseline=BaselineFacts(file="b.json", stale=(("lost.gguf", "KV103", "0" * 16),)),
    )
    found = json.loads(render(whole))
    jsonschema.validate(found, schema())
    assert found["subjects"][0]["suppressed"][0] == {
        **found["subjects"][0]["findings"][0],
        "suppression": {"by": "policy", "reason": "known", "expires": "2027-03-01"},
    }
    assert found["subjects"][0]["suppressed"][1]["suppression"] == {
        "by": "baseline",
        "reason": None,
        "expires": None,
    }
    assert found["summary"]["suppressed"] == 2


def test_a_line_is_a_subject_that_says_its_version() -> None:
    lines = render_lines(report(LOST, UNREADABLE)).splitlines()
    whole = document()
    head = {name: whole[name] for name in whole if name not in ("subjects", "summary")}
    assert [json.loads(line) for line in lines] == [{**head, **each} for each in whole["subjects"]]
    for line in lines:
        jsonschema.validate(json.loads(line), line_schema(), jsonschema.Draft202012Validator)


def test_the_schema_of_a_line_knows_no_other_field() -> None:
    validator: Any = jsonschema.Draft202012Validator(line_schema())
    line = json.loads(render_lines(report(LOST)))
    assert validator.is_valid(line)
    for field in line:
        assert not validator.is_valid({name: line[name] for name in line if name != field}), field
    assert not validator.is_valid({**line, "summary": {}})


def test_a_line_says_of_the_baseline_what_concerns_it() -> None:
    stale = (("lost.gguf", "KV103", "ab"), ("other.gguf", "KV103", "cd"))
    found = replace(
        report(LOST, UNREADABLE), baseline=BaselineFacts(file="old\udcff.json", stale=stale)
    )
    lines = [json.loads(line) for line in render_lines(found).splitlines()]
    assert [line["baseline"] for line in lines] == [
        {
            "file": "old\\xff.json",
            "stale": [{"target": "lost.gguf", "rule": "KV103", "fingerprint": "ab"}],
        },
        {"file": "old\\xff.json", "stale": []},
    ]


def test_nothing_to_audit_is_no_line() -> None:
    assert render_lines(report()) == ""


@given(st.text() | st.text("#[vso \ud800\udcff\x00"))
@example("##[stop-commands]x ##vso[task.setvariable]y")
def test_any_text_is_valid_json(text: str) -> None:
    found = report(everywhere(text), LOST)
    for shown in (render(found), render_lines(found)):
        assert shown.isascii()
        assert "##[" not in shown
        assert "##vso[" not in shown
    whole = json.loads(render(found))
    VALIDATOR.validate(whole)
    assert json.dumps(whole, ensure_ascii=False).encode()
    assert [json.loads(line)["target"] for line in render_lines(found).splitlines()] == [
        subject["target"] for subject in whole["subjects"]
    ]


def test_a_hostile_name_makes_no_long_report() -> None:
    long = everywhere("x" * 1_000_000)
    long = replace(long, target="long.gguf", files=(), reference=None, suppressed=())
    finding = replace(long.findings[0], consequences=("x",) * 1_000_000)
    long = replace(long, findings=(finding,) * 10)
    text = render(report(long))
    assert len(text) < 1_000_000
    assert '"and 999,968 more"' in text
    VALIDATOR.validate(json.loads(text))
