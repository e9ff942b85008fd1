"""Which addresses may be asked.

    address, whether an operator named its host -> yes or no

Pure. Addresses that stand for another one (IPv4 inside IPv6) are judged by what they lead to.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_CREDENTIALS = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
"""Where clouds keep credentials besides the link-local addresses: Azure, Alibaba, Oracle, AWS and
Google (the last two over IPv6). The first and the third count as public."""
_INSIDE = ipaddress.ip_network("192.0.0.0/24")
"""Protocol assignments (RFC 6890), of which Python calls most public."""
_LAST_32 = tuple(
    ipaddress.ip_network(network) for network in ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")
)
"""Networks whose last 32 bits are an IPv4 address: NAT64 (RFC 6052), SIIT (RFC 2765), compatible
addresses (RFC 4291)."""
_TRANSLATED = ipaddress.ip_network("64:ff9b:1::/48")
"""NAT64 of a site (RFC 8215): what is in it, only its operator knows."""


def may_ask(address: str, *, is_named: bool) -> bool:
    """Return whether *address* may be asked: a public one, or one of a named host.

    Link-local addresses and others where clouds keep credentials, never.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    return all(_may_ask(one, is_named=is_named) for one in (ip, *_inside(ip)))


def literal_address(host: str) -> str | None:
    """Return the address that *host* is, in whichever way it is written; None for a name.

    `2852039166`, `0xa9fea9fe` and `169.254.43518` are 169.254.169.254 to every resolver.
    """
    try:
        return str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError, ValueError):
        return None


def _may_ask(ip: Address, *, is_named: bool) -> bool:
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip in _CREDENTIALS:
        return False
    is_local = getattr(ip, "is_site_local", False) or ip in _INSIDE or ip in _TRANSLATED
    return is_named or (ip.is_global and not is_local)


def _inside(ip: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses that *ip* leads to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return
    if ip.ipv4_mapped is not None:
        yield ip.ipv4_mapped
    if ip.sixtofour is not None:
        yield ip.sixtofour
    if ip.teredo is not None:
        yield from ip.teredo
    if not ip.is_loopback and any(ip in network for network in _LAST_32):
        yield ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
