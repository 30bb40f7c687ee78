"""Entries in the settings of coding agents: all earlier content stays."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.cli.servers.client_formats import ServerLaunch
from clew.cli.servers.clients import CLIENTS, ENTRY, ClientFile
from clew.errors import ConfigError
from clew.jsonc import read_object

LAUNCH = ServerLaunch("clew", ("mcp", "--folder", '/home/ann/my "shop" 🜁/.clew'))
OTHER = ServerLaunch("/opt/clew", ("mcp",))
_OTHER_KEYS = {
    "zed": "context_servers",
    "vscode": "servers",
    "goose": "extensions",
    "codex": "mcp_servers",
    "opencode": "mcp",
}
KEYS = {client.name: _OTHER_KEYS.get(client.name, "mcpServers") for client in CLIENTS}
READERS: dict[str, Callable[[str], Any]] = {"goose": yaml.safe_load, "codex": tomllib.loads}
JSON_CLIENTS = [each for each in CLIENTS if each.name in ("claude-code", "zed", "opencode")]
"""One for each shape of an entry; the others differ in their file and key."""

CODEX = next(each for each in CLIENTS if each.name == "codex")
GOOSE = next(each for each in CLIENTS if each.name == "goose")

names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=("C", "Z")), max_size=12)
plain = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), texts)
tables = st.dictionaries(names, st.one_of(plain, st.lists(texts, max_size=3)), max_size=4)
servers = st.dictionaries(names.filter(lambda name: name != ENTRY), tables, max_size=4)


def read(client: ClientFile, text: str) -> Any:
    return READERS.get(client.name, json.loads)(text)


def check(client: ClientFile, before: str, launch: ServerLaunch = LAUNCH) -> str:
    """Add the entry and show that everything else is as it was."""
    after = client.format.add(before, ENTRY, launch)
    known, found, key = read(client, before or "") if before.strip() else {}, read(client, after), KEYS[client.name]
    assert client.format.entries(after)[ENTRY] == launch
    del found[key][ENTRY]
    left = {**(known or {}), key: {**((known or {}).get(key) or {})}}
    left[key].pop(ENTRY, None)
    assert found == left
    assert client.format.add(after, ENTRY, launch) == after
    return after


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_an_entry_goes_into_nothing_and_is_replaced_by_another(client: ClientFile) -> None:
    first = check(client, "")
    assert check(client, "\n \n") == first
    second = check(client, first, OTHER)
    assert check(client, second) == first


@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
@settings(max_examples=20)
@given(data=st.data())
def test_json_keeps_all_former_entries(client: ClientFile, data: st.DataObject) -> None:
    known: dict[str, Any] = data.draw(st.dictionaries(names, st.one_of(plain, tables), max_size=3))
    known[KEYS[client.name]] = data.draw(servers)
    indent = data.draw(st.sampled_from([None, 2, 4, "\t"]))
    check(client, json.dumps(known, indent=indent, ensure_ascii=data.draw(st.booleans())))


def toml(table: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())


@settings(max_examples=40)
@given(top=tables, found=servers, more=tables, order=st.booleans())
def test_toml_keeps_all_former_entries(top: Any, found: Any, more: Any, order: bool) -> None:
    sections = [f"[mcp_servers.{name}]\n{toml(table)}" for name, table in found.items()]
    if order:
        sections.insert(len(sections) // 2, f"# about more\n[more]\n{toml(more)}\n")
    top = {key: value for key, value in top.items() if key not in ("more", "mcp_servers")}
    check(CODEX, toml(top) + "\n".join(sections))


@settings(max_examples=40)
@given(top=tables, found=servers, indent=st.sampled_from([2, 3, 4]), last=st.booleans())
def test_yaml_keeps_all_former_entries(top: Any, found: Any, indent: int, last: bool) -> None:
    top = {key: value for key, value in top.items() if key != "extensions"}
    rest = yaml.safe_dump(top, allow_unicode=True) if top else ""
    own = yaml.safe_dump({"extensions": found}, indent=indent, allow_unicode=True) if found else "extensions:\n"
    text = rest + own if last else own + rest
    check(GOOSE, text)


def test_yaml_with_wider_indentation_is_not_mixed_up() -> None:
    text = "GOOSE_MODEL: x\nextensions:\n    developer:\n        enabled: true\n        type: builtin\n"
    assert "    clew:\n        enabled: true\n" in check(GOOSE, text)


def test_comments_of_toml_and_yaml_stay() -> None:
    own = "[mcp_servers.clew]\n# old\ncommand = 'old'\n"
    text = f"# mine\nmodel = 'x' # really\n\n{own}\n# about b\n[mcp_servers.b]\ncommand = 'b'\n"
    after = check(CODEX, text)
    assert after.startswith("# mine\nmodel = 'x' # really\n")
    assert "\n# about b\n[mcp_servers.b]\n" in after
    text = "# mine\nextensions:\n  # about a\n  a:\n    enabled: true # yes\n# the end\n"
    after = check(GOOSE, text)
    assert all(comment in after for comment in ("# mine", "# about a", "# yes", "# the end"))


def test_settings_below_our_own_table_stay() -> None:
    text = "[mcp_servers.clew]\ncommand = 'old'\n\n[mcp_servers.clew.env]\nCLEW_OWNER = 'ann'\n"
    found = tomllib.loads(CODEX.format.add(text, ENTRY, LAUNCH))["mcp_servers"]["clew"]
    assert (found["command"], found["env"]) == ("clew", {"CLEW_OWNER": "ann"})


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "not JSON",
        '{"a": 1 "b": 2}',
        '{"a": 1',
        "{} {}",
        "{" + ", ".join(f'"{key}": {{}}' for key in ("mcpServers", "context_servers", "mcp") * 2) + "}",
        '{"a": NaN}',
        "{'a': 1}",
        '{"a": "\n"}',
        "[" * 100_000,
        '{"n": ' + "9" * 5_000 + "}",
        "/*" * 100_000 + "{",
    ],
    ids=range(13),
)
@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
def test_json_that_cannot_be_understood_is_refused(client: ClientFile, text: str) -> None:
    with pytest.raises(ConfigError, match="by hand"):
        client.format.add(text, ENTRY, LAUNCH)


def is_within(before: str, after: str) -> bool:
    """Whether removing parts of one text gives the other, ignoring spaces."""
    left = iter("".join(after.split()))
    return all(character in left for character in "".join(before.split()))


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // my servers\n  "KEY": {}\n}',
        '{\n  "KEY": {\n    // none yet\n  },\n}\n',
        '{"KEY": { /* none */ }}',
        '{\n\t"a": [1,2,\n3], // odd\n\t"KEY": {\n\t\t"x": {"command":"y"}\n\t\t// the end\n\t}\n}',
        '{ "a": 1,\n "b": {"deep": [{}]} /* over\n two lines */\n}\n// end',
        '{"a": 1,}',
        "{\n}\n",
        "{}",
        "// nothing but this\n",
        '\ufeff{"a": "\ufeff//no comment /* nor this"}',
        '{"a": 1, "a": 2}',
        '{"a": 1e999, "b": 1.50, "c": "\\ud800"}',
        '{\n  "KEY": {\n    "x": {}\n    ,\n  }\n}',
        '{\n  "KEY": {\n    "clew": {"command": "old"}, // ours\n    "x": {}\n  }\n}',
    ],
    ids=range(14),
)
@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
def test_text_around_our_entry_stays_as_it_is(client: ClientFile, text: str) -> None:
    before = text.replace("KEY", KEYS[client.name])
    after = client.format.add(before, ENTRY, LAUNCH)
    assert after != before
    assert client.format.add(after, ENTRY, LAUNCH) == after
    found = read_object(after)
    assert client.format.entries(after)[ENTRY] == LAUNCH
    del found[KEYS[client.name]][ENTRY]
    known = read_object(before)
    known.setdefault(KEYS[client.name], {}).pop(ENTRY, None)
    assert found == known
    for comment in ("// my servers", "// none yet", "/* none */", "// odd", "// the end", "two lines */", "// ours"):
        assert (comment in before) == (comment in after)
    assert is_within(before.replace('"old"', ""), after)


@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
def test_servers_that_are_no_object_are_refused(client: ClientFile) -> None:
    with pytest.raises(ConfigError, match="is not an object"):
        client.format.add(json.dumps({KEYS[client.name]: [1]}), ENTRY, LAUNCH)


@pytest.mark.parametrize(
    "text",
    [
        "a = ",
        "mcp_servers = 1\n",
        "mcp_servers = {a = {command = 'x'}}\n",
        "mcp_servers = {clew = {command = 'x'}}\n",
        "[mcp_servers]\nclew = {command = 'x'}\n",
        "[mcp_servers]\nclew = 5\n",
        "[[mcp_servers]]\na = 1\n",
        '[mcp_servers."clew"]\ncommand = "x"\n',
        "[mcp_servers.clew]\ncommand = 'x'\nargs = [\n[1],\n]\n",
        "note = '''\n[mcp_servers.clew]\nx\n'''\n[mcp_servers.clew]\ncommand = 'x'\n",
    ],
    ids=range(10),
)
def test_toml_in_an_unusual_shape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="by hand"):
        CODEX.format.add(text, ENTRY, LAUNCH)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "- a\n- b\n",
        "extensions: 5\n",
        "extensions: {}\n",
        "extensions: {a: {enabled: true}}\n",
        "extensions: # here\n  a:\n    enabled: true\n",
        "extensions:\n- a\n",
        "extensions:\n  'clew':\n    enabled: false\n",
        "other:\n  clew:\n    a: 1\nextensions:\n  clew: {enabled: false}\n",
        "a: 1\n---\nb: 2\n",
        "date: 2024-99-99\n",
        "\tx: 1",
    ],
    ids=range(12),
)
def test_yaml_in_an_unusual_shape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="by hand"):
        GOOSE.format.add(text, ENTRY, LAUNCH)
