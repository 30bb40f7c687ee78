"""Safe calls of git. Nothing that a repository configures is run: no hooks, pagers, filters, helpers or prompts. Git
takes no locks, fetches nothing, and has a time limit. Its error messages are not passed on, because they may quote
files.

The `.git` of an unpacked archive may point to any other repository on the machine. `find_objects` refuses one that
does not point back to the folder, as that of a worktree or a submodule does. Commands on commits and contents run in an
empty repository of ours that only borrows the objects, so no setting, mailmap or attribute of the other one is read.
"""

from __future__ import annotations

import logging
import os
import selectors
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from clew.errors import SourceError
from clew.files import read_file
from clew.lazy_pattern import lazy_pattern
from clew.trust import printable

TIMEOUT = 60.0
QUICK_SECONDS = 10.0
"""The time limit of quick commands. They exceed it only if git waits for something else, such as a pipe in place of a
config file."""
LOG_SECONDS = 300.0
"""Limit of commands whose output is streamed."""
STUCK_SECONDS = 300.0
"""The time for which a command that timed out in a folder is not tried there again."""
MAX_ANSWER = 64_000_000
MAX_PIECE = 1_000_000
"""Bytes of a piece between NULs that are passed on; a commit message may have any length."""
MAX_NAME = 4_096
"""Bytes of a file that names a folder."""
_CHUNK = 1 << 18
_QUICK = ("rev-parse", "config")
SAFE_OPTIONS = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "log.mailmap=false"),
    *("-c", "diff.external="),
    *("-c", "diff.orderFile=/dev/null"),
    *("-c", "protocol.allow=never"),
    *("-c", "credential.helper="),
    *("-c", "core.askPass="),
    *("-c", "core.sshCommand=false"),
    "--literal-pathspecs",
)
"""Options that stop git from running programs that a repository configures."""
_SHA = lazy_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REPACK = "`git repack -a -d` and removing its objects/info/alternates make it whole"
_PLAIN = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_SHA256 = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
_log = logging.getLogger(__name__)
_stuck: dict[tuple[str, str], float] = {}
"""The moment until which a command is not tried, by folder and command. An empty command means all commands."""
_warned: set[tuple[str, str]] = set()


class GitFailed(SourceError):
    """Git exited with an error."""


# -- running git ---------------------------------------------------------------------------------------------------


def start_git(
    root: str | Path, arguments: Sequence[str], apart: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start git in a folder, or in the GIT_DIR of the additional environment `apart`. Raises SourceError when git is
    missing, or did not answer there recently."""
    if is_stuck(root, arguments[0]):
        raise SourceError("git", f"{arguments[0]} did not answer recently in {root}", hint="Look for named pipes there")
    more = apart or {}
    try:
        return subprocess.Popen(
            ["git", *SAFE_OPTIONS, *arguments],
            cwd=more.get("GIT_DIR", root),
            env={**git_environment(), **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None


def is_stuck(root: str | Path, command: str) -> bool:
    """Whether a command did not answer in a folder lately."""
    return max(_stuck.get((str(root), known), 0.0) for known in ("", command)) > time.monotonic()


def note_stuck(root: str | Path, command: str) -> None:
    """Remember that a command did not answer in a folder. After a quick command, no other is tried there either."""
    _stuck[str(root), "" if command in _QUICK else command] = time.monotonic() + STUCK_SECONDS


def run_git(
    root: Path, arguments: Sequence[str], *, timeout: float | None = None, apart: Mapping[str, str] | None = None
) -> bytes:
    """Return the output of git. Raises SourceError when git is missing, fails, takes too long or prints too much."""
    printed = bytearray()
    with closing(_chunks(root, arguments, TIMEOUT, timeout, apart)) as chunks:
        for chunk in chunks:
            printed += chunk
            if len(printed) > MAX_ANSWER:
                raise SourceError("git", f"{arguments[0]} answered with over {MAX_ANSWER:,} bytes")
    return bytes(printed)


def stream_git(
    root: Path, arguments: Sequence[str], *, timeout: float | None = None, apart: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """Yield the pieces between NULs that git prints, each cut at MAX_PIECE. Git is killed when the caller stops. Raises
    as `run_git`."""
    begun = bytearray()
    for chunk in _chunks(root, arguments, LOG_SECONDS, timeout, apart):
        *ended, rest = chunk.split(b"\0")
        if ended and begun:
            ended[0] = bytes(begun) + ended[0]
            begun.clear()
        for piece in ended:
            yield piece[:MAX_PIECE]
        begun += rest[: MAX_PIECE - len(begun)]
    if begun:
        yield bytes(begun)


def read_sha(printed: bytes) -> str:
    """The full name of a commit that git printed. Raises SourceError for anything else."""
    sha = printed.decode(errors="replace").strip()
    if not _SHA.fullmatch(sha):
        raise SourceError("git", "did not print the name of a commit")
    return sha


def _chunks(
    root: Path, arguments: Sequence[str], usual: float, timeout: float | None, apart: Mapping[str, str] | None
) -> Generator[bytes, None, None]:
    """The output as it comes. Without a `timeout`, a command that takes longer than usual is noted as stuck."""
    command = arguments[0]
    seconds = timeout or (QUICK_SECONDS if command in _QUICK else usual)
    with start_git(root, arguments, apart) as process:
        try:
            yield from _read(process, time.monotonic() + seconds)
        except (TimeoutError, subprocess.TimeoutExpired):
            if timeout is None:
                note_stuck(root, command)
            raise SourceError("git", f"{command} took over {seconds:.0f} s") from None
        finally:
            process.kill()
    if process.returncode:
        hint = "`git fsck` checks whether the repository is intact"
        raise GitFailed("git", f"{command} ended with {process.returncode}", hint=hint)


def _read(process: subprocess.Popen[bytes], end: float) -> Iterator[bytes]:
    """The output until the process ends. Raises TimeoutError, TimeoutExpired."""
    assert process.stdout is not None  # `start_git` pipes it
    printed = process.stdout.fileno()
    with selectors.DefaultSelector() as waiting:
        waiting.register(printed, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0 and waiting.select(left):
            chunk = os.read(printed, _CHUNK)
            if not chunk:
                process.wait(max(0.1, end - time.monotonic()))
                return
            yield chunk
    raise TimeoutError


def git_environment() -> dict[str, str]:
    """Our environment without variables that redirect git or let it prompt. The protocol variables override all
    settings of a repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


# -- the repository of a folder ------------------------------------------------------------------------------------


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a folder's own repository. `head` is the commit that is checked out; `prefix` is the path of
    `root` in the repository, empty at the top, else with a `/` at the end. `own` is the git folder, `common` the one
    that worktrees share."""

    root: Path
    head: str
    prefix: str
    own: Path
    common: Path

    @property
    def is_partial(self) -> bool:
        """Whether git would have to fetch some contents."""
        return any(self.common.glob("objects/pack/*.promisor"))

    def run(self, arguments: Sequence[str], *, timeout: float | None = None) -> bytes:
        """As `run_git`, with the objects alone: commits go by their full names, paths start at the top."""
        with _apart(self) as apart:
            return run_git(self.root, arguments, timeout=timeout, apart=apart)

    def stream(self, arguments: Sequence[str], *, timeout: float | None = None) -> Iterator[bytes]:
        """As `stream_git`, with the objects alone."""
        with _apart(self) as apart:
            yield from stream_git(self.root, arguments, timeout=timeout, apart=apart)


def find_head(root: Path) -> str | None:
    """The commit that is checked out. None if `find_objects` raises."""
    try:
        return find_objects(root).head
    except SourceError:
        return None


def find_objects(root: Path) -> Objects:
    """The objects of a folder's own repository. Raises SourceError without git, repository or commit, or when the
    repository is not the folder's own, which is logged once."""
    wanted = ["--absolute-git-dir", "--git-common-dir", "--show-prefix", "HEAD^{commit}"]
    printed = run_git(root, ["rev-parse", *wanted]).removesuffix(b"\n").split(b"\n")
    if len(printed) != len(wanted) or any(b"\0" in each for each in printed):
        raise SourceError("git", "did not print the folders and the commit of a repository")
    own, common = (Path(os.path.realpath(os.path.join(root, os.fsdecode(each)))) for each in printed[:2])
    reason = _find_stranger(Path(os.path.realpath(root)), own, common)
    if reason and (str(root), reason) not in _warned:
        _warned.add((str(root), reason))
        _log.warning("the history of git is left out: %s", reason)
    if reason:
        raise SourceError("git", f"is not used in this folder: {reason}")
    prefix = printed[2].decode(errors="surrogateescape")
    return Objects(root=root, head=read_sha(printed[3]), prefix=prefix, own=own, common=common)


@contextmanager
def _apart(objects: Objects) -> Iterator[dict[str, str]]:
    """The environment of an empty repository for one command. It also replaces the user's home folder, so that settings
    of the user are ignored."""
    try:
        made = TemporaryDirectory(prefix="clew-git-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SourceError("git", f"has no folder to work in: {error.strerror}") from None
    with made as scratch:
        Path(scratch, "refs").mkdir()
        Path(scratch, "HEAD").write_text("ref: refs/heads/none\n")
        Path(scratch, "config").write_text(_SHA256 if len(objects.head) == 64 else _PLAIN)
        yield {
            "GIT_DIR": scratch,
            "GIT_OBJECT_DIRECTORY": str(objects.common / "objects"),
            "GIT_SHALLOW_FILE": str(objects.common / "shallow"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "HOME": scratch,
            "XDG_CONFIG_HOME": scratch,
        }


def _find_stranger(root: Path, own: Path, common: Path) -> str:
    """The reason why a repository does not belong to the folder; empty if it does."""
    top = _find_top(root, own)
    if top is None:
        return f"nothing around this folder leads to {_shown(own)}"
    if not own.is_relative_to(top) and not _points_back(own, top):
        return f".git leads to {_shown(own)}, which does not point back to this folder"
    is_worktree = own.parent == common / "worktrees"
    if not (common == own or is_worktree or common.is_relative_to(top)):
        return f".git shares {_shown(common)}, which does not point back to this folder"
    return _find_borrowed(common)


def _find_top(folder: Path, own: Path) -> Path | None:
    """The nearest folder, from `folder` upward, that is the git folder `own` or whose `.git` leads to it. None if there
    is none."""
    for each in (folder, *folder.parents):
        if each == own or Path(os.path.realpath(each / ".git")) == own or _named_in(each / ".git", "gitdir:") == own:
            return each
    return None


def _points_back(own: Path, top: Path) -> bool:
    """Whether a repository elsewhere names the folder as one of its worktrees, or as its only one."""
    if _named_in(own / "gitdir") == top / ".git":
        return True
    try:
        named = run_git(own, ["config", "--file", str(own / "config"), "--get", "core.worktree"]).strip()
    except SourceError:
        return False
    return bool(named) and Path(os.path.realpath(os.path.join(own, os.fsdecode(named)))) == top


def _find_borrowed(common: Path) -> str:
    """A sentence about objects of a repository that are or may be outside of it; empty if there are none."""
    objects = common / "objects"
    for place in (objects, *(link for part in ("", "pack", "info") for link in _links_in(objects / part))):
        if not Path(os.path.realpath(place)).is_relative_to(common):
            return f"{place.name} among its objects is a link that leads out of the repository"
    alternates = objects / "info" / "alternates"
    return f"it borrows objects: {_REPACK}" if alternates.exists() and alternates.stat().st_size else ""


def _links_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(each.path) for each in entries if each.is_symlink())
    except OSError:
        return


def _named_in(file: Path, before: str = "") -> Path | None:
    """The path that a small file names after a word, resolved from its folder; links of the last part are kept."""
    said = _read_small(file)
    if not said.startswith(before) or "\0" in said or not said:
        return None
    place = os.path.join(file.parent, said.removeprefix(before).strip())
    return Path(os.path.realpath(place)) if before else Path(os.path.realpath(os.path.dirname(place)), ".git")


def _read_small(file: Path) -> str:
    """The content of a small file; empty when it is large or cannot be read."""
    try:
        return os.fsdecode(read_file(file)).strip() if file.stat().st_size <= MAX_NAME else ""
    except OSError:
        return ""


def _shown(place: Path) -> str:
    return printable(str(place), 200)
