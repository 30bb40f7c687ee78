"""The confinement of commands in a work tree: only the tree and a temporary folder are writable. The programs and
libraries of the user's checkout can be read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.tools.processes import QUIET
from clew.tools.sandbox.program import Confinement, Program

SECONDS = 900.0
MEMORY_MB = 4_096
OUTPUT_BYTES = 400_000
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_VENVS = (".venv", "venv")
_RUST = frozenset(("cargo", "rustc", "rustfmt", "cargo-clippy"))
_LIBRARIES = (".venv", "venv", "node_modules", "vendor")
_SOURCES = ("", "src", "lib")
"""Folders of a project from which Python can import modules."""
_INTERPRETER = re.compile(r"(?:python|pypy|node)[\w.-]*")
"""Matches the names of interpreters. Their installation folder is readable, because it contains their libraries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSetup:
    """The environment variables of a shell command, which the sandbox does not pass on itself, and the folders of
    programs and libraries that the command may read."""

    checkout: Path
    variables: Mapping[str, str]

    def program(self, command: str, **more: str) -> Program:
        """A shell command with these variables. A failure inside a pipe fails the command (`pipefail`)."""
        exports = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in {**self.variables, **more}.items())
        script = f"set -o pipefail 2>/dev/null\n{exports}\n{command}"
        return Program(argv=(shutil.which("bash") or "/bin/sh", "-c", script))

    def find(self, program: str) -> str | None:
        """The path of a program; None if it is not found."""
        return shutil.which(program, path=self.variables["PATH"])

    def python_beside(self, program: str) -> str:
        """The Python in the folder of a program, else the first one on the path."""
        beside = os.path.join(os.path.dirname(self.find(program) or ""), "python3")
        return beside if os.access(beside, os.X_OK) else self.find("python3") or self.find("python") or "python3"

    def readable(self, program: str = "") -> tuple[str, ...]:
        """Paths outside of the system that a program needs, or that any command may need."""
        named = [program] if program else ["python", "python3", "node", "cargo"]
        places = [place for name in named if (place := self.find(name))]
        found = [path for place in places for path in self._needs(place)]
        if not program:
            found += [str(self.checkout / name) for name in _LIBRARIES if self._is_library(name)]
        return tuple(dict.fromkeys(each for each in found if not self._holds_more(each)))

    def _is_library(self, name: str) -> bool:
        """Whether a folder of the checkout holds libraries. A link out of the checkout, which a cloned repository may
        bring, must lead to a virtual environment or to another folder of that name."""
        place = self.checkout / name
        real = Path(os.path.realpath(place))
        is_own = real.is_relative_to(os.path.realpath(self.checkout))
        return place.is_dir() and (is_own or real.name == name or (real / "pyvenv.cfg").is_file())

    def _holds_more(self, path: str) -> bool:
        """Whether a path is too broad to be readable: relative, or the checkout, the home folder or a parent of either.
        A link could otherwise expose them."""
        real = os.path.realpath(path)
        inner = (os.path.realpath(each) for each in (self.checkout, os.path.expanduser("~")))
        return not os.path.isabs(path) or any(Path(each).is_relative_to(real) for each in inner)

    def _rust(self) -> Iterator[str]:
        """The parts of the Rust toolchain that contain no credentials."""
        parts = {"RUSTUP_HOME": ("toolchains", "settings.toml"), "CARGO_HOME": ("bin", "registry", "git")}
        for name, inner in parts.items():
            yield from (os.path.join(self.variables[name], each) for each in inner if name in self.variables)

    def _needs(self, place: str) -> Iterator[str]:
        folder, real = os.path.dirname(place), os.path.realpath(place)
        if os.path.basename(place) in _RUST:
            yield from self._rust()
        for each in dict.fromkeys((folder, os.path.dirname(real))):
            yield from _with_interpreters(each)
        if "node_modules" in real.split("/"):
            yield str(self.checkout / "node_modules")
            yield from _with_interpreters(os.path.dirname(self.find("node") or folder))


def worktree_confinement(
    folder: Path,
    *,
    scratch: Path | None = None,
    read: Iterable[str] = (),
    programs: Iterable[str] = (),
    cwd: Path | None = None,
    seconds: float = SECONDS,
    net: tuple[str, ...] = (),
) -> Confinement:
    """Allow a command to write only to the work tree and a temporary folder. It may read the folders in `read` except
    their secrets, and the folders of installed programs in `programs`."""
    writable = tuple(str(each) for each in (folder, scratch) if each is not None)
    return Confinement(
        write=writable,
        read=tuple(dict.fromkeys(each for each in read if os.path.exists(each))),
        programs=tuple(dict.fromkeys(os.path.realpath(each) for each in programs if os.path.exists(each))),
        cwd=str(cwd or folder),
        env=QUIET,
        seconds=seconds,
        memory_mb=MEMORY_MB,
        disk_mb=2_048,
        processes=256,
        output_bytes=OUTPUT_BYTES,
        net=net,
    )


def find_setup(
    checkout: Path, project: Path, *, scratch: Path, environ: Mapping[str, str] = os.environ
) -> CommandSetup:
    """The setup of commands in `project`, a folder of a work tree: programs of the user's checkout come first, modules
    of the work tree come before those of an editable install, and caches are in the temporary folder."""
    folders = [str(each) for each in _program_folders(checkout, environ)]
    sources = [str(project / name) for name in _SOURCES if (project / name).is_dir()]
    variables = {
        "PATH": os.pathsep.join(folders),
        "PYTHONPATH": os.pathsep.join(sources),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scratch),
        "RUFF_CACHE_DIR": str(scratch / "ruff"),
        "MYPY_CACHE_DIR": str(scratch / "mypy"),
        "COVERAGE_FILE": str(scratch / "coverage"),
        "CARGO_TARGET_DIR": str(scratch / "cargo"),
        "GOCACHE": str(scratch / "go"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        **_toolchains(environ),
    }
    return CommandSetup(checkout=checkout, variables=variables)


def _program_folders(checkout: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """The folders of programs: those of the checkout, those of the user, and those beside this Python."""
    own = [checkout / venv / "bin" for venv in _VENVS] + [
        checkout / "node_modules" / ".bin",
        checkout / "vendor" / "bin",
    ]
    users = [Path(each) for each in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(each)]
    ours = [Path(sys.executable).parent, Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin")]
    folders = (inner for each in (*own, *users, *ours) for inner in _without_shims(each))
    yield from dict.fromkeys(each for each in folders if each.is_dir())


def _without_shims(folder: Path) -> list[Path]:
    """The folder itself; for a folder of pyenv shims, the program folders of the selected versions."""
    if folder.name != "shims":
        return [folder]
    try:
        versions = (folder.parent / "version").read_text().split()
    except OSError:
        return []
    return [folder.parent / "versions" / each / "bin" for each in versions]


def _toolchains(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables by which programs find their toolchain, because the sandbox has another home."""
    home = environ.get("HOME") or os.path.expanduser("~")
    found = {"RUSTUP_HOME": environ.get("RUSTUP_HOME") or f"{home}/.rustup"}
    found["CARGO_HOME"] = environ.get("CARGO_HOME") or f"{home}/.cargo"
    return {name: place for name, place in found.items() if os.path.isdir(place)}


def _with_interpreters(folder: str) -> Iterator[str]:
    """A folder of programs, the virtual environment that it belongs to, and the real place of its interpreters."""
    if folder.startswith(_SYSTEM):
        return
    parent = os.path.dirname(folder)
    home = _home_of(parent)
    yield parent if home else folder
    reals = [os.path.realpath(os.path.join(folder, name)) for name in ("python", "python3", "node")]
    for real in (*reals, *([os.path.join(home, "python3")] if home else [])):
        prefix = os.path.dirname(os.path.dirname(real))
        is_interpreter = _INTERPRETER.fullmatch(os.path.basename(real)) and os.access(real, os.X_OK)
        if is_interpreter and os.path.isfile(real) and not real.startswith(_SYSTEM):
            yield prefix


def _home_of(venv: str) -> str:
    """The folder of the Python that a virtual environment was made from; empty if `venv` is not a virtual
    environment."""
    try:
        lines = Path(venv, "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"), "")
