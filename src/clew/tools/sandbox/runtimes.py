"""The command that starts a program in each language: Python with its standard library alone, JavaScript and TypeScript
under Deno."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from functools import cache
from importlib.resources import files
from secrets import token_hex

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.folders.reachable_paths import Grants
from clew.tools.sandbox.program import EVERYWHERE, Confinement, Program
from clew.tools.sandbox.wall import RuntimeCommand

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,99}")
_HOST = re.compile(
    r"(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?"
)
_MAX_ARGUMENT = 120_000
_FLAGS = (
    *("run", "--quiet", "--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--cached-only"),
    *("--no-code-cache", "--no-check", "--node-modules-dir=none", "--deny-run", "--deny-ffi", "--deny-sys"),
)


def build_command(program: Program, confinement: Confinement, grants: Grants, *, result_to: int) -> RuntimeCommand:
    """Return the command of a program. Raises ToolFailure if its runtime is missing or cannot enforce the
    confinement."""
    match program.language:
        case None:
            return RuntimeCommand(argv=program.argv, stdin=program.stdin)
        case "python":
            return _python(program, confinement, grants, result_to)
        case _:
            return _deno(program, confinement, grants)


def _call(program: Program, confinement: Confinement) -> dict[str, object]:
    names = [name for name in program.names if _IDENTIFIER.fullmatch(name)]
    context = {**program.context, "secrets": dict(confinement.secrets)}
    return {"code": program.code, "names": names, "input": program.input, "context": context}


def _python(program: Program, confinement: Confinement, grants: Grants, result_to: int) -> RuntimeCommand:
    call = {
        **_call(program, confinement),
        "result_to": result_to,
        "allowed": [*grants.read, *grants.write],
        "has_network": bool(confinement.net),
    }
    interpreter, needs = find_python()
    return RuntimeCommand(
        argv=(interpreter, "-I", "-S", "-B", "-X", "utf8", "-c", _harness("harness.py")),
        stdin=msgspec.json.encode(call),
        needs=needs,
        result_to=result_to,
    )


def _deno(program: Program, confinement: Confinement, grants: Grants) -> RuntimeCommand:
    deno = find_deno()
    if deno is None:
        raise ToolFailure(
            "config", "this tool needs Deno, which is missing", hint="Install Deno, or Clew with its extra deno"
        )
    marker = token_hex(16)
    is_typed = program.language == "typescript"
    call = {
        **_call(program, confinement),
        "marker": marker,
        "file": "tool.ts" if is_typed else "tool.js",
        "type": "application/typescript" if is_typed else "application/javascript",
    }
    # a JSON string is also a valid JavaScript string
    source = (
        f"const CALL = {msgspec.json.encode(msgspec.json.encode(call).decode()).decode()};\n{_harness('harness.js')}"
    )
    flags = (*_FLAGS, f"--v8-flags=--max-old-space-size={confinement.memory_mb}", *_permissions(confinement, grants))
    return RuntimeCommand(
        argv=(deno, *flags, "--ext=js", "-"),
        stdin=source.encode(),
        needs=() if deno.startswith("/usr/") else (deno,),
        counts="data",
        marker=f"\n{marker}".encode(),
        confines_itself=True,
    )


def _permissions(confinement: Confinement, grants: Grants) -> list[str]:
    for host in confinement.net:
        if host != EVERYWHERE and not _HOST.fullmatch(host):
            raise ToolFailure(
                "config", f"{host[:100]!r} is not a host", hint="For example api.example.com or localhost:8080"
            )
    found = []
    if confinement.net:
        found.append("--allow-net" if EVERYWHERE in confinement.net else f"--allow-net={','.join(confinement.net)}")
    hidden = (*grants.masked, *grants.links)
    paths = {
        "--allow-read": (*grants.read, *grants.write),
        "--allow-write": grants.write,
        "--deny-read": hidden,
        "--deny-write": (*hidden, *grants.kept),
    }
    found += [f"{flag}={_joined(each)}" for flag, each in paths.items() if each]
    if confinement.env:
        found.append(f"--allow-env={','.join(confinement.env)}")
    return found


def _joined(paths: tuple[str, ...]) -> str:
    joined = ",".join(paths)
    if joined.count(",") >= len(paths):
        raise ToolFailure("permission", "a file with secrets has a comma in its path, so Deno cannot hide it")
    if len(os.fsencode(joined)) > _MAX_ARGUMENT:
        raise ToolFailure("permission", f"the folder has {len(paths):,} files to hide, which are too many")
    return joined


@cache
def find_deno() -> str | None:
    """Return the path of Deno: installed beside this Python or on the PATH, or None."""
    beside = os.path.join(sysconfig.get_path("scripts"), "deno")
    place = beside if os.access(beside, os.X_OK) else shutil.which("deno")
    return os.path.realpath(place) if place else None


@cache
def find_python() -> tuple[str, tuple[str, ...]]:
    """Return the base interpreter of any virtual environment, and the folders that it needs in addition to the
    system's."""
    interpreter = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    prefix = os.path.realpath(sys.base_prefix)
    return interpreter, () if prefix == "/usr" or prefix.startswith("/usr/") else (prefix,)


@cache
def _harness(name: str) -> str:
    return files("clew.tools.sandbox").joinpath(name).read_text("utf-8")
