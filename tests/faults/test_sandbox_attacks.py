"""Code that wants out. Each attack runs behind each wall, as the user of the tests and, where that is root, once more
as an ordinary user."""

from __future__ import annotations

import asyncio
import io
import os
import re
import socket
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement, Program
from tests.tools.sandbox.boxes import BOXES, Box, open_box, processes_tagged

pytestmark = [
    pytest.mark.req("PLA-25"),
    pytest.mark.req("RCR-42"),
    pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: the walls are those of Linux"),
]

TREASURE = "treasure-5d1f"
SECRET_FILES = (
    *(
        "id_rsa",
        "server.pem",
        ".npmrc",
        ".envrc",
        "keys/.ENV",
        "Server.KEY",
        "credentials.json",
        "deep/.git-credentials",
    ),
    *("node_modules/x/.env", "node_modules/@a/b/.npmrc", "site-packages/x/.env", "secrets.yaml"),
)


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> Box:
    return open_box(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with secrets, and below it the folder `project`, which tools are allowed to read and to write."""
    home = tmp_path / "home"
    secrets = (".ssh/id_ed25519", ".aws/credentials", ".env", "trail.db", "trail.db-wal", "sessions/other/notes.txt")
    inside = (".env", ".env.local", "deep/down/.env", ".clew/trail.db", "store.db", "store.db-wal", *SECRET_FILES)
    for name in (*secrets, *(f"project/{each}" for each in inside)):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TREASURE)
    project = home / "project"
    (project / "open.txt").write_text("open to all")
    (project / "work").mkdir()
    (project / "shortcut").symlink_to(home / ".ssh")
    (project / "env-link").symlink_to(project / ".env")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TREASURE", TREASURE)
    return home


def allowed(home: Path, **more: Any) -> Confinement:
    project = str(home / "project")
    values: dict[str, Any] = {"read": (project,), "write": (project,), "cwd": project, "seconds": 20, **more}
    return Confinement(deny=(str(home / "project/store.db"),), **values)


def everything_below(folder: Path) -> list[str]:
    """Files and links, and files by way of a link to their folder."""
    found = [str(path) for path in folder.rglob("*") if not path.is_dir()]
    return [*found, str(folder / "project/shortcut/id_ed25519")]


def told(outcome: Any) -> str:
    if isinstance(outcome, ToolFailure):
        return f"{outcome.kind} {outcome} {outcome.stack}"
    return repr(outcome)


READ = """
import os

def run(input, context):
    got = []
    for path in input["paths"]:
        link = f"/tmp/link-{len(got)}"
        try: os.symlink(path, link)
        except OSError: pass
        for way in (path, link, "/proc/1/root" + path, "/proc/self/root" + path, "/proc/1/cwd" + path,
                    "/proc/self/cwd/../../../../../../.." + path, "/tmp/../.." + path):
            try: got.append(open(way).read())
            except OSError: pass
    return got
"""
READ_JS = """
import fs from "node:fs";
async function run(input) {
  const got = [];
  for (const path of input.paths) {
    for (const way of [path, "/proc/1/root" + path, "/proc/self/root" + path, "/tmp/../.." + path]) {
      try { got.push(Deno.readTextFileSync(way)) } catch {}
      try { got.push(fs.readFileSync(way, "utf8")) } catch {}
      try { got.push(await (await fetch("file://" + way)).text()) } catch {}
    }
    for (const type of ["json", "text", "bytes"]) {
      const source = `import found from ${JSON.stringify("file://" + path)} with {type: "${type}"}; export {found};`;
      const blob = new Blob([source], {type: "application/javascript"});
      try { got.push((await import(URL.createObjectURL(blob))).found) } catch {}
      try { got.push((await import("file://" + path, {with: {type}})).default) } catch {}
    }
  }
  return got.map(String);
}
"""


async def test_files_of_others_cannot_be_read_but_those_allowed_can(box: Box, home: Path) -> None:
    outcome = await box.call(READ, READ_JS, allowed(home), paths=everything_below(home))
    assert TREASURE not in told(outcome)
    assert "open to all" in told(outcome)


async def test_nothing_can_be_read_where_nothing_is_allowed(box: Box, home: Path) -> None:
    paths = [*everything_below(home), "/etc/shadow", "/etc/passwd"]
    outcome = await box.call(READ, READ_JS, Confinement(seconds=20), paths=paths)
    assert outcome == []


WRITE = """
import os

def run(input, context):
    done = []
    for path in input["paths"]:
        for mode in ("w", "a"):
            try:
                with open(path, mode) as file: file.write("owned")
                done.append(path)
            except OSError: pass
        for change in (os.unlink, lambda path: os.chmod(path, 0o777), lambda path: os.rename(path, path + ".gone")):
            try: change(path)
            except OSError: pass
    with open(os.path.join(input["work"], "made.txt"), "w") as file: file.write("made")
    return done
"""
WRITE_JS = """
function run(input) {
  const done = [];
  for (const path of input.paths) {
    for (const change of [() => Deno.writeTextFileSync(path, "owned"), () => Deno.removeSync(path),
                          () => Deno.chmodSync(path, 0o777), () => Deno.renameSync(path, path + ".gone"),
                          () => Deno.linkSync(path, input.work + "/hard")]) {
      try { change(); done.push(path) } catch {}
    }
  }
  Deno.writeTextFileSync(input.work + "/made.txt", "made");
  return done;
}
"""


async def test_nothing_is_written_but_in_the_folder_that_was_allowed(box: Box, home: Path) -> None:
    paths = [*everything_below(home), str(home / "new.txt"), "/usr/new.txt", "/etc/passwd"]
    guarded = [
        path
        for path in paths
        if Path(path).is_file() and not Path(path).is_symlink() and TREASURE in Path(path).read_text()
    ]
    outcome = await box.call(
        WRITE, WRITE_JS, allowed(home), paths=[*guarded, *paths[-3:]], work=str(home / "project/work")
    )
    assert (home / "project/work/made.txt").read_text() == "made", told(outcome)
    assert [path for path in guarded if Path(path).read_text() != TREASURE] == []
    assert not (home / "new.txt").exists()
    assert not Path("/usr/new.txt").exists()


async def test_a_folder_that_may_only_be_read_is_not_written(box: Box, home: Path) -> None:
    confinement = Confinement(read=(str(home / "project"),), seconds=20)
    outcome = await box.call(WRITE, WRITE_JS, confinement, paths=[], work=str(home / "project/work"))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "permission"
    assert not (home / "project/work/made.txt").exists()


MOVE_JS = """
function run(input) {
  const got = [];
  for (const folder of ["deep/down", "deep", "keys", "node_modules/x", "node_modules"]) {
    const to = input.project + "/work/moved-" + folder.replace("/", "-");
    try { Deno.renameSync(input.project + "/" + folder, to) } catch {}
    for (const name of [".env", ".ENV", "down/.env", ".git-credentials", "x/.env"]) {
      try { got.push(Deno.readTextFileSync(to + "/" + name)) } catch {}
    }
  }
  return got;
}
"""
MOVE = """
import os

def run(input, context):
    got = []
    for folder in ("deep/down", "deep", "keys", "node_modules/x", "node_modules"):
        to = os.path.join(input["project"], "work", "moved-" + folder.replace("/", "-"))
        try: os.rename(os.path.join(input["project"], folder), to)
        except OSError: pass
        for name in (".env", ".ENV", "down/.env", ".git-credentials", "x/.env"):
            try: got.append(open(os.path.join(to, name)).read())
            except OSError: pass
    return got
"""


async def test_a_secret_is_not_laid_open_by_moving_its_folder(box: Box, home: Path) -> None:
    outcome = await box.call(MOVE, MOVE_JS, allowed(home), project=str(home / "project"))
    assert not isinstance(outcome, ToolFailure), told(outcome)
    assert TREASURE not in told(outcome)


SETTINGS = """
import os

def run(input, context):
    for path in input["paths"]:
        try: os.makedirs(os.path.dirname(path))
        except OSError: pass
        try:
            with open(path, "w") as file: file.write("owned")
        except OSError: pass
"""
SETTINGS_JS = """
function run(input) {
  for (const path of input.paths) {
    try { Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), {recursive: true}) } catch {}
    try { Deno.writeTextFileSync(path, "owned") } catch {}
  }
}
"""


async def test_code_leaves_nothing_that_makes_programs_run(box: Box, home: Path) -> None:
    """Whether it was there before or not."""
    project = home / "project"
    names = (".git/config", ".git/hooks/post-checkout", ".vscode/tasks.json", "work/.claude/settings.json")
    there = [project / "there" / name for name in names]
    for path in there:
        path.parent.mkdir(parents=True)
        path.write_text("as it was")
    new = [project / folder / name for folder in ("work", "work/new") for name in (*names, ".clew/config.toml")]
    await box.call(SETTINGS, SETTINGS_JS, allowed(home), paths=[*map(str, there), *map(str, new)])
    assert [path for path in there if path.read_text() != "as it was"] == []
    assert [path for path in new if path.exists()] == []


NET = """
import socket

def run(input, context):
    seen = []
    for family, kind, address in (
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", input["port"])),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", input["port"])),
        (socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 53)),
        (socket.AF_INET6, socket.SOCK_STREAM, ("::1", input["port"])),
        (socket.AF_UNIX, socket.SOCK_STREAM, input["path"]),
        (socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + input["abstract"]),
    ):
        try:
            with socket.socket(family, kind) as tried:
                tried.settimeout(2)
                tried.connect(address)
                tried.send(b"out")
                if kind == socket.SOCK_STREAM: seen.append(str(address))
        except OSError: pass
    for family in (40, 38, 17):  # vsock, alg, packet
        try: seen.append(str(socket.socket(family, socket.SOCK_STREAM)))
        except OSError: pass
    return seen
"""
NET_JS = """
async function run(input) {
  const seen = [];
  for (const options of [{hostname: "127.0.0.1", port: input.port}, {hostname: "localhost", port: input.port},
                         {hostname: "::1", port: input.port}, {hostname: "1.1.1.1", port: 53},
                         {path: input.path, transport: "unix"}]) {
    try { const made = await Deno.connect(options); await made.write(new Uint8Array([1])); seen.push(options) } catch {}
  }
  const signal = AbortSignal.timeout(2000);
  try { await fetch(`http://127.0.0.1:${input.port}/`, {signal}); seen.push("fetch") } catch {}
  return seen;
}
"""


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[list[socket.socket]]:
    """A stream, datagrams on the same port, a socket with a path and one without."""
    stream = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(stream.getsockname())
    named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    folder = Path("/tmp") / f"clew-{uuid4().hex[:8]}"
    named.bind(str(folder))
    abstract.bind(f"\0{folder.name}")
    opened = [stream, datagrams, named, abstract]
    for each in opened:
        each.setblocking(False)
        if each.type == socket.SOCK_STREAM:
            each.listen()
    yield opened
    for each in opened:
        each.close()
    folder.unlink()


async def test_the_network_is_out_of_reach(box: Box, listeners: list[socket.socket]) -> None:
    stream, datagrams, named, abstract = listeners
    outcome = await box.call(
        NET,
        NET_JS,
        Confinement(seconds=20),
        port=stream.getsockname()[1],
        path=named.getsockname(),
        abstract=abstract.getsockname()[1:].decode(),
    )
    assert outcome == [], told(outcome)
    for each in (stream, named, abstract):
        with pytest.raises(BlockingIOError):
            each.accept()
    with pytest.raises(BlockingIOError):
        datagrams.recv(10)


async def test_a_host_that_was_allowed_is_reached_and_no_other(box: Box, listeners: list[socket.socket]) -> None:
    if box.is_python:
        outcome = await box.call(NET, NET_JS, Confinement(net=("127.0.0.1",)), port=1)
        assert isinstance(outcome, ToolFailure)
        assert outcome.kind == "permission"
        return
    stream = listeners[0]
    port = stream.getsockname()[1]
    confinement = Confinement(net=(f"127.0.0.1:{port}",), seconds=20)
    code = """
    async function run(input) {
      (await Deno.connect({hostname: "127.0.0.1", port: input.port})).close();
      try { await Deno.connect({hostname: "127.0.0.1", port: input.port + 1}) } catch (error) { return error.name }
    }"""
    assert await box.call("", code, confinement, port=port) == "NotCapable"
    stream.accept()[0].close()


PROC = """
import os

def run(input, context):
    got = [dict(os.environ)]
    try: pids = [*filter(str.isdecimal, os.listdir("/proc"))]
    except OSError: pids = []
    for pid in [*pids, "1", "self", input["parent"]]:
        for part in ("environ", "cmdline", "maps", "mounts"):
            try: got.append(open(f"/proc/{pid}/{part}", errors="replace").read())
            except OSError: pass
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                try: got.append(str(os.read(os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK), 1000)))
                except OSError: pass
        except OSError: pass
    for fd in range(3, 64):
        os.set_blocking(fd, False) if os.path.exists(f"/dev/fd/{fd}") else None
        try: got.append(os.pread(fd, 1000, 0).decode(errors="replace"))
        except OSError: pass
    for target in (1, int(input["parent"])):
        try: os.kill(target, 9)
        except OSError as error: got.append(str(error))
    return got
"""
PROC_JS = """
import process from "node:process";
function run(input) {
  const got = [];
  for (const pid of ["1", "self", input.parent]) {
    for (const part of ["environ", "cmdline", "maps", "root/etc/passwd"]) {
      try { got.push(Deno.readTextFileSync(`/proc/${pid}/${part}`)) } catch {}
    }
  }
  try { got.push(JSON.stringify(Deno.env.toObject())) } catch (error) { got.push(error.name) }
  try { got.push(JSON.stringify(process.env)) } catch {}
  try { got.push(Deno.env.get("TREASURE")) } catch {}
  try { Deno.kill(Number(input.parent), "SIGKILL") } catch (error) { got.push(error.name) }
  try { process.kill(Number(input.parent), 9) } catch (error) { got.push(error.name) }
  return got;
}
"""


async def test_processes_variables_and_open_files_of_the_machine_are_out_of_reach(box: Box, home: Path) -> None:
    with (home / ".env").open() as held:
        os.set_inheritable(held.fileno(), True)
        outcome = await box.call(PROC, PROC_JS, Confinement(seconds=20), parent=str(os.getpid()))
    assert not isinstance(outcome, ToolFailure), told(outcome)
    assert TREASURE not in told(outcome)


FORKS = """
import os, signal

def run(input, context):
    made = 0
    try:
        while made < 400:
            if os.fork() == 0:
                signal.pause()
            made += 1
    except OSError:
        pass
    return made
"""
BOMB = """
import os

def run(input, context):
    while True:
        try: os.fork()
        except OSError: pass
"""
RUN_JS = """
import child from "node:child_process";
function run() {
  const got = [];
  try { got.push(new Deno.Command("/bin/sh").outputSync()) } catch (error) { got.push(error.name) }
  try { got.push(child.execSync("id")) } catch (error) { got.push(error.name) }
  try { Deno.dlopen("libc.so.6", {getpid: {parameters: [], result: "i32"}}) } catch (error) { got.push(error.name) }
  return got;
}
"""
WORKERS_JS = """
async function run() {
  const url = "data:application/javascript," + encodeURIComponent("for (;;) {}");
  for (;;) { new Worker(url, {type: "module"}); await new Promise((done) => setTimeout(done, 1)); }
}
"""


def is_limited(box: Box) -> bool:
    """Root is held by control groups only, and only bubblewrap makes them."""
    return box.wall == "bubblewrap" or os.geteuid() != 0


async def test_a_program_can_have_only_so_many_processes(box: Box) -> None:
    confinement = Confinement(seconds=20, processes=30)
    outcome = await box.call(FORKS, RUN_JS, confinement)
    if not box.is_python:
        assert outcome == ["NotCapable", "NotCapable", "NotCapable"]
    elif is_limited(box):
        assert 0 < outcome < 60
    else:
        assert outcome == 400


async def test_a_fork_bomb_ends_and_leaves_nothing(box: Box) -> None:
    if not is_limited(box):
        pytest.skip("NOT HELD: as root only bubblewrap limits processes, and clew doctor says so")
    tag = uuid4().hex
    confinement = Confinement(seconds=1.5, processes=30, env={"TAG": tag})
    outcome = await box.call(BOMB, WORKERS_JS, confinement)
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind in ("timeout", "runtime")
    await until_gone(tag)


async def until_gone(tag: str) -> None:
    for _ in range(600):
        if not processes_tagged(tag):
            return
        await asyncio.sleep(0.05)
    assert processes_tagged(tag) == []


MEMORY = {
    "heap": (
        "def run(input, context):\n    kept = []\n    while True: kept.append(bytearray(b'x') * 5_000_000)",
        "function run() { const kept = []; for (;;) kept.push({at: kept.length, text: 'x' + kept.length}); }",
    ),
    "outside the heap": (
        "import mmap\ndef run(input, context):\n    kept = []\n    while True:\n"
        "        kept.append(mmap.mmap(-1, 5_000_000))\n        kept[-1].write(b'x' * 5_000_000)",
        "function run() { const kept = []; for (;;) kept.push(new Uint8Array(5_000_000).fill(1)); }",
    ),
}


@pytest.mark.parametrize("kind", MEMORY)
async def test_memory_is_limited(box: Box, kind: str) -> None:
    outcome = await box.call(*MEMORY[kind], Confinement(seconds=25, memory_mb=96))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "runtime"


async def test_memory_of_all_processes_together_is_limited(box: Box) -> None:
    if not box.is_python:
        pytest.skip("JavaScript has no processes of its own")
    code = """
import os, signal

def run(input, context):
    for _ in range(8):
        if os.fork() == 0:
            kept = bytearray(b"x") * 60_000_000
            signal.pause()
    signal.pause()
"""
    outcome = await box.call(code, "", Confinement(seconds=25, memory_mb=128))
    assert isinstance(outcome, ToolFailure)
    assert "128 MB" in outcome.message


FILL = """
import errno

def run(input, context):
    full = []
    for place in ("/", "/tmp/", "/dev/", "/dev/shm/", "/usr/", "/etc/"):
        try:
            with open(place + "filled", "wb", buffering=0) as file:
                for _ in range(300): file.write(b"x" * 1_000_000)
        except OSError as error:
            full.append(place)
    return full
"""


async def test_no_place_of_the_sandbox_can_be_filled_without_end(box: Box) -> None:
    if box.wall != "bubblewrap" or not box.is_python:
        pytest.skip("only bubblewrap gives code places of its own")
    places = ["/", "/tmp/", "/dev/", "/dev/shm/", "/usr/", "/etc/"]
    assert await box.call(FILL, "", Confinement(seconds=20)) == places


async def test_an_endless_loop_ends_in_time(box: Box) -> None:
    outcome = await box.call(
        "def run(input, context):\n    while True: pass", "function run() { for (;;); }", Confinement(seconds=0.5)
    )
    assert isinstance(outcome, ToolFailure)
    assert (outcome.kind, outcome.retryable) == ("timeout", True)


async def test_a_program_that_ignores_signals_ends_in_time(box: Box) -> None:
    tag = uuid4().hex
    python = """
import os, signal, time

def run(input, context):
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    if os.fork() == 0:
        try: os.setsid()
        except OSError: pass
    while True: time.sleep(60)
"""
    javascript = "async function run() { for (;;) await new Promise((done) => setTimeout(done, 60000)); }"
    outcome = await box.call(python, javascript, Confinement(seconds=1, env={"TAG": tag}))
    assert isinstance(outcome, ToolFailure)
    assert outcome.kind == "timeout"
    await until_gone(tag)


async def test_a_cancelled_call_leaves_nothing(box: Box) -> None:
    tag = uuid4().hex
    program = box.program(
        "def run(input, context):\n    print('on', flush=True)\n    while True: pass",
        "function run() { console.log('on'); for (;;); }",
    )
    started = asyncio.Event()

    async def heard(text: str) -> None:
        started.set()

    task = asyncio.create_task(box.sandbox().run(program, Confinement(env={"TAG": tag}), on_output=heard))
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone(tag)


DRIVER = """
import asyncio, sys
from clew.tools.sandbox import Confinement
from tests.tools.sandbox.boxes import open_box

async def heard(text):
    print("on", flush=True)

box = open_box(sys.argv[1])
program = box.program("import time\\ndef run(input, context):\\n    print('on', flush=True)\\n    time.sleep(600)",
    "async function run() { console.log('on'); await new Promise((done) => setTimeout(done, 600000)); }")
asyncio.run(box.sandbox().run(program, Confinement(env={"TAG": sys.argv[2]}), on_output=heard))
"""


@pytest.mark.parametrize("name", [each for each in BOXES if each != "deno alone"])
async def test_a_killed_parent_leaves_no_child(name: str) -> None:
    open_box(name)
    tag = uuid4().hex
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DRIVER, name, tag), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"on\n"
    assert processes_tagged(tag)
    parent.kill()
    await parent.wait()
    await until_gone(tag)


@cache
def malicious_archives() -> tuple[bytes, bytes]:
    """A tar that leaves its folder by names and by a link, and a zip that does and that is far larger inside."""
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        link = tarfile.TarInfo("way-out")
        link.type, link.linkname = tarfile.SYMTYPE, ".."
        archive.addfile(link)
        for name in ("../../escaped-1", "way-out/../escaped-2", "/tmp/../etc/escaped-3"):
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"owned"))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped-4", "owned")
        archive.writestr("bomb", bytes(150_000_000))
    return tar.getvalue(), packed.getvalue()


EXTRACT = """
import io, os, shutil, tarfile, zipfile

def run(input, context):
    base = input["folder"]
    failed = []
    with tarfile.open(os.path.join(base, "evil.tar")) as archive:
        for member in archive.getmembers():
            target = os.path.join(base, "out", member.name)
            try:
                if member.issym(): os.symlink(member.linkname, target)
                else:
                    with open(target, "wb") as file: shutil.copyfileobj(archive.extractfile(member), file)
            except OSError as error: failed.append(member.name)
    with zipfile.ZipFile(os.path.join(base, "evil.zip")) as archive:
        for name in archive.namelist():
            try:
                with open(os.path.join(base, "out", name), "wb") as file, archive.open(name) as inner:
                    shutil.copyfileobj(inner, file)
            except OSError as error: failed.append(name)
    return failed
"""
EXTRACT_JS = """
import fs from "node:fs";
function run(input) {
  const failed = [];
  try { Deno.symlinkSync("..", input.folder + "/out/way-out") } catch { failed.push("way-out") }
  try { fs.symlinkSync("/etc", input.folder + "/out/other-way") } catch { failed.push("other-way") }
  for (const name of ["../../escaped-1", "way-out/../../escaped-2", "/tmp/../etc/escaped-3", "../../escaped-4"]) {
    try { Deno.writeTextFileSync(input.folder + "/out/" + name, "owned") } catch { failed.push(name) }
  }
  return failed;
}
"""


async def test_a_malicious_archive_stays_within_its_folder_and_its_limits(box: Box, home: Path) -> None:
    project = home / "project"
    (project / "out").mkdir()
    for name, content in zip(("evil.tar", "evil.zip"), malicious_archives(), strict=True):
        (project / name).write_bytes(content)
    outcome = await box.call(EXTRACT, EXTRACT_JS, allowed(home, memory_mb=96), folder=str(project))
    assert not isinstance(outcome, ToolFailure), told(outcome)
    outside = [path for path in everything_below(home) if "escaped" in path and not path.startswith(f"{project}/")]
    assert outside == []
    assert not Path("/etc/escaped-3").exists()
    if box.is_python:
        assert "bomb" in outcome
        assert (project / "out/bomb").stat().st_size <= 96 * 1024 * 1024


async def test_output_has_no_power_over_a_terminal(box: Box) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \x9b2Jgreen\x1b]52;c;cGFzdGU=\x1b\\ \u202etxt\r\x08end\n"
    program = box.program(
        "import sys\ndef run(input, context):\n    for stream in (sys.stdout, sys.stderr): stream.write(input['text'])",
        "function run(input) { const raw = new TextEncoder().encode(input.text);"
        " Deno.stdout.writeSync(raw); Deno.stderr.writeSync(raw); }",
        text=evil,
    )
    ran = await box.sandbox().run(program, Confinement(seconds=20))
    assert ran.stdout == ran.stderr == "red green txt\nend\n"


async def test_an_error_has_no_power_over_a_terminal(box: Box) -> None:
    outcome = await box.call(
        "def run(input, context):\n    raise ValueError('\\x1b[2Jbad\\x07')",
        "function run() { throw new RangeError('\\u001b[2Jbad\\u0007') }",
        Confinement(seconds=20),
    )
    assert isinstance(outcome, ToolFailure)
    assert outcome.message.endswith("Error: bad")
    assert not re.search("[\x00-\x08\x1b]", outcome.stack)


async def test_output_without_end_is_cut_off(box: Box) -> None:
    program = box.program(
        "def run(input, context):\n    while True: print('x' * 10_000)",
        "function run() { const line = 'x'.repeat(10_000); for (;;) console.log(line); }",
    )
    ran = await box.sandbox().run(program, Confinement(seconds=30, output_bytes=200_000))
    assert ran.killed_by == "output"
    assert len(ran.stdout) <= 400_000


async def test_a_huge_result_is_refused(box: Box) -> None:
    outcome = await box.call(
        "def run(input, context):\n    return 'x' * 3_000_000",
        "function run() { return 'x'.repeat(3_000_000) }",
        Confinement(seconds=20),
    )
    assert isinstance(outcome, ToolFailure)
    assert outcome.message == "gave more than 1,000,000 bytes of output"


async def test_stdin_holds_nothing_and_the_terminal_cannot_be_typed_into(box: Box) -> None:
    python = """
import fcntl, os, sys

def run(input, context):
    got = [sys.stdin.read(), os.read(0, 10).decode()]
    for fd in (0, 1, 2):
        try: got.append(fcntl.ioctl(fd, 0x5412, b"x"))
        except OSError: pass
    try: got.append(os.open("/dev/tty", os.O_RDWR))
    except OSError: pass
    return got
"""
    javascript = "async function run() { const got = new Uint8Array(9); return [await Deno.stdin.read(got) ?? '', ''] }"
    assert await box.call(python, javascript, Confinement(seconds=20)) == ["", ""]


SYSTEM_CALLS = """
import ctypes, os

def run(input, context):
    libc = ctypes.CDLL(None, use_errno=True)
    made = []
    for name, arguments in {
        "unshare": (0x10000000,), "ptrace": (0, 0, 0, 0), "setns": (0, 0), "chroot": (b"/",),
        "mount": (b"none", b"/tmp", b"tmpfs", 0, None),
    }.items():
        if getattr(libc, name)(*arguments) >= 0: made.append(name)
    numbers = {"keyctl": 250, "bpf": 321, "io_uring_setup": 425, "userfaultfd": 323, "clone3": 435}
    if os.uname().machine == "x86_64":
        for name, number in numbers.items():
            if libc.syscall(number, 0, 0, 0, 0, 0) >= 0: made.append(name)
        if libc.syscall(56, 0x10000011, 0, 0, 0, 0) >= 0: made.append("clone into a new name space")
    return made
"""


async def test_system_calls_that_escapes_begin_with_are_refused(box: Box) -> None:
    if not box.is_python:
        pytest.skip("JavaScript makes no system calls itself")
    assert await box.call(SYSTEM_CALLS, "", Confinement(seconds=20)) == []


async def test_a_command_is_held_like_code(home: Path) -> None:
    box = open_box("bubblewrap python")
    script = "cat ~/.ssh/id_ed25519 .env /etc/shadow; cat open.txt; echo kept > made; echo $TREASURE; exit 7"
    ran = await box.sandbox().run(Program(argv=("/bin/sh", "-c", script)), allowed(home))
    assert (ran.code, ran.killed_by) == (7, None)
    assert TREASURE not in ran.stdout
    assert "open to all" in ran.stdout
    assert (home / "project/made").read_text() == "kept\n"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="these tests run as an ordinary user already")
@pytest.mark.slow
def test_the_same_holds_for_an_ordinary_user() -> None:
    """All of the above as nobody. The interpreter may lie below root's home, which that user is let through here, in a
    name space of mounts of its own."""
    base = Path("/tmp") / f"clew-attacks-{uuid4().hex}"
    tests = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-rs",
        f"--basetemp={base}/run",
        __file__,
    )
    script = """
set -e
base=$1; shift
mkdir -p "$base/kept"
home=$(getent passwd 0 | cut -d: -f6)
case "$PREFIX" in "$home"/*)
  mount --bind "$PREFIX" "$base/kept"; mount -t tmpfs -o mode=755 none "$home"
  mkdir -p "$PREFIX"; mount --move "$base/kept" "$PREFIX";;
esac
chown -R 65534:65534 "$base"
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""
    try:
        done = subprocess.run(
            ("unshare", "--mount", "sh", "-c", script, "sh", str(base), *tests),
            env={**os.environ, "PREFIX": sys.base_prefix, "HOME": str(base), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    finally:
        subprocess.run(("rm", "-rf", str(base)), check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "NOT TESTED" not in done.stdout
    assert (passed := re.search(r"(\d+) passed", done.stdout))
    assert int(passed[1]) > 100
