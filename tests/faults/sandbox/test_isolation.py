"""Code that attacks the network, other processes and the kernel."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from clew.errors import ToolFailure
from clew.tools.sandbox import Confinement
from tests.faults.sandbox.escapes import TREASURE, linux_only, told
from tests.tools.sandbox.boxes import Box

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]

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


async def test_system_calls_used_by_escapes_are_refused(box: Box) -> None:
    if not box.is_python:
        pytest.skip("JavaScript makes no system calls itself")
    assert await box.call(SYSTEM_CALLS, "", Confinement(seconds=20)) == []
