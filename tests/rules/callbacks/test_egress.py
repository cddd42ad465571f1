"""Addresses that callbacks may not reach, in each form in which they can be written."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.egress import allowed_networks, ipv4_by_any_spelling, is_reachable
from tests.support.cases import each_case

PUBLIC = ["8.8.8.8", "1.1.1.1", "52.95.110.1", "172.32.0.1", "100.128.0.1", "11.0.0.1"]
PUBLIC_IPV6 = ["2606:4700::1111", "2a05:d018::1", "2600:1f18::1"]
NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]
NOT_PUBLIC_IPV6 = [
    "::",
    "::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "64:ff9b:1::808:808",
    "::8.8.8.8",
    "::ffff:0:8.8.8.8",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "example.com",
    "",
]
PRIVATE_NETWORKS = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "224.0.0.0/3",
    )
]


def in_ipv6(prefix: str, ipv4: IPv4Address, bits_behind: int = 0) -> IPv6Address:
    return IPv6Address(int(IPv6Address(prefix)) | int(ipv4) << bits_behind)


def ipv6_forms(ipv4: IPv4Address) -> list[IPv6Address]:
    return [
        in_ipv6("::", ipv4),
        in_ipv6("::ffff:0:0", ipv4),
        in_ipv6("::ffff:0:0:0", ipv4),
        in_ipv6("64:ff9b::", ipv4),
        in_ipv6("64:ff9b:1::", ipv4),
        in_ipv6("2002::", ipv4, 80),
        in_ipv6("2001::", ipv4, 64),  # Teredo, its server
        in_ipv6("2001::", IPv4Address(int(ipv4) ^ 0xFFFF_FFFF)),  # Teredo, its client
    ]


def ipv4_spellings(ipv4: IPv4Address) -> list[str]:
    number = int(ipv4)
    octets = ipv4.packed
    return [
        str(ipv4),
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(map(hex, octets)),
        ".".join(f"0{octet:o}" for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]:#x}.{number & 0xFFFF}",
    ]


@st.composite
def private_ipv4(draw: st.DrawFn) -> IPv4Address:
    network = draw(st.sampled_from(PRIVATE_NETWORKS))
    return IPv4Address(draw(st.integers(int(network[0]), int(network[-1]))))


@each_case("address", PUBLIC + PUBLIC_IPV6)
def test_public_addresses_are_reachable(address: str) -> None:
    assert is_reachable(address)


@each_case("address", NOT_PUBLIC + NOT_PUBLIC_IPV6)
def test_an_address_that_is_not_publicly_routable_is_refused(address: str) -> None:
    assert not is_reachable(address)


@each_case("prefix", ["::ffff:0:0", "64:ff9b::"])
def test_an_ipv6_translation_of_a_public_address_is_reachable(prefix: str) -> None:
    assert is_reachable(in_ipv6(prefix, IPv4Address("8.8.8.8")))


@given(private_ipv4())
def test_a_private_ipv4_address_is_refused_in_every_ipv6_form(ipv4: IPv4Address) -> None:
    assert not is_reachable(ipv4)
    assert not any(is_reachable(form) for form in ipv6_forms(ipv4))


@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_every_spelling_of_an_ipv4_address_is_that_address(ipv4: IPv4Address) -> None:
    assert {ipv4_by_any_spelling(spelling) for spelling in ipv4_spellings(ipv4)} == {ipv4}


@each_case(
    "text", ["", ".", "1.2.3.4.5", "256.1.1.1", "1.2.65536", "4294967296", "08", "0x", "1..2", "a"]
)
def test_a_text_that_no_resolver_accepts_is_not_an_ipv4_address(text: str) -> None:
    assert ipv4_by_any_spelling(text) is None


def test_addresses_in_allowed_ranges_are_reachable() -> None:
    allowed = allowed_networks(("10.1.0.0/16", "fd12::/16"))
    assert is_reachable("10.1.2.3", allowed)
    assert is_reachable("::ffff:10.1.2.3", allowed)
    assert is_reachable("fd12::1", allowed)
    assert not is_reachable("10.2.0.1", allowed)
    assert not is_reachable("::ffff:10.2.0.1", allowed)
    assert not is_reachable("fd13::1", allowed)


@each_case(
    ("address", "range_", "exact"),
    [
        ("169.254.169.254", "169.254.0.0/16", "169.254.169.254/32"),
        ("169.254.170.2", "0.0.0.0/0", "169.254.170.2/32"),
        ("fd00:ec2::254", "fd00::/8", "fd00:ec2::254/128"),
        ("::ffff:169.254.169.254", "::/0", "169.254.169.254/32"),
        ("64:ff9b::169.254.169.254", "64:ff9b::/96", "169.254.169.254/32"),
        ("64:ff9b:1::169.254.169.254", "64:ff9b:1::/48", "169.254.169.254/32"),
        ("2002:a9fe:a9fe::", "2002::/16", "169.254.169.254/32"),
    ],
)
def test_metadata_addresses_stay_refused_unless_exactly_that_address_is_allowed(
    address: str, range_: str, exact: str
) -> None:
    assert not is_reachable(address, allowed_networks((range_,)))
    assert is_reachable(address, allowed_networks((range_, exact)))


@each_case("cidr", ["10.0.0.1/8", "10.0.0.0/33", "office", ""])
def test_an_invalid_allowed_range_is_an_error(cidr: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the library sets the message
        allowed_networks((cidr,))
