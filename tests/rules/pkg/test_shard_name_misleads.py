from __future__ import annotations

import pytest
from msgspec.structs import replace

from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.shard_name_misleads import check
from rule_subjects import LLAMA, SETTINGS, model


def said(name: str, **keys: int) -> list[Outcome]:
    stated = {f"split.{key}": value for key, value in keys.items()}
    subject = model({"general.architecture": "llama", **LLAMA, **stated})
    return list(check(replace(subject, gguf=replace(subject.gguf, name=name)), SETTINGS))


def test_fires_for_a_whole_file_that_is_named_like_a_shard() -> None:
    assert said("x-Q4_0-00002-of-00003.gguf") == [
        Hit(
            message="needs split.count to be one of 3 shards as its name says, the key is absent",
            where=Where(key="split.count"),
            expected=3,
            actual=None,
            level=Severity.INFO,
        )
    ]


@pytest.mark.parametrize("name", ["x.gguf", "x-00001-of-00001.gguf", "x-1-of-3.gguf"])
def test_silent_about_other_names(name: str) -> None:
    assert said(name) == []


def test_silent_about_shards() -> None:
    assert said("x-00001-of-00003.gguf", count=3) == []
