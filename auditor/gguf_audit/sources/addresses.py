"""Addresses of the web: how they are shown, whom they belong to, where they may lead."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

__all__ = ["Origin", "origin_of", "redirected", "shown_url"]

#: Scheme, host and port: what a token belongs to.
Origin = tuple[str, str, int]

_PORTS = {"https": 443, "http": 80}


def shown_url(url: str) -> str:
    """Return an address as it may be shown: no password, and nothing that signs it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    query = "?..." if parts.query else ""
    if not parts.netloc and "//" not in url:  # no address, so no scheme either
        return url.partition("?")[0].partition("#")[0].rpartition("@")[2] + query
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}{query}"


def origin_of(url: str) -> Origin | None:
    """Return where an address belongs to, ``None`` where it is no http or https address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def redirected(url: str, location: str) -> str | None:
    """Return where an answer leads to, ``None`` where nobody is to follow.

    That is nowhere, what is no address, and http for who came by https.
    """
    try:
        target = urljoin(url, location)
    except ValueError:
        return None
    origin, here = origin_of(target), origin_of(url)
    if not location or origin is None or here is None:
        return None
    return target if origin[0] in ("https", here[0]) else None
