"""Egress rules: where callbacks may not go, against server-side request forgery (SSRF).

An address is reachable only if it is known to be publicly routable; an IPv4 address inside an IPv6
one is judged as itself. Ranges that the deployment allows are the only exceptions. The metadata
services, which return the deployment's own credentials, are refused even in such a range, unless
their exact address is listed (/32 or /128).
"""

import re
from collections.abc import Iterator, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

# Not left to `ipaddress.is_global`, whose answers differ between Python versions.
_NOT_PUBLIC_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # unspecified, this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_ROUTED_IPV6 = IPv6Network("2000::/3")  # loopback, private, multicast, ... are outside
_NOT_PUBLIC_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo and benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)
_METADATA = frozenset(
    ip_address(address)
    for address in (
        "169.254.169.254",  # of instances
        "169.254.170.2",  # of containers
        "169.254.170.23",  # of pods
        "fd00:ec2::254",
        "fd00:ec2::23",
    )
)
# Traffic to these goes to the IPv4 address in the last 32 bits: IPv4-mapped and NAT64.
_TRANSLATED = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# These contain one as well but are not public: (prefix, bits behind the IPv4 address).
_EMBEDDING = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("::ffff:0:0:0/96"), 0),  # SIIT
    (IPv6Network("64:ff9b:1::/48"), 0),  # NAT64 of one's own network
    (IPv6Network("2002::/16"), 80),  # 6to4
)

_IPV4_PART = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")


def allowed_networks(cidrs: Sequence[str]) -> tuple[IpNetwork, ...]:
    """Raises ValueError if one is no network."""
    return tuple(ip_network(cidr) for cidr in cidrs)


def is_reachable(address: IpAddress | str, allowed: Sequence[IpNetwork] = ()) -> bool:
    if isinstance(address, str):
        if "%" in address:  # a zone names an interface of this machine
            return False
        try:
            address = ip_address(address)
        except ValueError:
            return False
    forms = tuple(_forms(address))
    if not _METADATA.isdisjoint(forms):
        allowed = [network for network in allowed if network.num_addresses == 1]
    if any(form in network for form in forms for network in allowed):
        return True
    if isinstance(address, IPv6Address) and any(address in network for network in _TRANSLATED):
        return _is_public(forms[-1])
    return _is_public(address)


def ipv4_by_any_spelling(host: str) -> IPv4Address | None:
    """The IPv4 address that resolvers read in `host`: 127.1, 0x7f.1, 0177.0.0.1 and 2130706433 are
    all loopback."""
    parts = host.split(".")
    if len(parts) > 4 or not all(map(_IPV4_PART.fullmatch, parts)):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:  # an octal number with an 8 or 9
        return None
    *leading, last = numbers
    last_bits = 8 * (4 - len(leading))
    if any(number > 255 for number in leading) or last >= 1 << last_bits:
        return None
    value = 0
    for number in leading:
        value = value << 8 | number
    return IPv4Address(value << last_bits | last)


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part, 16)
    return int(part, 8) if part.startswith("0") else int(part)


def _forms(address: IpAddress) -> Iterator[IpAddress]:
    """The address and, last, the IPv4 address that it carries, if any."""
    yield address
    if isinstance(address, IPv6Address):
        carriers = (*((network, 0) for network in _TRANSLATED), *_EMBEDDING)
        for network, bits_behind in carriers:
            if address in network:
                yield IPv4Address(int(address) >> bits_behind & 0xFFFF_FFFF)


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_IPV4)
    return address in _ROUTED_IPV6 and not any(address in net for net in _NOT_PUBLIC_IPV6)
