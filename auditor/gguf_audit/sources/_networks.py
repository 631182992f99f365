"""Where hosts are: on the internet, or where only this machine and its neighbours get to."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from gguf_audit.sources.addresses import origin_of

__all__ = ["leads_inside"]

_Address = IPv4Address | IPv6Address


def leads_inside(first: str, target: str) -> bool:
    """Tell whether a host of the internet sends us to one that it couldn't ask itself.

    That is this machine, a cloud's metadata service, a private network. Names may have to be
    resolved for that: this waits for a name server.
    """
    inside = [each for each in _addresses(target) if not each.is_global]
    if not inside:
        return False
    here = _addresses(first)
    if here:
        # A host inside may have addresses of the internet, too.
        return all(each.is_global for each in here)
    # By a proxy, which also gets to private networks; but not to what is next to us.
    return any(each.is_loopback or each.is_link_local for each in inside)


def _addresses(url: str) -> Sequence[_Address]:
    """Return the addresses of a host, none where a proxy or nobody knows them."""
    origin = origin_of(url)
    if origin is None:
        return ()
    _, host, port = origin
    try:
        return (_plain(host),)
    except ValueError:
        pass
    if _by_proxy(url, host):
        return ()
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(_plain(str(place[0])) for *_, place in found)


def _plain(text: str) -> _Address:
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _by_proxy(url: str, host: str) -> bool:
    proxies = getproxies()
    return (urlsplit(url).scheme in proxies or "all" in proxies) and not proxy_bypass(host)
