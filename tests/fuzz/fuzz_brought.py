"""What sources and users bring beside models: documents, headers of answers, policies.

The first byte of an input says which of them it is.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import io
import json
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import fuzz_documents
import fuzz_lines
from gguf_audit import catalogue
from gguf_audit.accepted import held_against, read_baseline, suppressed_by
from gguf_audit.errors import AuditError
from gguf_audit.finding import Finding
from gguf_audit.formats._json import read_object
from gguf_audit.formats.card import card_of, read_card
from gguf_audit.formats.ollama import read_manifest
from gguf_audit.formats.readme import read_base_model
from gguf_audit.formats.readme import read_card as read_readme
from gguf_audit.limits import LIMITS
from gguf_audit.policies import PolicyError
from gguf_audit.policies.reading import profile, read_policy
from gguf_audit.rule import Rule, Severity
from gguf_audit.sources import ByteSource, MemorySource, MemoryTree, Tree, _hub_http, _networks
from gguf_audit.sources.hub import Hub
from gguf_audit.sources.hub_ids import hub_reference
from gguf_audit.sources.web import WebTree
from gguf_audit.sums import differences, read_sums
from gguf_audit.targets._hub import Wanted, picked
from gguf_audit.verdict import PolicyFacts, Report, SubjectReport
from gguf_audit.where import Where
from gguf_audit_rules import load

__all__ = ["SEEDS", "look_at", "mutated"]

#: Nobody waits for a second try here.
ONCE = LIMITS._replace(remote_tries=1, hub_patience_seconds=0.1, hub_bytes_per_second=1 << 40)
NOWHERE = Path("/nowhere")
COMMIT = "0123456789abcdef" * 2 + "01234567"
FINGERPRINT = "0123456789abcdef"
FOUND = Finding(
    rule="KV101",
    name="kv-full-attention",
    severity=Severity.ERROR,
    message="fuzzed",
    where=Where(file="a-Q4_K_M.gguf", key="llama.context_length"),
    expected=None,
    actual=None,
    origin=None,
    consequences=(),
    repair=None,
    fix=None,
    authority="",
    fingerprint=FINGERPRINT,
)
TARGETS = ("models/a-Q4_K_M.gguf", "owner/repo:b.gguf", "")
REPORT = Report(
    version="0",
    runtimes={},
    subjects=tuple(SubjectReport(target=target, findings=(FOUND,)) for target in TARGETS),
    policy=PolicyFacts(file=None, found=False, profile=None),
)


@functools.cache
def _rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in load()}


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _written(data: bytes) -> Path:
    """Return a file of these bytes: users name files, and reading them is looked at too."""
    path = Path(_folder().name, "brought")
    path.write_bytes(data)
    return path


def _manifest(data: bytes) -> None:
    for layer in read_manifest(MemorySource("manifest", data)):
        assert layer.blob
        assert layer.size_bytes >= 0


def _sums(data: bytes) -> None:
    pinned = read_sums(MemorySource("sums", data))
    assert not [*differences(pinned, pinned)]
    for told in differences(pinned[:1], pinned):
        assert told


def _baseline(data: bytes) -> None:
    try:
        baseline = read_baseline(_written(data))
    except PolicyError:
        return
    report = held_against(baseline, REPORT, ran={"KV101", "TOK003"})
    json.dumps(report.to_dict())


def _policy(data: bytes) -> None:
    try:
        policy = read_policy(_written(data), requirable=("reference", "hub"))
    except PolicyError:
        return
    policy = policy.over(profile("publish"))
    with suppress(catalogue.UnknownRuleError):
        catalogue.choose(_rules(), select=[*policy.select, *policy.ignore, *policy.severity])
    for target in TARGETS:
        policy.reference_of(target)
        policy.hash_of(target)
    json.dumps(suppressed_by(policy, REPORT, today=date(2026, 11, 1)).to_dict())


def _readme(data: bytes) -> None:
    tree = MemoryTree({"README.md": data}, identity="fuzzed")
    read_readme(tree)
    base = read_base_model(tree)
    if base is not None:
        hub_reference(base.name)


def _card(data: bytes) -> None:
    source: ByteSource = MemorySource("card.json", data)
    card_of(read_card(read_object(source, limit_bytes=LIMITS.config_bytes), name="card.json"))


def _listing(data: bytes) -> None:
    _asked(200, {}, data)


def _answer(data: bytes) -> None:
    """Take a status, headers and a body: of the Hub, and of any other server."""
    head, _, body = data.partition(b"\n\n")
    status, *lines = head.decode("latin-1").split("\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    number = int(status) if status in map(str, range(100, 600)) else 200
    _asked(number, headers, body)
    for url in ("https://fuzzed.test/a/b.gguf?signature=x", "http://fuzzed.test:80/b.gguf"):
        with _answering(number, headers, body):
            _read(WebTree(url, limits=ONCE), "b.gguf")


def _asked(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Let the Hub say this, of a repository and of every file that it lists then."""
    hub = Hub("https://hub.test", cache=NOWHERE, limits=ONCE)
    hub.connection._headers = {}  # a token of whoever runs this stays where it is
    listed = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": name} for name in _NAMES]})
    listing = body if status == 200 else listed.encode()
    with _answering(200, {} if status == 200 else headers, listing):
        tree = hub.pin("owner/repo")
    names = tree.files()
    assert tree.names() is not None
    for wanted in (Wanted(repo="owner/repo", tag="latest"), Wanted(repo="a/b", path="a/b.gguf")):
        try:
            picked(names, wanted, tree.identity)
        except AuditError:
            continue
    for name in names[:8]:
        tree.size(name)
        tree.sha256(name)
        with _answering(status, headers, body):
            _read(tree, name)


#: One of each kind that is fetched in its own way.
_NAMES = ("config.json", "model.safetensors", "a-Q4_K_M.gguf", "README.md", "x.bin")


def _read(tree: Tree, name: str) -> None:
    """Read the beginning of a file and its end, as far as somebody lets us."""
    try:
        source = tree.open(name)
        size = source.size
        assert 0 <= size < 10**19
        assert len(source.read(0, min(size, 8))) == min(size, 8)
        assert len(source.read(max(0, size - 8), min(size, 8))) == min(size, 8)
    except AuditError:
        return


@contextmanager
def _answering(status: int, headers: Mapping[str, str], body: bytes) -> Generator[None, None, None]:
    """Answer every request with this, in chunks."""

    @contextmanager
    def opened(
        url: str, sent: Mapping[str, str], *, seconds: float
    ) -> Generator[tuple[int, dict[str, str], Iterator[bytes]], None, None]:
        assert url
        assert sent
        assert seconds > -1
        yield status, dict(headers), iter(functools.partial(io.BytesIO(body).read, 4096), b"")

    with (
        mock.patch.object(_hub_http, "opened", opened),
        mock.patch.object(_networks, "socket", _NAMES_KNOWN),
    ):
        yield


def _resolved(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
    """Return the address of a name, some of them inside: no name server is asked."""
    host.encode("idna")
    address = "10.0.0.1" if len(host) % 2 else "1.1.1.1"
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


_NAMES_KNOWN = SimpleNamespace(getaddrinfo=_resolved, SOCK_STREAM=socket.SOCK_STREAM)


_KINDS: Mapping[str, Callable[[bytes], None]] = {
    "manifest": _manifest,
    "sums": _sums,
    "listing": _listing,
    "baseline": _baseline,
    "policy": _policy,
    "answer": _answer,
    "readme": _readme,
    "card": _card,
}
_LOOKS = tuple(_KINDS.values())


def look_at(data: bytes) -> None:
    """Read a document that somebody has brought: a value, or an error that says why not."""
    look = _LOOKS[data[0] % len(_LOOKS)] if data else _LOOKS[0]
    try:
        look(data[1:])
    except AuditError:
        return


def mutated(data: bytes, other: bytes, seed: int) -> bytes:
    """Return a document changed by its structure, or a text by its lines."""
    changed = fuzz_documents.mutated(data, seed) if seed % 4 else None
    if changed is not None:
        return changed
    same = other[1:] if other[:1] == data[:1] else data[1:]
    return data[:1] + fuzz_lines.mutated(data[1:], same, seed)


_LAYER = {
    "mediaType": "application/vnd.ollama.image.model",
    "digest": "sha256:" + "0" * 64,
    "size": 8,
}
_FINDING = {"rule": "KV101", "severity": "error", "fingerprint": FINGERPRINT}
_POLICY = """\
profile = "publish"
select = ["KV", "TOK003"]
fail-on = "warning"
require = ["reference"]
provenance = true
[severity]
CTX = "warning"
"kv-full-attention" = "info"
[allow]
licenses = ["apache-2.0", 'mit']
architectures = ["llama"]
[budget]
cache = "8GiB"
context = 0x8000
file-size = 1_000_000
quantization = "Q4_K_M"
[references]
"models/*.gguf" = "owner/repo"
[hashes]
"*.[gG]guf" = "0000000000000000000000000000000000000000000000000000000000000000"
[[suppress]]
rule = "KV101"
file = "**/a-*.gguf"
key = "llama.context_length"
fingerprint = "0123456789abcdef"
reason = \"""
known
\"""
expires = 2027-03-01
[[suppress]]
rule = "TOK003"
file = "b.gguf"
reason = "old"
expires = "2020-01-01"
"""
_README = """\
---
license: apache-2.0
license_name: "own"
base_model:
- google/gemma-3-270m # the base
- 'b/c'
base_model_relation: quantized
tags: [gguf, "b"]
---
| [a-Q4_K_M.gguf](https://huggingface.co/owner/repo/blob/main/a-Q4_K_M.gguf) | IQ4_XS |
<a href="https://host.test/x/b.gguf.part1of2">b</a> https://host.test/c.gguf MXFP4_MOE
"""
_ANSWERS = (
    '206\nContent-Range: bytes 0-15/16\nETag: "a"\n\n0123456789abcdef',
    "200\nContent-Length: 16\nLast-Modified: Mon, 30 Nov 2026 00:00:00 GMT\n\n0123456789abcdef",
    "416\nContent-Range: bytes */0\n\n",
    "429\nRetry-After: 1\nX-Error-Code: GatedRepo\n\n",
    "503\nRetry-After: Mon, 30 Nov 2026 00:00:00 GMT\n\n",
    "302\nLocation: //cdn.test/a?b=c\nX-Repo-Commit: " + COMMIT + "\n\n",
    "206\nContent-Encoding: gzip\nContent-Range: bytes 0-15/1000000000000\n\n0123456789abcdef",
)


def _seeds() -> Iterator[tuple[str, str]]:
    """Yield one right document of each kind, and an answer of each status."""
    yield "manifest", json.dumps({"schemaVersion": 2, "config": _LAYER, "layers": [_LAYER] * 2})
    entry = {"target": "a", "name": "x/a.gguf", "size_bytes": 8, "header_sha256": "0" * 64}
    files = [{**entry, "sha256": None, "status": "clean"}, {**entry, "sha256": "", "status": ""}]
    yield "sums", json.dumps({"version": 1, "tool": {"name": "gguf-audit"}, "files": files})
    pointer = {"sha256": "0" * 64, "size": 16, "pointerSize": 134}
    siblings = [{"rfilename": name, "size": 16, "lfs": pointer} for name in (*_NAMES, "a/b.gguf")]
    yield "listing", json.dumps({"id": "owner/repo", "sha": COMMIT, "siblings": siblings})
    suppressed = {**_FINDING, "suppression": {"by": "baseline"}}
    subject = {"target": TARGETS[0], "findings": [_FINDING], "suppressed": [suppressed]}
    yield "baseline", json.dumps({"version": 1, "subjects": [subject, {**subject, "target": "b"}]})
    yield "policy", _POLICY
    for answer in _ANSWERS:
        yield "answer", answer
    yield "readme", _README
    tokenizer = {"special_ids": {"bos": 1}, "unsure_ids": ["eos"], "complete": True, "size": 9}
    tensors = {"model.norm.weight": ["BF16", 32]}
    card = {"card": 1, "id": "a/b", "revision": COMMIT, "published": True, "note": ""}
    config = {"model_type": "llama", "vocab_size": 9}
    parts = {"config": config, "chat_templates": {"default": "x"}, "tokenizer": tokenizer}
    yield "card", json.dumps({**card, **parts, "tensors": tensors})


SEEDS = tuple(bytes([[*_KINDS].index(kind)]) + text.encode() for kind, text in _seeds())
