"""The commands that a project runs: targets of make and just, sessions of nox, steps of CI, hooks of pre-commit.

YAML is read line by line: that is bounded for any text, and keeps the lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from clew.knowledge.project.formats import TextFile
from clew.knowledge.project.manifests import Reader, Statement

MAX_LINES = 5_000
MAX_COMMANDS = 40
"""Lines of one script that are read."""
MAX_LINE = 500

_TARGET = re.compile(r"([A-Za-z0-9][\w./-]{0,60})[ \t]*+:(?![=:])[ \t]*+([^#]{0,300})")
_JUST_RECIPE = re.compile(r"@?([A-Za-z][\w-]{0,60})(?:[ \t][^:=]{0,100})?:(?!=)([^#]{0,300})")
_NOX_SESSION = re.compile(r"@nox\.session\b(?:.{0,200}?\bname\s*=\s*[\"']([\w.-]{1,60})[\"'])?")
_NOX_RUN = re.compile(r"session\.run\((.{1,200})")
_QUOTED = re.compile(r"[\"']([^\"']+)[\"']")
_FUNCTION = re.compile(r"(?:async )?def (\w{1,80})")
_YAML_KEY = re.compile(r"([ ]*+)(-[ ]++)?[\"']?([\w.-]{1,80})[\"']?:(?:[ \t]++(.*))?$")
_BLOCK = re.compile(r"[|>][+-]?\d?")
_RUNS = frozenset(("run", "script", "before_script", "after_script", "install"))
_VERSION = re.compile(r"(python|node|go|java|ruby|rust|php|dotnet)(?:-version|_version)?s?")
_CI_FILE = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.circleci/[^/]+\.ya?ml"
    r"|(?:.*/)?(?:\.gitlab-ci\.yml|\.travis\.yml|azure-pipelines\.yml|appveyor\.yml)"
)


def script_reader_of(path: str) -> Reader | None:
    """The reader of a file of this name, if it holds commands and is no manifest."""
    name = path.rpartition("/")[2]
    if name.lower() in ("makefile", "gnumakefile", "justfile"):
        return read_targets
    if name == "noxfile.py":
        return read_nox
    if name == ".pre-commit-config.yaml":
        return read_hooks
    return read_ci if _CI_FILE.fullmatch(path) else None


def read_targets(file: TextFile) -> Iterator[Statement]:
    """The targets of make or just, each with its recipe, or without one with what it depends on."""
    is_just = file.name.lower() == "justfile"
    shape, group = (_JUST_RECIPE, "just") if is_just else (_TARGET, "make")
    lines = file.lines[:MAX_LINES]
    for number, line in enumerate(lines, 1):
        found = shape.match(line[:MAX_LINE])
        if found is None or line[:1] == "\t":
            continue
        recipe = _take_while(lines, number, lambda each: each[:1] == "\t" or (is_just and each[:1] == " "))
        value = "\n".join(each.strip()[:MAX_LINE] for each in recipe) or found[2].strip()
        yield Statement("script", found[1], value, number, number + len(recipe), group)


def read_nox(file: TextFile) -> Iterator[Statement]:
    lines = file.lines[:MAX_LINES]
    for number, line in enumerate(lines, 1):
        if (found := _NOX_SESSION.match(line)) is None:
            continue
        end = next((at for at in range(number, min(number + 10, len(lines))) if _FUNCTION.match(lines[at])), None)
        if end is None:
            continue
        named = _FUNCTION.match(lines[end])
        body = _take_while(lines, end + 1, lambda each: each[:1] in (" ", "\t", ""))
        runs = [" ".join(_QUOTED.findall(run[1])) for each in body if (run := _NOX_RUN.search(each))]
        yield Statement("script", found[1] or (named[1] if named else ""), "\n".join(runs), number, end + 1, "nox -s")


def read_hooks(file: TextFile) -> Iterator[Statement]:
    """The hooks of pre-commit, each with the repository that it is from."""
    repository = ""
    for number, line in enumerate(file.lines[:MAX_LINES], 1):
        found = _YAML_KEY.match(line[:MAX_LINE])
        if found and found[3] == "repo":
            repository = _plain(found[4])
        elif found and found[3] == "id" and found[2]:
            yield Statement("tool", _plain(found[4]), repository, number, number, "pre-commit hook")


class _Key(NamedTuple):
    indent: int
    name: str


def read_ci(file: TextFile) -> Iterator[Statement]:
    """The commands of jobs, named by job and step, and the versions of languages that the jobs run with."""
    lines = file.lines[:MAX_LINES]
    keys: list[_Key] = []
    step, skip_to = "", 0
    for number, line in enumerate(lines, 1):
        found = _YAML_KEY.match(line[:MAX_LINE]) if number > skip_to else None
        if found is None:
            continue
        indent = len(found[1]) + len(found[2] or "")
        while keys and keys[-1].indent >= indent:
            keys.pop()
        if found[2]:
            step = ""
        name, value = found[3], (found[4] or "").strip()
        if name == "name" and len(keys) > 1:
            step = _plain(value)
        version = _VERSION.fullmatch(name)
        if name in _RUNS or version:
            inner = [] if value and not _BLOCK.fullmatch(value) else _block(lines, number, indent)
            text = (" " if value.startswith(">") else "\n").join(map(_plain, inner)) or _plain(value)
            skip_to = number + len(inner)
            if version and text and "${{" not in text:
                yield Statement("runtime", version[1], text.replace("\n", ", "), number, skip_to, "CI", _job(keys))
            elif name in _RUNS and text:
                shown = ": ".join(filter(None, (_job(keys), step)))
                yield Statement("script", shown or name, text, number, skip_to, "CI")
        keys.append(_Key(indent, name))


def _job(keys: Sequence[_Key]) -> str:
    """The job that a key is in: below `jobs` where there are such, else the outermost key."""
    names = [key.name for key in keys]
    return next(iter(names[names.index("jobs") + 1 :] if "jobs" in names else names), "")


def _block(lines: Sequence[str], start: int, indent: int) -> list[str]:
    """The lines of a block or list below a key, without their indentation."""

    def belongs(line: str) -> bool:
        deep = len(line) - len(line.lstrip())
        return not line.strip() or deep > indent or (deep == indent and line.lstrip().startswith("- "))

    found = _take_while(lines, start, belongs)
    while found and not found[-1].strip():
        found.pop()
    return found


def _plain(text: str | None) -> str:
    """A scalar or an item of a list without its marks."""
    plain = (text or "").strip().removeprefix("- ").strip()
    if plain[:1] == "[" and plain[-1:] == "]":
        plain = plain[1:-1].replace('"', "").replace("'", "").strip()
    is_quoted = plain[:1] in ("'", '"') and plain[:1] == plain[-1:]
    return (plain[1:-1] if is_quoted else plain)[:MAX_LINE]


def _take_while(lines: Sequence[str], start: int, belongs: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    for line in lines[start : start + MAX_COMMANDS]:
        if not belongs(line):
            break
        found.append(line)
    return found
