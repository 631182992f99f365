from __future__ import annotations

from gguf_audit.evidence import UploadedFile, UploadSubject
from gguf_audit.rule import Advice, Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.upload_differs import check
from rule_subjects import SETTINGS

ONE, OTHER = "1" * 64, "2" * 64


def file(
    name: str,
    size: int | None = 8,
    sha256: str | None = ONE,
    local: tuple[int, str | None] | None = (8, ONE),
    *,
    listed: bool = True,
) -> UploadedFile:
    return UploadedFile(
        name=name,
        is_listed=listed,
        size_bytes=size,
        sha256=sha256,
        local_bytes=None if local is None else local[0],
        local_sha256=None if local is None else local[1],
    )


def said(*files: UploadedFile, revision: str | None = None) -> list[Outcome]:
    subject = UploadSubject(
        repository="o/r", repo="o/r", revision=revision, folder="here", files=files
    )
    return list(check(subject, SETTINGS))


def test_fires_for_every_difference() -> None:
    assert said(
        file("a.gguf", size=7, local=(8, None)),
        file("b.gguf"),
        file("c.gguf", sha256=OTHER),
        file("d.gguf", size=None, sha256=None, listed=False),
        file("e.gguf", local=None),
        file("f.gguf", sha256=None, local=(8, None)),
    ) == [
        Hit(
            message="a.gguf needs 8 bytes as in here, the Hub has 7",
            where=Where(file="a.gguf"),
            expected=8,
            actual=7,
            unit="byte",
            level=Severity.ERROR,
            repair=Advice(text="hf upload o/r here/a.gguf a.gguf"),
        ),
        Hit(
            message=f"c.gguf needs sha256 {ONE} as in here, the Hub has {OTHER}",
            where=Where(file="c.gguf"),
            expected=ONE,
            actual=OTHER,
            level=Severity.ERROR,
            repair=Advice(text="hf upload o/r here/c.gguf c.gguf"),
        ),
        Hit(
            message="d.gguf is in here and not in o/r",
            where=Where(file="d.gguf"),
            expected=8,
            unit="byte",
            level=Severity.ERROR,
            repair=Advice(text="hf upload o/r here/d.gguf d.gguf"),
        ),
        Hit(
            message="e.gguf is in o/r and not in here",
            where=Where(file="e.gguf"),
            actual=8,
            unit="byte",
            level=Severity.WARNING,
        ),
        Hit(
            message="the Hub lists no sha256 of f.gguf: only its size can be compared",
            where=Where(file="f.gguf"),
            expected=8,
            unit="byte",
            level=Severity.WARNING,
        ),
    ]


def test_the_command_uploads_to_the_place_that_was_named() -> None:
    [hit] = said(file("Q8 0/a.gguf", sha256=OTHER), revision="v2")
    assert isinstance(hit, Hit)
    assert hit.repair == Advice(text="hf upload o/r 'here/Q8 0/a.gguf' 'Q8 0/a.gguf' --revision v2")


def test_silent_for_the_same_files() -> None:
    assert said(file("a.gguf"), file("b.gguf", size=None)) == []
