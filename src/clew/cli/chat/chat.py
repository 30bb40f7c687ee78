"""`clew chat`: a conversation with an agent, at a terminal or from a script."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from clew.agents.conversations.agent_adapters import load_adapter, wrap_all
from clew.agents.conversations.agent_interface import Agent, AgentCore
from clew.agents.conversations.conversation import Conversations, check_message, open_conversations
from clew.agents.conversations.no_model_fallback import describe_answer, find_missing_model, question_of
from clew.agents.conversations.steps import Answered, Step
from clew.agents.folder.blocked_agents import find_blocked_agents
from clew.app import App
from clew.catalog.workspace.workspace import Workspace
from clew.cli import INTERRUPTED
from clew.cli.chat.chat_commands import GREETING, Typed, read_command, run_session_command
from clew.cli.chat.chat_input import Lines, open_lines
from clew.cli.chat.chat_screen import Display, JsonLines, Screen, show_turns
from clew.cli.chat.chat_turn import Asker, Chat, Interrupts, UserLeft, answer_from, ask_person, interrupts
from clew.cli.commands.session import print_sessions
from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here
from clew.cli.project import project_root, trail_file
from clew.cli.terminal.answer import render_for_people
from clew.cli.terminal.output import can_ask, is_terminal, note, print_json, print_lines
from clew.cli.workspace import read_for_answer
from clew.context.definition import AgentDefinition
from clew.errors import ClewError, InvalidInput, ModelError, NotFound
from clew.llm.model import Models, open_models
from clew.team.sessions.session_manager import SessionManager
from clew.tools.permissions.permission_settings import find_strays

PROMPT = "you> "
ManageSessions = Callable[[Typed, str], Awaitable[None]]
"""Carries out a command about sessions or the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """The options of the command line."""

    agent: str
    session: str | None
    allow: tuple[str, ...]
    adapters: tuple[Path, ...]
    script: Path | None
    last: int
    json: bool


async def chat(
    *message: Annotated[str, Parameter(help="Send this message, print the answer and exit.")],
    session: Annotated[str | None, Parameter(help="Continue this session; --list shows them.")] = None,
    list: Annotated[bool, Parameter(help="List the sessions, newest first.")] = False,
    agent: Annotated[str | None, Parameter(help="The agent to talk to. [default: agent.name of the settings]")] = None,
    allow: Annotated[
        tuple[str, ...], Parameter(help="A tool that may run without asking, as a name or glob; repeatable.")
    ] = (),
    adapter: Annotated[
        tuple[Path, ...], Parameter(help="A Python file with an `adapter` for the agent. Clew runs it.")
    ] = (),
    script: Annotated[Path | None, Parameter(help="A file with scripted answers, instead of a model.")] = None,
    last: Annotated[int, Parameter(help="Number of earlier messages to show.")] = 10,
    json: Annotated[bool, Parameter(help="Print one JSON object for each event.")] = False,
    here: Here = HERE,
) -> int:
    """Talk to an agent of this folder.

    Shows answers and tool calls as they arrive. A tool that needs your permission asks for it; in a pipe, only tools of
    --allow run. Ctrl-C cancels an answer, /exit or Ctrl-D ends the conversation. The session is on the trail, so you
    can continue it later, even after a crash.

        clew chat
        clew chat "what did we decide about retries?"
        clew chat --list
        clew chat --session 4f1c22ab
    """
    logging.getLogger("clew.agents").setLevel(logging.ERROR)  # errors are part of the conversation
    options = ChatOptions(
        agent=agent or "", session=session, allow=allow, adapters=adapter, script=script, last=last, json=json
    )
    _check(message, options, listed=list)
    if list and (file := trail_file(here.config())) is not None and not file.exists():
        print_sessions([], as_json=json)
        return 0
    async with open_here(here, create=True, tell_first=True) as app:
        await app.bootstrap()
        conversations = await open_conversations(app.trail, app.clock, by=app.me, scopes=app.me.scopes)
        manager = SessionManager(app.trail, conversations, app.clock)
        if list:
            print_sessions(await manager.list(by=app.me), as_json=json)
            return 0
        options = replace(options, agent=agent or app.config.agent.name)
        return await _talk(app, conversations, manager, " ".join(message), options)


def _check(message: Sequence[str], options: ChatOptions, *, listed: bool) -> None:
    if listed and (message or options.session):
        raise InvalidInput("--list", "cannot be combined with a message or a session")
    if not 0 <= options.last <= 200:
        raise InvalidInput("--last", "must be from 0 to 200")
    if message:
        check_message(" ".join(message))


async def _talk(
    app: App, conversations: Conversations, manager: SessionManager, message: str, options: ChatOptions
) -> int:
    """One message, or one after the other. Returns the exit code."""
    models = _models(app, options.script)
    definition = await _find_agent(app, conversations, options.agent)
    missing = await find_missing_model(app.trail, conversations.flow, app.clock, models, definition, by=app.me)
    if missing is not None:
        return await _talk_without(app, manager, missing, message, as_json=options.json)
    session = await _choose_session(app, manager, options.session)
    display: Display = JsonLines() if options.json else Screen(streams=is_terminal())
    async with _working(app, conversations, manager, models, options) as agent:
        with interrupts() as caught, open_lines(await _earlier_messages(agent, session)) as lines:
            asker = _asker(lines, options.allow, is_asked=can_ask() and not options.json)
            talk = Chat(agent, display, asker, caught, session=session)
            try:
                await _show_last_turns(talk, agent, options, is_long=not message)
                return await (_once(talk, message) if message else _converse(talk, lines, caught, manager, app))
            except UserLeft:
                return INTERRUPTED
            finally:
                _print_session(talk, message)


async def _find_agent(app: App, conversations: Conversations, name: str) -> AgentDefinition:
    """The agent of that name, on the trail or in the folder's markdown as it is now. Raises NotFound, ClewError for one
    that does not run."""
    await app.mirror_agents()
    try:
        return await conversations.find_agent(name, by=app.me)
    except NotFound as error:
        kept_back = {each.name: each for each in find_blocked_agents((await app.workspace()).definitions)}
        if name not in kept_back:
            error.hint = "`clew agents` lists them"
            raise
        found = kept_back[name]
        raise ClewError(f"the agent {name} cannot be talked to: {found.reason}", hint=found.hint) from None


def _models(app: App, script: Path | None) -> Models:
    """The models of the folder, or one that answers by a script. Raises InvalidInput."""
    models = open_models(app.config)
    if script is None:
        return models
    from clew.cli.scripts import with_script  # for demos and tests only

    return with_script(models, script)


@asynccontextmanager
async def _working(
    app: App, conversations: Conversations, manager: SessionManager, models: Models, options: ChatOptions
) -> AsyncIterator[Agent]:
    """The agent at work in this process, inside its adapters. Another process may work on the same trail: an event is
    handled by one of them."""
    adapters = [load_adapter(path) for path in options.adapters]
    runtime = await app.runtime(models)
    for line in find_strays(app.config.permissions, await runtime.parts.tools.toolbox.names(by=app.me)):
        note(line)
    registry = (await app.workspace()).catalog.registry if adapters else None
    core = AgentCore(options.agent, conversations, by=app.me, running=runtime.running, registry=registry, gate=manager)
    agent = wrap_all(core, adapters)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.stop()
        await models.close()


async def _choose_session(app: App, manager: SessionManager, named: str | None) -> str | None:
    """The named session, else the focused one, else None for a new one. Raises NotFound, IllegalState."""
    return await manager.choose(await manager.find(named, by=app.me) if named else None, by=app.me)


def _asker(lines: Lines, allowed: tuple[str, ...], *, is_asked: bool) -> Asker:
    return ask_person(lines, allowed) if is_asked else answer_from(allowed)


async def _earlier_messages(agent: Agent, session: str | None) -> list[str]:
    """The earlier messages of the person in a session."""
    if session is None:
        return []
    turns = await agent.turns(session, limit=200)
    return [turn.text for turn in turns if turn.role == "user"]


async def _show_last_turns(talk: Chat, agent: Agent, options: ChatOptions, *, is_long: bool) -> None:
    """Show the last turns of a session, and wait for pending answers."""
    if is_long and can_ask() and not options.json:
        note(f"Talking to {options.agent}. {GREETING}", dim=True)
    if talk.session is None:
        return
    if options.last and not options.json:
        show_turns(await agent.turns(talk.session, limit=options.last))
    for sent in await agent.open_runs(talk.session):
        if not options.json:
            note("The last message has no answer yet: continuing it.", dim=True)
        await talk.wait_for(sent)


async def _once(talk: Chat, message: str) -> int:
    return _code(await talk.say(message))


async def _converse(talk: Chat, lines: Lines, caught: Interrupts, manager: SessionManager, app: App) -> int:
    """Send messages until the end of input. At a terminal, an error is printed and the conversation continues. Returns
    the exit code."""

    async def manage(typed: Typed, text: str) -> None:
        if typed is Typed.TEAM:
            await _run_team_command(app, text)
        else:
            talk.session = await run_session_command(text, await app.team(), talk.session, by=app.me)

    code = 0
    while (text := await _next_message(lines, caught, manage)) is not None:
        try:
            code = _code(await talk.say(text))
        except ClewError as error:
            if not can_ask():
                raise
            note(f"clew: {error}")
    return 0 if can_ask() else code


async def _next_message(lines: Lines, caught: Interrupts, manage: ManageSessions) -> str | None:
    """The next message, or None at the end. Commands typed at a terminal are handled here."""
    while (text := await caught.unless_left(lines.read(PROMPT))) is not None:
        typed = read_command(text) if can_ask() else Typed.MESSAGE
        if typed is Typed.EXIT:
            return None
        if typed in (Typed.SESSION, Typed.TEAM):
            try:
                await manage(typed, text)
            except ClewError as error:
                note(f"clew: {error}")
        elif text.strip() and typed is Typed.MESSAGE:
            return text
    if can_ask():
        sys.stderr.write("\n")  # the terminal shows nothing for Ctrl-D
    return None


async def _run_team_command(app: App, text: str) -> None:
    from clew.cli.team.team_commands import (
        run_team_command,
    )  # imported here, because only commands about the team need it

    await run_team_command(text, await app.team(), app)


def _code(last: Step | None) -> int:
    """The exit code: 0 for an answer, 1 without one, 130 if it was cancelled."""
    if not isinstance(last, Answered):
        return 1
    return {"done": 0, "cancelled": INTERRUPTED}.get(last.status, 1)


def _print_session(talk: Chat, message: str) -> None:
    if talk.session is not None and can_ask() and not message:
        note(f"Continue with: clew chat --session {talk.session[-8:]}", dim=True)


async def _talk_without(app: App, manager: SessionManager, missing: ModelError, message: str, *, as_json: bool) -> int:
    """Answer as `clew ask` does, and say how to add a model."""

    async def manage(typed: Typed, text: str) -> None:
        if typed is Typed.TEAM:
            await _run_team_command(app, text)
        else:
            await run_session_command(text, await app.team(), None, by=app.me)

    advice = f"Answers come from the files of this folder, without a model: {missing}"
    if not message:
        note(advice)
        if can_ask():
            note(GREETING, dim=True)
    workspace = await app.workspace()
    with interrupts() as caught, open_lines() as lines:
        try:
            while True:
                text = message or await _next_message(lines, caught, manage)
                if text is None:
                    return 0
                await caught.unless_left(_answer_without(app, workspace, text, str(missing), as_json=as_json))
                if message:
                    note(advice)
                    return 0
        except UserLeft:
            return INTERRUPTED


async def _answer_without(app: App, workspace: Workspace, text: str, reason: str, *, as_json: bool) -> None:
    if app.refusal:
        note(app.refusal)
    await read_for_answer(app, workspace)
    question = question_of(text)
    answer = await workspace.catalog.ask(question, by=app.me, refresh=False, tells_pending=False)
    if as_json:
        found = await describe_answer(workspace.catalog, answer, by=app.me)
        print_json({"type": "without_model", "text": found, "reason": reason})
    else:
        print_lines(render_for_people(answer, question.query, project_root(app.config)))
