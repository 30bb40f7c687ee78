"""The packages that a project depends on: whether one meets a need, and how the code uses them. The purposes of
packages are data: `capabilities.json`."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

import msgspec

from clew.errors import NotFound
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo, Import
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import load_table
from clew.knowledge.project.manifests import normal_name
from clew.knowledge.project.needs import Need, read_need, terms_in
from clew.knowledge.project.packages import Declared, Manifest, PackageType, is_copied, is_manifest, parse_manifest
from clew.knowledge.project.patterns import group_of
from clew.knowledge.project.texts import MAX_TEXT, FileText, own_files, read_file, read_files

MAX_MANIFESTS, MAX_CODE = 200, 1_000
MAX_EXAMPLES, MAX_PACKAGES = 3, 5
MAX_LINKED = 50
"""Files of a folder whose links are followed."""
ENOUGH = 0.6
"""The share of a need's words that a capability has to cover."""
_LANGUAGES = {
    "npm": ("javascript", "typescript", "tsx"),
    "python": ("python",),
    "go": ("go",),
    "rust": ("rust",),
    "ruby": ("ruby",),
    "java": ("java",),
}
_FILLER = frozenset(
    ("package", "packages", "library", "libraries", "dependency", "dependencies", "module", "tool", "way")
)


class UsageExample(msgspec.Struct, frozen=True, kw_only=True):
    """The line that imports `name` from a package, and the first line that uses it."""

    name: str
    code: str
    source: str


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package that the project declares at `source`, `path:line`."""

    name: str
    version: str
    type: PackageType
    ecosystem: str
    source: str
    capabilities: Sequence[str] = ()
    usage_examples: Sequence[UsageExample] = ()


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A package that the project could add, of an ecosystem that it uses."""

    name: str
    ecosystem: str
    capability: str


class DependencyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Packages that meet a need, or suggestions; `problems` name the `manifests` that could not be read, and why."""

    already_available: bool
    packages: Sequence[Package] = ()
    suggestions: Sequence[Suggestion] = ()
    manifests: Sequence[str] = ()
    problems: Sequence[str] = ()


class PackageUse(msgspec.Struct, frozen=True, kw_only=True):
    """A declared package, the number of files that import it, and the first of these imports, `path:line`."""

    name: str
    version: str
    type: PackageType
    source: str
    files: int
    imports: Sequence[str]


class DependencyAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a project or a part of it. `undeclared` are imports, with their places, of packages that no
    manifest names; `uses` and `used_by` are files of the project that the target imports, and that import it."""

    target: str
    packages: Sequence[PackageUse]
    unused: Sequence[str]
    undeclared: Mapping[str, Sequence[str]]
    uses: Sequence[str] = ()
    used_by: Sequence[str] = ()
    problems: Sequence[str] = ()


class _Capability(msgspec.Struct, frozen=True):
    name: str
    packages: dict[str, list[str]]
    also: list[str] = []


class _Known(msgspec.Struct, frozen=True):
    modules: dict[str, list[str]]
    capabilities: list[_Capability]


async def list_packages(code: CodeGraph) -> list[Declared]:
    """All packages that the manifests of a project declare, those of the upper folders first."""
    files = await code.files()
    return _declared(await asyncio.to_thread(_read_manifests, code, files))


async def check_dependency(code: CodeGraph, need: str) -> DependencyAnswer:
    """Return the packages that meet a need, or suggest some. Raises InvalidInput for a need without words."""
    wanted = read_need(need, _FILLER)
    files = await code.files()
    return await asyncio.to_thread(_check, code, files, wanted)


async def analyze_dependencies(code: CodeGraph, target: str = "") -> DependencyAnalysis:
    """Analyse the dependencies of a project, or of a file or folder. Raises NotFound where there is none."""
    files = await code.files()
    place = target.strip().strip("/").removeprefix("./")
    inside = [file for file in files if not place or file.path == place or file.path.startswith(f"{place}/")]
    if not inside:
        raise NotFound("file or folder of this project", target)
    found = await asyncio.to_thread(_analyze, code, files, inside, place)
    paths = [file.path for file in inside if file.language][:MAX_LINKED] if place else []
    uses, used_by = set[str](), set[str]()
    for path in paths:
        uses.update(link.node.path or "" for link in await code.dependencies(path, edge_type="imports"))
        used_by.update(link.node.path or "" for link in await code.dependents(path, edge_type="imports"))
    own = {"", *(file.path for file in inside)}
    return msgspec.structs.replace(found, uses=sorted(uses - own), used_by=sorted(used_by - own))


def _check(code: CodeGraph, files: Sequence[FileInfo], need: Need) -> DependencyAnswer:
    manifests = _read_manifests(code, files)
    declared = _declared(manifests)
    fitting = _fitting(need, declared)
    spoken = {file.language for file in files}
    used: set[str] = {each.ecosystem for each in declared} or {
        ecosystem for ecosystem, languages in _LANGUAGES.items() if spoken.intersection(languages)
    }
    examples = _find_uses(code, files, fitting)
    packages = [
        Package(
            name=each.name,
            version=each.version,
            type=each.type,
            ecosystem=each.ecosystem,
            source=each.source,
            capabilities=[known.name for known in _load().capabilities if _provides(known, each)],
            usage_examples=examples.get(each.name, ()),
        )
        for each in fitting
    ]
    return DependencyAnswer(
        already_available=bool(fitting),
        packages=packages,
        suggestions=_suggest(need, used) if not fitting else (),
        manifests=[each.path for each in manifests],
        problems=_problems(manifests),
    )


def _analyze(code: CodeGraph, files: Sequence[FileInfo], inside: Sequence[FileInfo], target: str) -> DependencyAnalysis:
    manifests = _read_manifests(code, files)
    declared = list({(each.ecosystem, each.name): each for each in reversed(_declared(manifests))}.values())[::-1]
    own = frozenset(part for file in files for part in file.path.rpartition("/")[0].split("/")) | {
        file.path.rpartition("/")[2].partition(".")[0] for file in files
    }
    used: defaultdict[str, dict[str, str]] = defaultdict(dict)
    undeclared: defaultdict[str, list[str]] = defaultdict(list)
    for file in read_files(code, (each.path for each in own_files(inside, MAX_CODE) if each.language)):
        here = [each for each in declared if file.language in _LANGUAGES[each.ecosystem]]
        for each in file.facts.imports:
            of = [package for package in here if _is_of(each.module, package)]
            for package in of:
                used[package.name].setdefault(file.path, file.source(each.line))
            if not of and group_of(each.module, file.language, own) in ("external", "react"):
                undeclared[_top(each.module, file.language)].append(file.source(each.line))
    return DependencyAnalysis(
        target=target,
        packages=[
            PackageUse(
                name=each.name,
                version=each.version,
                type=each.type,
                source=each.source,
                files=len(used[each.name]),
                imports=list(used[each.name].values())[:MAX_EXAMPLES],
            )
            for each in sorted(declared, key=lambda each: -len(used[each.name]))
            if used[each.name]
        ],
        unused=[] if target else [each.name for each in declared if not used[each.name] and each.type == "runtime"],
        undeclared={name: places[:MAX_EXAMPLES] for name, places in sorted(undeclared.items())},
        problems=_problems(manifests),
    )


def _top(module: str, language: str) -> str:
    if language == "python":
        return module.partition(".")[0]
    parts = module.split("/")
    return "/".join(parts[: 3 if language == "go" else 2 if module.startswith("@") else 1])


def _problems(manifests: Sequence[Manifest]) -> list[str]:
    return [f"{each.path} {each.problem}" for each in manifests if each.problem]


def _fitting(need: Need, declared: Sequence[Declared]) -> list[Declared]:
    """The packages that meet a need, the best first, each once."""
    scores = {id(each): _fit(need, each) for each in declared}
    fitting = [each for each in declared if scores[id(each)] >= ENOUGH]
    fitting.sort(key=lambda each: (-scores[id(each)], ("runtime", "peer", "dev").index(each.type), each.name))
    return list({(each.ecosystem, each.name): each for each in reversed(fitting)}.values())[::-1][:MAX_PACKAGES]


def _read_manifests(code: CodeGraph, files: Sequence[FileInfo]) -> list[Manifest]:
    named = [file.path for file in files if is_manifest(file.path) and not is_copied(file.path)]
    own = [path for path in named if not kind_of(path) & (TEST | ASIDE)]
    paths = sorted((own or named)[:MAX_MANIFESTS], key=lambda path: (path.count("/"), path))
    return [_read_manifest(code, path) for path in paths]


def _read_manifest(code: CodeGraph, path: str) -> Manifest:
    file = read_file(code, path)
    if file is None:
        return Manifest(path=path, problem=f"is gone, no text, or over {MAX_TEXT:,} bytes")
    return parse_manifest(path, file.text)


def _declared(manifests: Sequence[Manifest]) -> list[Declared]:
    return [package for each in manifests for package in each.packages if package.is_direct]


def _fit(need: Need, package: Declared) -> float:
    """The fit of a package to a need; over 1 where its own name is the need."""
    if all(need.matched(terms_in(package.name))):
        return 1.5
    abilities = [each for each in _load().capabilities if _provides(each, package)]
    return max((_closeness(need, each) for each in abilities), default=0.0)


def _closeness(need: Need, capability: _Capability) -> float:
    """The share of the need that a phrase for a capability covers, its head included."""
    matches = [need.matched(terms_in(phrase)) for phrase in (capability.name, *capability.also)]
    return max((sum(matched) / len(matched) for matched in matches if matched[need.head]), default=0.0)


@cache
def _load() -> _Known:
    return load_table("capabilities.json", _Known)


def _provides(capability: _Capability, package: Declared) -> bool:
    known = capability.packages.get(package.ecosystem, ())
    return package.name in known or (package.ecosystem == "go" and re.sub(r"/v\d+$", "", package.name) in known)


def _suggest(need: Need, ecosystems: set[str]) -> list[Suggestion]:
    fitting = [(score, each) for each in _load().capabilities if (score := _closeness(need, each)) >= ENOUGH]
    fitting.sort(key=lambda pair: -pair[0])
    return [
        Suggestion(name=name, ecosystem=ecosystem, capability=each.name)
        for _, each in fitting[:2]
        for ecosystem in sorted(ecosystems)
        for name in each.packages.get(ecosystem, ())[:3]
    ]


def _find_uses(
    code: CodeGraph, files: Sequence[FileInfo], packages: Sequence[Declared]
) -> Mapping[str, Sequence[UsageExample]]:
    spoken = {language for each in packages for language in _LANGUAGES[each.ecosystem]}
    chosen = own_files([file for file in files if file.language in spoken], MAX_CODE)
    found: dict[str, dict[str, UsageExample]] = {each.name: {} for each in packages}
    for file in read_files(code, (each.path for each in chosen)):
        for package in packages:
            if file.language in _LANGUAGES[package.ecosystem] and len(found[package.name]) < MAX_EXAMPLES:
                for use in islice(_uses(file, package), MAX_EXAMPLES):
                    found[package.name].setdefault(use.name, use)
    return {name: list(uses.values())[:MAX_EXAMPLES] for name, uses in found.items()}


def _uses(file: FileText, package: Declared) -> Iterator[UsageExample]:
    for each in file.facts.imports:
        if not _is_of(each.module, package) or not 1 <= each.line <= len(file.lines):
            continue
        name = each.alias or each.name or each.module.rpartition("/")[2].rpartition(".")[2]
        line = _first_use(file, name, each) or each.line
        shown = [clip(file.lines[number - 1]) for number in dict.fromkeys((each.line, line))]
        yield UsageExample(name=each.name or name, code="\n".join(shown), source=file.source(line))


def _first_use(file: FileText, name: str, brought: Import) -> int | None:
    lines = (use.line for use in file.facts.references if use.line > brought.line and use.target.split(".")[0] == name)
    return min((line for line in lines if line <= len(file.lines)), default=None)


def _is_of(module: str, package: Declared) -> bool:
    """Whether an import is of a package."""
    name = package.name
    if package.ecosystem in ("npm", "go"):
        return module == name or module.startswith(f"{name}/")
    if package.ecosystem == "java":
        return module.startswith(f"{name.partition(':')[0]}.")
    if package.ecosystem == "ruby":
        return module.partition("/")[0] in (name, name.partition("-")[0])
    modules = _load().modules.get(normal_name(name), [name.replace("-", "_")])
    top = module.replace("::", ".").lower()
    return any(top == each.lower() or top.startswith(f"{each.lower()}.") for each in modules)
