from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from clew.errors import ConfigError, DeliveryRefused
from clew.trail.work.webhook_addresses import (
    Resolve,
    check_address,
    parse_networks,
    parse_target,
    refusal_of,
    resolve_host,
)


def resolving_to(*addresses: str) -> Resolve:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "3fff::1",
        "4000::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
@pytest.mark.req("RCR-24")
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert refusal_of(ip_address(address)) is not None


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "2a00:1450:4001::1"]
)
def test_a_public_address_is_not_refused(address: str) -> None:
    assert refusal_of(ip_address(address)) is None


def test_a_network_in_the_configuration_is_allowed_and_its_neighbours_are_not() -> None:
    allow = parse_networks(("10.1.0.0/16", "fd00::/8"))

    assert refusal_of(ip_address("10.1.2.3"), allow) is None
    assert refusal_of(ip_address("fd00::5"), allow) is None
    assert refusal_of(ip_address("10.2.0.1"), allow) is not None
    assert refusal_of(ip_address("::ffff:10.1.2.3"), allow) is not None


def test_a_malformed_network_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"10\.0\.0\.1/8"):
        parse_networks(("10.0.0.1/8",))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example/x",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "http://",
        "http:///path",
        "http://user@hooks.example/",
        "http://user:pw@hooks.example/",
        "http://@hooks.example/",
        "http://hooks.example\\@evil.example/",
        "http://hooks.example/a b",
        "http://hooks.example/\r\nX-Evil: 1",
        "http://hooks\tex.example/",
        "http://hooks.example:99999/",
        "http://hooks.example:-1/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://hooks..example/",
        "http://-x.example/",
        "http://hooks_example;x/",
        "http://" + "a" * 64 + ".example/",
        "http://hooks.example/" + "a" * 2_000,
    ],
)
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(DeliveryRefused):
        parse_target(url)


def test_a_refusal_does_not_repeat_a_password() -> None:
    with pytest.raises(DeliveryRefused) as caught:
        parse_target("https://user:hunter2@hooks.example/x")

    assert "hunter2" not in str(caught.value)


def test_a_url_is_parsed_and_rebuilt_for_an_address() -> None:
    target = parse_target("HTTPS://Hooks.Example:8443/a/b?c=d#fragment")

    assert (target.scheme, target.host, target.port, target.path) == (
        "https",
        "hooks.example",
        8443,
        "/a/b?c=d",
    )
    assert target.authority == "hooks.example:8443"
    assert target.at(ip_address("93.184.215.14")) == "https://93.184.215.14:8443/a/b?c=d"
    assert target.at(ip_address("2606:4700::1111")) == "https://[2606:4700::1111]:8443/a/b?c=d"


def test_the_default_port_is_omitted_and_the_path_is_never_empty() -> None:
    assert parse_target("http://hooks.example").path == "/"
    assert parse_target("http://hooks.example:80?x=1").authority == "hooks.example"
    assert parse_target("http://hooks.example:80?x=1").path == "/?x=1"
    assert parse_target("http://[2606:4700::1111]/").authority == "[2606:4700::1111]"
    assert parse_target("https://bücher.example/").host == "xn--bcher-kva.example"


@pytest.mark.req("RCR-24")
async def test_one_private_address_among_public_ones_refuses_the_url() -> None:
    with pytest.raises(DeliveryRefused, match=r"10\.0\.0\.1"):
        await check_address("https://hooks.example/", resolve=resolving_to("93.184.215.14", "10.0.0.1"))


async def test_the_addresses_that_were_checked_are_returned_in_order() -> None:
    found = await check_address("https://hooks.example/", resolve=resolving_to("93.184.215.14", "2606:4700::1111"))

    assert [str(address) for address in found] == ["93.184.215.14", "2606:4700::1111"]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://[::1]/"]
)
async def test_every_spelling_of_loopback_is_refused_by_the_systems_resolver(url: str) -> None:
    with pytest.raises(DeliveryRefused):
        await check_address(url)


async def test_loopback_is_found_where_it_is_allowed() -> None:
    found = await check_address("http://127.0.0.1:1/", parse_networks(("127.0.0.0/8",)))

    assert [str(address) for address in found] == ["127.0.0.1"]


async def test_an_unknown_host_is_a_network_error() -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with pytest.raises(OSError, match="unknown"):
        await check_address("http://hooks.example/", resolve=nowhere)


async def test_the_system_resolver_names_each_address_once() -> None:
    found = await resolve_host("127.0.0.1", 80)

    assert found == ["127.0.0.1"]
