"""Which files a program may reach: paths as they really are, without what nobody should be given.

Names such as `.env` are looked for below every folder that is allowed, and masked there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.program import Confinement

DENIED_NAMES = frozenset({".env", ".ssh", ".aws", ".gnupg", ".clew", ".netrc", ".git-credentials"})
_ENV_FILE = re.compile(r"\.env\.(?!example$|sample$|template$|dist$)")
_PASSED_OVER = frozenset({".git", "node_modules", "__pycache__"})
_MACHINE = ("/proc", "/sys", "/dev", "/run", "/etc", "/boot", "/var/run", "/var/lib")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt")
MAX_ENTRIES = 300_000


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved paths. `masked` lies below the others; `links` lie there too, and lead to what is not allowed."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    cwd: str = "/tmp"


def resolve_grants(confinement: Confinement, *, is_thorough: bool = False) -> Grants:
    """Where it is not thorough, folders that programs fill are not looked through, and links not looked at.

    Raises ToolFailure of the kind permission for a path that does not exist, is a part of the system, or leads to
    what is denied."""
    base = os.path.realpath(confinement.cwd) if confinement.cwd else os.getcwd()
    denied = tuple(os.path.realpath(_absolute(path, base)) for path in confinement.deny)
    read = tuple(dict.fromkeys(_resolve(path, base, denied) for path in confinement.read))
    write = tuple(dict.fromkeys(_resolve(path, base, denied, writes=True) for path in confinement.write))
    roots = (*read, *write)
    masked = tuple(_find_masked(roots, denied, is_thorough=is_thorough))
    is_reachable = confinement.cwd and any(is_below(base, root) for root in roots)
    return Grants(
        read=read,
        write=write,
        masked=masked,
        links=_find_links(roots, masked) if is_thorough else (),
        cwd=base if is_reachable else "/tmp",
    )


def is_denied_name(name: str) -> bool:
    """Whether a file or folder of this name is never given to a program."""
    return name in DENIED_NAMES or _ENV_FILE.match(name) is not None


def is_below(path: str, root: str) -> bool:
    """Whether the path is the root or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def _absolute(path: str, base: str) -> str:
    return os.path.join(base, os.path.expanduser(path))


def _resolve(path: str, base: str, denied: tuple[str, ...], *, writes: bool = False) -> str:
    if "\0" in path or "," in path:
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it holds a comma or a zero byte")
    found = os.path.realpath(_absolute(path, base))
    if not os.path.exists(found):
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it does not exist")
    parts = found.split("/")
    is_secret = any(map(is_denied_name, parts)) or any(_belongs(found, each) for each in denied)
    is_machine = found == "/" or any(is_below(found, root) for root in _MACHINE)
    if is_secret or is_machine or (writes and any(is_below(found, root) for root in _SYSTEM)):
        what = "holds secrets" if is_secret else "is a part of the system"
        raise ToolFailure("permission", f"the path {path!r} cannot be allowed: it {what}")
    return found


def _belongs(path: str, denied: str) -> bool:
    """Whether a path is the denied one, is below it, or lies beside it as its companions do (`trail.db-wal`)."""
    return is_below(path, denied) or (path.startswith(denied) and path[len(denied)] in "-.")


def _find_links(roots: tuple[str, ...], masked: tuple[str, ...]) -> tuple[str, ...]:
    """Links whose target is masked or not allowed: who follows them unseeing must not be given them."""
    links = (entry.path for root in roots for entry in _walk(root, is_thorough=True) if entry.is_symlink())
    targets = {link: os.path.realpath(link) for link in links}
    return tuple(
        link
        for link, target in targets.items()
        if not any(is_below(target, root) for root in roots) or any(is_below(target, each) for each in masked)
    )


def _find_masked(roots: tuple[str, ...], denied: tuple[str, ...], *, is_thorough: bool) -> Iterator[str]:
    left = MAX_ENTRIES
    found = set(denied)
    for root in roots:
        for entry in _walk(root, is_thorough=is_thorough):
            left -= 1
            if left < 0:
                raise ToolFailure(
                    "permission",
                    f"the path {root!r} cannot be allowed: it has more than {MAX_ENTRIES:,} files to look through",
                    hint="Name the folder within it that is needed",
                )
            if is_denied_name(entry.name) or any(_belongs(entry.path, each) for each in denied):
                found.add(os.path.realpath(entry.path))
    yield from sorted(path for path in found if any(is_below(path, root) for root in roots) and os.path.exists(path))


def _walk(root: str, *, is_thorough: bool) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, but not below what is denied, links, and (unless thorough) what programs fill."""
    passed_over = frozenset() if is_thorough else _PASSED_OVER
    waiting = [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = list(entries)
        except OSError:
            continue  # a file, or what the user cannot read either
        yield from listed
        waiting += [
            each.path
            for each in listed
            if each.is_dir(follow_symlinks=False) and each.name not in passed_over and not is_denied_name(each.name)
        ]
