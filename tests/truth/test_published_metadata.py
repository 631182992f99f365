"""Metadata of published files, out of the start-up logs of people who ran them.

A dump has every scalar, the types, and how long each array is; items beyond the few that
are printed are invented, and there are no tensors. Nothing in such a file is wrong but
what today's llama.cpp makes of old DeepSeek files: every other alarm is ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gguf_audit import arch
from gguf_audit.engine import audit_targets
from gguf_audit.fields import Fields
from gguf_audit.formats.card import list_cards
from gguf_audit.gguf import Scalar, ValueType
from gguf_audit.mandate import Mandate
from gguf_audit.rule import Rule, Severity
from gguf_audit.testing import write_gguf
from gguf_audit.verdict import SubjectReport
from gguf_audit_rules import load
from truth_tables import SHARED, outcome

pytestmark = pytest.mark.truth

RULES: dict[str, Rule] = {rule.id: rule for rule in load()}
KEY = re.compile(r"- kv +\d+: +(?P<key>\S+) (?P<type>\S+)\s+= (?P<value>.*)")
WHOLE = re.compile(r"loaded meta data with (?P<count>\d+) key-value pairs")
ARRAY = re.compile(r"arr\[(?P<type>\w+),(?P<count>\d+)\]")
TYPES = {
    "u8": ValueType.UINT8,
    "i8": ValueType.INT8,
    "u16": ValueType.UINT16,
    "i16": ValueType.INT16,
    "u32": ValueType.UINT32,
    "i32": ValueType.INT32,
    "f32": ValueType.FLOAT32,
    "bool": ValueType.BOOL,
    "str": ValueType.STRING,
    "u64": ValueType.UINT64,
    "i64": ValueType.INT64,
    "f64": ValueType.FLOAT64,
}
#: A published file's name -> the card of what it was made from.
CARDS = {
    "DeepSeek V3 0324": "deepseek-ai/DeepSeek-V3",
    "Deepseek-V3-0324": "deepseek-ai/DeepSeek-V3",
    "Gemma 3 27b It Qat": "google/gemma-3-27b-it",
    "Kimi K2 Instruct Bf16 Safetensors": "moonshotai/Kimi-K2-Instruct",
    "Meta Llama 3.1 8B Instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen3-30B-A3B": "Qwen/Qwen3-30B-A3B",
}
#: In place of what a log shows the beginning of.
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"

Dump = dict[str, tuple[ValueType, Scalar | list[Scalar]]]


def scalar(type_: ValueType, text: str) -> Scalar:
    match type_:
        case ValueType.STRING:
            return text
        case ValueType.BOOL:
            return text == "true"
        case ValueType.FLOAT32 | ValueType.FLOAT64:
            return float(text)
        case _:
            return int(text)


def items(type_: ValueType, count: int, text: str) -> list[Scalar]:
    """Return the printed items and, in place of the others, invented ones."""
    if type_ is ValueType.STRING:
        return [str(index) for index in range(count)]
    printed = [part.strip() for part in text.strip("[]. ").split(",")]
    # The last one may be cut in the middle of a number.
    whole = [part for part in printed if part and "..." not in part][: count if count < 12 else -1]
    known = [scalar(type_, part) for part in whole]
    return [*known, *([known[-1] if known else scalar(type_, "1")] * count)][:count]


def dump(log: Path) -> Dump:
    """Return the metadata of a log that has all of them, else nothing."""
    text = log.read_text("utf-8", errors="replace")
    found: Dump = {}
    for line in KEY.finditer(text):
        array = ARRAY.fullmatch(line["type"])
        value = line["value"].strip()
        if array is None:
            type_ = TYPES[line["type"]]
            found[line["key"]] = (type_, scalar(type_, value))
        else:
            type_ = TYPES[array["type"]]
            found[line["key"]] = (type_, items(type_, int(array["count"]), value))
    whole = WHOLE.search(text)
    if whole is None or int(whole["count"]) != len(found):
        return {}
    return {**found, **invented(found)}


def invented(found: Dump) -> Dump:
    """Return merges that make tokens, and a whole template for one that the log cuts."""
    merges, template = "tokenizer.ggml.merges", "tokenizer.chat_template"
    instead: Dump = {}
    if merges in found:
        count, tokens = len(listed(found, merges)), len(listed(found, "tokenizer.ggml.tokens"))
        numbers = [str(10 + index % (tokens - 10)) for index in range(count)]
        made: list[Scalar] = [f"{number[:-1]} {number[-1]}" for number in numbers]
        instead[merges] = (ValueType.STRING, made)
    if template in found:
        instead[template] = (ValueType.STRING, TEMPLATE)
    return instead


def listed(found: Dump, key: str) -> list[Scalar]:
    value = found[key][1]
    assert isinstance(value, list)
    return value


DUMPS = {
    log.stem: found
    for log in sorted((SHARED / "data/logs/llama.cpp").glob("*.log"))
    if (found := dump(log))
}
#: Keys that the converter writes today: files from before route to other experts.
YOUNG = ("deepseek2.expert_group_count", "deepseek2.expert_group_used_count")
#: Keys of the set that a dump was one shard of: the others aren't at hand.
SPLIT = ("split.count", "split.no", "split.tensors.count")


def plain(name: str, key: str) -> object:
    found = DUMPS[name].get(key)
    return None if found is None else found[1]


def write(name: str, folder: Path) -> str:
    keys = {key: value for key, value in DUMPS[name].items() if key not in SPLIT}
    return str(write_gguf(folder / "model.gguf", keys))


def unpacked(name: str) -> bool:
    """Tell whether a file of MLA has the keys from before llama.cpp kept the latent."""
    architecture = plain(name, "general.architecture")
    return (
        architecture == "deepseek2"
        and f"{architecture}.attention.key_length_mla" not in DUMPS[name]
    )


def alarms(subject: SubjectReport, name: str) -> set[tuple[str, str]]:
    assert subject.errors == ()
    assert [skip for skip in subject.skips if skip.kind in ("crashed", "limit")] == []
    return {
        (finding.rule, finding.message)
        for finding in subject.findings
        if finding.severity is not Severity.INFO
        if finding.where.key not in YOUNG or finding.where.key in DUMPS[name]
    }


def test_there_are_dumps() -> None:
    assert len(DUMPS) >= 15


@pytest.mark.parametrize("name", DUMPS)
def test_a_published_file_by_itself_raises_no_alarm(name: str, tmp_path: Path) -> None:
    [subject] = audit_targets([write(name, tmp_path)], Mandate(rules=RULES)).subjects
    found = alarms(subject, name)
    assert {rule for rule, _ in found} == ({"KV107"} if unpacked(name) else set()), found


WITH_CARDS = [name for name in DUMPS if plain(name, "general.name") in CARDS]


@pytest.mark.parametrize("name", WITH_CARDS)
def test_a_published_file_against_its_card_raises_no_alarm(name: str, tmp_path: Path) -> None:
    card = CARDS[str(plain(name, "general.name"))]
    assert card in list_cards()
    [subject] = audit_targets([write(name, tmp_path)], Mandate(against=card, rules=RULES)).subjects
    found = alarms(subject, name)
    assert {rule for rule, _ in found} == ({"KV102"} if unpacked(name) else set()), found


def logged() -> Iterator[tuple[str, int, float]]:
    """Yield (dump, context, MiB) of mainline's logs whose allocation is right in f16."""
    expected = json.loads((SHARED / "data/logs/expected.json").read_text("utf-8"))
    for name in DUMPS:
        row = expected[f"llama.cpp/{name}.log"]
        f16 = "K (f16)" in (text := (SHARED / f"data/logs/llama.cpp/{name}.log").read_text("utf-8"))
        if row["verdict"] == "ok" and f16 and "V (f16)" in text and not unpacked(name):
            yield name, row["n_ctx"], row["allocated_mib"]


RIGHT = list(logged()) if DUMPS else []


@pytest.mark.parametrize(("name", "context", "mib"), RIGHT, ids=[name for name, _, _ in RIGHT])
def test_a_plan_is_what_the_log_says(name: str, context: int, mib: float) -> None:
    fields = Fields.of(
        str(plain(name, "general.architecture")),
        {key: value for key, (_, value) in DUMPS[name].items()},
    )
    assert arch.llama_model(fields).layout.layers
    assert outcome(fields, {"n_ctx": context}) == int(mib * (1 << 20))
