"""The packages that a project depends on: whether one meets a need, and how the code uses them. The purposes of
packages are data: `capabilities.json`."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated

import msgspec

from clew.errors import NotFound
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import load_table
from clew.knowledge.project.manifests import (
    DeclaredPackage,
    PackageManifest,
    ecosystem_of,
    is_copied,
    parse_manifest,
)
from clew.knowledge.project.style import FAMILY, group_of
from clew.knowledge.project.texts import (
    MAX_TEXT,
    FileText,
    Need,
    NeedText,
    own_files,
    read_file,
    read_files,
    read_need,
    spread,
    terms_in,
)

MAX_MANIFESTS, MAX_CODE = 200, 1_000
MAX_EXAMPLES, MAX_PACKAGES = 3, 5
ENOUGH = 0.6
"""The share of a need's words that a capability has to cover."""
_ECOSYSTEMS = {language: language for language in ("python", "go", "rust", "ruby", "java")} | dict.fromkeys(
    ("javascript", "typescript", "tsx"), "npm"
)
"""Ecosystems by language."""
_FILLER = frozenset(("package", "packages", "library", "libraries", "dependency", "dependencies", "module", "tool"))


class UsageExample(msgspec.Struct, frozen=True, kw_only=True):
    """The line that imports `name` from a package, and the first line that uses it."""

    name: str
    code: str
    source: str


class Package(DeclaredPackage, frozen=True, kw_only=True, omit_defaults=True):
    """A declared package, its purposes, and its use: the number of files that import it, and the first imports."""

    capabilities: Sequence[str] = ()
    usage_examples: Sequence[UsageExample] = ()
    files: int = 0
    imports: Sequence[str] = ()


class PackageSuggestion(msgspec.Struct, frozen=True):
    """A package that the project could add, of an ecosystem that it uses."""

    name: str
    ecosystem: str
    capability: str


class DependencyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that meet a need, or suggestions; `problems` name the `manifests` that could not be read, and why."""

    already_available: bool
    packages: Sequence[Package] = ()
    suggestions: Sequence[PackageSuggestion] = ()
    manifests: Sequence[str] = ()
    problems: Sequence[str] = ()


class DependencyAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a project or a part of it. `undeclared` are imports, with their places, of packages that no
    manifest names."""

    target: str
    packages: Sequence[Package]
    unused: Sequence[str]
    undeclared: Mapping[str, Sequence[str]]
    problems: Sequence[str] = ()


class _Capability(msgspec.Struct, frozen=True):
    name: str
    packages: dict[str, list[str]]
    also: list[str] = []

    def provides(self, package: DeclaredPackage) -> bool:
        known = self.packages.get(package.ecosystem, ())
        return package.name in known or re.sub(r"/v\d+$", "", package.name) in known

    def closeness(self, need: Need) -> float:
        """The largest share of the need that a phrase for this capability covers. 0 if no phrase covers its head."""
        matches = [need.matched(terms_in(phrase)) for phrase in (self.name, *self.also)]
        return max((sum(matched) / len(matched) for matched in matches if matched[need.head]), default=0.0)


class _KnownPackages(msgspec.Struct, frozen=True):
    modules: dict[str, list[str]]
    capabilities: list[_Capability]


@cache
def _load() -> _KnownPackages:
    return load_table("capabilities.json", _KnownPackages)


class _Manifests:
    """The manifests of a project, those of the upper folders first, and the packages that they declare, each once."""

    def __init__(self, code: CodeGraph, files: Sequence[FileInfo]) -> None:
        named = [file.path for file in files if ecosystem_of(file.path) and not is_copied(file.path)]
        own = [path for path in named if not kind_of(path) & (TEST | ASIDE)]
        paths = sorted((own or named)[:MAX_MANIFESTS], key=lambda path: (path.count("/"), path))
        manifests = [_read_manifest(code, path) for path in paths]
        self.paths = paths
        self.problems = [f"{path} {each.problem}" for path, each in zip(paths, manifests, strict=True) if each.problem]
        declared = [package for each in manifests for package in each.packages if package.is_direct]
        self.packages = list({(each.ecosystem, each.name): each for each in reversed(declared)}.values())[::-1]


def _read_manifest(code: CodeGraph, path: str) -> PackageManifest:
    file = read_file(code, path)
    if file is None:
        return PackageManifest([], f"is gone, no text, or over {MAX_TEXT:,} bytes")
    return parse_manifest(path, file.text)


async def check_dependency(code: CodeGraph, need: NeedText) -> DependencyAnswer:
    """Find a package of the project that meets a need, before another is added.

    Raises InvalidInput for a need without words.
    """
    wanted = read_need(need, _FILLER)
    files = await code.files()
    return await asyncio.to_thread(_check, code, files, wanted)


async def analyze_dependencies(
    code: CodeGraph,
    target: Annotated[str, msgspec.Meta(description="a file or folder; empty for the whole project")] = "",
) -> DependencyAnalysis:
    """Analyze dependencies: the packages of this project or a part of it, where it imports them, and which are unused
    or undeclared.

    Raises NotFound for a target that is not there.
    """
    files = await code.files()
    place = target.strip().strip("/").removeprefix("./")
    inside = [file for file in files if not place or file.path == place or file.path.startswith(f"{place}/")]
    if not inside:
        raise NotFound("file or folder of this project", target)
    return await asyncio.to_thread(_analyze, code, files, inside, place)


def _check(code: CodeGraph, files: Sequence[FileInfo], need: Need) -> DependencyAnswer:
    manifests = _Manifests(code, files)
    scored = [(_fit(need, each), each) for each in manifests.packages]
    ranked = sorted(scored, key=lambda one: (-one[0], ("runtime", "peer", "dev").index(one[1].type), one[1].name))
    fitting = [each for score, each in ranked if score >= ENOUGH][:MAX_PACKAGES]
    examples = _find_uses(code, files, fitting)
    packages = [
        Package(
            **msgspec.structs.asdict(each),
            capabilities=[known.name for known in _load().capabilities if known.provides(each)],
            usage_examples=examples[each.name],
        )
        for each in fitting
    ]
    spoken = {_ECOSYSTEMS[file.language] for file in files if file.language in _ECOSYSTEMS}
    used: set[str] = {each.ecosystem for each in manifests.packages} or spoken
    return DependencyAnswer(
        already_available=bool(fitting),
        packages=packages,
        suggestions=_suggest(need, used) if not fitting else (),
        manifests=manifests.paths,
        problems=manifests.problems,
    )


def _analyze(code: CodeGraph, files: Sequence[FileInfo], inside: Sequence[FileInfo], target: str) -> DependencyAnalysis:
    manifests = _Manifests(code, files)
    own = frozenset(part.partition(".")[0] for file in files for part in file.path.split("/"))
    used: defaultdict[str, dict[str, str]] = defaultdict(dict)
    undeclared: defaultdict[str, list[str]] = defaultdict(list)
    # includes tests and scripts, because a package may be imported only there
    for file in read_files(code, spread([each.path for each in inside if each.language], MAX_CODE)):
        here = [each for each in manifests.packages if each.ecosystem == _ECOSYSTEMS.get(file.language)]
        for each in file.facts.imports:
            of = [package for package in here if _is_of(each.module, package)]
            for package in of:
                used[package.name].setdefault(file.path, file.source(each.line))
            family = FAMILY.get(file.language, file.language)
            if not of and group_of(each.module, family, own) in ("external", "react"):
                undeclared[_top(each.module, file.language)].append(file.source(each.line))
    packages = [
        Package(**msgspec.structs.asdict(each), files=len(found), imports=list(found.values())[:MAX_EXAMPLES])
        for each, found in ((each, used[each.name]) for each in manifests.packages)
    ]
    return DependencyAnalysis(
        target=target,
        packages=sorted((each for each in packages if each.files), key=lambda each: -each.files),
        unused=[] if target else [each.name for each in packages if not each.files and each.type == "runtime"],
        undeclared={name: places[:MAX_EXAMPLES] for name, places in sorted(undeclared.items())},
        problems=manifests.problems,
    )


def _top(module: str, language: str) -> str:
    if language == "python":
        return module.partition(".")[0]
    parts = module.split("/")
    return "/".join(parts[: 3 if language == "go" else 2 if module.startswith("@") else 1])


def _fit(need: Need, package: DeclaredPackage) -> float:
    """The fit of a package to a need; over 1 if its own name is the need."""
    if all(need.matched(terms_in(package.name))):
        return 1.5
    return max((each.closeness(need) for each in _load().capabilities if each.provides(package)), default=0.0)


def _suggest(need: Need, ecosystems: set[str]) -> list[PackageSuggestion]:
    fitting = [(score, each) for each in _load().capabilities if (score := each.closeness(need)) >= ENOUGH]
    fitting.sort(key=lambda pair: -pair[0])
    return [
        PackageSuggestion(name, ecosystem, each.name)
        for _, each in fitting[:2]
        for ecosystem in sorted(ecosystems)
        for name in each.packages.get(ecosystem, ())[:3]
    ]


def _find_uses(
    code: CodeGraph, files: Sequence[FileInfo], packages: Sequence[DeclaredPackage]
) -> Mapping[str, Sequence[UsageExample]]:
    used = {each.ecosystem for each in packages}
    found: dict[str, dict[str, UsageExample]] = {each.name: {} for each in packages}
    for file in read_files(
        code, own_files([each for each in files if _ECOSYSTEMS.get(each.language) in used], MAX_CODE)
    ):
        for package in packages:
            for use in _uses(file, package) if len(found[package.name]) < MAX_EXAMPLES else ():
                found[package.name].setdefault(use.name, use)
    return {name: list(uses.values())[:MAX_EXAMPLES] for name, uses in found.items()}


def _uses(file: FileText, package: DeclaredPackage) -> Iterator[UsageExample]:
    """The imports of a package in a file, each with the first line that uses the imported name."""
    for each in file.facts.imports if _ECOSYSTEMS.get(file.language) == package.ecosystem else ():
        if not _is_of(each.module, package) or each.line > len(file.lines):
            continue
        name = each.alias or each.name or each.module.rpartition("/")[2].rpartition(".")[2]
        lines = [use.line for use in file.facts.references if use.target.split(".")[0] == name]
        line = min((line for line in lines if each.line < line <= len(file.lines)), default=each.line)
        shown = [clip(file.lines[number - 1]) for number in dict.fromkeys((each.line, line))]
        yield UsageExample(name=each.name or name, code="\n".join(shown), source=file.source(line))


def _is_of(module: str, package: DeclaredPackage) -> bool:
    """Whether an import is of a package."""
    name = package.name
    if package.ecosystem in ("npm", "go"):
        return module == name or module.startswith(f"{name}/")
    if package.ecosystem == "java":
        return module.startswith(f"{name.partition(':')[0]}.")
    if package.ecosystem == "ruby":
        return module.partition("/")[0] in (name, name.partition("-")[0])
    from packaging.utils import canonicalize_name  # imported late: loading it takes longer than a question

    modules = _load().modules.get(canonicalize_name(name), [name.replace("-", "_")])
    top = module.replace("::", ".").lower()
    return any(top == each.lower() or top.startswith(f"{each.lower()}.") for each in modules)
