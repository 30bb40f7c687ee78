"""The statements of manifests: which packages, runtimes, scripts and people each format names, and on which lines.

A format is a table of rules over its keys (`manifest_rules.json`), or of patterns over its lines. Readers never raise,
whatever the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from clew.knowledge.project.formats import Keys, Parsed, TextFile, load_table, parse, table

Kind = Literal["runtime", "dependency", "script", "tool", "metadata", "people"]
Shape = Literal["value", "requirements", "packages", "people"]
RUNTIME, DEV, PEER, INDIRECT = "runtime", "dev", "peer", "indirect"
"""Groups of dependencies."""
MAX_VALUE = 500

_DEV = re.compile(r"dev|test|lint|docs?|typing|types|check|ci\b|format", re.IGNORECASE)
_PACKAGE = re.compile(r"(?:@[A-Za-z0-9~-][\w.~-]{0,150}/)?[A-Za-z0-9~-][\w.~-]{0,150}")
_PERSON = re.compile(r"\s*[<(]")


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


class Rule(NamedTuple):
    """Values at `path` (see `Parsed.select`) are statements. `name` `*` is the key that the last `*` stands for, or
    else the last key; `group` `*` is the group of packages by that key."""

    path: str
    kind: Kind
    name: str = "*"
    group: str = ""
    shape: Shape = "value"


class LinePattern(NamedTuple):
    """Matches of a pattern are statements; the groups `name` and `value` are read where the pattern has them."""

    pattern: re.Pattern[str]
    kind: Kind
    name: str = ""
    group: str = ""


Reader = Callable[[TextFile], Iterator[Statement]]


@cache
def load_rules() -> Mapping[str, Sequence[Rule]]:
    """The rules of each format, by the name of the file."""
    return load_table("manifest_rules.json", dict[str, list[Rule]])


def read_rules(file: TextFile) -> Iterator[Statement]:
    """The statements of a file whose format is a table of keys."""
    parsed = parse(file)
    for rule in load_rules()[file.name]:
        stars = [at for at, part in enumerate(rule.path.split("/")) if part == "*"]
        for keys, value in parsed.select(rule.path):
            yield from _SHAPES[rule.shape](file, parsed, rule, keys, keys[stars[-1] if stars else -1], value)


def _read_value(file: TextFile, parsed: Parsed, rule: Rule, keys: Keys, key: str, value: object) -> Iterator[Statement]:
    if isinstance(value, list):
        items = (" ".join(map(str, each)) if isinstance(each, list) else str(each) for each in value[:50])
        value = ", ".join(filter(None, items))
    if isinstance(value, str | int | float) and str(value).strip():
        name = key.removeprefix("testenv:") if rule.name == "*" else rule.name
        yield Statement(rule.kind, name, str(value).strip(), *parsed.span(keys), rule.group)


def _read_requirements(
    file: TextFile, parsed: Parsed, rule: Rule, keys: Keys, key: str, value: object
) -> Iterator[Statement]:
    listed = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else ()
    group = type_of_group(key) if rule.group == "*" else rule.group
    start, end = parsed.span(keys)
    for each in listed:
        found = parse_requirement(each) if isinstance(each, str) else None
        if found is not None:
            line = _find_line(file, each, start, end)
            words = key if "*" in rule.path else ""
            yield Statement("dependency", *found, line, line, group, words)


def _read_packages(
    file: TextFile, parsed: Parsed, rule: Rule, keys: Keys, key: str, value: object
) -> Iterator[Statement]:
    group = type_of_group(key) if rule.group == "*" else rule.group
    is_python = file.name == "pyproject.toml"
    for name, wanted in table(value).items():
        own = table(wanted).get("package", name)
        version = version_of(wanted)
        if (
            isinstance(own, str)
            and _PACKAGE.fullmatch(own)
            and version is not None
            and not (is_python and own == "python")
        ):
            shown = normal_name(own) if is_python else own
            yield Statement("dependency", shown, version, *parsed.span((*keys, name)), group)


def _read_people(
    file: TextFile, parsed: Parsed, rule: Rule, keys: Keys, key: str, value: object
) -> Iterator[Statement]:
    start, end = parsed.span(keys)
    for each in value if isinstance(value, list) else [value]:
        said = each if isinstance(each, str) else table(each).get("name") or table(each).get("email")
        if isinstance(said, str) and said.strip():
            line = _find_line(file, said, start, end)
            yield Statement("people", rule.name, _PERSON.split(said)[0].strip() or said, line, line)


_SHAPES = {
    "value": _read_value,
    "requirements": _read_requirements,
    "packages": _read_packages,
    "people": _read_people,
}


def version_of(wanted: object) -> str | None:
    """The version beside the name of a package, or where else it comes from; None for what is no version."""
    if isinstance(wanted, str):
        return wanted
    given = table(wanted)
    said = given.get("version") or given.get("git") or given.get("path") or ("" if given else None)
    return said if isinstance(said, str) else None


def type_of_group(name: str) -> str:
    """The group of dependencies that an optional group belongs to, by its name."""
    return DEV if _DEV.search(name) else RUNTIME


def normal_name(name: str) -> str:
    """The one spelling of all that mean the same package of Python."""
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=4096)
def parse_requirement(text: str) -> tuple[str, str] | None:
    """The name and the version constraint, as written, of a PEP 508 requirement; None for any other text."""
    from packaging.requirements import InvalidRequirement, Requirement  # takes 40 ms to import

    plain = re.split(r"\s+#|\s--|\s*\\\s*$", text[:MAX_VALUE].strip())[0].strip()
    try:
        found = Requirement(plain)
    except (InvalidRequirement, ValueError, RecursionError):
        return None
    specifiers = sorted(map(str, found.specifier), key=lambda each: plain.replace(" ", "").find(each))
    return normal_name(found.name), found.url or ",".join(specifiers)


def _find_line(file: TextFile, text: str, start: int, end: int) -> int:
    return next((number for number in range(start, end + 1) if text in file.lines[number - 1]), start)


# -- formats of lines ------------------------------------------------------------------------------------------


def read_requirements(file: TextFile) -> Iterator[Statement]:
    group = type_of_group(file.name.replace("requirements", "", 1))
    for number, line in enumerate(file.lines, 1):
        if line.strip() and not line.lstrip().startswith(("-", "#")) and (found := parse_requirement(line)):
            yield Statement("dependency", *found, number, number, group)


_GO_PATH = re.compile(r"[\w.~-]{1,200}(?:/[\w.~/-]{0,300})?")
_GO_VERSION = re.compile(r"v[\w.+-]{1,200}")


def read_go_mod(file: TextFile) -> Iterator[Statement]:
    """The module, the version of Go, and what is required; not what is replaced or excluded."""
    block = ""
    for number, line in enumerate(file.lines, 1):
        code, _, comment = line.partition("//")
        words = code.replace("(", " ( ").split()
        if words[1:2] == ["("] or words == [")"]:
            block = "" if ")" in words else words[0]
            continue
        match [block, *words] if block else words:
            case ["require", path, version] if _GO_PATH.fullmatch(path) and _GO_VERSION.fullmatch(version):
                group = INDIRECT if comment.split()[:1] == ["indirect"] else RUNTIME
                yield Statement("dependency", path, version, number, number, group)
            case ["tool", path] if _GO_PATH.fullmatch(path):
                yield Statement("dependency", path, "", number, number, DEV)
            case ["module", path]:
                yield Statement("metadata", "name", path, number, number)
            case ["go" | "toolchain" as word, version]:
                yield Statement("runtime", "go", version, number, number, word)


def _lines(*rows: tuple[str, Kind, str, str]) -> tuple[LinePattern, ...]:
    return tuple(LinePattern(re.compile(shape, re.MULTILINE), kind, name, group) for shape, kind, name, group in rows)


_QUOTED = r"[\"'](?P<value>[^\"'\n]{1,200})[\"']"
_GEM_FIELD = r"^[ \t]*+\w++\.FIELD[ \t]*+=[ \t]*+" + _QUOTED
_GEM_ADDED = r"^[ \t]*+\w++\.add_FIELD[ \t]*+\(?[ \t]*+[\"'](?P<name>[\w.-]+)[\"'](?:[ \t]*+,[ \t]*+" + _QUOTED + ")?"
_WORD = r"\A\s*(?P<value>\S{1,100})"
PATTERNS: Mapping[str, Sequence[LinePattern]] = {
    "build.gradle": _lines(
        (r"\b(?:sourceCompatibility[ \t]*+=?|JavaLanguageVersion\.of)[ \t]*+[(\"']*(?P<value>[\w.]+)",
         "runtime", "java", ""),
        (rf"^version[ \t]*+=?[ \t]*+{_QUOTED}", "metadata", "version", ""),
        (rf"^group[ \t]*+=?[ \t]*+{_QUOTED}", "metadata", "group", ""),
        (rf"^[ \t]*+id[ \t]*+\(?{_QUOTED}", "tool", "plugin", "build"),
        (r"^[ \t]*+(?:implementation|api|compileOnly|runtimeOnly)[ \t]*+\(?[\"'](?P<name>[\w.-]+:[\w.-]+)"
         r"(?::(?P<value>[^\"'\n:@]{1,100}))?", "dependency", "", RUNTIME),
        (r"^[ \t]*+(?:testImplementation|testRuntimeOnly|annotationProcessor)[ \t]*+\(?[\"'](?P<name>[\w.-]+:[\w.-]+)"
         r"(?::(?P<value>[^\"'\n:@]{1,100}))?", "dependency", "", DEV),
    ),
    ".gemspec": _lines(
        *((_GEM_FIELD.replace("FIELD", field), "metadata", name, "")
          for field, name in (("name", "name"), ("version", "version"), ("summary", "description"),
                              ("homepage", "homepage"), ("licenses?", "license"))),
        (_GEM_FIELD.replace("FIELD", "required_ruby_version"), "runtime", "ruby", ""),
        (r"^[ \t]*+\w++\.authors?[ \t]*+=[ \t]*+\[?" + _QUOTED, "people", "authors", ""),
        (r"^[ \t]*+\w++\.licenses?[ \t]*+=[ \t]*+\[" + _QUOTED, "metadata", "license", ""),
        (_GEM_ADDED.replace("FIELD", "(?:runtime_)?dependency"), "dependency", "", RUNTIME),
        (_GEM_ADDED.replace("FIELD", "development_dependency"), "dependency", "", DEV),
    ),
    ".nvmrc": _lines((_WORD, "runtime", "node", "")),
    ".node-version": _lines((_WORD, "runtime", "node", "")),
    ".python-version": _lines((_WORD, "runtime", "python", "")),
    ".ruby-version": _lines((_WORD, "runtime", "ruby", "")),
    "rust-toolchain": _lines((r"\A\s*(?P<value>[\w.-]{1,100})\s*\Z", "runtime", "rust", "")),
    ".tool-versions": _lines((r"^(?P<name>[\w-]{1,50})[ \t]+(?P<value>\S{1,100})", "runtime", "", "")),
    "LICENSE": _lines((r"\A\s*(?P<value>\S[^\n]{0,200})", "metadata", "license", "")),
    "version.py": _lines(
        (r"^__version__[ \t]*+(?::[ \t]*+\w++[ \t]*+)?=[ \t]*+" + _QUOTED, "metadata", "version", ""),
    ),
}  # fmt: skip


def read_patterns(file: TextFile, patterns: Sequence[LinePattern]) -> Iterator[Statement]:
    """The matches of patterns, in the order of the patterns."""
    for each in patterns:
        for found in each.pattern.finditer(file.text):
            groups = found.groupdict()
            at = file.line_at(found.start("value" if groups.get("value") else 0))
            yield Statement(
                each.kind, groups.get("name") or each.name, (groups.get("value") or "").strip(), at, at, each.group
            )


_GEM = re.compile(r"^\s*gem\s*+(?:\(\s*+)?[\"']([\w.-]+)[\"'](?:\s*,\s*[\"']([^\"']{1,50})[\"'])?(.*)$")
_GEM_GROUP = re.compile(r"^\s*group\b(.*)\bdo\b")
_GEM_BLOCK = re.compile(r"^\s*(?:if|unless|source|path|git|platforms?)\b")
_GEM_OWN_GROUP = re.compile(r"group.*:(?:dev|test)")
_GEM_RUBY = re.compile(r"^\s*ruby\s+[\"']([^\"'\n]+)[\"']")


def read_gemfile(file: TextFile) -> Iterator[Statement]:
    groups: list[str] = []
    for number, line in enumerate(file.lines, 1):
        if found := _GEM.match(line[:MAX_VALUE]):
            is_dev = _GEM_OWN_GROUP.search(found[3]) or DEV in map(type_of_group, groups)
            yield Statement("dependency", found[1], found[2] or "", number, number, DEV if is_dev else RUNTIME)
        elif found := _GEM_RUBY.match(line):
            yield Statement("runtime", "ruby", found[1], number, number)
        elif found := _GEM_GROUP.match(line[:MAX_VALUE]):
            groups.append(found[1])
        elif re.match(r"\s*end\b", line) and groups:
            groups.pop()
        elif _GEM_BLOCK.match(line):
            groups.append("")


_POM_SCOPES = {"test": DEV, "provided": PEER}
_POM_DEPENDENCY = re.compile(r"<dependency>(.{0,1500}?)</dependency>", re.DOTALL)
_POM_ELEMENT = re.compile(r"<([\w.-]{1,100})>([^<>]{1,100})</\1>")
_POM_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_POM_MANAGED = re.compile(r"<dependencyManagement>.*?(?:</dependencyManagement>|\Z)", re.DOTALL)
_POM_INNER = re.compile(
    r"<(parent|dependencies|dependencyManagement|build|profiles|reporting)>.*?(?:</\1>|\Z)", re.DOTALL
)
_POM_VARIABLE = re.compile(r"\$\{([^}]{1,100})\}")
_POM_FIELDS = {"version": "version", "artifactId": "name", "description": "description", "url": "url"}
_POM_VALUE = r"(?P<value>[^<>]{1,300})<"
_POM_PARTS = re.compile(r"<(licenses|developers|organization|scm|issueManagement)>.*?(?:</\1>|\Z)", re.DOTALL)
_POM_OWN = _lines(
    *((rf"<{element}>{_POM_VALUE}/{element}>", "metadata", name, "") for element, name in _POM_FIELDS.items()),
)
_POM = _lines(
    (rf"<license>\s*+<name>{_POM_VALUE}", "metadata", "license", ""),
    (rf"<developer>\s*+(?:<id>[^<>]*+</id>\s*+)?<name>{_POM_VALUE}", "people", "developers", ""),
    (rf"<(?:maven\.compiler\.(?:release|source|target)|java\.?[vV]ersion)>{_POM_VALUE}", "runtime", "java", ""),
)
_POM_COMPILER = _lines(
    (rf"maven-compiler-plugin</artifactId>(?s:.{{0,600}}?)<(?:release|source)>{_POM_VALUE}", "runtime", "java", "")
)


def read_pom(file: TextFile) -> Iterator[Statement]:
    """The project and its dependencies, by the shape of their elements: nothing is expanded but properties."""
    text = _POM_COMMENT.sub(_blank, file.text)
    own = TextFile(file.path, _POM_INNER.sub(_blank, text))
    fields = TextFile(file.path, _POM_PARTS.sub(_blank, own.text))
    names = set[str]()
    for each in (*read_patterns(fields, _POM_OWN), *read_patterns(own, _POM), *read_patterns(file, _POM_COMPILER)):
        if each.kind != "metadata" or each.name not in names:  # the first is that of the project
            names.add(each.name)
            yield each
    known = dict(_POM_ELEMENT.findall(text))
    managed: dict[str, str] = {}
    for block in _POM_MANAGED.finditer(text):
        for name, part, at in _pom_dependencies(block[0]):
            managed[name] = version = _POM_VARIABLE.sub(
                lambda found: known.get(found[1], found[0]), part.get("version", "")
            )
            line = file.line_at(block.start() + at)
            yield Statement("dependency", name, version, line, line, "managed")
    for name, part, at in _pom_dependencies(_POM_MANAGED.sub(_blank, text)):
        version = _pom_version(part, known) or managed.get(name, "")
        group = _POM_SCOPES.get(part.get("scope", ""), RUNTIME)
        line = file.line_at(at)
        yield Statement("dependency", name, version, line, line, group)


def _pom_version(part: Mapping[str, str], known: Mapping[str, str]) -> str:
    return _POM_VARIABLE.sub(lambda found: known.get(found[1], found[0]), part.get("version", ""))


def _pom_dependencies(text: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Each dependency as its name, its elements, and the position of its name."""
    for found in _POM_DEPENDENCY.finditer(text):
        part = {name: value.strip() for name, value in _POM_ELEMENT.findall(found[1])}
        if "groupId" in part and "artifactId" in part:
            yield f"{part['groupId']}:{part['artifactId']}", part, found.start(1) + found[1].find("<artifactId>")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


# -- which file is read by what --------------------------------------------------------------------------------

_LINE_READERS: Mapping[str, Reader] = {"go.mod": read_go_mod, "Gemfile": read_gemfile, "pom.xml": read_pom}
VERSION_MODULES = ("version.py", "__init__.py", "__version__.py", "_version.py", "__about__.py")
MAX_MODULE_DEPTH = 2
"""Modules further down do not state the version of the project."""
_SAME_PATTERNS = {
    "build.gradle.kts": "build.gradle",
    **dict.fromkeys(("LICENSE.md", "LICENSE.txt", "LICENCE", "COPYING"), "LICENSE"),
    **dict.fromkeys(VERSION_MODULES, "version.py"),
}
_REQUIREMENTS = re.compile(r"(?:.*/)?(?:[\w.-]*requirements[\w.-]*|requirements/[\w.-]+)\.(?:txt|in)")


def reader_of(path: str) -> Reader | None:
    """The reader of a file of this name, if it is a manifest."""
    name = path.rpartition("/")[2]
    if name in VERSION_MODULES and path.count("/") > MAX_MODULE_DEPTH:
        return None
    if name in load_rules():
        return read_rules if name != "config.toml" or path.endswith(".cargo/config.toml") else None
    if name in _LINE_READERS:
        return _LINE_READERS[name]
    patterns = PATTERNS.get(_SAME_PATTERNS.get(name, ".gemspec" if name.endswith(".gemspec") else name))
    if patterns is not None:
        return lambda file: read_patterns(file, patterns)
    return read_requirements if _REQUIREMENTS.fullmatch(path) else None
