"""One turn of a conversation at a terminal: a message, the resulting steps, permission questions, and Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from clew.agents.conversations.agent_interface import Agent, AgentInput
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import Choice, PermissionAsked, RunStarted, Step
from clew.cli.chat.chat_input import Lines
from clew.cli.chat.chat_screen import Display
from clew.cli.chat.permission_prompt import describe_question
from clew.cli.terminal.output import note, one_line
from clew.errors import AlreadyExists

Asker = Callable[[PermissionAsked], Awaitable[Choice]]
Result = TypeVar("Result")


class UserLeft(Exception):
    """The person leaves the chat: Ctrl-C while nothing runs, or a second Ctrl-C."""


class Interrupts:
    """Handles Ctrl-C while the chat is open: the first cancels the current work, the next leaves the chat."""

    def __init__(self) -> None:
        self._on_first: Callable[[], None] | None = None
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def press(self) -> None:
        """Handle Ctrl-C."""
        first, self._on_first = self._on_first, None
        if first is not None:
            first()
        elif not self._left.done():
            self._left.set_result(None)

    @contextlib.contextmanager
    def instead(self, first: Callable[[], None]) -> Iterator[None]:
        """While the block runs, make the next Ctrl-C call `first` instead of leaving."""
        self._on_first = first
        try:
            yield
        finally:
            self._on_first = None

    async def unless_left(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of the work. If the person leaves first, cancel the work and raise UserLeft."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait((task, self._left), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if task.cancelled():
            raise UserLeft
        return task.result()


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Handle Ctrl-C while the context is open, if the system supports it."""
    loop, caught, before = asyncio.get_running_loop(), Interrupts(), signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, caught.press)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        yield caught
        return
    try:
        yield caught
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


class Chat:
    """A conversation in one session. A new session is created with the first message."""

    def __init__(
        self,
        agent: Agent,
        display: Display,
        asker: Asker,
        caught: Interrupts,
        *,
        session: str | None = None,
    ) -> None:
        self._agent = agent
        self._display = display
        self._asker = asker
        self._caught = caught
        self.session = session

    async def say(self, text: str) -> Step | None:
        """Send a message and show the steps that follow. Returns the last step. Raises UserLeft."""
        ended = asyncio.Event()
        with self._caught.instead(ended.set):
            return await self._caught.unless_left(self._turn(text, ended))

    async def wait_for(self, sent: SentMessage) -> Step | None:
        """Show the steps that follow a message that was sent earlier. Returns the last step. Raises UserLeft."""
        ended = asyncio.Event()
        with self._caught.instead(ended.set):
            return await self._caught.unless_left(self._go_on(sent, ended))

    async def _turn(self, text: str, ended: asyncio.Event) -> Step | None:
        steps = self._agent.process(AgentInput(text=text, session=self.session))
        first = await anext(steps, None)
        if not isinstance(first, RunStarted):
            return first
        self._display.show(first)
        self.session = first.session
        async with self._cancelling(first.run, ended):
            return await self._show_all(steps, ended)

    async def _go_on(self, sent: SentMessage, ended: asyncio.Event) -> Step | None:
        async with self._cancelling(sent.run, ended):
            return await self._show_all(self._agent.resume(sent), ended)

    async def _show_all(self, steps: AsyncIterator[Step], ended: asyncio.Event) -> Step | None:
        last: Step | None = None
        try:
            async for step in steps:
                last = step
                self._display.show(step)
                if isinstance(step, PermissionAsked):
                    await self._answer(step, ended)
        finally:
            self._display.rest()
        return last

    @contextlib.asynccontextmanager
    async def _cancelling(self, run: str, ended: asyncio.Event) -> AsyncIterator[None]:
        """While the block runs, cancel the run as soon as `ended` is set."""

        async def cancel() -> None:
            await ended.wait()
            await self._agent.cancel(self.session or "", reason="Ctrl-C", run=run)

        task = asyncio.create_task(cancel())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _answer(self, asked: PermissionAsked, ended: asyncio.Event) -> None:
        """Ask the person and write the answer. A run that is being cancelled needs none."""
        asking = asyncio.ensure_future(self._asker(asked))
        stopping = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not asking.done():
                asking.cancel()
        if asking.cancelled() or not asking.done():
            return
        try:
            await self._agent.answer_permission(asked.request_id, asking.result(), question=asked.id)
        except AlreadyExists:
            note("Somebody else answered it.", dim=True)


def ask_person(lines: Lines, allowed: Sequence[str] = ()) -> Asker:
    """Ask at the terminal about each tool that is not allowed already. At the end of input, the answer is no."""

    async def ask(asked: PermissionAsked) -> Choice:
        if _is_among(asked.tool, allowed):
            return "once"
        sys.stderr.write(describe_question(asked))
        offered = [f"[{choice[0]}]{choice[1:]}" for choice in asked.choices]
        while True:
            typed = await lines.read(f"  {', '.join(offered)}: ")
            if typed is None:
                return "deny"
            if (choice := _choice(typed, asked.choices)) is not None:
                return choice
            note(f"Please say {', '.join(asked.choices)}.")

    return ask


def answer_from(allowed: Sequence[str]) -> Asker:
    """Build an asker for use without a terminal: it allows tools that match these names or globs, once per call, and
    denies all others."""

    async def answer(asked: PermissionAsked) -> Choice:
        if _is_among(asked.tool, allowed):
            return "once"
        note(f"Denied: {asked.tool}. Allow it with --allow {asked.tool}")
        if asked.reason:
            note(f"  {one_line(asked.reason)}", dim=True)
        return "deny"

    return answer


def _is_among(tool: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def _choice(typed: str, choices: Sequence[str]) -> Choice | None:
    """The only choice that begins with the typed text; None if there are several or none."""
    word = typed.strip().lower()
    found = [choice for choice in choices if word and choice.startswith(word)]
    chosen: Choice | None = found[0] if len(found) == 1 else None  # type: ignore[assignment]  # of CHOICES
    return chosen
