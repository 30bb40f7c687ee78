"""Text that looks like a secret is masked; other text stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.secrecy import (
    MASK,
    MaskedLines,
    mask_document,
    mask_in_place,
    mask_keys,
    mask_message,
    mask_secrets,
    may_hold_keys,
)

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
        "sk-qwmzkfhvtrlpxnbydgsc",
        "sk-proj-qwmzkfhvtrlpxnbydgsc",
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
        "hvs." + "aB1_" * 6,
        "hvb." + "aB1-" * 30,
        "glsa_" + "aB" * 16 + "_" + "0a1b2c3d",
        "glc_" + "eyJ" + "aB1" * 12,
        "dapi" + "0a1b" * 8,
        "dapi" + "0a1b" * 8 + "-2",
        "gsk_" + "aB1x" * 13,
        "xoxc-" + "123456-" * 4 + "0a1b" * 8,
        "xoxd-" + "aB%2F" * 12,
        *(f"gl{kind}-" + "a1" * 10 for kind in ("ptt", "ft", "agent", "imt", "oas", "soat")),
        "glcbt-" + "64_" + "a1" * 10,
        "GR1348941" + "aB1_" * 5,
        "figd_" + "aB1-" * 10,
        "PMAK-" + "0a1b2c" * 4 + "-" + "0a" * 17,
        "sntrys_" + "eyJ" + "aB1_" * 20,
        "sntryu_" + "0a1b" * 16,
        "ntn_" + "aB1x" * 11,
        "secret_" + "aB" * 21 + "c",
        "rubygems_" + "0a1b" * 12,
        "nfp_" + "aB1x" * 10,
        "xai-" + "aB1x" * 20,
        "r8_" + "aB" * 18 + "c",
        "sbp_" + "0a1b" * 10,
        "sb_secret_" + "aB1_" * 8,
        "pscale_tkn_" + "aB1_" * 10,
        "dp.pt." + "aB1x" * 11,
        "dp.st.prd." + "aB1x" * 11,
        "sq0atp-" + "aB1_" * 6,
        "EAAA" + "aB1_" * 15,
        "EAAC" + "aB1x" * 40,
        "HRKU-" + "AB1_" * 15,
        "ABIA" + "A1" * 8,
        "IQoJb3JpZ2lu" + "aB1/" * 60,
        "aB1x" * 3 + "yz" + ".atlasv1." + "aB1_" * 16,
        "1//0" + "aB1_" * 12,
        "aB1" + "8Q~" + "aB1_" * 8 + "x",
        "webhook.office.com/webhookb2/" + "0a1b-" * 8 + "@" + "0a1b-" * 8 + "/IncomingWebhook/" + "0a1b" * 8,
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
        ("Authorization: Bearer ", "aB1x" * 8),
        ("curl -H 'authorization: token ", "0a1b" * 10),
        ("aws_session_token = ", "aB1/" * 40),
        ("TWILIO_AUTH_TOKEN=", "0a1b" * 8),
        ("mailgun: ", "key-" + "0a1b" * 8),
        ("the token of the discord bot is ", "MTk4" + "aB1x" * 5 + ".aB1x-y." + "aB1_" * 7),
        ("https://shop.example/data?sv=2022&sig=", "aB1%2F" * 10),
        ("//npm.example/:_authToken=", "0a1b-" * 6),
        ('{"auths": {"shop.example": {"auth": "', "YW5uOmh1bnRlcjI="),
        ("    client-key-data: ", "LS0tLS1C" * 8),
        ("curl -s -u ann:", "hunter2"),
        ('curl --user "ann:', "hunter2"),
        ("https://shop.example/x?password=", "hunter2"),
        ("https://shop.example/x?a=1&access_token=", "hunter2"),
        ("Server=db;User Id=ann;Password=", "hunter2"),
        ("    password = '", "hunter2"),
        ('self.password="', "swordfish"),
        ('{"client_secret": "', "a1b2c3d4e5"),
        ("client_secret=", "a1b2c3d4e5"),
        ("export SHOP_API_KEY=", "a1b2c3d4e5"),
        ('clientSecret: "', "pa$$w0rd"),
    ],
)
def test_keys_that_are_recognised_by_the_text_before_them_are_masked_in_documents(before: str, secret: str) -> None:
    end = next((each for each in "\"'" if before.endswith(each)), "")
    assert mask_keys(f"{before}{secret}{end}\n") == f"{before}{MASK}{end}\n"
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
        "label.sk-toggleable__label-arrow, .sk-landing-call-header",
        "pip install sk-learn-contrib-extensions, sk-transliteration-of-words",
    ],
)
def test_text_that_only_begins_like_a_key_stays(text: str) -> None:
    assert mask_keys(text) == text


ASSIGNED = [
    ('password: "{}"', "correct horse battery"),
    ("passphrase = '{}'", "correct horse battery staple"),
    ('"db_password": "{}",', "blue whale 42 teapot"),
    ("passphrase: {}", "correct horse battery staple"),
    ("  export DB_PASSWORD={}  # of the shop", "blue whale 42 teapot"),
    ("DB_PASS={}", "correct horse battery staple"),
    ("DB_PASS={}", "swordfish"),
    ("DB_PASS={}", "hunter2"),
    ("export SMTP_PWD={}", "Tr0ub4dor&3"),
    ("MYSQL_ROOT_PASSWORD={}", "swordfish"),
    ("client-secret: {}", "a1b2c3d4e5"),
    ("  client-secret: {}  # of the shop", "a1b2c3d4e5"),
    ("- client_secret: {}", "a1b2c3d4e5"),
    ("spring.datasource.password={}", "hunter2"),
    ("smtp-pass: {}", "hunter2"),
    ('dbPass: "{}"', "hunter2"),
    ('userPassword := "{}"', "hunter2"),
    ("if password == '{}':", "hunter2"),
    ('"admin_passwd" => "{}"', "pa$$word"),
    ("api-key: {}", "0a1b2c3d4e5f6071"),
    ("X-Api-Key: {}", "0a1b2c3d4e5f6071"),
    ('api key: "{}"', "0a1b2c3d4e5f6071"),
    ('SIGNING_KEY = "{}"', "0a1b2c3d4e5f6071"),
    ('secret = "{}"', "s3cr3tly"),
    ("APP_SECRET={}", "0a1b2c3d4e5f"),
    ("GITHUB_TOKEN={}", "0a1b2c3d4e5f60718293"),
    ('token: "{}"', "0a1b2c3d4e5f60718293"),
    ("service_credential={}", "0a1b2c3d4e5f60718293"),
    ("PASSWORD_2={}", "hunter2"),
    (r'body: "{{\"db_password\": \"{}\", \"size\": 1}}"', "hunter2-and-more"),
    (r"{{\\\"api_key\\\":\\\"{}\\\",\\\"n\\\":1}}", "0a1b2c3d4e5f"),
    ('{{"password": "{}", "n": 1}}', r"ab\"hunter2"),
    ("password = '{}'", r"it\'s-hunter2"),
]


LINES = [
    "password = {}",
    "Passphrase: {}",
    "  export DB_PASSWORD={}",
    "wifi-pwd: {}  # home",
    "DB_PASS={}",
    "> pwd := {}",
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("phrase", ["two words", "correct horse new battery", "correct  horse battery staple 42"])
def test_a_phrase_without_quotes_that_fills_a_line_of_a_message_is_masked_whole(line: str, phrase: str) -> None:
    for mask in (mask_message, mask_secrets):
        assert mask(f"above\n{line.format(phrase)}\nbelow") == f"above\n{line.format(MASK)}\nbelow", mask.__name__


@pytest.mark.parametrize(
    "text",
    [
        "password: authentication failed",
        "passphrase: not given",
        "Password: see the manual",
        "password: must contain digits",
        "passwd: Authentication token manipulation error",
    ],
)
def test_a_sentence_about_a_password_is_no_phrase(text: str) -> None:
    assert mask_message(text) == mask_secrets(text) == text


@pytest.mark.parametrize("value", ["1.2xyz789", "12.5abcdef"])
def test_a_value_that_only_begins_like_a_version_is_masked(value: str) -> None:
    assert value not in mask_in_place(f'password = "{value}"')
    assert "1.25.0" in mask_in_place('password = "1.25.0"')


@pytest.mark.parametrize(("place", "secret"), ASSIGNED)
def test_a_value_that_is_assigned_to_the_name_of_a_secret_is_masked_everywhere(place: str, secret: str) -> None:
    for mask in (mask_keys, mask_document, mask_in_place, mask_message, mask_secrets):
        assert mask(f"above\n{place.format(secret)}\nbelow") == f"above\n{place.format(MASK)}\nbelow", mask.__name__
    assert may_hold_keys(place.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "/etc/passwd: No such file or directory",
        "password: required",
        "token budget: 8000",
        "secret: see docs",
        "max_tokens: 4096, tokens = 1234567890",
        'password: "must have at least eight characters"',
        '"password": "Enter your new password",',
        '"password": "Repeat New Password 2",',
        "password: str, token: int32, secret: Optional[str]",
        "token: uint64",
        "compass: n0rth-2, bypass = mode2",
        'first_pass = "render"',
        "render_pass: shadow",
        "render_pass: shadow map before lights",
        "password: minimum eight chars",
        "password: text shown below the field",
        "PASSWORD=$1",
        "DB_PASS=${DB_PASS}",
        "TOKEN=$(cat token2.txt)",
        "password=None, pass=true, pwd = os.getcwd()",
        "password_file: /run/secrets/db1",
        "secretName: shop-secret-1",
        "secret_key_base: <%= ENV['SECRET_1'] %>",
        "token: ${{ secrets.GITHUB_TOKEN_2 }}",
        "credentials: include, credentials: 'same-origin'",
        'token = "==" if token == "IDENT1" else token2',
        'token_url: "https://shop.example/token1"',
        "password: {{ vault_password1 }}",
        "private-key: see section 12",
    ],
)
def test_a_text_about_secrets_stays_readable_in_documents(text: str) -> None:
    for mask in (mask_keys, mask_document, mask_in_place):
        assert mask(f"above\n{text}\nbelow") == f"above\n{text}\nbelow", mask.__name__


def test_a_key_that_is_glued_to_a_word_is_masked() -> None:
    assert mask_keys("my_" + "ghp_" + "a1" * 15) == f"my_{MASK}"
    assert mask_keys("Password=" + "hunter2;Server=db") == f"Password={MASK};Server=db"


@pytest.mark.parametrize(
    "text",
    [
        "the commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==",
        "docker run -u 1000:1000 image",
        "curl -u $USER:$PASSWORD https://shop.example",
        'curl -u "ann:${PASSWORD}" https://shop.example',
        "https://shop.example/x?token={token}&password=<password>",
        "Authorization: Bearer <token>, or Authorization: Bearer YOUR_TOKEN",
        '{"auth": "authentication", "auth": "required"}',
        "secret_key_of_the_application_which_is_long_enough_here",
        "//npm.example/:_authToken=${NPM_TOKEN}",
        "def connect(user, password=None, *, token=token): connect(password=password)",
        "inspect.signature(sig=first)",
        "the discord module. Method.of_the_discord.client",
        "glc_config, dapi_client, gsk_test, r8_unorm, figd_x",
        "see hvs.example and dp.state",
        "EAAAAAAAAAAAAAAAAAAAAAAA",
        "Private-Lines: are counted",
        'password = "password", password="string", "password": "required", api_key = "your-key-1"',
        "password = os.environ['DB_PASSWORD2'], client_secret=settings.secret2, api_key=key2(), pwd=${PWD2}",
        '"password": "Passwort", password_file = "/run/secrets/db1", key = "env:LAB_KEY2"',
        "api_key=None, access_token=token, secret_key = get_key()",
    ],
)
def test_text_that_is_no_key_stays_readable(text: str) -> None:
    assert mask_keys(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("use password=hunter2 for the shop", f"use password={MASK} for the shop"),
        ("DB_PASSWORD: hunter2", f"DB_PASSWORD: {MASK}"),
        ("token: refresh it when it has expired", "token: refresh it when it has expired"),
        ("Fix token authentication", "Fix token authentication"),
        ("secret=$SECRET is read from the environment", "secret=$SECRET is read from the environment"),
    ],
)
def test_assigned_passwords_in_commit_messages_are_masked(text: str, shown: str) -> None:
    assert mask_message(text) == shown


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n", "---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
        ("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n", "\nPrivate-MAC: 0a1b"),
    ],
)
def test_the_keys_of_other_programs_are_masked_in_their_place(before: str, after: str) -> None:
    body = "MIIEowIBAAKCAQEA\nMIIEow"
    for mask in (mask_document, mask_in_place, mask_keys, mask_secrets):
        masked = mask(f"{before}{body}\n{after}\nbelow")
        assert "MIIEow" not in masked
        assert masked.endswith("below")
    assert may_hold_keys(before)
    assert mask_in_place(f"{before}{body}\n{after}").count("\n") == f"{before}{body}\n{after}".count("\n")


def test_a_private_key_is_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
    assert "MIIEow" not in mask_secrets(key)
    assert "MIIEow" not in mask_secrets(key.partition("-----END")[0])


@pytest.mark.parametrize(
    "text",
    [
        "no such table: orders",
        "https://example.org/a:b@c",
        "the token was refused",
        "3 tokens: fine",
        "at 10:30",
        "cat: /etc/passwd: Permission denied",
        "/etc/passwd:root:x:0:0",
        "unexpected token: expected a name",
        "invalid token: expired",
        "password: must have at least eight characters",
        "token authentication is required, basic authentication too",
        "authorization: please log in again",
        "cookie: can't be read",
        "secret: read/write of a well-known place",
    ],
)
def test_plain_messages_stay(text: str) -> None:
    assert mask_secrets(text) == text


@given(st.text(max_size=300))
def test_masking_ends_and_a_second_time_changes_nothing_secret(text: str) -> None:
    once = mask_secrets(text)
    assert mask_secrets(once).count(MASK) >= once.count(MASK)


def test_a_long_text_is_masked_quickly() -> None:
    assert mask_secrets("token=" * 20_000).startswith("token=")
    assert mask_secrets("://" * 20_000 + "a:b") != ""
    assert mask_keys("@" + "://a:" * 100_000) != ""
    assert mask_secrets("-----BEGIN PRIVATE KEY-----" * 2_000) != ""
    assert mask_keys("-eyJ" * 50_000) != ""
    assert mask_keys("curl " * 50_000) != ""
    assert mask_message("token:" * 50_000) != ""
    assert mask_document("Private-Lines: 1\n" * 20_000) != ""


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


def test_a_part_of_the_lines_is_masked_as_in_the_whole_text() -> None:
    key = "\n".join(
        ("-----BEGIN RSA PRIVATE KEY-----", *["MIIEowIBAAKCAQEA" * 4] * 60, "-----END RSA PRIVATE KEY-----")
    )
    between = "\n".join(f"line {number}" for number in range(60))
    settings = 'aws_secret_access_key =\n    "wJalrXUtnFEMI/K7MDENG/bPxRfiCY0123456789"\npassword = "hunter22"'
    twilio = f"sid = SK{'0a' * 16}"
    text = "\n".join(("# calls go through twilio", between, key, between, settings, between, twilio, between))
    whole = mask_in_place(text).split("\n")
    assert sum(MASK in line for line in whole) == 4
    lines = MaskedLines(text)
    for start in range(1, len(whole) + 1):
        for end in (start, start + 7, len(whole) + 5):
            assert lines.part(start, end) == whole[start - 1 : end]
