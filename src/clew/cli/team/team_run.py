"""One request of the user at a terminal or in a pipe: follow the team, show it, and ask when it waits for the user."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.steps import PermissionAnswered, PermissionAsked
from clew.cli import INTERRUPTED
from clew.cli.chat.chat_input import Lines
from clew.cli.chat.chat_turn import Asker, Interrupts, UserLeft
from clew.cli.team.team_view import TeamDisplay
from clew.cli.terminal.output import note, one_line, say_wrapped
from clew.errors import AlreadyExists, ClewError
from clew.team.machines.pipeline_state import Stage
from clew.team.machines.team_state import Outcome, TeamStage, TeamState
from clew.team.messages.message_types import MessageType
from clew.team.runtime.status_records import waits_for_user
from clew.team.team import Team, TeamEvent

WAITS = 3
"""The exit code of work that waits for the user if nobody can be asked."""
_APPROVAL = "approve, modify TEXT, ask TEXT or stop> "
_STEERING = "pause, steer TEXT, stop or continue> "
_CHOICE = "ignore REASON, retry or fail> "


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """A session at work. `lines` is None if nobody can be asked. `plan_only` stops before the work begins."""

    team: Team
    conversations: Conversations
    session: str
    label: str
    """The session as commands accept it: its name, or the end of its id."""
    by: Principal
    display: TeamDisplay
    asker: Asker
    interrupts: Interrupts
    lines: Lines | None
    plan_only: bool = False
    after: int = 0
    """The event after which messages are shown; 0 shows all."""


class TeamRun:
    """Follows one session until its end, or until it waits for a user who cannot be asked."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._team, self._session, self._by = parts.team, parts.session, parts.by
        self._label = shlex.quote(parts.label)
        self._seen: set[str] = set()
        self._shown_plans: set[str] = set()
        """Plans whose message has been shown. The state may be ahead of the messages."""
        self._answered: set[str] = set()
        self._is_asking = False
        """Whether the Architect has yet to answer about the plan. The user decides on the plan after it."""

    async def follow(self) -> int:
        """Returns the exit code: 0 for completed work, 1 for failed or stopped work, 3 if it waits, 130 after a
        pause."""
        pressed = asyncio.Event()
        events = self._team.follow(self._session, by=self._by, after=self._parts.after)
        code: int | None = None
        try:
            if self._parts.after:
                state = await self._team.state(self._session, by=self._by)
                self._shown_plans.update([state.plan.id] if state.plan is not None else [])
                code = await self._ask(state)
            pending = asyncio.ensure_future(anext(events, None))
            while code is None:
                with self._parts.interrupts.instead(pressed.set):  # no await happens outside of it
                    code = await self._turn(pending, pressed)
                    if code is not None or not pending.done():
                        continue
                    event = pending.result()
                    if event is None:
                        break
                    code = await self._take(event)
                    pending = asyncio.ensure_future(anext(events, None))
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        except UserLeft:
            code = await self._pause()
        finally:
            await events.aclose()
        return code if code is not None else await self._end()

    async def _turn(self, pending: asyncio.Future[TeamEvent | None], pressed: asyncio.Event) -> int | None:
        """Wait for the next event or for Ctrl-C."""
        waiting = asyncio.create_task(pressed.wait())
        try:
            await asyncio.wait((pending, waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not pressed.is_set():
            return None
        pressed.clear()
        return await self._steer()

    async def _take(self, event: TeamEvent) -> int | None:
        state = await self._team.state(self._session, by=self._by)
        self._parts.display.show(event, state)
        if isinstance(event.step, PermissionAnswered):
            self._answered.add(event.step.request_id)
        if isinstance(event.step, PermissionAsked):
            await self._permit(event.step)
        if event.message is not None and event.message.type is MessageType.PLAN_RESPONSE:
            self._shown_plans.add(event.message.payload["plan"].get("id") or event.message.id)
        if event.message is not None and event.message.type is MessageType.USER_INTERRUPT:
            self._is_asking = event.message.payload["kind"] == "ask"
        elif event.message is not None and event.message.type is MessageType.TASK_ANSWER and self._is_asking:
            self._is_asking = False
            self._seen.clear()
        if event.message is None or not waits_for_user(state):
            return None
        return await self._ask(state)

    async def _end(self) -> int:
        state = await self._team.state(self._session, by=self._by)
        if self._parts.plan_only and state.outcome is Outcome.STOPPED:
            return 0
        self._parts.display.end(state)
        if state.outcome is Outcome.COMPLETED:
            note(f"Merge it with: clew code merge {self._label}", dim=True)
        return 0 if state.outcome is Outcome.COMPLETED else 1

    async def _permit(self, asked: PermissionAsked) -> None:
        if asked.request_id in self._answered:
            return
        with self._parts.display.paused():
            whole = await self._parts.conversations.whole(asked, by=self._by)
            assert isinstance(whole, PermissionAsked)
            choice = await self._parts.asker(whole)
        try:
            await self._parts.conversations.answer_permission(asked.request_id, choice, by=self._by, question=asked.id)
        except AlreadyExists:
            note("It was answered elsewhere.")

    async def _ask(self, state: TeamState) -> int | None:
        """Ask the questions that the team waits for, each once."""
        plan = state.plan
        if _needs_approval(state) and plan is not None and plan.id in self._shown_plans - self._seen:
            self._seen.add(plan.id)
            return await self._ask_approval(state)
        for id, question in state.questions.items():
            if id not in self._seen:
                self._seen.add(id)
                return await self._ask_question(id, one_line(question.question))
        for each in state.pipelines.values():
            key = f"{each.id}/{each.inspector_loops}/{each.tester_loops}"
            if each.stage is Stage.CHOICE and not each.is_over and key not in self._seen:
                self._seen.add(key)
                return await self._ask_choice(each.id, one_line(each.reason) or "it used all its rounds")
        if state.stage is TeamStage.CHOICE and "session" not in self._seen:
            self._seen.add("session")
            return await self._ask_choice("", one_line(state.reason) or "findings are left")
        return None

    async def _ask_approval(self, state: TeamState) -> int | None:
        assert state.plan is not None
        with self._parts.display.paused():
            self._parts.display.plan(state)
            if self._parts.plan_only:
                await self._team.reject(self._session, by=self._by, reason="only the plan was wanted")
                return None
            if self._parts.lines is None:
                return self._waits(f"the plan waits for you: clew team approve {self._label}")
            while True:
                word, text = await self._read(_APPROVAL)
                try:
                    if await self._decide(word, text):
                        return None
                except ClewError as error:
                    note(f"clew: {error}")

    async def _decide(self, word: str, text: str) -> bool:
        """Carry out an answer to the plan. Returns whether the text was a valid answer."""
        match word:
            case "approve" | "a" | "yes" | "y":
                await self._team.approve(self._session, by=self._by, over_budget=True)
            case "modify" | "m" if text:
                await self._team.modify(self._session, text, by=self._by)
                self._seen.clear()
            case "ask" if text:
                await self._team.ask(self._session, text, by=self._by)
            case "stop" | "no" | "n":
                await self._team.reject(self._session, by=self._by)
            case _:
                note("Type approve, modify and a text, ask and a text, or stop.")
                return False
        return True

    async def _ask_question(self, id: str, question: str) -> int | None:
        with self._parts.display.paused():
            if self._parts.lines is None:
                return self._waits(f'the Architect asks: {question} Answer with: clew team answer "TEXT"')
            say_wrapped(f"The Architect asks: {question}")
            text = await self._parts.interrupts.unless_left(self._parts.lines.read("answer> "))
        if text and text.strip():
            await self._team.answer(self._session, text, by=self._by, question=id)
        return None

    async def _ask_choice(self, task: str, reason: str) -> int | None:
        subject = f"task {task}" if task else "the result"
        with self._parts.display.paused():
            if self._parts.lines is None:
                return self._waits(f"{subject} waits for you ({reason}): clew team choose ignore|retry|fail {task}")
            say_wrapped(f"{subject[:1].upper()}{subject[1:]} waits for you: {reason}")
            while (answer := await self._read(_CHOICE))[0] not in ("ignore", "retry", "fail"):
                note("Type ignore and a reason, retry, or fail.")
        choice, text = answer
        try:
            await self._team.choose(self._session, choice, by=self._by, task=task, reason=text)  # type: ignore[arg-type]
        except ClewError as error:  # another terminal has decided it in the meantime
            note(f"clew: {error}")
        return None

    async def _steer(self) -> int | None:
        """Ask for the meaning of Ctrl-C: pause, steer or stop. If nobody can be asked, pause the work."""
        if self._parts.lines is None:
            return await self._pause()
        with self._parts.display.paused():
            while True:
                word, text = await self._read(_STEERING)
                if word in ("pause", "p"):
                    return await self._pause()
                try:
                    if await self._redirect(word, text):
                        return None
                except ClewError as error:
                    note(f"clew: {error}")
                    return None

    async def _redirect(self, word: str, text: str) -> bool:
        """Carry out an answer to Ctrl-C. Returns whether the text was a valid answer."""
        match word:
            case "steer" | "add" if text:
                await self._team.interrupt(self._session, "add", text, by=self._by)
            case "stop":
                await self._team.stop(self._session, by=self._by, reason="stopped by the user")
            case "continue" | "c" | "":
                pass
            case _:
                note("Type pause, steer and a text, stop, or continue.")
                return False
        return True

    async def _pause(self) -> int:
        await self._team.interrupt(self._session, "halt", by=self._by)
        note(f"Paused. Continue with: clew code --resume {self._label}")
        return INTERRUPTED

    async def _read(self, prompt: str) -> tuple[str, str]:
        """A word and the text after it. Raises UserLeft for a second Ctrl-C and at the end of the input."""
        assert self._parts.lines is not None
        line = await self._parts.interrupts.unless_left(self._parts.lines.read(prompt))
        if line is None:
            raise UserLeft
        word, _, text = line.strip().partition(" ")
        return word.lower(), text.strip()

    def _waits(self, text: str) -> int:
        note(f"{text[:1].upper()}{text[1:]}")
        return WAITS


def _needs_approval(state: TeamState) -> bool:
    """Whether the plan waits for the user. A request may approve its plan beforehand, unless it is over the budget."""
    if state.stage is not TeamStage.APPROVAL:
        return False
    is_over = state.preflight is not None and state.preflight.exceeds_budget
    return is_over or state.request is None or not state.request.approves_plan
