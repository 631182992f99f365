"""Reports to render: one of everything that a report can hold."""

from __future__ import annotations

from msgspec.structs import replace

from gguf_audit.fields import Origin
from gguf_audit.finding import Finding, Skip
from gguf_audit.layout import (
    CacheLayout,
    Chunked,
    Compressed,
    Full,
    Indexer,
    Latent,
    Layer,
    Recurrent,
    Sliding,
    StatePart,
)
from gguf_audit.rule import Reconvert, Severity
from gguf_audit.verdict import (
    Accepted,
    BytesAt,
    CacheReport,
    FileSummary,
    Problem,
    ReferenceFacts,
    Report,
    SubjectReport,
)
from gguf_audit.where import Where

MIB = 1 << 20

EVERY_STORE = CacheLayout(
    layers=(
        Layer(
            index=0,
            stores=(
                Full(kv_heads=1, key_length=256, value_length=256),
                Sliding(kv_heads=1, key_length=256, value_length=256, window_tokens=512),
                Chunked(kv_heads=8, key_length=128, value_length=128, window_tokens=8192),
            ),
        ),
        Layer(
            index=1,
            stores=(
                Latent(kv_heads=1, key_length=576, window_tokens=128),
                Indexer(kv_heads=1, key_length=128),
                Compressed(kv_heads=1, key_length=512, tokens_per_cell=4),
                Recurrent(parts=(StatePart(name="conv", elements=24576, type="bf16"),)),
            ),
        ),
        Layer(index=2, shares_with=0),
    )
)

WINDOW_LOST = Finding(
    rule="KV103",
    name="window-lost",
    severity=Severity.ERROR,
    message="needs a 512-token window on 15 of 18 layers, the key is absent",
    where=Where(file="lost.gguf", key="gemma3.attention.sliding_window"),
    expected=512,
    actual=None,
    origin=Origin.RUNTIME_DEFAULT,
    consequences=("the layers rotate with the global RoPE base",),
    repair=Reconvert(hint="no metadata tool can add this key"),
    fix="reconvert (no metadata tool can add this key)",
    authority="llama.cpp b11434, src/models/gemma3.cpp",
    fingerprint="0123456789abcdef",
)

CONTEXT = Finding(
    rule="CTX001",
    name="context-length-changed",
    severity=Severity.WARNING,
    message="131072 tokens, the reference was trained on 32768",
    where=Where(file="lost.gguf", key="gemma3.context_length", offset=1234),
    expected=32768,
    actual=131072,
    origin=Origin.KEY,
    consequences=(),
    repair=None,
    fix="gguf-set-metadata lost.gguf gemma3.context_length 32768",
    authority="config.json: max_position_embeddings",
    fingerprint="fedcba9876543210",
)

CACHE = CacheReport(
    implied=EVERY_STORE,
    expected=EVERY_STORE,
    ideal=None,
    bytes=(
        BytesAt(
            tokens=4096,
            implied=72 * MIB,
            expected=27 * MIB,
            ideal=None,
            full_attention=72 * MIB,
        ),
        BytesAt(
            tokens=32768,
            implied=576 * MIB,
            expected=111 * MIB + 512,
            ideal=None,
            full_attention=576 * MIB,
        ),
    ),
)

LOST = SubjectReport(
    target="lost.gguf",
    files=(FileSummary(name="lost.gguf", size_bytes=4096, header_sha256="ab" * 32),),
    reference=ReferenceFacts(
        id="google/gemma-3-270m",
        revision=None,
        origin="card",
        note="no tensors, no tokenizer",
    ),
    architecture="gemma3",
    cache=CACHE,
    findings=(CONTEXT, WINDOW_LOST),
    skips=(
        Skip(rule="TOK004", kind="no-evidence", reason="the card has no tokenizer"),
        Skip(rule="TPL001", kind="no-evidence", reason="the card has no template"),
        Skip(rule="WT001", kind="not-applicable", reason="no tensor of this type"),
    ),
)

UNREADABLE = SubjectReport(
    target="cut.gguf",
    kind="other",
    errors=(
        Problem(
            code="malformed",
            message="the header ends in the middle of a key",
            where=Where(file="cut.gguf", offset=77),
        ),
    ),
)


def everywhere(text: str) -> SubjectReport:
    """Return a subject with this text wherever a file, or a plug-in, may put one."""
    where = Where(file=text, key=text, tensor=text, layer=3, offset=4, block=5)
    finding = replace(
        CONTEXT,
        message=text,
        where=where,
        expected=text,
        actual={text: [text]},
        unit=text,
        consequences=(text,),
        fix=text,
        authority=text,
    )
    return SubjectReport(
        target=text,
        files=(FileSummary(name=text, size_bytes=1, header_sha256="ab" * 32),),
        reference=ReferenceFacts(id=text, revision=text, origin="hub", note=text),
        architecture=text,
        cache=CACHE,
        findings=(finding,),
        errors=(Problem(code="malformed", message=text, where=where),),
        skips=(
            Skip(rule="KV101", kind="crashed", reason=text),
            Skip(rule="KV102", kind="no-evidence", reason=text),
        ),
        suppressed=(Accepted(finding=finding, by="policy", reason=text, expires="2027-01-01"),),
    )


def report(*subjects: SubjectReport) -> Report:
    """Wrap subjects as the engine does."""
    return Report(version="0.1.0", runtimes={"llama.cpp": "b11434"}, subjects=subjects)


def renamed(subject: SubjectReport, name: str) -> SubjectReport:
    """Return the same subject as if it were found in another file."""
    findings = tuple(
        replace(finding, where=replace(finding.where, file=name)) for finding in subject.findings
    )
    return replace(subject, target=name, findings=findings)
