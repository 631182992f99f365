from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.checkpoint import Json
from gguf_audit.rule import Hit, Severity
from gguf_audit.where import Where
from gguf_audit_rules.sec.reference_runs_code import check
from rule_subjects import SETTINGS, checkpoint, conversion

OWN: Json = {"AutoModel": "modeling.Own", "AutoTokenizer": ["org/model--slow.Own", None]}


def hits(config: Json, tokenizer_config: Json = None) -> list[object]:
    found = checkpoint(config={"auto_map": config})
    if tokenizer_config is not None:
        found = replace(found, tokenizer_config={"auto_map": tokenizer_config})
    return list(check(conversion({}, reference=found), SETTINGS))


@pytest.mark.parametrize("config", [OWN, None, [], "a--b", {"AutoModel": 5}, {"AutoModel": []}])
def test_silent_for_code_of_its_own(config: Json) -> None:
    assert hits(config, OWN) == []


def test_silent_without_a_config() -> None:
    assert list(check(conversion({}, reference=checkpoint()), SETTINGS)) == []


def test_fires_for_code_of_another_repository() -> None:
    config: Json = {"AutoConfig": "modeling.Own", "AutoModel": "attacker/repo--evil.Evil"}
    assert hits(config, {"AutoTokenizer": ["a/b--slow.A", "c/d--fast.B"]}) == [
        Hit(
            message="needs no code from elsewhere, auto_map of the reference's config.json names "
            "attacker/repo",
            where=Where(file="org/model/config.json", key="auto_map"),
            actual=["attacker/repo"],
            level=Severity.INFO,
        ),
        Hit(
            message="needs no code from elsewhere, auto_map of the reference's"
            " tokenizer_config.json names a/b, c/d",
            where=Where(file="org/model/tokenizer_config.json", key="auto_map"),
            actual=["a/b", "c/d"],
            level=Severity.INFO,
        ),
    ]
