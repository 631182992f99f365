from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_audit.report.places import Checkout
from gguf_audit.verdict import SubjectReport
from gguf_audit.where import Where

HERE = Checkout(root="/repo", folder="/repo")


@pytest.mark.parametrize(
    ("checkout", "target", "file", "path"),
    [
        (Checkout(), "a.gguf", None, "a.gguf"),
        (Checkout(), "./models//a.gguf", "./models//a.gguf", "models/a.gguf"),
        (HERE, "models/a.gguf", None, "models/a.gguf"),
        (HERE, "models/a.gguf", "a.gguf", "models/a.gguf"),
        (HERE, "/repo/models/a.gguf", None, "models/a.gguf"),
        (HERE, "/repository/a.gguf", None, "repository/a.gguf"),
        (Checkout(), "../../a.gguf", None, "a.gguf"),
        (HERE, "../elsewhere/a.gguf", None, "elsewhere/a.gguf"),
        (Checkout(root="/repo", folder="/repo/sub"), "../a.gguf", None, "a.gguf"),
        (Checkout(root="/repo", folder="/repo/sub"), "a.gguf", None, "sub/a.gguf"),
        (HERE, "m/a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "m/a-00002-of-00002.gguf"),
        (HERE, "m/a-00001-of-00002.gguf", "m/a-00002-of-00002.gguf", "m/a-00002-of-00002.gguf"),
        (HERE, "https://host/x/a.gguf", None, "host/x/a.gguf"),
        (HERE, "hf://owner/repo/a.gguf", None, "owner/repo/a.gguf"),
        (HERE, ".", None, "unnamed"),
        (HERE, "", None, "unnamed"),
    ],
)
def test_the_path_inside_the_repository(
    checkout: Checkout, target: str, file: str | None, path: str
) -> None:
    subject = SubjectReport(target=target)
    assert checkout.path(subject, Where(file=file)) == path


def test_a_file_of_a_set_by_its_name_alone() -> None:
    subject = SubjectReport(target="models", kind="set")
    assert HERE.path(subject, Where(file="a.gguf")) == "models/a.gguf"


def test_a_uri_has_no_scheme_and_no_space() -> None:
    subject = SubjectReport(target="owner:a b/é\udcff#?.gguf")
    assert HERE.uri(subject) == "owner%3Aa%20b/%C3%A9%FF%23%3F.gguf"


@given(st.text(), st.text(), st.sampled_from([Checkout(), HERE]))
def test_no_uri_leads_out(target: str, file: str, checkout: Checkout) -> None:
    uri = checkout.uri(SubjectReport(target=target), Where(file=file))
    assert uri
    assert not uri.startswith("/")
    assert uri.isascii()
    assert ":" not in uri
    assert ".." not in uri.split("/")
    assert "\x00" not in unquote(uri) or "\x00" in target + file
