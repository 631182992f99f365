from __future__ import annotations

import pytest

from gguf_audit.evidence import FolderSubject
from gguf_audit.formats.readme import parse_card
from gguf_audit.rule import Hit, Outcome, Severity
from gguf_audit.where import Where
from gguf_audit_rules.pkg.listed_file_missing import check
from rule_subjects import SETTINGS

LIST = "X-Q8_0.gguf, X-Q6_K.gguf, X-Q4_K_M.gguf"
ELSEWHERE = """
[more](https://huggingface.co/o/r/resolve/main/X-Q2_K.gguf), of the same hand
[X-Q3_K_M.gguf](https://huggingface.co/o/r/blob/main/X-Q3_K_M.gguf) and
<a href="https://huggingface.co/o/s/blob/main/X-IQ1_S.gguf">X-IQ1_S.gguf</a>
"""


def said(text: str | None, *names: str, published: bool = False) -> list[Outcome]:
    subject = FolderSubject(
        folder="upload",
        models=(),
        has_projector=False,
        published=published,
        load_names=lambda: frozenset(names),
        load_card=lambda: None if text is None else parse_card(f"---\n---\n{text}"),
    )
    return list(check(subject, SETTINGS))


def missing(*names: str, found: int) -> Hit:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return Hit(
        message=f"needs {shown} as its card lists, upload has {found} of {found + len(names)} quants",
        where=Where(file="upload/README.md"),
        expected=list(names),
        level=Severity.INFO,
    )


def test_fires_where_one_of_a_list_is_gone() -> None:
    assert said(LIST, "X-Q8_0.gguf", "X-Q6_K.gguf") == [missing("X-Q4_K_M.gguf", found=2)]
    assert said(LIST, "X-Q4_K_M.gguf", "x-q6_k-00001-of-00002.gguf") == [
        missing("X-Q8_0.gguf", found=2)
    ]


def test_fires_where_publishers_spell_quants_their_own_way() -> None:
    text = "X-Q4_K_M.gguf X-Q4_K_L.gguf X-UD-Q4_K_XL.gguf X-IQ3_XXS.gguf X-BF16.gguf"
    there = ("X-Q4_K_M.gguf", "X-IQ3_XXS.gguf", "X-BF16-00001-of-00002.gguf")
    assert said(text, *there) == [missing("X-Q4_K_L.gguf", "X-UD-Q4_K_XL.gguf", found=3)]
    # Another model with the same letters in front: its matrix weighs the quants.
    weighed = "X.i1-Q4_0.gguf X.i1-Q4_1.gguf X.i1-Q6_K.gguf X.Q4_0.gguf"
    assert said(weighed, "X.i1-Q4_0.gguf", "X.i1-Q6_K.gguf") == [missing("X.i1-Q4_1.gguf", found=2)]


def test_fires_for_one_of_a_list_before_an_upload() -> None:
    text = f"{LIST} X-Q2_K.gguf X-Q3_K_M.gguf"
    assert said(text, "X-Q8_0.gguf") == []
    assert said(text, "X-Q8_0.gguf", published=True) == [
        missing("X-Q2_K.gguf", "X-Q3_K_M.gguf", "X-Q4_K_M.gguf", "X-Q6_K.gguf", found=1)
    ]


def test_fires_for_the_list_that_is_of_these_files() -> None:
    own = "\n".join(
        f"[{name}](https://huggingface.co/me/X-GGUF/blob/main/{name})" for name in LIST.split(", ")
    )
    other = "[X-Q2_K.gguf](https://huggingface.co/you/X-GGUF/blob/main/X-Q2_K.gguf)"
    assert said(f"{other}\n{own}", "X-Q8_0.gguf", "X-Q6_K.gguf") == [
        missing("X-Q4_K_M.gguf", found=2)
    ]


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ["X-Q8_0.gguf"]),
        ("quants of X", ["X-Q8_0.gguf"]),
        (LIST, ["X-Q8_0.gguf", "X-Q6_K.gguf", "X-Q4_K_M.gguf", "X-Q2_K.gguf"]),
        # Parts of a file, in whatever way it was cut, and other letters.
        (LIST, ["x-q8_0.gguf", "X-Q6_K-00002-of-00002.gguf", "X-Q4_K_M.gguf.part1of2"]),
        (LIST, ["X-Q8_0.gguf", "X-Q6_K.gguf", "X-Q4_K_M.gguf-split-a"]),
        ("X.Q6_K.gguf.part1of2 X.Q8_0.gguf", ["X.Q6_K.gguf.part1of2", "X.Q8_0.gguf"]),
        # An example; another model's; no quantization; patterns.
        ("llama-cli -m X-Q4_K_M.gguf", ["X-Q8_0.gguf"]),
        (f"{LIST} Y-Q8_0.gguf Y-Q2_K.gguf mmproj-X-f16.gguf", LIST.split(", ")),
        (f"{LIST} X.imatrix.gguf X.gguf X-*.gguf", LIST.split(", ")),
        (LIST, ["Z-Q8_0.gguf", "Z-Q6_K.gguf"]),
        # Other repositories', the same names among them.
        (f"{LIST} {ELSEWHERE}", LIST.split(", ")),
    ],
)
def test_silent_about_what_is_there_or_no_list(
    text: str | None, names: list[str], published: bool
) -> None:
    assert said(text, *names, published=published) == []


def test_silent_where_only_some_were_fetched_or_made() -> None:
    assert said(LIST, "X-Q8_0.gguf") == []
    assert said("X-Q8_0.gguf X-Q6_K.gguf", "X-Q8_0.gguf") == []
