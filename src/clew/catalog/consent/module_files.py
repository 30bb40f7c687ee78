"""Find a module without importing it, and the files of a folder that Python would run for it. Compiled files are not
included: see `source_only_import.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, all_suffixes
from pathlib import Path

import msgspec

from clew.errors import ConfigError

MAX_FILES = 20_000

_IMPORTABLE = tuple(all_suffixes())
_CACHE = "__pycache__"


class LocatedModule(msgspec.Struct, frozen=True, kw_only=True):
    """A located module: its place, and the files of the folder that belong to the module or its packages."""

    place: str
    files: Sequence[Path]


def locate(module: str, folder: Path) -> LocatedModule | None:
    """Locate a module; its place is relative to `folder` if it is inside. None if Python would not find its top-level
    package. Raises ConfigError if it has more than MAX_FILES files."""
    specs = list(_find_specs(module))
    if not specs:
        return None
    files = sorted({file for spec in specs for file in _files_of(spec, folder)})
    if len(files) > MAX_FILES:
        raise ConfigError(f"{module} has over {MAX_FILES:,} files in {folder}. Install it as a package instead")
    first = next(iter(_places(specs[-1])), "Python itself")
    inner = os.path.relpath(os.path.realpath(first), os.path.realpath(folder))
    return LocatedModule(place=first if inner.startswith(os.pardir) else inner, files=files)


def is_inside(path: str | Path, folder: Path) -> bool:
    """Whether a path is in a folder, or leads into it through links. In both cases the folder controls the content."""
    pairs = ((os.path.abspath(path), os.path.abspath(folder)), (os.path.realpath(path), os.path.realpath(folder)))
    return any(Path(inner).is_relative_to(outer) for inner, outer in pairs)


def _find_specs(module: str) -> Iterator[ModuleSpec]:
    """The specs of a module's packages, outermost first, and of the module itself. `importlib.util.find_spec` is not
    used, because it would import the packages."""
    first, *rest = module.split(".")
    found = _find_first(first)
    while found is not None:
        yield found
        if not rest or found.submodule_search_locations is None:
            return
        found = PathFinder.find_spec(rest.pop(0), list(found.submodule_search_locations))


def _find_first(name: str) -> ModuleSpec | None:
    finders = (each.find_spec for each in sys.meta_path if hasattr(each, "find_spec"))
    return next((spec for find in finders if name and (spec := find(name, None)) is not None), None)


def _places(spec: ModuleSpec) -> list[str]:
    return list(spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else []))


def _files_of(spec: ModuleSpec, folder: Path) -> Iterator[Path]:
    inside = [Path(place) for place in _places(spec) if is_inside(place, folder)]
    for place in inside:
        if place.is_dir():
            yield from _importable(place)
        else:
            yield _existing(place)


def _importable(package: Path) -> Iterator[Path]:
    """The files of a package that Python can import; links are followed, and each real folder is read once."""
    seen: set[str] = set()
    number = 0
    for place, folders, names in os.walk(package, followlinks=True):
        real = os.path.realpath(place)
        # a name that is not an identifier cannot be imported: neither .git nor an environment is looked at
        named = sorted(name for name in folders if name.isidentifier() and name != _CACHE)
        folders[:] = [] if real in seen else named
        seen.add(real)
        for name in sorted(names):
            file = Path(place, name)
            if name.endswith(_IMPORTABLE):
                number += 1
                yield file
        if number > MAX_FILES:
            return


def _existing(path: Path) -> Path:
    """The path, or the archive that it is in."""
    return next((each for each in (path, *path.parents) if each.exists()), path)
