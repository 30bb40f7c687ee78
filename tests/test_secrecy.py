"""What looks like a secret is masked, and what does not stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.secrecy import MASK, mask_document, mask_in_place, mask_keys, mask_secrets, may_hold_keys

PLACES = [
    "password=%s",
    "Passwd: %s",
    "PWD = %s",
    'password="%s"',
    "passphrase='%s'",
    '{"client_secret": "%s"}',
    "{'api-key': '%s'}",
    "X-Api-Key: %s",
    "aws_secret_access_key=%s",
    "Authorization: Bearer %s",
    "https://example.org/x?token=%s&page=2",
    "postgres://bob:%s@db.example/orders",
    "redis://:%s@cache",
    "Cookie: %s",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("secret", ["hunter2-and-more", "x9", "p@sswörd!", "a.b.c_d-e"])
def test_a_secret_is_masked_wherever_it_stands(place: str, secret: str) -> None:
    if "Bearer" in place and len(secret) < 8:
        return
    masked = mask_secrets(f"before {place % secret} after")
    assert secret not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@pytest.mark.parametrize("place", ['password="%s"', "secret: '%s'", '{"token": "%s"}'])
def test_a_secret_of_several_words_is_masked_whole(place: str) -> None:
    masked = mask_secrets(place % "correct horse, battery & staple")
    assert not any(word in masked for word in ("correct", "horse", "battery", "staple"))


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "ghp_" + "a1" * 15,
        "github_pat_" + "a1" * 15,
        "xoxb-1234567890-abcdef",
        "AKIA" + "A1" * 8,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "AIza" + "b" * 35,
        "glpat-" + "a1" * 10,
        "sk_live_" + "a1" * 12,
        "rk_test_" + "a1" * 12,
        "npm_" + "a1" * 18,
        "pypi-AgEIcHlwaS5vcmc" + "a1_-" * 15,
        "hf_" + "aB" * 17,
        "ya29." + "a0-_" * 15,
        "SG." + "a1" * 11 + "." + "b2" * 21 + "c",
        "ASIA" + "A1" * 8,
        "dop_v1_" + "0a1b2c3d" * 8,
        "hooks.slack.com/services/T00000000/B00000000/" + "aB1" * 8,
        "123456789:AA" + "aB1" * 11,
        "xapp-1-A0B1C2-12345-" + "0a1b" * 8,
        "GOCSPX-" + "aB1_" * 7,
        "AGE-SECRET-KEY-1" + "Q9" * 29,
        "glrt-" + "a1" * 10,
        "dckr_pat_" + "aB1" * 9,
        "shpat_" + "0a1b" * 8,
        "whsec_" + "aB1" * 10,
        "ATATT3" + "xF_=" * 12,
        "lin_api_" + "aB" * 20,
        "NRAK-" + "A1B" * 9,
        "discord.com/api/webhooks/123456789012345678/" + "aB-_" * 17,
        "discordapp.com/api/v10/webhooks/123456789012345678/" + "aB-_" * 17,
    ],
)
def test_known_shapes_of_keys_are_masked_without_a_name(secret: str) -> None:
    assert mask_secrets(f"got {secret} there") == f"got {MASK} there"
    assert mask_keys(f"got {secret} there") == f"got {MASK} there"
    assert mask_in_place(f"got\n{secret}\nthere") == f"got\n{MASK}\nthere"
    assert may_hold_keys(f"got {secret} there")


@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("AccountName=shop;AccountKey=", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq=="),
        ("Authorization: Basic ", "QWxhZGRpbjpvcGVuc2VzYW1l"),
        ('{"authorization": "Basic ', "QWxhZGRpbjpvcGVuc2VzYW1l"),
        ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "0123456789"),
        ('AWS_SECRET_ACCESS_KEY="', "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "0123456789"),
        ('"SecretAccessKey": "', "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "0123456789"),
    ],
)
def test_keys_that_are_told_by_what_stands_before_them_are_masked_in_documents(before: str, secret: str) -> None:
    assert mask_keys(f"{before}{secret}\n") == f"{before}{MASK}\n"
    assert may_hold_keys(before + secret)


@pytest.mark.parametrize(
    "text",
    [
        "npm_config_registry_of_the_whole_organization_here",
        "hf_hub_download(repo_id, filename=name_of_the_file)",
        "MSG.payload.of_the_message",
        "Basic authentication is described in RFC 7617",
        "secret_access_key = os.environ['SECRET_ACCESS_KEY']",
        "ASIA is a continent, and ASIA_PACIFIC_REGIONS a list",
        "12:AA:BB:CC:DD:EE",
        "https://hooks.slack.com/services/ is where they begin",
        "https://discord.com/api/webhooks/ is where they begin",
        "xapp-settings-for-the-workspace",
        "whsec_of_the_endpoint",
        "the header NRAK-Id, and shpat_tokens",
    ],
)
def test_what_only_begins_like_a_key_stays(text: str) -> None:
    assert mask_keys(text) == text


def test_a_private_key_is_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
    assert "MIIEow" not in mask_secrets(key)
    assert "MIIEow" not in mask_secrets(key.partition("-----END")[0])


@pytest.mark.parametrize(
    "text",
    ["no such table: orders", "https://example.org/a:b@c", "the token was refused", "3 tokens: fine", "at 10:30"],
)
def test_plain_messages_stay(text: str) -> None:
    assert mask_secrets(text).split(":")[0] == text.split(":")[0]
    assert mask_secrets("no such table: orders") == "no such table: orders"


@given(st.text(max_size=300))
def test_masking_ends_and_a_second_time_changes_nothing_secret(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once).count(MASK) >= once.count(MASK)


def test_a_long_text_is_masked_quickly() -> None:
    assert mask_secrets("token=" * 20_000).startswith("token=")
    assert mask_secrets("://" * 20_000 + "a:b") != ""
    assert mask_keys("@" + "://a:" * 100_000) != ""
    assert mask_secrets("-----BEGIN PRIVATE KEY-----" * 2_000) != ""


def test_a_document_is_kept_but_for_its_keys() -> None:
    token, body = "ghp_" + "a1" * 15, "MIIEowIBAAKCAQEA"
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    masked = mask_document(f"before\n{key}\nbetween {token} after")
    assert masked.startswith("before\n")
    assert masked.endswith(f"between {MASK} after")
    assert body not in masked
    assert mask_document("Look for `-----BEGIN PRIVATE KEY-----` in files.") == (
        "Look for `-----BEGIN PRIVATE KEY-----` in files."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("url = https://ann:t0ken@example.com/x.git", "url = https://ann:[masked]@example.com/x.git"),
        ("https://ann:p@ss@example.com", "https://ann:[masked]@example.com"),
        ("postgres://:pw@db/x", "postgres://:[masked]@db/x"),
        ("https://0123456789abcdef0123@example.com", "https://[masked]@example.com"),
        ("https://x:${TOKEN}@example.com", "https://x:${TOKEN}@example.com"),
        ("ssh://git@example.com:22/x", "ssh://git@example.com:22/x"),
        ("http://localhost:8080/@ann and ben@example.com", "http://localhost:8080/@ann and ben@example.com"),
        ("https://ann:pa#ss@example.com/x", "https://ann:[masked]@example.com/x"),
        ("https://ann:pa?ss@example.com/x", "https://ann:[masked]@example.com/x"),
        ("https://ann:pa/ss@example.com/x", "https://ann:[masked]@example.com/x"),
        ("https://ann:p@ss#w0rd@example.com/x", "https://ann:[masked]@example.com/x"),
        ("http://localhost:8080?by=ann@example.com", "http://localhost:8080?by=ann@example.com"),
        ("http://[::1]:8080/@ann", "http://[::1]:8080/@ann"),
        ("http://{host}:{port}/@ann", "http://{host}:{port}/@ann"),
    ],
)
def test_a_password_in_an_address_is_masked_in_documents(text: str, shown: str) -> None:
    for mask in (mask_document, mask_in_place, mask_keys):
        assert mask(f"a\n{text}\nb") == f"a\n{shown}\nb"
