"""Resolves the paths that a program may reach, without protected files.

Files such as `.env` are hidden in every allowed folder. Files that make programs run on the machine (`.git/hooks`,
`.vscode`) are read-only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

import msgspec

from clew.errors import ToolFailure
from clew.tools.protected_names import GIT_NAME, is_denied_in_library, is_denied_name, is_guarded_name
from clew.tools.sandbox.folders.folder_scan import FolderScan, Place, scan_folder
from clew.tools.sandbox.program import Confinement

_MACHINE = ("/proc", "/sys", "/dev", "/run", "/etc", "/boot", "/var/run", "/var/lib")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt")


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved paths of a confinement. `read` and `write` are allowed. `masked` are hidden paths below them.
    `links` are links to paths that are not allowed.

    `kept` are read-only paths below writable folders. `pinned` are folders that cannot be renamed, because masked or
    kept paths in them would become reachable under another name. `guarded` has the files that existed at `resolved_at`
    and make programs run, such as git hooks.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    guarded: frozenset[Place] = frozenset()
    resolved_at: int = 0
    cwd: str = "/tmp"


def resolve_grants(confinement: Confinement, *, is_thorough: bool = False) -> Grants:
    """Resolve a confinement. Unless `is_thorough`, folders that programs fill are searched only at the top, and links
    are not checked.

    Raises ToolFailure of the kind permission for a path that does not exist, belongs to the system, or is denied.
    """
    resolved_at = time.time_ns()
    base = os.path.realpath(confinement.cwd) if confinement.cwd else os.getcwd()
    denied = tuple(os.path.realpath(_absolute(path, base)) for path in confinement.deny)
    read = tuple(dict.fromkeys(_resolve(path, base, denied) for path in confinement.read))
    write = tuple(dict.fromkeys(_resolve(path, base, denied, writes=True) for path in confinement.write))
    roots = tuple(dict.fromkeys((*read, *write)))
    scans = {root: scan_folder(root, is_thorough=is_thorough) for root in roots}
    masked = tuple(_find_masked(scans, denied))
    is_reachable = confinement.cwd and any(is_below(base, root) for root in roots)
    writable = [scans[root] for root in write]
    kept = tuple(_find_kept(writable, write, masked))
    repositories = [path for each in writable for path in each.repositories]
    return Grants(
        read=read,
        write=write,
        masked=masked,
        links=_find_links(scans, masked) if is_thorough else (),
        kept=kept,
        pinned=tuple(_find_pinned(repositories, masked, write, kept)),
        guarded=frozenset(place for each in writable for place in each.guarded.values()),
        resolved_at=resolved_at,
        cwd=base if is_reachable else "/tmp",
    )


def is_below(path: str, root: str) -> bool:
    """Whether the path is the root or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def around(roots: tuple[str, ...], left_out: tuple[str, ...]) -> Iterator[str]:
    """Yield the roots. A root that contains a path in `left_out` is replaced by its other entries, without links."""
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path in left_out:
            continue
        if any(is_below(each, path) for each in left_out):
            waiting += [os.path.join(path, name) for name in os.listdir(path)]
        elif not os.path.islink(path):
            yield path


def _absolute(path: str, base: str) -> str:
    return os.path.join(base, os.path.expanduser(path))


def _resolve(path: str, base: str, denied: tuple[str, ...], *, writes: bool = False) -> str:
    if "\0" in path or "," in path:
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it has a comma or a NUL character")
    found = os.path.realpath(_absolute(path, base))
    if not os.path.exists(found):
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it does not exist")
    if what := _refusal(found, denied, writes=writes):
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it {what}")
    return found


def _refusal(found: str, denied: tuple[str, ...], *, writes: bool) -> str:
    """Return the reason why a real path cannot be allowed; empty if it can."""
    parts = found.split("/")
    if any(map(is_denied_in_library, parts)) or is_denied_name(parts[-1]) or any(_belongs(found, x) for x in denied):
        return "holds secrets"
    if found == "/" or any(is_below(found, root) for root in (*_MACHINE, *(_SYSTEM if writes else ()))):
        return "belongs to the system"
    if writes and (is_guarded_name(parts[-1]) or any(part.casefold() == GIT_NAME for part in parts)):
        return "decides which programs run on this machine"
    return ""


def _belongs(path: str, denied: str) -> bool:
    """Whether a path is the denied one, is below it, or is one of its companions (`trail.db-wal`)."""
    return is_below(path, denied) or (path.startswith(denied) and path[len(denied)] in "-.")


def _find_links(scans: dict[str, FolderScan], masked: tuple[str, ...]) -> tuple[str, ...]:
    """Return links whose target is masked or not allowed, for runtimes that follow links without a check."""
    targets = {link: os.path.realpath(link) for scan in scans.values() for link in scan.links}
    return tuple(
        link
        for link, target in targets.items()
        if not any(is_below(target, root) for root in scans) or any(is_below(target, each) for each in masked)
    )


def _find_masked(scans: dict[str, FolderScan], denied: tuple[str, ...]) -> Iterator[str]:
    """Yield the denied paths that exist, without those inside others."""
    found = {os.path.realpath(path) for scan in scans.values() for path in scan.denied}
    found.update(companion for path in denied for companion in _companions(path))
    last = ""
    for path in sorted(found, key=lambda path: path.split("/")):
        is_hidden = last and is_below(path, last)
        if not is_hidden and any(is_below(path, root) for root in scans) and os.path.exists(path):
            yield (last := path)


def _companions(denied: str) -> Iterator[str]:
    """Yield a denied path and its companion files."""
    yield denied
    folder, name = os.path.split(denied)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (os.path.join(folder, each) for each in names if each.startswith((f"{name}-", f"{name}.")))


def _find_kept(scans: list[FolderScan], write: tuple[str, ...], masked: tuple[str, ...]) -> Iterator[str]:
    """Yield the real guarded paths that are writable and not hidden."""
    found = {os.path.realpath(path) for scan in scans for path in scan.guarded}
    for path in sorted(found):
        is_writable = any(is_below(path, root) for root in write) and os.path.exists(path)
        if is_writable and not any(is_below(path, each) for each in masked):
            yield path


def _find_pinned(
    repositories: Iterable[str], masked: tuple[str, ...], write: tuple[str, ...], kept: tuple[str, ...]
) -> Iterator[str]:
    """Return writable repositories and writable folders above masked paths, outer ones first."""
    found = {*repositories, *(holder for path in masked for holder in _writable_parents(path, write))}.difference(write)
    yield from sorted(path for path in found if not any(is_below(path, each) for each in (*kept, *masked)))


def _writable_parents(path: str, write: tuple[str, ...]) -> Iterator[str]:
    """Yield the writable folders above a path."""
    path = os.path.dirname(path)
    while any(is_below(path, root) for root in write):
        yield path
        path = os.path.dirname(path)
