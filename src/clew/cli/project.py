"""The folder `.clew`: the files that `clew up` writes there for people and for git."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from clew.config import FOLDER, MACHINE_ONLY, NOT_SETTINGS, Config, is_table
from clew.config.descriptions import ABOUT, DIRECTIVE, SCHEMA
from clew.errors import ReadOnly
from clew.files import create_file, inside, read_file, refuse_link, replace_file

IGNORED = (*(f"/{name}" for name in MACHINE_ONLY), "/*.lock", f"/{SCHEMA}")
_IGNORE_HEAD = "# What belongs to this machine only: the trail, what is derived from the files, keys and credentials."
IGNORE = "\n".join((_IGNORE_HEAD, *IGNORED, ""))
_MAX_IGNORE = 100_000

_HEAD = f"""\
{DIRECTIVE}
# Settings of Clew. Each line shows the default; remove the # to change it. A table such as [models] goes to the end.
# Environment variables win over this file (CLEW_SERVER_PORT is server.port), flags win over both.
# This file may be checked in; .gitignore keeps the trail and the keys out.
"""

_SOURCES = """
# Where further documents come from, one table each; see docs/guides/sources.md. For example, with a token that
# `clew secret put github` keeps:
#   [sources.pulls]
#   kind="github"
#   repo="owner/name"
#   items="prs"
#   token="github"
"""

_PROVIDERS = """
# Where models answer. openai, anthropic and openrouter are found by their keys (OPENAI_API_KEY, ANTHROPIC_API_KEY,
# OPENROUTER_API_KEY), ollama, llamacpp, vllm and lmstudio by their ports; others need a table. A key is
# named and never written here: env:NAME, file:PATH or keyring:SERVICE/USER.
#   [providers.lab]
#   base_url="https://models.example.org/v1"
#   key="env:LAB_KEY"
"""


def prepare_folder(folder: Path) -> None:
    """Make the folder with its settings and .gitignore. Existing settings stay unchanged. Raises ReadOnly if it cannot
    be written or is a link out of its project."""
    check_place(folder, folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = folder / "config.toml"
        if not os.path.lexists(settings):
            with contextlib.suppress(FileExistsError):  # another process was quicker
                create_file(settings, render_settings().encode())
        if not os.path.lexists(folder / SCHEMA):
            write_schema(folder)
        mend_ignored(folder)
    except OSError as error:
        hint = "Name a folder that you may write: --folder or CLEW_FOLDER"
        raise ReadOnly(f"{folder} cannot be set up: {error.strerror}", hint=hint) from error


def write_schema(folder: Path) -> None:
    """Write the JSON Schema of this version beside config.toml, for editors. Raises ReadOnly for a link, and
    OSError."""
    from clew.config.schema import render_schema  # used only when settings are written

    path = folder / SCHEMA
    content = render_schema()
    refuse_link(path)
    if not path.is_file() or path.read_bytes() != content:
        replace_file(path, content)


def mend_ignored(folder: Path) -> None:
    """Make sure that git ignores the files of this machine. A cloned folder may contain a `.gitignore` that ignores
    less, or a link in its place. Missing lines are appended. A folder that cannot be written stays unchanged. Raises
    ReadOnly if `.gitignore` is a folder.
    """
    path = folder / ".gitignore"
    with contextlib.suppress(OSError):
        content = _read_ignored(path)
        rules = content.splitlines()
        negation = max((at for at, line in enumerate(rules) if line.startswith(b"!")), default=-1)
        in_force = {line.rstrip() for line in rules[negation + 1 :]}
        missing = [name for name in IGNORED if name.encode() not in in_force]
        if not missing or not in_force.isdisjoint((b"*", b"/*")):
            return
        added = "\n".join((*missing, "")).encode() if content else IGNORE.encode()
        replace_file(path, content.rstrip(b"\n") + b"\n" + added if content else added)


def _read_ignored(path: Path) -> bytes:
    """The content of a `.gitignore`; empty for a link, which git does not follow, and for a file of absurd size."""
    if path.is_dir() and not path.is_symlink():
        hint = "Remove it: with it, git would take keys and the trail into a commit"
        raise ReadOnly(f"{path} is a folder, which git does not read", hint=hint)
    try:
        refuse_link(path)
        return read_file(path, _MAX_IGNORE)
    except (OSError, ReadOnly):
        return b""


def check_place(folder: Path, path: Path) -> Path:
    """Return the real path of a path in the folder. Raises ReadOnly if links lead out of the project."""
    whole = folder.absolute()
    return inside(path, whole.parent if whole.name == FOLDER else whole)


def describe_folder(folder: Path) -> str:
    """The full path of a folder, with a note if it was found above the current folder."""
    place = folder.absolute()
    return f"{place} (of the project above this folder)" if place.parent in Path.cwd().parents else str(place)


def project_root(config: Config) -> Path:
    """The folder of the files that commands search."""
    return config.folder.absolute().parent


def is_empty_project(root: Path) -> bool:
    """Whether a folder contains no files outside of `.git` and `.clew`."""
    for _, folders, files in os.walk(root):
        if files:
            return False
        folders[:] = [name for name in folders if name not in (FOLDER, ".git")]
    return True


def trail_file(config: Config) -> Path | None:
    """The file that holds the trail, or None where it is not in a file."""
    return config.trail_file


def render_settings() -> str:
    """All settings with their defaults, as comments.

    Names are dotted and no table is open, so that a table of the documentation can be pasted anywhere.
    """
    plain, sections = [], []
    for field in msgspec.structs.fields(Config):
        if isinstance(field.default, msgspec.Struct):
            inner = (each for each in msgspec.structs.fields(field.default) if not is_table(each))
            sections.append("\n".join(("", *(_setting(each, f"{field.name}.") for each in inner))))
        elif field.name not in NOT_SETTINGS and not is_table(field):
            plain.append(_setting(field, ""))
    return "\n".join((_HEAD, *plain, *sections, _SOURCES, _PROVIDERS)) + "\n"


def _setting(field: msgspec.structs.FieldInfo, prefix: str) -> str:
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    name = prefix + field.name
    return f"# {name} = {msgspec.json.encode(value).decode()}  # {ABOUT[name]}"
