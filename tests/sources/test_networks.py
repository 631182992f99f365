"""Which redirects lead from the internet to where only we get to."""

from __future__ import annotations

import socket

import pytest

from gguf_audit.sources._networks import leads_inside

HOSTS = {
    "public.test": ["9.9.9.9", "2620:fe::fe"],
    "cdn.test": ["1.1.1.1"],
    "inside.test": ["10.0.0.7"],
    # It is reached by both.
    "both.test": ["10.0.0.8", "2620:fe::8"],
    "rebound.test": ["1.1.1.1", "169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "127.1": ["127.0.0.1"],
}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve names as a name server of ours would, and have no proxy."""

    def getaddrinfo(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host not in HOSTS:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in HOSTS[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("first", ["public.test", "9.9.9.9", "[2620:fe::fe]"])
@pytest.mark.parametrize(
    "target",
    [
        "169.254.169.254",
        "127.0.0.1:8080",
        "127.1",
        "10.0.0.7",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "[::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[::ffff:169.254.169.254]",
        "inside.test",
        "both.test",
        "rebound.test",
        "localhost",
    ],
)
def test_from_the_internet_to_where_only_we_get_to(first: str, target: str) -> None:
    assert leads_inside(f"https://{first}/m.gguf", f"https://{target}/x")


@pytest.mark.parametrize(
    ("first", "target"),
    [
        ("public.test", "cdn.test"),
        ("public.test", "[2620:fe::1]"),
        ("public.test", "nobody.test"),
        # Who is inside may lead wherever it wants.
        ("inside.test", "10.0.0.9"),
        ("both.test", "inside.test"),
        ("localhost", "127.0.0.1:9"),
        ("192.168.1.1", "169.254.169.254"),
        ("inside.test", "cdn.test"),
    ],
)
def test_what_may_be_followed(first: str, target: str) -> None:
    assert not leads_inside(f"http://{first}/m.gguf", f"http://{target}/x")


@pytest.mark.parametrize(
    ("first", "target", "inside"),
    [
        # Names are the proxy's, and it may be inside itself.
        ("public.test", "inside.test", False),
        ("public.test", "10.0.0.7", False),
        ("public.test", "169.254.169.254", True),
        ("public.test", "127.0.0.1", True),
        ("9.9.9.9", "10.0.0.7", True),
        # No proxy for this one: it is ours.
        ("direct.inside.test", "169.254.169.254", False),
    ],
)
def test_behind_a_proxy(
    monkeypatch: pytest.MonkeyPatch, first: str, target: str, inside: bool
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "direct.inside.test")
    monkeypatch.setitem(HOSTS, "direct.inside.test", ["10.0.0.7"])
    assert leads_inside(f"http://{first}/m.gguf", f"http://{target}/x") is inside
