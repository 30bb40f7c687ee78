"""Leaves out only binary and secret files."""

from __future__ import annotations

import gzip
import zipfile
from io import BytesIO

import pytest

from clew.knowledge.code.file_content import is_text, looks_secret

BEGIN = "-----BEGIN "
KEY = f"{BEGIN}RSA PRIVATE KEY-----\n{'QUJD' * 16}\n-----END RSA PRIVATE KEY-----\n"
TOKEN = "gh" + "p_" + "a1B2" * 9


def a_zip() -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("a", "b")
    return written.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x = 1\n",
        "gr\u00fc\u00dfe".encode(),
        "gr\u00fc\u00dfe".encode("latin-1"),
        "wide".encode("utf-16"),
        b"\x1b[31mred\x1b[0m\f\n",
    ],
)
def test_text_of_any_encoding_is_text(content: bytes) -> None:
    assert is_text(content)


@pytest.mark.parametrize(
    "content",
    [
        b"a\0b",
        b"\x89PNG\r\n",
        gzip.compress(b"x" * 100, mtime=0),
        a_zip(),
        b"\x7fELF",
        bytes(range(1, 32)) * 9,
        b"%PDF-1.7\n",
    ],
)
def test_other_things_are_not(content: bytes) -> None:
    assert not is_text(content)


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("deploy/server.txt", KEY, "a private key"),
        ("a/id_ed25519", KEY.replace("RSA", "OPENSSH"), "a private key"),
        ("key.asc", f"Comment: mine\n\n{BEGIN}PGP PRIVATE KEY BLOCK-----\nabc", "a private key"),
        ("a.ppk", "PuTTY-User-Key-File-3: ssh-rsa\n", "a private key"),
        ("gcp.json", '{"type": "service_account", "private_key": "-----BEGIN x"}', "the key of a service account"),
        (".env", "NAME=x\n", "a file made for secrets"),
        ("app/.env.production", "NAME=x\n", "a file made for secrets"),
        (".aws/credentials", "[default]\n", "a file made for secrets"),
        ("secrets.yaml", "a: b\n", "a file made for secrets"),
        ("ci.properties", f"# the robot\nrobot={TOKEN}\n", "settings that are mostly keys"),
    ],
)
def test_files_of_keys_are_left_out_with_a_reason(path: str, text: str, reason: str) -> None:
    assert looks_secret(path, text.encode()) == reason


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_login.py", 'PASSWORD = "hunter2"\ntoken = "abc"\n'),
        ("tests/test_keys.py", f'KEY = """\n{KEY}"""\nassert parse(KEY)\n'),
        ("src/credentials.py", "class Credentials: pass\n"),
        ("docs/keys.md", f"# Keys\n\nA key begins with\n\n    {KEY}"),
        (".env.example", "API_KEY=change-me\n"),
        ("cert.pem", f"{BEGIN}CERTIFICATE-----\nabc\n"),
        ("translations.key", ""),
        ("config.yaml", f"name: shop\nhost: example.org\nport: 1\ntoken: {TOKEN}\n"),
        ("package.json", '{"name": "tokens", "scripts": {"secret": "echo password"}}'),
        ("empty.py", ""),
    ],
)
def test_files_that_only_mention_secrets_are_not_secret(path: str, text: str) -> None:
    assert looks_secret(path, text.encode()) == ""


def test_any_bytes_are_looked_at() -> None:
    assert looks_secret("a.bin", bytes(range(256)) * 1_000) == ""
