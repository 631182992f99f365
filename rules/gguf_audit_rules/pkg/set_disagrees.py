"""Quants of one model don't agree with each other.

## What it does
Compares the metadata of the files in a folder that claim to be one model: those whose names
differ in the quantization alone, else those with the same `general.name` and size. Only what
quantizing may change is left out. With three files or more the odd one out is named; two can
only be told to differ. What a file's own audit calls an error is not said again.

## Why it matters
Quants are made of one conversion, so a file that says something else was made of another:
before a fix, by another hand, or of another model. Whoever picks that file gets another
window, another vocabulary or another model, and no reference is needed to see it.

## Fix
Quantize all files again from one conversion, or fetch the odd one again.

## Authority
llama.cpp b11434, `src/llama-quant.cpp: llama_model_quantize_impl` copies every key and sets
`general.quantization_version`, `general.file_type` and `quantize.*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gguf_audit import arch
from gguf_audit.chat import TEMPLATE
from gguf_audit.evidence import Digest, SetMember, SetSubject, Settings
from gguf_audit.fields import Origin
from gguf_audit.gguf import Scalar
from gguf_audit.rule import Hit, OnSet, Outcome, Reconvert, Rule, Severity
from gguf_audit.where import Where

#: Names alone: another one is odd, and changes nothing that is computed.
NAMES = frozenset(
    f"general.{name}"
    for name in ("basename", "finetune", "license", "name", "organization", "size_label", "version")
)
PADDING = "tokenizer.ggml.padding_token_id"
#: What older converters left out and llama.cpp takes for false.
FALSE = frozenset({"tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token"})
#: Files named in a message before the rest is counted.
SHOWN = 5
#: Values told apart in a message, likewise.
VALUES = 3
#: Characters of a string in a message.
CHARACTERS = 60

Said = Scalar | Digest | None


def check(subject: SetSubject, settings: Settings) -> Iterator[Outcome]:
    """Yield one hit for each key that isn't the same in all files."""
    del settings
    keys = dict.fromkeys(key for member in subject.members for key in member.values)
    for key in keys:
        level = _level(key, subject.architecture)
        if level is None or any(key in member.told for member in subject.members):
            continue
        said: dict[str, list[SetMember]] = {}
        for member in subject.members:
            said.setdefault(repr(_in_effect(member, key)), []).append(member)
        if len(said) > 1:
            yield _hit(subject, key, list(said.values()), level)


def _level(key: str, architecture: str) -> Severity | None:
    """Say how bad it is if files differ in a key, ``None`` if they may."""
    if key in NAMES or key == PADDING:
        return Severity.INFO
    if key.startswith("general."):
        return None
    if key.startswith(TEMPLATE):
        # Publishers do mend templates, but not every file gets the new one.
        return Severity.WARNING
    if key.startswith("tokenizer."):
        return Severity.ERROR
    read = arch.reads(architecture, key.removeprefix(f"{architecture}."))
    return Severity.ERROR if read else Severity.INFO


def _in_effect(member: SetMember, key: str) -> Said:
    """Return what a file says, or what llama.cpp takes where it says nothing."""
    if key in member.values:
        return member.values[key]
    if key in FALSE:
        return False
    prefix = f"{member.architecture}."
    if not key.startswith(prefix):
        return None
    default = arch.effective(member.fields, key.removeprefix(prefix))
    if default is None or default.origin is Origin.KEY or isinstance(default.value, tuple):
        return None
    return default.value


def _hit(subject: SetSubject, key: str, groups: list[list[SetMember]], level: Severity) -> Hit:
    groups.sort(key=len, reverse=True)
    most, *others = groups
    count = len(subject.members)
    told = "; ".join(_told(subject, key, group) for group in others[:VALUES])
    rest = f"; {len(others) - VALUES} values more" if len(others) > VALUES else ""
    odd = others[0][0]
    where = Where(file=odd.name, key=key)
    hint = Reconvert(hint="quantize all files again from one conversion")
    if 2 * len(most) <= count or count < 3:
        message = f"files of one model differ, {key} is {_told(subject, key, most)}; {told}{rest}"
        return Hit(message=message, where=where, level=Severity.INFO, repair=hint)
    needs = "no such key" if key not in most[0].values else _value(most[0], key)
    return Hit(
        message=(
            f"needs {needs} as in {len(most)} of {count} files of this model, {key} is {told}{rest}"
        ),
        where=where,
        expected=_plain(most[0].values.get(key)),
        actual=_plain(odd.values.get(key)),
        level=level,
        repair=hint,
    )


def _told(subject: SetSubject, key: str, group: list[SetMember]) -> str:
    names = ", ".join(_name(subject, member) for member in group[:SHOWN])
    rest = f" and {len(group) - SHOWN} more" if len(group) > SHOWN else ""
    return f"{_value(group[0], key)} in {names}{rest}"


def _name(subject: SetSubject, member: SetMember) -> str:
    path = Path(member.name)
    return (
        str(path.relative_to(subject.folder)) if path.is_relative_to(subject.folder) else str(path)
    )


def _value(member: SetMember, key: str) -> str:
    match member.values.get(key):
        case None:
            return "absent"
        case Digest() as digest:
            return _described(digest)
        case bool() as flag:
            return str(flag).lower()
        case float() as number:
            return f"{number:.7g}"
        case str() as text:
            return repr(text[:CHARACTERS]) + ("..." if len(text) > CHARACTERS else "")
        case number:
            return str(number)


def _described(digest: Digest) -> str:
    kind = "characters" if digest.kind == "characters" else f"{digest.kind} items"
    return f"{digest.count} {kind} (sha256 {digest.sha256[:8]})"


def _plain(said: Said) -> Scalar | None:
    return _described(said) if isinstance(said, Digest) else said


RULE = Rule(
    id="PKG001",
    name="set-disagrees",
    levels=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    check=OnSet(check),
    authority="llama.cpp b11434 src/llama-quant.cpp llama_model_quantize_impl",
)
