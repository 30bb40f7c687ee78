"""Accepted and refused callers."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from clew.access import ROLES, VERBS, Principal
from clew.adapters.rest import open_keys
from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.operation import RestOperation
from clew.clock import ManualClock, SystemClock
from clew.errors import ConfigError, NotAuthenticated
from tests.servers import Served, give_key, private_key, serve

ASKED = {"owner_id": "ada", "agent_id": "a1", "roles": ["curator"]}


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


@pytest.mark.req("RCR-17")
async def test_a_token_is_issued_for_the_credential_and_carries_who_and_how_long(server: Served) -> None:
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        for header in ({"X-Clew-Credential": server.credential}, {"Authorization": f"Bearer {server.credential}"}):
            asked = ASKED | {"scopes": ["team"], "session": "s1"}
            issued = (await http.post("/auth/token", json=asked, headers=header)).json()
            assert jwt.get_unverified_header(issued["token"])["alg"] == "RS256"
            claims = claims_of(issued["token"])
            assert {name: claims[name] for name in asked} == asked
            assert claims["exp"] - claims["iat"] == issued["expires_in"] == 3600
            bearer = {"Authorization": f"Bearer {issued['token']}"}
            assert (await http.get("/breadcrumbs", headers=bearer)).status_code == 200


@pytest.mark.req("RCR-17")
@pytest.mark.parametrize("credential", [None, "", "wrong", "é", "x" * 10_000])
async def test_no_token_is_issued_without_the_credential(server: Served, credential: str | None) -> None:
    headers = {b"X-Clew-Credential": credential.encode()} if credential is not None else {}
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        refused = await http.post("/auth/token", json=ASKED, headers=headers)
    assert refused.status_code == 401
    assert refused.json()["error"]["code"] == "not_authenticated"
    assert server.credential not in refused.text


@pytest.mark.parametrize(
    ("change", "field"),
    [({"roles": ["king"]}, "roles"), ({"roles": []}, "roles"), ({"owner_id": "a b"}, "owner_id"), ({"x": 1}, "x")],
)
async def test_a_token_for_nobody_in_particular_is_refused(server: Served, change: Any, field: str) -> None:
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        headers = {"X-Clew-Credential": server.credential}
        refused = await http.post("/auth/token", json=ASKED | change, headers=headers)
    assert refused.status_code == 422
    assert refused.json()["error"]["field"].startswith(field)


@pytest.mark.req("RCR-17")
async def test_a_token_works_until_it_expires_even_when_it_was_just_used(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serve(tmp_path, clock=clock) as served, served.client() as http:
        assert (await http.get("/breadcrumbs")).status_code == 200
        clock.advance(minutes=59)
        assert (await http.get("/breadcrumbs")).status_code == 200
        clock.advance(minutes=2)
        refused = await http.get("/breadcrumbs")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "expired" in refused.json()["error"]["message"]


def forged(**change: Any) -> dict[str, Any]:
    now = int(SystemClock().now().timestamp())
    claims = {"iss": "clew", "aud": "clew", "iat": now, "exp": now + 600, "owner_id": "ada", "agent_id": "a1"}
    return claims | {"roles": ["curator"], "scopes": []} | change


def signed(claims: dict[str, Any]) -> str:
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, private_key(), "RS256")


@pytest.mark.req("RCR-17")
@pytest.mark.parametrize(
    "token",
    [
        "not-a-token",
        "a.b.c",
        jwt.encode(forged(), None, algorithm="none"),
        jwt.encode(forged(), "x" * 40, algorithm="HS256"),
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 10**18},
        {"aud": "other"},
        {"aud": "clew-stream"},
        {"iss": "other"},
        {"owner_id": None},
        {"owner_id": ["ada"]},
        {"owner_id": ""},
        {"roles": ["king"]},
    ],
)
async def test_a_token_that_this_server_did_not_issue_for_calls_is_refused(
    server: Served, token: str | dict[str, Any]
) -> None:
    token = token if isinstance(token, str) else signed(forged(**token))
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        refused = await http.get("/breadcrumbs", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401, refused.text


async def test_the_forgery_that_the_other_tests_alter_would_be_accepted(server: Served) -> None:
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        accepted = await http.get("/breadcrumbs", headers={"Authorization": f"Bearer {signed(forged())}"})
    assert accepted.status_code == 200


def probe(operation: RestOperation) -> dict[str, Any]:
    path = operation.path.replace("{id}", "none").replace("{n}", "1").replace("{name}", "none")
    return {"method": operation.method, "url": path, "json": {} if operation.body is not None else None}


GUARDED = [each for each in OPERATIONS if each.guard == "token"]
ROLE_SETS = [frozenset[str](), *(frozenset([role]) for role in sorted(ROLES)), ROLES]


@pytest.mark.req("RCR-18")
@pytest.mark.parametrize("roles", ROLE_SETS, ids=lambda roles: " ".join(sorted(roles)) or "none")
async def test_operations_are_open_to_the_roles_of_their_verbs_and_closed_to_others(
    server: Served, owner: str, roles: frozenset[str]
) -> None:
    assert len(GUARDED) > 60
    wrong = []
    async with server.client(owner, roles) as theirs, server.client("local", roles) as local:
        for operation in GUARDED:
            http = local if operation.path.startswith(("/hygiene", "/sources")) else theirs
            response = await http.request(**probe(operation))
            if (response.status_code == 403) != roles.isdisjoint(VERBS[operation.verb]):
                wrong.append((operation.method, operation.path, response.text))
    assert wrong == []


async def test_every_operation_is_closed_without_a_token(server: Served) -> None:
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        statuses = {each.method + each.path: (await http.request(**probe(each))).status_code for each in GUARDED}
    assert set(statuses.values()) == {401}, statuses


async def test_a_call_token_in_the_query_string_is_refused_everywhere(server: Served) -> None:
    token = server.keys.issue(Principal(owner_id="ada", agent_id="a")).token
    async with httpx.AsyncClient(verify=False, base_url=server.url) as http:
        assert (await http.get("/events/stream", params={"token": token})).status_code == 401
        assert (await http.get("/breadcrumbs", params={"token": token})).status_code == 401


async def test_a_stream_token_opens_nothing_but_a_stream(server: Served, http: httpx.AsyncClient) -> None:
    issued = (await http.post("/auth/stream-token")).json()
    assert issued["expires_in"] == 60
    async with httpx.AsyncClient(verify=False, base_url=server.url) as bare:
        bearer = {"Authorization": f"Bearer {issued['token']}"}
        assert (await bare.get("/breadcrumbs", headers=bearer)).status_code == 401
        assert (await bare.get("/breadcrumbs", params={"token": issued["token"]})).status_code == 401
        async with bare.stream("GET", "/events/stream", params={"token": issued["token"]}) as stream:
            assert stream.status_code == 200


def test_a_stream_token_expires_in_a_minute_and_its_stream_with_the_callers_own(tmp_path: Path) -> None:
    clock = ManualClock()
    give_key(tmp_path)
    keys = open_keys(tmp_path, clock)
    caller = keys.verify(keys.issue(Principal(owner_id="ada", agent_id="a")).token)
    token = keys.issue_for_stream(caller).token
    clock.advance(seconds=59)
    assert keys.remaining(keys.verify_for_stream(token)) == timedelta(minutes=59, seconds=1)
    clock.advance(seconds=2)
    with pytest.raises(NotAuthenticated, match="expired"):
        keys.verify_for_stream(token)


def test_keys_and_credential_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    open_keys(tmp_path / "new", SystemClock())
    files = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"private.pem", "credential"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "new" / "keys").stat().st_mode) == 0o700


def test_processes_that_start_together_agree_on_one_key_and_credential(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: open_keys(tmp_path, SystemClock()), range(4)))
    token = opened[0].issue(Principal(owner_id="ada", agent_id="a")).token
    credential = (tmp_path / "credential").read_text().strip()
    for keys in opened:
        assert keys.verify(token).principal.owner_id == "ada"
        keys.check_credential(credential)


@pytest.mark.parametrize("text", ["", "\n", "   ", "too short"])
def test_a_credential_that_anybody_could_guess_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    give_key(tmp_path)
    (tmp_path / "credential").write_text(text)
    with pytest.raises(ConfigError, match="credential"):
        open_keys(tmp_path, SystemClock())
    assert (tmp_path / "credential").read_text() == text


def test_a_folder_keeps_its_keys_over_a_restart(tmp_path: Path) -> None:
    token = open_keys(tmp_path, SystemClock()).issue(Principal(owner_id="ada", agent_id="a")).token
    assert open_keys(tmp_path, SystemClock()).verify(token).principal.agent_id == "a"


def test_only_so_many_verified_tokens_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.adapters.rest.auth._REMEMBERED", 3)
    give_key(tmp_path)
    keys = open_keys(tmp_path, SystemClock())
    tokens = [keys.issue(Principal(owner_id=f"o{number}", agent_id="a")).token for number in range(6)]
    for token in tokens * 2:
        keys.verify(token)
    assert len(keys._verified) == 3
