"""What ``show`` tells, for people: values with their origin, then the cache."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import cast

from gguf_audit.gguf import Array
from gguf_audit.json_values import as_json
from gguf_audit.layout import CacheLayout
from gguf_audit.overview import Entry, Group, KeptCache, Overview, Shown
from gguf_audit.report.cache import aligned, mebibytes
from gguf_audit.report.strip import strip, strip_legend
from gguf_audit.report.style import Paint, Style, plural
from gguf_audit.report.wording import ORIGINS

__all__ = ["render_json", "render_text", "schema"]

#: Longer keys don't push the values of all the others to the right.
_KEY_WIDTH = 44
_ORIGIN_WIDTH = len("runtime default")
#: Runs of equal items of an array that are shown.
_RUNS = 12
#: Where a number comes from that people may want to copy; others get their commas.
_COPIED = ("key", "runtime default", "reference")
#: A layout that repeats nothing, and messages that quote a file.
_LONG = 2000


def render_json(shown: Shown) -> str:
    """Return the JSON document in ASCII, ended by a line feed."""
    return json.dumps(shown.to_dict(), indent=2, allow_nan=False) + "\n"


def schema() -> dict[str, object]:
    """Return the JSON schema of the document (draft 2020-12)."""
    text = resources.files("gguf_audit.report").joinpath("show.schema.json").read_text("utf-8")
    return cast("dict[str, object]", json.loads(text))


def render_text(shown: Shown, style: Style | None = None) -> str:
    """Return every subject as text, one after the other."""
    style = style or Style()
    lines: list[str] = []
    for subject in shown.subjects:
        lines += ["", *_subject(subject, shown, style)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _subject(subject: Overview, shown: Shown, style: Style) -> Iterator[str]:
    # What can't be read is of no kind.
    says: list[str] = [subject.kind] if subject.files or subject.kind != "other" else []
    if subject.architecture is not None:
        says.append(style.safe(subject.architecture))
    if len(subject.files) > 1:
        says.append(plural(len(subject.files), "file"))
    name = style.paint(style.safe(subject.target, limit=None), Paint.STRONG)
    yield f"{name}: {', '.join(says)}" if says else name
    if subject.reference is not None:
        where = ORIGINS[subject.reference.origin]
        if subject.reference.revision is not None:
            where += f", {style.safe(subject.reference.revision)}"
        note = style.safe(subject.reference.note, limit=_LONG)
        yield from style.field("from", f"{where}; {note}" if note else where)
        if subject.groups:
            yield from style.field("shows", "what a right conversion of it writes and keeps")
    for problem in subject.errors:
        yield from style.field("not read", style.safe(problem.message, limit=_LONG))
    for group in subject.groups:
        yield from ("", *_group(group, style))
    if subject.cache is not None:
        yield from ("", *_cache(subject, subject.cache, shown, style))
    if subject.unknown:
        yield ""
        yield f"  {style.paint('not known', Paint.STRONG)}"
        for reason in subject.unknown:
            yield f"    {style.safe(reason, limit=_LONG)}"


def _group(group: Group, style: Style) -> Iterator[str]:
    yield f"  {style.paint(group.name, Paint.STRONG)}"
    names = [style.safe(entry.name) for entry in group.entries]
    width = min(max(map(len, names)), _KEY_WIDTH)
    for name, entry in zip(names, group.entries, strict=True):
        origin = style.paint(f"{entry.origin:<{_ORIGIN_WIDTH}}", Paint.FAINT)
        yield f"    {name:<{width}}  {origin}  {_value(entry, style)}"
    if group.omitted:
        yield f"    ... and {group.omitted:,} more"


def _value(entry: Entry, style: Style) -> str:
    note = style.safe(entry.note)
    value = entry.value
    match value:
        case None:
            return f"none ({note})" if note else "none"
        case Array():
            return note
        case str():
            text = style.safe(value) or '""'
        case bool():
            text = "true" if value else "false"
        case int():
            text = str(value) if entry.origin in _COPIED else f"{value:,}"
        case float():
            text = _single(value)
        case list() | tuple():
            text = _items(cast("Sequence[object]", value), entry, style)
        case _:
            text = style.safe(json.dumps(as_json(value)))
    return f"{text} ({note})" if note else text


def _items(items: Sequence[object], entry: Entry, style: Style) -> str:
    if entry.origin == "shape":
        return " x ".join(map(str, items))
    runs = [(item, len(list(run))) for item, run in itertools.groupby(items)]
    texts = [
        f"{_item(item, style)} x{times}" if times > 1 else _item(item, style)
        for item, times in runs[:_RUNS]
    ]
    more = f", ... ({len(items):,} in all)" if len(runs) > _RUNS else ""
    return f"[{', '.join(texts)}{more}]"


def _item(item: object, style: Style) -> str:
    if isinstance(item, float):
        return _single(item)
    return style.safe(json.dumps(as_json(item), ensure_ascii=False))


def _cache(subject: Overview, cache: KeptCache, shown: Shown, style: Style) -> Iterator[str]:
    build = shown.runtimes.get("llama.cpp", "")
    keeps = f"llama.cpp {build}".rstrip()
    yield f"  {style.paint('cache, layer by layer', Paint.STRONG)}"
    same = _same(cache.implied, cache.ideal)
    for layout, who in (
        (cache.implied, f"{keeps} keeps"),
        (None if same else cache.ideal, "the architecture needs"),
    ):
        if layout is None:
            continue
        if not layout.layers or all(
            not layer.stores and layer.shares_with is None for layer in layout.layers
        ):
            yield f"    {who} nothing"
            continue
        yield f"    {who}: {style.safe(strip(layout), limit=_LONG)}"
        for line in strip_legend(layout):
            yield f"      {style.safe(line)}"
    if same:
        yield "    the architecture needs no other"
    if not cache.bytes:
        return
    yield ""
    title = f"cache in MiB: {keeps}, one sequence, f16"
    yield f"  {style.paint(title, Paint.STRONG)}"
    implied = "right conversion" if subject.kind == "reference" else "this file"
    columns: list[list[str]] = [
        ["tokens", *(f"{row.tokens:,}" for row in cache.bytes)],
        [implied, *(mebibytes(row.implied) for row in cache.bytes)],
    ]
    if cache.ideal is not None:
        columns.append(["architecture", *(mebibytes(row.ideal) for row in cache.bytes)])
    columns.append(["full attention", *(mebibytes(row.full_attention) for row in cache.bytes)])
    yield from aligned(columns, style)


def _same(layout: CacheLayout | None, other: CacheLayout | None) -> bool:
    """Tell whether two layouts would be shown alike: states' own types are not."""
    if layout is None or other is None:
        return False
    return [strip(layout), *strip_legend(layout)] == [strip(other), *strip_legend(other)]


def _single(value: float) -> str:
    """Return the shortest decimal that 32 bits hold as this: 1e-06, not 9.999999975e-07."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        try:
            held = struct.unpack("<f", struct.pack("<f", float(text)))[0]
        except OverflowError:
            break
        if held == value:
            return text
    return f"{value:.10g}"
