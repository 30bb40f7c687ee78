"""Whether what somebody needs is there already, by way of a package that the project uses. What packages are for is
data: `capabilities.json`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

import msgspec

from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo, Import
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.lines import clip
from clew.knowledge.manifests.reading import is_manifest, parse_manifest
from clew.knowledge.manifests.records import Declared, Manifest, PackageType, normal_name
from clew.knowledge.project.needs import Need, read_need, terms_in
from clew.knowledge.project.tables import load_table
from clew.knowledge.project.texts import MAX_TEXT, FileText, own_files, read_file, read_files

MAX_MANIFESTS, MAX_CODE = 200, 1_000
_EXAMPLES = 3
_MOST = 5
_ENOUGH = 0.6
"""The share of a need's words that a capability has to speak of."""
_LANGUAGES = {
    "npm": ("javascript", "typescript", "tsx"),
    "python": ("python",),
    "go": ("go",),
    "rust": ("rust",),
    "ruby": ("ruby",),
    "java": ("java",),
}
_COPIED = re.compile(r"(?:^|/)(?:node_modules|vendor|vendored|third_party)/")
_FILLER = frozenset(
    ("package", "packages", "library", "libraries", "dependency", "dependencies", "module", "tool", "way")
)


class UsageExample(msgspec.Struct, frozen=True, kw_only=True):
    """How the code uses a package: the line that imports `name` and the first that uses it."""

    name: str
    code: str
    source: str


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A package that the project declares. `source` is where, `path:line`."""

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
    """`manifests` are the files that were read for it; `problems` say which of them could not be, and why."""

    already_available: bool
    packages: Sequence[Package] = ()
    suggestions: Sequence[Suggestion] = ()
    manifests: Sequence[str] = ()
    problems: Sequence[str] = ()


class _Capability(msgspec.Struct, frozen=True):
    name: str
    packages: dict[str, list[str]]
    also: list[str] = []


class _Known(msgspec.Struct, frozen=True):
    modules: dict[str, list[str]]
    capabilities: list[_Capability]


async def check_dependency(code: CodeGraph, need: str) -> DependencyAnswer:
    """The packages that do what is needed, those of the program itself first; where there is none, what others use for
    it. Raises InvalidInput for a need without words."""
    wanted = read_need(need, _FILLER)
    files = await code.files()
    return await asyncio.to_thread(_check, code, files, wanted)


async def list_packages(code: CodeGraph) -> list[Declared]:
    """All packages that the manifests of a project declare, those of the upper folders first."""
    files = await code.files()
    return _declared(await asyncio.to_thread(_read_manifests, code, files))


def is_copied(path: str) -> bool:
    """Whether a file stands where the packages of others are put."""
    return _COPIED.search(path) is not None


def _check(code: CodeGraph, files: Sequence[FileInfo], need: Need) -> DependencyAnswer:
    manifests = _read_manifests(code, files)
    declared = _declared(manifests)
    fitting = _fitting(need, declared)
    used: set[str] = {each.ecosystem for each in declared} or _ecosystems(files)
    examples = _find_uses(code, files, fitting)
    return DependencyAnswer(
        already_available=bool(fitting),
        packages=[_shown(each, examples.get(each.name, ())) for each in fitting],
        suggestions=_suggest(need, used) if not fitting else (),
        manifests=[each.path for each in manifests],
        problems=[f"{each.path} {each.problem}" for each in manifests if each.problem],
    )


def _fitting(need: Need, declared: Sequence[Declared]) -> list[Declared]:
    """The packages that do what is needed, the best first, each once."""
    scores = {id(each): _fit(need, each) for each in declared}
    fitting = [each for each in declared if scores[id(each)] >= _ENOUGH]
    fitting.sort(key=lambda each: (-scores[id(each)], ("runtime", "peer", "dev").index(each.type), each.name))
    return list({(each.ecosystem, each.name): each for each in reversed(fitting)}.values())[::-1][:_MOST]


def _shown(package: Declared, examples: Sequence[UsageExample]) -> Package:
    return Package(
        name=package.name,
        version=package.version,
        type=package.type,
        ecosystem=package.ecosystem,
        source=package.source,
        capabilities=_abilities(package.ecosystem, package.name),
        usage_examples=examples,
    )


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
    """How well a package meets a need: 1 and more where its own name is what is needed."""
    name = terms_in(package.name)
    if all(need.matched(name)):
        return 1.5
    abilities = [each for each in _load().capabilities if _provides(each, package.ecosystem, package.name)]
    return max((_closeness(need, each) for each in abilities), default=0.0)


def _closeness(need: Need, capability: _Capability) -> float:
    """The share of the need that one of the phrases for a capability speaks of, its head among them."""
    best = 0.0
    for phrase in (capability.name, *capability.also):
        matched = need.matched(terms_in(phrase))
        if matched[need.head]:
            best = max(best, sum(matched) / len(matched))
    return best


@cache
def _load() -> _Known:
    return load_table("capabilities.json", _Known)


def _provides(capability: _Capability, ecosystem: str, name: str) -> bool:
    known = capability.packages.get(ecosystem, ())
    return name in known or (ecosystem == "go" and re.sub(r"/v\d+$", "", name) in known)


def _abilities(ecosystem: str, name: str) -> list[str]:
    return [each.name for each in _load().capabilities if _provides(each, ecosystem, name)]


def _ecosystems(files: Sequence[FileInfo]) -> set[str]:
    spoken = {file.language for file in files}
    return {ecosystem for ecosystem, languages in _LANGUAGES.items() if spoken.intersection(languages)}


def _suggest(need: Need, ecosystems: set[str]) -> list[Suggestion]:
    fitting = [(score, each) for each in _load().capabilities if (score := _closeness(need, each)) >= _ENOUGH]
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
            if file.language in _LANGUAGES[package.ecosystem] and len(found[package.name]) < _EXAMPLES:
                for use in islice(_uses(file, package), _EXAMPLES):
                    found[package.name].setdefault(use.name, use)
    return {name: list(uses.values())[:_EXAMPLES] for name, uses in found.items()}


def _uses(file: FileText, package: Declared) -> Iterator[UsageExample]:
    for each in file.facts.imports:
        if not _is_of(each.module, package) or not 1 <= each.line <= len(file.lines):
            continue
        name = each.alias or each.name or each.module.rpartition("/")[2].rpartition(".")[2]
        used = _first_use(file, name, each)
        shown = [clip(file.lines[line - 1]) for line in dict.fromkeys((each.line, used or each.line))]
        yield UsageExample(name=each.name or name, code="\n".join(shown), source=file.source(used or each.line))


def _first_use(file: FileText, name: str, brought: Import) -> int | None:
    lines = (use.line for use in file.facts.references if use.line > brought.line and use.target.split(".")[0] == name)
    first = min(lines, default=None)
    return first if first is not None and first <= len(file.lines) else None


def _is_of(module: str, package: Declared) -> bool:
    """Whether an import brings in something of a package."""
    name = package.name
    if package.ecosystem in ("npm", "go"):
        return module == name or module.startswith(f"{name}/")
    if package.ecosystem == "java":
        return module.startswith(f"{name.partition(':')[0]}.")
    if package.ecosystem == "ruby":
        return module.partition("/")[0] in (name, name.partition("-")[0])
    modules = _load().modules.get(normal_name(name), [name.replace("-", "_")])
    top = module.replace("::", ".")
    return any(top.lower() == each.lower() or top.lower().startswith(f"{each.lower()}.") for each in modules)
