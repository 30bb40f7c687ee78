"""The owner of a trail: whether this user made it or agreed to it. Nothing may run on another trail, because its
agents, tools, pending requests and answered permissions would be a stranger's. Trails are identified by their identity.
The user's trails are recorded outside the folder, with everything else that the user trusts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from clew.access import HEARTBEAT_CONSUMERS, Principal
from clew.config import Config, check_own_files
from clew.errors import ConfigError, NotFound, ReadOnly
from clew.files import create_file, move_if_free, take_lock
from clew.trail import open_trail
from clew.trail.bootstrap import read_pieces
from clew.trail.model.flow import Flow, read_flow, shipped_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trust import Trust, Wish, digest_parts, printable, real_folder

_log = logging.getLogger(__name__)

KIND, MADE = "trail", "made by you"
MOST = 200
"""At most this many lasting permissions are counted."""
_COMPANIONS = ("", "-wal", "-journal")


class Ownership:
    """Whether the user made an open trail, or agreed to it. A process may always use a trail that it made itself.
    `is_shared` marks a trail on a server to which any user of it may agree.
    `problem` is the reason why other processes will still need consent. It is cleared when it has been logged."""

    def __init__(
        self, trail: Trail, config: Config, *, is_made: bool, is_shared: bool = False, problem: str = ""
    ) -> None:
        self._trail = trail
        self._is_shared = is_shared
        self._config = config
        self._is_made = is_made
        self.problem = problem
        self._is_refusal_told = False

    async def holds(self) -> bool:
        """Whether agents and tools may run on this trail. Raises ConfigError if the file of the user's grants cannot be
        used."""
        if self._is_shared and not self._is_made:  # somebody may have agreed on another machine
            self._is_made = not await self._trail.upkeep.is_foreign()
        if self._is_made:
            return True
        return await _is_granted(await self._bare_wish())

    async def require(self) -> None:
        """Raises ConfigError unless agents and tools may run on this trail."""
        if await self.holds():
            self._log_problem()
            return
        error = ConfigError(f"{_place(self._config)} is a trail that you did not make: nothing runs on it")
        error.hint = "`clew trust` shows what it brings"
        raise error

    async def wait(self, every: float) -> None:
        """Wait until agents and tools may run on this trail, and check every `every` seconds. The refusal is logged
        once."""
        while True:
            try:
                return await self.require()
            except ConfigError as error:
                if not self._is_refusal_told:
                    _log.warning("%s", error)
                self._is_refusal_told = True
            await asyncio.sleep(every)

    def _log_problem(self) -> None:
        if self.problem:
            _log.warning("you made this trail, but it will need your consent the next time: %s", self.problem)
            self.problem = ""

    async def wish(self, *, by: Principal) -> Wish:
        """The wish for consent to the trail, with the contents that it has for the caller."""
        return msgspec.structs.replace(await self._bare_wish(), summary=await self._summary(by))

    async def adopt(self, *, by: Principal) -> Wish:
        """Take over a trail that the user has agreed to: drop everything that waits on it, and give it a new identity
        that nobody else knows. Returns the wish to grant."""
        summary = await self._summary(by)
        await self._trail.upkeep.adopt()
        return msgspec.structs.replace(await self._bare_wish(), summary=summary)

    async def remember(self, trust: Trust) -> None:
        """Grant a trail that was just made. If the grant cannot be written, `problem` gives the reason."""
        wish = msgspec.structs.replace(await self._bare_wish(), summary=MADE)
        try:
            await asyncio.to_thread(trust.grant, [wish])
        except (ConfigError, ReadOnly) as error:
            self.problem = str(error)

    async def _bare_wish(self) -> Wish:
        return _wish_for(self._config, await self._trail.upkeep.identity())

    async def _summary(self, by: Principal) -> str:
        flow = await self._flow(by)
        counts = (await self._trail.upkeep.stats(by=by)).schemas
        every = await self._trail.deliveries.consumers(by=by)
        consumers = [each for each in every if not each.consumer.name.startswith(HEARTBEAT_CONSUMERS)]
        always = Selector(
            schema_name=flow.permission_answer, context_match=(ContextMatch(path="answer", value="always"),)
        )
        brought = [
            _count(counts.get(flow.agent, 0), "agent"),
            _count(counts.get(flow.tool, 0), "tool"),
            _count(counts.get(flow.workflow, 0), "workflow"),
            _count(sum(each.consumer.webhook is not None for each in consumers), "webhook"),
            _count(len((await self._trail.records.list(always, by=by, limit=MOST)).items), "lasting permission"),
        ]
        head = await self._trail.log.head()
        waiting = sum(each.pending + each.claimed for each in consumers) + max(
            (head - each.cursor for each in consumers), default=0
        )
        dropped = f"; {_count(waiting, 'event')} that may wait for them would be dropped" if waiting else ""
        return f"a trail that you did not make: {', '.join(brought)}{dropped}"

    async def _flow(self, by: Principal) -> Flow:
        """The flow that runners on this trail would use."""
        try:
            return await read_flow(self._trail, by=by)
        except (NotFound, msgspec.ValidationError):
            return shipped_flow(read_pieces())


async def open_owned(config: Config, opening: Callable[[], Awaitable[Trail]]) -> tuple[Trail, Ownership]:
    """Open the trail of a configuration. A trail that this call creates belongs to the user at once, for all processes.

    Raises as `open_trail`, and ReadOnly for a link in place of a file that Clew writes in its folder.
    """
    check_own_files(config.folder)
    file = config.trail_file
    if file is None:
        return await _open_without_file(config, opening)
    if _is_there(file):
        if await asyncio.to_thread(_stays_empty, file):
            _log.warning("%s is empty (0 bytes): a new trail starts in it. If it held records, restore a copy", file)
        trail = await opening()
        return trail, Ownership(trail, config, is_made=False)
    with contextlib.ExitStack() as stack:
        trust, problem = None, ""
        try:
            trust = Trust.open()
            await asyncio.to_thread(stack.enter_context, trust.making())
        except (ConfigError, ReadOnly) as error:
            trust, problem = None, str(error)
        await asyncio.to_thread(stack.enter_context, _locked(file.parent))
        is_made = not _is_there(file)  # another process may have been quicker
        if is_made and trust is not None:
            is_made, problem = await _make_granted(file, config, trust)
        trail = await opening()
        return trail, Ownership(trail, config, is_made=is_made, problem=problem if is_made else "")


async def _make_granted(file: Path, config: Config, trust: Trust) -> tuple[bool, str]:
    """Create a trail beside its place, grant it, and move it there. A process that is killed meanwhile therefore leaves
    no trail that nobody has granted. Returns whether this call made the trail, and why it could not be granted."""
    draft = file.with_name(f".{file.name}.new")
    try:
        await asyncio.to_thread(_begin_draft, draft)
        trail = await open_trail(f"sqlite://{draft}")
        try:
            ownership = Ownership(trail, config, is_made=True)
            await ownership.remember(trust)
        finally:
            await trail.close()
        return await asyncio.to_thread(move_if_free, draft, file), ownership.problem
    finally:
        _remove(draft)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, against users whose consent is in another file. Not every system can lock a folder."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            opened = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, opened)
            take_lock(opened)
        yield


def _begin_draft(draft: Path) -> None:
    """Make an empty file of this user, after removing the files of a process that was killed, or of a stranger. Raises
    ReadOnly for a file that cannot be removed, because its content would become the user's own trail."""
    _remove(draft)
    left = next((each for each in _all_parts(draft) if os.path.lexists(each)), None)
    if left is not None:
        raise ReadOnly(f"{left} cannot be removed", hint="Remove it: it is not yours, or it is a folder")
    create_file(draft, b"", 0o600)


def _remove(file: Path) -> None:
    """Remove the files of a trail, as far as they exist."""
    for each in _all_parts(file):
        with contextlib.suppress(OSError):
            each.unlink()


def _all_parts(file: Path) -> list[Path]:
    return [*_parts(file), file.with_name(f"{file.name}-shm")]


async def _open_without_file(config: Config, opening: Callable[[], Awaitable[Trail]]) -> tuple[Trail, Ownership]:
    """Open a trail in memory, or on a server. A trail on a server belongs to the user who named it in the environment
    or by a flag, so that all workers of a team may use it, unless it was moved there by somebody who had not made it
    and nobody has agreed to it. A trail that a folder's config.toml names belongs to the user only if nothing was ever
    written to it."""
    trail = await opening()
    if "trail" not in config.from_file:
        is_foreign = await trail.upkeep.is_foreign()
        return trail, Ownership(trail, config, is_made=not is_foreign, is_shared=is_foreign)
    if await trail.log.head() > 0:
        return trail, Ownership(trail, config, is_made=False)
    ownership = Ownership(trail, config, is_made=True)
    await ownership.remember(Trust.open())
    return trail, ownership


async def is_own(config: Config, identity: str) -> bool:
    """Whether the user made the trail of a configuration, which has this identity, or agreed to it. A trail without a
    file, in memory or on a server whose address the user has typed, always is."""
    return config.trail_file is None or await _is_granted(_wish_for(config, identity))


async def remember_moved(config: Config) -> bool:
    """Grant the trail of a configuration, to which the user has moved an own trail. Returns whether the grant could be
    written."""
    trail = await open_trail(config.trail_url)
    try:
        ownership = Ownership(trail, config, is_made=True)
        await ownership.remember(Trust.open())
        return not ownership.problem
    finally:
        await trail.close()


async def _is_granted(wish: Wish) -> bool:
    with contextlib.suppress(ReadOnly):  # then nobody can be at making one
        return await asyncio.to_thread(Trust.open().holds_once_made, wish)
    return False


def _wish_for(config: Config, identity: str) -> Wish:
    """The wish for consent to a trail, without its contents."""
    file, place = config.trail_file, _place(config)
    is_inside = file is not None and file.absolute().parent == config.folder.absolute()
    whole = os.fsencode(os.path.realpath(file) if file is not None else place)
    return Wish(
        folder=real_folder(config.folder.absolute().parent),
        kind=KIND,
        name=printable(file.name if file is not None and is_inside else place).strip() or "''",
        digest=digest_parts([whole, identity.encode("utf-8", "backslashreplace")]),
    )


def _place(config: Config) -> str:
    """The file of a trail, or its address without a password."""
    if config.trail_file is not None:
        return str(config.trail_file)
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1@", config.trail_url).partition("?")[0]


def _is_there(file: Path) -> bool:
    """Whether a file of the trail exists, even a link to nowhere."""
    return any(os.path.lexists(each) for each in _parts(file))


def _stays_empty(file: Path) -> bool:
    """Whether a trail has no byte in any of its files, and no process is creating it now."""
    if any(each.exists() and each.stat().st_size for each in _parts(file)):
        return False
    with contextlib.suppress(ConfigError, ReadOnly), Trust.open().making():
        return not any(each.exists() and each.stat().st_size for each in _parts(file))
    return True


def _parts(file: Path) -> list[Path]:
    return [file.with_name(file.name + suffix) for suffix in _COMPANIONS]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
