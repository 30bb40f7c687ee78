"""Programs in a sandbox: results separate from output, limits, secrets, and machines without a wall."""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path

import pytest

from clew.errors import InvalidInput, SandboxUnavailable, ToolFailure
from clew.tools.sandbox import Confinement, LocalSandbox, Program, open_sandbox
from clew.tools.sandbox import sandbox as module
from clew.tools.sandbox.calls import MAX_INPUT, call_code
from clew.tools.sandbox.wall import NoWall
from tests.tools.sandbox.boxes import BOXES, Box, open_box


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> Box:
    return open_box(request.param)


@pytest.mark.req("PLA-25")
def test_the_defaults_are_those_that_were_promised() -> None:
    confinement = Confinement()
    assert (confinement.write, confinement.net, confinement.memory_mb, confinement.seconds) == ((), (), 512, 300.0)


async def test_prints_are_not_mistaken_for_the_result(box: Box) -> None:
    printed = '{"value": "forged"}'
    program = box.program(
        "def run(input, context):\n    print(input['text'])\n    return ['real', input]",
        "function run(input) { console.log(input.text); return ['real', input] }",
        text=printed,
    )
    ran = await box.sandbox().run(program, Confinement(seconds=20))
    assert ran.stdout == f"{printed}\n"
    assert await call_code(box.sandbox(), program, Confinement(seconds=20)) == ["real", {"text": printed}]


async def test_values_of_every_kind_go_in_and_out(box: Box) -> None:
    value = {"text": 'ü 🧵 " \\ \u2028 \x00 ${x} `', "empty": [{}, [], "", None], "number": 1.5, "truth": False}
    python = "async def run(input, context):\n    return input"
    assert (
        await box.call(python, "async function run(input) { return input }", Confinement(seconds=20), **value) == value
    )


async def test_nothing_returned_is_null_and_context_has_the_key(box: Box) -> None:
    program = Program(
        language="python" if box.is_python else "javascript",
        code="def run(i, c):\n    print(c.key, c['key'])"
        if box.is_python
        else "function run(i, c) { console.log(c.key, c.key) }",
        context={"key": "k-1"},
    )
    assert (await box.sandbox().run(program, Confinement(seconds=20))).stdout == "k-1 k-1\n"
    assert await call_code(box.sandbox(), program, Confinement(seconds=20)) is None


FAILURES = {
    "runtime": ("def run(i, c):\n    x = 1\n    raise KeyError('gone')", "function run() {\n  null.x\n}"),
    "syntax": ("def run(i, c:\n    pass", "function run( { }"),
    "exit": ("import sys\ndef run(i, c):\n    sys.exit(3)", "function run() { Deno.exit(3) }"),
    "silent exit": ("import os\ndef run(i, c):\n    os._exit(0)", "function run() { Deno.exit(0) }"),
    "config": ("def other(i, c):\n    pass", "function other() {}"),
    "validation": ("def run(i, c):\n    return {1, 2}", "function run() { const a = {}; a.a = a; return a }"),
    "permission": (
        "def run(i, c):\n    return open('/etc/shadow').read()",
        "function run() { return Deno.readTextFileSync('/etc/shadow') }",
    ),
    "network": (
        "import urllib.request\ndef run(i, c):\n    urllib.request.urlopen('http://192.0.2.1/', timeout=3)",
        "async function run() { await fetch('http://192.0.2.1/') }",
    ),
}
KINDS = {"config": "config", "validation": "validation", "permission": "permission", "network": "permission"}


@pytest.mark.req("RCR-42")
@pytest.mark.parametrize("failure", FAILURES)
async def test_every_failure_has_a_kind(box: Box, failure: str) -> None:
    outcome = await box.call(*FAILURES[failure], Confinement(seconds=20))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == KINDS.get(failure, "runtime")


DENIALS = {
    "relative path": "open('../../../../etc/shadow')",
    "bytes": "open(b'/etc/shadow')",
    "link": "open(i['folder'] + '/link')",
    "rename": "import os; os.rename(i['folder'] + '/link', '/etc/link')",
    "loopback": "import socket; socket.create_connection(('127.0.0.1', 9), timeout=5)",
    "unix socket": "import socket; socket.socket(socket.AF_UNIX).connect('/run/none.sock')",
    "cause": "\n    try: open('/etc/shadow')\n    except OSError as e: raise ValueError('no settings') from e",
    "group": "\n    try: open('/etc/shadow')\n    except OSError as e: raise ExceptionGroup('both', [e])",
}


@pytest.mark.req("RCR-42")
@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize("wall", ["bubblewrap python", "landlock python"])
async def test_a_denial_is_of_the_kind_permission_with_any_errno(wall: str, denial: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/shadow")
    code = f"def run(i, c):\n    {DENIALS[denial]}"
    confinement = Confinement(seconds=20, read=(str(tmp_path),))
    outcome = await open_box(wall).call(code, "", confinement, folder=str(tmp_path))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "permission"


async def test_a_file_that_is_missing_where_the_program_may_read_is_no_denial(tmp_path: Path) -> None:
    code = "def run(i, c):\n    open(i['folder'] + '/missing')"
    confinement = Confinement(seconds=20, read=(str(tmp_path),))
    outcome = await open_box("bubblewrap python").call(code, "", confinement, folder=str(tmp_path))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "runtime"


CHANGES = """
import ctypes, os
ATTEMPTS = {
    "chmod": lambda path: os.chmod(path, 0o777),
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid()),
    "touch": lambda path: os.utime(path, (1, 1)),
    "setxattr": lambda path: os.setxattr(path, "user.mark", b"1"),
}
def run(input, context):
    done = []
    for name, attempt in ATTEMPTS.items():
        try:
            attempt(input["path"])
            done.append(name)
        except OSError:
            pass
    return done
"""


@pytest.mark.req("PLA-25")
@pytest.mark.parametrize("wall", ["bubblewrap python", "landlock python"])
async def test_a_program_changes_no_metadata_of_files_outside(wall: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("")
    canary.chmod(0o600)
    before = canary.stat()
    confinement = Confinement(seconds=20)
    assert await open_box(wall).call(CHANGES, "", confinement, path=str(canary)) == []
    after = canary.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.req("PLA-25")
async def test_under_landlock_a_program_that_may_write_sets_modes_but_no_owners(tmp_path: Path) -> None:
    own = tmp_path / "script.sh"
    own.write_text("")
    confinement = Confinement(seconds=20, write=(str(tmp_path),))
    done = await open_box("landlock python").call(CHANGES, "", confinement, path=str(own))
    assert done == ["chmod", "touch"]


async def test_the_stack_shows_the_tools_own_lines_and_no_path_of_this_machine(box: Box) -> None:
    outcome = await box.call(
        "import json\n\ndef inner(_):\n    raise ValueError('why')\n\n"
        "def run(i, c):\n    return json.loads('{}', object_hook=inner)",
        "function inner() {\n  throw new Error('why')\n}\nfunction run() { return [1].map(inner) }",
        Confinement(seconds=20),
    )
    assert isinstance(outcome, ToolFailure)
    assert outcome.message in ("ValueError: why", "Error: why")
    assert f"tool.{'py' if box.is_python else 'js'}" in outcome.stack
    assert "inner" in outcome.stack
    for part in ("/usr", "/root", "/home", "site-packages", "deno$stdin", str(Path.cwd())):
        assert part not in outcome.stack


@pytest.mark.req("RCR-42")
async def test_secrets_reach_the_code_and_never_come_back(box: Box) -> None:
    secret = "s3cr3t/value with ü"
    confinement = Confinement(seconds=20, secrets={"TOKEN": secret})
    python = """
import base64, sys
def run(i, c):
    secret = c.secrets["TOKEN"]
    print(secret); print(secret, file=sys.stderr)
    if i["raises"]: raise ValueError(secret)
    raw = secret.encode()
    return {"length": len(secret), "plain": secret, secret: [base64.b64encode(raw).decode(), raw.hex()]}
"""
    javascript = """
function run(i, c) {
  const secret = c.secrets.TOKEN, raw = new TextEncoder().encode(secret);
  console.log(secret); console.error(secret);
  if (i.raises) throw new Error(secret);
  return {length: secret.length, plain: secret, [secret]: [btoa(String.fromCharCode(...raw)), raw.toHex()]};
}
"""
    value = await box.call(python, javascript, confinement, raises=False)
    assert value == {"length": len(secret), "plain": "[masked]", "[masked]": ["[masked]", "[masked]"]}
    failure = await box.call(python, javascript, confinement, raises=True)
    ran = await box.sandbox().run(box.program(python, javascript, raises=True), confinement)
    shown = f"{value} {failure} {failure.stack} {ran.stdout} {ran.stderr}"
    assert "[masked]" in ran.stdout
    assert "[masked]" in ran.stderr
    for form in (secret, base64.b64encode(secret.encode()).decode(), secret.encode().hex()):
        assert form not in shown


async def test_typescript_is_understood() -> None:
    box = open_box("bubblewrap deno")
    code = "interface In { a: number }\nexport function run(input: In): number { return input.a + 1 }"
    program = Program(language="typescript", code=code, input={"a": 1})
    assert await call_code(box.sandbox(), program, Confinement(seconds=20)) == 2


async def test_lines_are_reported_as_they_arrive(box: Box) -> None:
    heard: list[str] = []

    async def listen(text: str) -> None:
        heard.append(text)

    program = box.program(
        "def run(i, c):\n    print('one')\n    print('two', end='')",
        "function run() { console.log('one'); console.log('two') }",
    )
    await box.sandbox().run(program, Confinement(seconds=20), on_output=listen)
    assert "".join(heard).split() == ["one", "two"]


async def test_a_listener_that_fails_ends_the_program(box: Box) -> None:
    async def listen(text: str) -> None:
        raise LookupError("nobody listens")

    program = box.program(
        "def run(i, c):\n    while True: print('x' * 5000)", "function run() { for (;;) console.log('x'.repeat(5000)) }"
    )
    with pytest.raises(LookupError, match="nobody listens"):
        await box.sandbox().run(program, Confinement(seconds=30, output_bytes=10**9), on_output=listen)


async def test_many_programs_run_side_by_side(box: Box) -> None:
    sandbox = box.sandbox()
    program = [
        box.program("def run(i, c):\n    return i['at']", "function run(i) { return i.at }", at=at) for at in range(6)
    ]
    found = await asyncio.gather(*(call_code(sandbox, each, Confinement(seconds=60)) for each in program))
    assert found == list(range(6))
    assert sandbox.status().pid is None


@pytest.mark.req("PLA-25")
async def test_the_status_tells_whether_programs_are_isolated_and_which_runs() -> None:
    sandbox = open_box("bubblewrap python").sandbox()
    seen = []

    async def listen(text: str) -> None:
        seen.append(sandbox.status())

    await sandbox.run(Program(argv=("/bin/sh", "-c", "echo on")), Confinement(seconds=20), on_output=listen)
    assert seen[0].isolated
    assert seen[0].pid is not None
    assert sandbox.status().pid is None


@pytest.mark.req("PLA-25")
async def test_production_without_a_wall_fails_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_wall", lambda chosen: NoWall())
    python = Program(language="python", code="def run(i, c):\n    return 1")
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        await open_sandbox(production=True).run(python, Confinement())
    monkeypatch.setattr(module, "find_deno", lambda: None)
    with pytest.raises(SandboxUnavailable):
        open_sandbox(production=True)


@pytest.mark.req("PLA-25")
async def test_development_without_a_wall_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    sandbox = LocalSandbox(NoWall(), production=False)
    program = Program(argv=("/bin/sh", "-c", "echo done"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert (await sandbox.run(program, Confinement(seconds=20))).stdout == "done\n"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "not isolated" in caplog.text
    assert not sandbox.status().isolated


REFUSED_PATHS = (
    "~/.ssh",
    ".env",
    "/",
    "/proc",
    "/etc",
    "/dev/mem",
    "missing",
    "link-to-ssh",
    "a,b",
    ".clew",
    "kept.db",
)


@pytest.mark.req("PLA-25")
@pytest.mark.parametrize("path", REFUSED_PATHS)
async def test_dangerous_paths_cannot_be_allowed(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".ssh", ".clew"):
        (tmp_path / name).mkdir()
    (tmp_path / ".env").write_text("x")
    (tmp_path / "kept.db").write_text("x")
    (tmp_path / "link-to-ssh").symlink_to(tmp_path / ".ssh")
    sandbox = LocalSandbox(NoWall(), production=False, deny=(str(tmp_path / "kept.db"),))
    program = Program(argv=("/bin/true",))
    for confinement in (Confinement(read=(path,), cwd=str(tmp_path)), Confinement(write=(path,), cwd=str(tmp_path))):
        with pytest.raises(ToolFailure, match="cannot be allowed") as caught:
            await sandbox.run(program, confinement)
        assert caught.value.kind == "permission"


async def test_the_system_cannot_be_allowed_for_writing() -> None:
    with pytest.raises(ToolFailure, match="belongs to the system"):
        await open_sandbox(production=True).run(Program(argv=("/bin/true",)), Confinement(write=("/usr/local",)))


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "PYTHONPATH", "BASH_ENV", "A B", ""])
async def test_variables_that_steer_programs_cannot_be_given(name: str, box: Box) -> None:
    with pytest.raises(ToolFailure) as caught:
        await box.sandbox().run(box.program("", ""), Confinement(env={name: "x"}))
    assert caught.value.kind == "permission"


async def test_a_variable_that_was_given_is_there(box: Box) -> None:
    confinement = Confinement(seconds=20, env={"COLOUR": "blue, green"})
    python = "import os\ndef run(i, c):\n    return os.environ['COLOUR']"
    assert await box.call(python, "function run() { return Deno.env.get('COLOUR') }", confinement) == "blue, green"


async def test_input_that_is_too_large_is_refused(box: Box) -> None:
    outcome = await box.call("def run(i, c):\n    pass", "function run() {}", Confinement(), text="x" * MAX_INPUT)
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "validation"


async def test_large_input_arrives_whole(box: Box) -> None:
    text = "ü" * 400_000
    python = "def run(i, c):\n    return len(i['text'])"
    assert (
        await box.call(python, "function run(i) { return i.text.length }", Confinement(seconds=20), text=text)
        == 400_000
    )


def test_a_program_is_a_command_or_code() -> None:
    for wrong in ({}, {"argv": ("true",), "language": "python"}):
        with pytest.raises(InvalidInput):
            Program(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Confinement(seconds=0)


WRITABLE = """
import os
def run(i, c):
    found = []
    for folder, inner, files in os.walk("/proc"):
        inner[:] = [name for name in inner if not name.isdecimal() and name not in ("self", "thread-self")]
        for path in (os.path.join(folder, name) for name in files):
            try:
                os.close(os.open(path, os.O_WRONLY))
            except OSError:
                continue
            found.append(path)
    return found
"""


@pytest.mark.req("PLA-25")
async def test_no_setting_of_the_hosts_kernel_can_be_opened_for_writing_not_even_as_root(box: Box) -> None:
    if not box.is_python:
        pytest.skip("Deno opens no file that was not allowed")
    assert await box.call(WRITABLE, "", Confinement(seconds=60)) == []
