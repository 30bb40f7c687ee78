"""What manifests say of the project itself: its version, its licence, and the versions of languages that it needs. Each
is read by its shape; a file that is broken says less, and never raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from clew.knowledge.lines import clip
from clew.knowledge.manifests.formats import read_json, table
from clew.knowledge.manifests.java import managed_packages
from clew.knowledge.manifests.source import ManifestText
from clew.secrecy import mask_keys

VERSION, LICENCE, NAME = "version", "licence", "name"
"""What a fact may be of, beside a language, a program or a managed package by its name."""
MAX_VALUE = 100
_SECTION = re.compile(r"\s*\[+([^\[\]]{1,100})\]+")
_PAIR = re.compile(r"\s*([\w-]{1,60})(?:\.workspace)?\s*=\s*(.{1,300})")
_STRING = re.compile(r"[\"']([^\"']{0,200})[\"']")
_TOML = {
    ("project", "version"): VERSION,
    ("project", "name"): NAME,
    ("project", "license"): LICENCE,
    ("project", "requires-python"): "python",
    ("tool.poetry", "version"): VERSION,
    ("tool.poetry", "name"): NAME,
    ("tool.poetry", "license"): LICENCE,
    ("tool.poetry.dependencies", "python"): "python",
    ("package", "version"): VERSION,
    ("package", "name"): NAME,
    ("package", "license"): LICENCE,
    ("package", "rust-version"): "rust",
    ("workspace.package", "version"): VERSION,
    ("workspace.package", "license"): LICENCE,
    ("workspace.package", "rust-version"): "rust",
    ("toolchain", "channel"): "rust",
}
_LINES: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "go.mod": (
        ("go", re.compile(r"^go\s+(\d[\w.]*)", re.MULTILINE)),
        ("go", re.compile(r"^(toolchain\s+go[\w.]+)", re.MULTILINE)),
        (NAME, re.compile(r"^module\s+(\S+)", re.MULTILINE)),
    ),
    "setup.py": (("python", re.compile(r"\bpython_requires\s*=\s*[\"']([^\"'\n]+)[\"']")),),
    "setup.cfg": (
        ("python", re.compile(r"^python_requires\s*=\s*(.+)", re.MULTILINE)),
        (VERSION, re.compile(r"^version\s*=\s*(\d.*)", re.MULTILINE)),
        (LICENCE, re.compile(r"^license\s*=\s*(.+)", re.MULTILINE)),
    ),
    "Gemfile": (("ruby", re.compile(r"^\s*ruby\s+[\"']([^\"'\n]+)[\"']", re.MULTILINE)),),
    "build.gradle": (
        ("java", re.compile(r"\b(?:sourceCompatibility\s*=?|JavaLanguageVersion\.of)\s*[(\"']*([\w.]+)")),
        (VERSION, re.compile(r"^version\s*=?\s*[\"']([^\"'\n]+)[\"']", re.MULTILINE)),
    ),
    ".nvmrc": (("node", re.compile(r"\A\s*(\S+)")),),
    ".node-version": (("node", re.compile(r"\A\s*(\S+)")),),
    ".python-version": (("python", re.compile(r"\A\s*(\S+)")),),
    ".ruby-version": (("ruby", re.compile(r"\A\s*(\S+)")),),
    "rust-toolchain": (("rust", re.compile(r"\A\s*(\S+)\s*\Z")),),
    "LICENSE": ((LICENCE, re.compile(r"\A\s*(\S[^\n]*)")),),
}
_LINES |= {"build.gradle.kts": _LINES["build.gradle"]}
_LINES |= dict.fromkeys(("LICENSE.md", "LICENSE.txt", "LICENCE", "COPYING"), _LINES["LICENSE"])
_MODULE = (VERSION, re.compile(r"^__version__\s*(?::\s*\w+\s*)?=\s*[\"']([^\"'\n]+)[\"']", re.MULTILINE))
_MODULES = ("__init__.py", "__version__.py", "_version.py", "version.py", "__about__.py")
_INNER = re.compile(
    r"<!--.*?(?:-->|\Z)|<(parent|dependencies|dependencyManagement|build|profiles|reporting)>.*?(?:</\1>|\Z)", re.DOTALL
)
_POM = (
    (VERSION, re.compile(r"<version>([^<>]+)</version>")),
    (NAME, re.compile(r"<artifactId>([^<>]+)</artifactId>")),
    (LICENCE, re.compile(r"<license>\s*<name>([^<>]+)</name>")),
    ("java", re.compile(r"<(?:maven\.compiler\.(?:release|source|target)|java\.?[vV]ersion)>([^<>]+)<")),
)
_COMPILER = ("java", re.compile(r"maven-compiler-plugin</artifactId>.{0,600}?<(?:release|source)>([^<>]+)<", re.DOTALL))


class Fact(msgspec.Struct, frozen=True):
    """What a manifest says of something, and where, `path:line`."""

    what: str
    value: str
    source: str


def has_facts(path: str) -> bool:
    """Whether a file of this name may say something of its project."""
    return _reader(path) is not None


def read_facts(path: str, text: str) -> list[Fact]:
    """What a file says, in the order of its kind; nothing for another file."""
    read = _reader(path)
    return list(read(ManifestText(path, text))) if read is not None else []


Reader = Callable[[ManifestText], Iterator[Fact]]


def _reader(path: str) -> Reader | None:
    name = path.rpartition("/")[2]
    if name in ("pyproject.toml", "Cargo.toml", "rust-toolchain.toml"):
        return _from_toml
    if name == "package.json":
        return _from_package
    if name == "pom.xml":
        return _from_pom
    if name in _MODULES:
        return lambda file: _matched(file, *_MODULE)
    return _from_lines if name in _LINES else None


def _from_toml(file: ManifestText) -> Iterator[Fact]:
    section = ""
    for number, line in enumerate(file.lines, 1):
        if found := _SECTION.match(line):
            section = found[1].strip()
        elif (pair := _PAIR.match(line)) and (what := _TOML.get((section, pair[1]))):
            said = _STRING.search(pair[2])
            if said is not None and said[1]:
                yield _fact(file, what, said[1], number)


def _from_package(file: ManifestText) -> Iterator[Fact]:
    said = read_json(file.text).table
    told = [(VERSION, "version"), (NAME, "name"), (LICENCE, "license"), ("packageManager", "packageManager")]
    for what, key in told:
        if isinstance(value := said.get(key), str) and value:
            yield _fact(file, what, value, _line_of_key(file, key))
    start = file.text.find('"engines"')
    for name, value in table(said.get("engines")).items():
        if isinstance(value, str):
            yield _fact(file, name, value, _line_of_key(file, name, start))


def _line_of_key(file: ManifestText, key: str, start: int = 0) -> int:
    found = re.compile(rf'"{re.escape(key)}"\s*:').search(file.text, max(0, start))
    return file.line_at(found.start() if found else 0)


def _from_pom(file: ManifestText) -> Iterator[Fact]:
    own = ManifestText(file.path, _INNER.sub(lambda found: "\n" * found[0].count("\n"), file.text))
    for what, pattern in _POM:
        yield from _matched(own, what, pattern)
    yield from _matched(file, *_COMPILER)
    yield from (Fact(each.name, each.version, each.source) for each in managed_packages(file) if each.version)


def _from_lines(file: ManifestText) -> Iterator[Fact]:
    for what, pattern in _LINES[file.path.rpartition("/")[2]]:
        yield from _matched(file, what, pattern)


def _matched(file: ManifestText, what: str, pattern: re.Pattern[str]) -> Iterator[Fact]:
    """The first place that fits."""
    if found := pattern.search(file.text):
        yield _fact(file, what, found[1], file.line_at(found.start(1)))


def _fact(file: ManifestText, what: str, value: str, line: int) -> Fact:
    return Fact(what, mask_keys(clip(value, MAX_VALUE)), f"{file.path}:{line}")
