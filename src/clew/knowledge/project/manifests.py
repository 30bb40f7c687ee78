"""Manifests and scripts: the packages, runtimes, commands and people that each file names, with their lines. A
format is a table of rules over its keys or its lines (`manifest_rules.json`). Nothing is run, and no text makes a
reader raise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import Any, Literal, NamedTuple, cast

import msgspec

from clew.knowledge.lines import clip
from clew.knowledge.project.formats import Keys, ManifestFile, ParsedText, load_table, parse, table
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys

Kind = Literal["runtime", "dependency", "script", "tool", "metadata", "people"]
Shape = Literal["value", "requirements", "packages", "artifact", "people"]
RUNTIME, DEV, PEER, INDIRECT, MANAGED = "runtime", "dev", "peer", "indirect", "managed"
"""Groups of dependencies."""
MAX_VALUE = 500
MAX_LINES = 5_000
MAX_COMMANDS = 40
"""Lines of one script."""
MAX_DEPTH = 2
"""Files further down that declare no packages are about a part of the project."""

_DEV = lazy_pattern(r"dev|test|lint|docs?|typing|types|check|ci\b|format", re.IGNORECASE)
_PACKAGE = lazy_pattern(r"(?:@[A-Za-z0-9~-][\w.~-]{0,150}/)?[A-Za-z0-9~-][\w.~-]{0,150}")
_PERSON = lazy_pattern(r"\s*[<(]")
_VARIABLE = lazy_pattern(r"\$\{([^}]{1,100})\}")
_REQUIREMENTS = lazy_pattern(r"(?:.*/)?(?:[\w.-]*requirements[\w.-]*|requirements/[\w.-]+)\.(?:txt|in)")
_GEM_DEV_BLOCK = lazy_pattern(r"^group\b.*:(?:dev|test).*\bdo\n(?:.*\n){0,100}?end\b", re.MULTILINE)
_MAKE_TARGET = lazy_pattern(r"([A-Za-z0-9][\w./-]{0,60})[ \t]*+:(?![=:])[ \t]*+([^#]{0,300})")
_JUST_RECIPE = lazy_pattern(r"@?([A-Za-z][\w-]{0,60})(?:[ \t][^:=]{0,100})?:(?!=)([^#]{0,300})")
_NOX_SESSION = lazy_pattern(r"def (\w{1,80})\(session\b()")
_BLOCKS: Mapping[str, tuple[re.Pattern[str], str]] = {
    **dict.fromkeys(("makefile", "gnumakefile"), (_MAKE_TARGET, "make")),
    "justfile": (_JUST_RECIPE, "just"),
    "noxfile.py": (_NOX_SESSION, "nox -s"),
}


class Statement(NamedTuple):
    """One thing that a file states. `group` divides a kind: the group of a dependency, the category of a tool, the
    field of metadata. `words` are further words that belong to it, such as the name of an optional group."""

    kind: Kind
    name: str
    value: str
    start: int
    end: int
    group: str = ""
    words: str = ""


class KeyRule(NamedTuple):
    """Values at `path` (see `ParsedText.select`) are statements. A `name` of `*` is the key that matches the last `*`,
    or the last key if there is no `*`. A `name` of `=` is the value itself. A `name` of `job` is the key of the first
    `*` and the name of the step. A `group` of `*` is the group of packages by that key."""

    path: str
    kind: Kind
    name: str = "*"
    group: str = ""
    shape: Shape = "value"

    def key(self, keys: Keys) -> str:
        stars = [at for at, part in enumerate(self.path.split("/")) if part == "*"]
        return keys[stars[-1] if stars else -1]

    def package_group(self, keys: Keys) -> str:
        return type_of_group(self.key(keys)) if self.group == "*" else self.group


class LineRule(NamedTuple):
    """Matches of a pattern are statements; the groups `name` and `value` are read if the pattern has them."""

    pattern: str
    kind: Kind
    name: str = ""
    group: str = ""


class _Rules(msgspec.Struct, frozen=True):
    keys: dict[str, list[KeyRule]]
    lines: dict[str, list[LineRule]]


Reader = Callable[[ManifestFile], Iterator[Statement]]


@cache
def _load_rules() -> _Rules:
    """The rules of each format, by the name of the file."""
    rules = load_table("manifest_rules.json", _Rules)
    return _Rules(rules.keys, {name: rules.lines[names] for names in rules.lines for name in names.split()})


def reader_of(path: str) -> Reader | None:
    """The reader of a file of this name, if it is a manifest or holds commands."""
    folder, _, name = path.rpartition("/")
    rules = _load_rules()
    names = (name, f"{folder.rpartition('/')[2]}/{name}", f"{folder}/*", f"*.{name.rpartition('.')[2]}")
    if keys := next((rules.keys[each] for each in names if each in rules.keys), None):
        return lambda file: _read_keys(file, keys)
    lines = next((rules.lines[each] for each in names if each in rules.lines), None)
    if lines and (path.count("/") <= MAX_DEPTH or any(rule.kind == "dependency" for rule in lines)):
        return lambda file: _read_lines(file, lines)
    if block := _BLOCKS.get(name.lower()):
        return lambda file: _read_blocks(file, *block)
    return _read_requirements_file if _REQUIREMENTS.fullmatch(path) else None


# -- formats of keys -------------------------------------------------------------------------------------------


def _read_keys(file: ManifestFile, rules: list[KeyRule]) -> Iterator[Statement]:
    parsed = parse(file)
    for rule in rules:
        for keys, value in parsed.select(rule.path):
            yield from _SHAPES[rule.shape](file, parsed, rule, keys, value)


def _read_value(
    file: ManifestFile, parsed: ParsedText, rule: KeyRule, keys: Keys, value: object
) -> Iterator[Statement]:
    if isinstance(value, list):
        items = (" ".join(map(str, each)) if isinstance(each, list) else str(each) for each in value[:MAX_COMMANDS])
        value = ("\n" if rule.kind == "script" else ", ").join(filter(None, items))
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not text or (rule.kind == "runtime" and "${{" in text):
        return
    name = rule.key(keys).removeprefix("testenv:") if rule.name == "*" else rule.name
    if rule.name == "=":
        name, text = text, rule.group
    elif rule.name == "job":
        first = keys[rule.path.split("/").index("*")]
        name = ": ".join(filter(None, (first, str(table(parsed.at(keys[:-1])).get("name", "")))))
    yield Statement(rule.kind, name, text, *parsed.span(keys), rule.group)


def _read_requirements(
    file: ManifestFile, parsed: ParsedText, rule: KeyRule, keys: Keys, value: object
) -> Iterator[Statement]:
    listed = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else ()
    for each in listed:
        found = parse_requirement(each) if isinstance(each, str) else None
        if found is not None:
            line = _find_line(file, each, parsed.span(keys))
            words = rule.key(keys) if "*" in rule.path else ""
            yield Statement("dependency", *found, line, line, rule.package_group(keys), words)


def _read_packages(
    file: ManifestFile, parsed: ParsedText, rule: KeyRule, keys: Keys, value: object
) -> Iterator[Statement]:
    from packaging.utils import canonicalize_name  # as `parse_requirement`

    is_python = file.name == "pyproject.toml"
    for name, wanted in table(value).items():
        own, version = table(wanted).get("package", name), _version_of(wanted)
        is_package = isinstance(own, str) and _PACKAGE.fullmatch(own) and not (is_python and own == "python")
        if is_package and version is not None:
            shown, span = canonicalize_name(own) if is_python else own, parsed.span((*keys, name))
            yield Statement("dependency", shown, version, *span, rule.package_group(keys))


def _read_artifact(
    file: ManifestFile, parsed: ParsedText, rule: KeyRule, keys: Keys, value: object
) -> Iterator[Statement]:
    """A dependency of Maven. Properties of the file are filled in."""
    part, known = table(value), table(parsed.at(("project", "properties")))
    if "groupId" in part and "artifactId" in part:
        version = _VARIABLE.sub(lambda found: str(known.get(found[1], found[0])), str(part.get("version", "")))
        scope = {"test": DEV, "provided": PEER}.get(str(part.get("scope")), RUNTIME)
        group, name = scope if rule.group == RUNTIME else rule.group, f"{part['groupId']}:{part['artifactId']}"
        yield Statement("dependency", name, version, *parsed.span((*keys, "artifactId")), group)


def _read_people(
    file: ManifestFile, parsed: ParsedText, rule: KeyRule, keys: Keys, value: object
) -> Iterator[Statement]:
    for each in value if isinstance(value, list) else [value]:
        said = each if isinstance(each, str) else table(each).get("name") or table(each).get("email")
        if isinstance(said, str) and said.strip():
            line = _find_line(file, said, parsed.span(keys))
            yield Statement("people", rule.name, _PERSON.split(said)[0].strip() or said, line, line)


_SHAPES = {
    "value": _read_value,
    "requirements": _read_requirements,
    "packages": _read_packages,
    "artifact": _read_artifact,
    "people": _read_people,
}


def _version_of(wanted: Any) -> str | None:
    """The version that a manifest gives for a package, or else its git address or path. None if the value is not a
    text."""
    given = table(wanted)
    said = given.get("version") or given.get("git") or given.get("path") or "" if given else wanted
    return said if isinstance(said, str) else None


def type_of_group(name: str) -> str:
    """The group of dependencies that an optional group belongs to, by its name."""
    return DEV if _DEV.search(name) else RUNTIME


@lru_cache(maxsize=4096)
def parse_requirement(text: str) -> tuple[str, str] | None:
    """The name and the version constraint, as written, of a PEP 508 requirement; None for any other text."""
    from packaging.requirements import InvalidRequirement, Requirement  # takes 40 ms to import
    from packaging.utils import canonicalize_name

    plain = re.split(r"\s+#|\s--|\s*\\\s*$", text[:MAX_VALUE].strip())[0].strip()
    try:
        found = Requirement(plain)
    except (InvalidRequirement, ValueError, RecursionError):
        return None
    specifiers = sorted(map(str, found.specifier), key=lambda each: plain.replace(" ", "").find(each))
    return canonicalize_name(found.name), found.url or ",".join(specifiers)


def _find_line(file: ManifestFile, text: str, span: tuple[int, int]) -> int:
    return next((number for number in range(span[0], span[1] + 1) if text in file.lines[number - 1]), span[0])


# -- formats of lines ------------------------------------------------------------------------------------------


def _read_requirements_file(file: ManifestFile) -> Iterator[Statement]:
    group = type_of_group(file.name.replace("requirements", "", 1))
    for number, line in enumerate(file.lines, 1):
        if line.strip() and not line.lstrip().startswith(("-", "#")) and (found := parse_requirement(line)):
            yield Statement("dependency", *found, number, number, group)


def _read_lines(file: ManifestFile, rules: list[LineRule]) -> Iterator[Statement]:
    blocks = _GEM_DEV_BLOCK.finditer(file.text) if file.name == "Gemfile" else ()
    dev = [range(*block.span()) for block in blocks]
    for rule in rules:
        for found in re.finditer(rule.pattern, file.text, re.MULTILINE):
            said = {name: value.strip() for name, value in found.groupdict().items() if value}
            at = file.line_at(found.start("value" if "value" in said else "name"))
            group = DEV if any(found.start() in block for block in dev) else rule.group
            yield Statement(rule.kind, said.get("name", rule.name), said.get("value", ""), at, at, group)


def _read_blocks(file: ManifestFile, head: re.Pattern[str], group: str) -> Iterator[Statement]:
    """Targets of make and just and sessions of nox: a line, and the indented lines below it."""
    lines = [line[:MAX_VALUE] for line in file.lines[:MAX_LINES]]
    for number, line in enumerate(lines, 1):
        if found := head.match(line):
            body = list(takewhile(lambda each: each[:1] in ("\t", " "), lines[number : number + MAX_COMMANDS]))
            marks = "[\"',]" if group == "nox -s" else r"\A\s+|\s+\Z"
            value = "\n".join(re.sub(marks, "", each).strip() for each in body) or found[2].strip()
            yield Statement("script", found[1], value, number, number + len(body), group)


# -- packages --------------------------------------------------------------------------------------------------

Ecosystem = Literal["npm", "python", "go", "rust", "ruby", "java"]
PackageType = Literal["runtime", "dev", "peer"]
MAX_DECLARED = 2_000
"""Packages of one manifest."""
MAX_VERSION = 100

_ECOSYSTEMS: dict[str, Ecosystem] = {
    "package.json": "npm",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "Gemfile": "ruby",
    **dict.fromkeys(("pom.xml", "build.gradle", "build.gradle.kts"), "java"),
    **dict.fromkeys(("pyproject.toml", "setup.py", "setup.cfg"), "python"),
}
_COPIED = lazy_pattern(r"(?:^|/)(?:node_modules|vendor|vendored|third_party)/")


class DeclaredPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a manifest names it, at `source`, `path:line`. A package that only other packages need is not
    direct."""

    ecosystem: Ecosystem
    name: str
    version: str
    type: PackageType
    source: str
    is_direct: bool = True


class PackageManifest(NamedTuple):
    """The packages of one manifest. `problem` says why it declares nothing."""

    packages: list[DeclaredPackage]
    problem: str


def is_copied(path: str) -> bool:
    """Whether a file is in a folder for copies of other projects."""
    return _COPIED.search(path) is not None


def parse_manifest(path: str, text: str) -> PackageManifest:
    """The packages that a manifest declares, in the order of its parts, up to a limit; none for another file."""
    file, ecosystem, read = ManifestFile(path, text), ecosystem_of(path), reader_of(path)
    if ecosystem is None or read is None:
        return PackageManifest([], "")
    found = (each for each in read(file) if each.kind == "dependency")
    packages = [
        DeclaredPackage(
            ecosystem=ecosystem,
            name=each.name,
            version=mask_keys(clip(each.value, MAX_VERSION)),
            type=cast("PackageType", each.group if each.group in (DEV, PEER) else RUNTIME),
            source=f"{path}:{each.start}",
            is_direct=each.group not in (INDIRECT, MANAGED),
        )
        for each in islice(found, MAX_DECLARED)
    ]
    return PackageManifest(packages, parse(file).problem)


def ecosystem_of(path: str) -> Ecosystem | None:
    """The ecosystem whose packages a file of this name declares, or None."""
    name = path.rpartition("/")[2]
    if name.endswith(".gemspec"):
        return "ruby"
    return _ECOSYSTEMS.get(name) or ("python" if _REQUIREMENTS.fullmatch(path) else None)
