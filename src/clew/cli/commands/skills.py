"""Commands over the skills of a folder, as agents have them: list, show, why, load, unload."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.access import Principal, check_principal
from clew.cli.commands.catalog import show_why
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.markdown import print_markdown
from clew.cli.terminal.output import BOLD, count, note, print_json, print_rows, say
from clew.cli.terminal.progress import progress
from clew.cli.workspace import open_workspace_here
from clew.decode_errors import suggest, unmixed
from clew.errors import ClewError, HandleRefused, InvalidInput, NotFound, ValidationError

if TYPE_CHECKING:
    from clew.app import App
    from clew.catalog.skills.definitions import FolderDefinitions
    from clew.catalog.skills.loaded_skills import LoadedSkills
    from clew.catalog.workspace.workspace import Workspace
    from clew.skills.manifest import Skill
    from clew.skills.sessions.agent_session import AgentSession, LoadOutcome

Name = Annotated[str, Parameter(help="The name of a skill.")]
Session = Annotated[str | None, Parameter(help="The session of the agent: the id of a conversation.")]
Handle = Annotated[str | None, Parameter(help="The handle of a conversation over MCP, in place of a session.")]
Agent = Annotated[str | None, Parameter(help="The agent whose session it is. [default: cli]")]

TRUSTED, NOT_TRUSTED = "trusted", "not trusted yet: run `clew trust`"


async def list_(*, session: Session = None, agent: Agent = None, json: Json = False, here: Here = HERE) -> None:
    """List the skills of this folder.

    Includes .clew/skills and the skills of other agents in the project, such as .claude/skills and .agents/skills. With
    --session it shows which of them are loaded.

        clew skills list
        clew skills list --session 42 --json
    """
    from clew.llm.tokens import estimate_tokens  # listing alone needs it

    definitions = await _read(here)
    loaded: tuple[str, ...] = ()
    if session is not None:
        async with _session(here, session, None, agent) as found:
            state = await found.find_state()
            loaded = state.discovered_skills if state is not None else ()
    rows, listed = [], []
    for each in definitions.manifest.skills.values():
        state_of = "loaded" if each.name in loaded else _state(each, definitions)
        tokens = estimate_tokens(each.content)
        rows.append((unmixed(each.name), each.origin, str(tokens), state_of, each.description))
        listed.append({**_about(each), "tokens": tokens, "state": state_of})
    if json:
        print_json(listed)
        return
    print_rows(("skill", "format", "tokens", "state", "about"), rows, main=4, spare=(1, 3))
    if not listed:
        note("No skills here. Write one with `clew skills new NAME`, or take one over: clew skills import PATH")
    if problems := len(definitions.problems):
        note(f"{count(problems, 'problem')} in definitions: `clew skills lint` shows them", dim=True)


async def show(name: Name, /, *, json: Json = False, here: Here = HERE) -> None:
    """Show one skill: purpose, tools and text.

    This does not load the skill.

        clew skills show release-notes
        clew skills show release-notes --json
    """
    definitions = await _read(here)
    skill = _find(name, definitions)
    state = _state(skill, definitions)
    if json:
        print_json({**msgspec.to_builtins(skill), "state": state})
        return
    say(skill.name, BOLD)
    facts = {
        "about": skill.description,
        "state": state,
        "file": skill.path,
        "toolsets": ", ".join(skill.toolsets),
        "skills": ", ".join(skill.skills),
        "keywords": ", ".join(skill.keywords),
        "references": ", ".join(each.path for each in skill.references),
        "scripts": ", ".join(skill.scripts),
        "assets": ", ".join(skill.assets),
        "digest": skill.digest,
    }
    for key, value in facts.items():
        if value:
            say(f"  {key}: {value}")
    if skill.content.strip():
        say()
        print_markdown(skill.content.strip())


async def why(
    name: Name,
    /,
    *,
    session: Session = None,
    handle: Handle = None,
    agent: Agent = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Explain why a skill is loaded or not.

    The same answer as `clew why skill NAME` and GET /why/skill/NAME.

        clew skills why release-notes --session 42
        clew skills why release-notes --handle clew-Tu3NKGM5AqgxXEgy
    """
    _check_conversation(session, handle)
    async with open_workspace_here(here) as (app, workspace):
        by = await _principal(app, workspace, session, agent)
        with _refused_handles():
            found = await workspace.catalog.why(f"skill:{name}", by=by, handle=handle)
    print_json(found) if json else show_why(found)


async def load(
    name: Name,
    /,
    *,
    session: Session = None,
    handle: Handle = None,
    agent: Agent = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Load a skill in the session of an agent.

    The agent gets the skill at once, with its toolsets and tools. Prints the cost in tokens.

        clew skills load release-notes --session 42
        clew skills load release-notes --session main --agent researcher
        clew skills load release-notes --handle clew-Tu3NKGM5AqgxXEgy
    """
    async with _session(here, session, handle, agent, wanted=name) as found:
        try:
            done = await found.load_skill(name, by="clew skills load")
        except ValidationError as error:
            if "withheldSkill" in error.context:
                error.hint = "Look at it and agree: clew trust"
            raise
    _print_outcome(name, done, "loaded" if done.is_changed else "was loaded already", as_json=json)


async def unload(
    name: Name,
    /,
    *,
    session: Session = None,
    handle: Handle = None,
    agent: Agent = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Unload a skill in the session of an agent.

    Tools that another loaded skill needs stay.

        clew skills unload release-notes --session 42
    """
    async with _session(here, session, handle, agent) as found:
        done = await found.unload_skill(name, by="clew skills unload")
    _print_outcome(name, done, "unloaded" if done.is_changed else "was not loaded by itself", as_json=json)


def _print_outcome(name: str, done: LoadOutcome, outcome: str, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    say(f"{name}: {outcome}")
    say(f"  tokens: {done.tokens_before:,} before, {done.tokens_after:,} now")
    for key, names in (("skills", done.state.discovered_skills), ("toolsets", done.state.loaded_toolsets)):
        if names:
            say(f"  {key}: {', '.join(names)}")
    if done.kept_by:
        say(f"  still brought by {', '.join(done.kept_by)}")


async def _read(here: Here) -> FolderDefinitions:
    """The definitions of the folder, without a trail."""
    # the catalog takes as long to load as the rest of a short command
    from clew.catalog.consent.consent import FolderConsent, project_of
    from clew.catalog.skills.definitions import FolderDefinitions
    from clew.catalog.skills.wishes import find_definition_root

    config = here.config()
    definitions = FolderDefinitions(find_definition_root(config), FolderConsent(project_of(config)))
    with progress("Reading the skills of this folder"):
        await definitions.refresh()
    return definitions


@asynccontextmanager
async def _session(
    here: Here, session: str | None, handle: str | None, agent: str | None, wanted: str = ""
) -> AsyncIterator[AgentSession]:
    """The session of an agent, created if it does not exist, or the session of a handle. Raises InvalidInput if neither
    is given, NotFound for an unknown agent, HandleRefused, and ClewError if there are no skills or `wanted` has
    errors."""
    if session is None and handle is None:
        hint = "Name the conversation, such as --session 42, or --handle of one over MCP"
        raise InvalidInput("--session", "is missing", hint=hint)
    _check_conversation(session, handle)
    async with open_workspace_here(here) as (app, workspace):
        loaded: LoadedSkills | None = workspace.catalog.skills
        if workspace.definitions is not None:
            _check_broken(wanted, workspace.definitions, is_alone=loaded is None)
        if loaded is None:
            raise ClewError("this folder defines no skills", hint="Write one with `clew skills new NAME`")
        by = await _principal(app, workspace, session, agent)
        if handle is not None:
            with _refused_handles():
                await workspace.catalog.exposures.open(handle, by=by)
        yield loaded.session(by, handle or f"session:{session}")


def _check_conversation(session: str | None, handle: str | None) -> None:
    """Raises InvalidInput for a handle in the place of a session, and for both."""
    if session is not None and session.startswith("clew-"):
        raise InvalidInput("--session", f"{session[:80]!r} looks like a handle", hint=f"Use --handle {session[:80]}")
    if session is not None and handle is not None:
        raise InvalidInput("--handle", "and --session exclude each other", hint="Name one conversation")


@contextmanager
def _refused_handles() -> Iterator[None]:
    """Replace the hint of HandleRefused by one for a person."""
    try:
        yield
    except HandleRefused as error:
        error.hint = "Use the handle in the last answer of the conversation, and --agent if its client has a name"
        raise


async def _principal(app: App, workspace: Workspace, session: str | None, agent: str | None) -> Principal:
    """The principal of a session and an agent. Raises InvalidInput for invalid names, and NotFound for an unknown
    agent."""
    by = msgspec.structs.replace(app.me, session=session, agent_id=agent or app.me.agent_id)
    try:
        check_principal(by)
    except InvalidInput as error:
        raise InvalidInput("--session" if "session" in error.field else "--agent", error.reason) from None
    if agent is not None and agent != app.me.agent_id:
        await _check_agent(agent, app, workspace)
    return by


async def _check_agent(agent: str, app: App, workspace: Workspace) -> None:
    """Raise NotFound unless the agent is defined or has had a conversation."""
    from clew.skills.exposure_store import SCHEMA, SCOPE  # as below
    from clew.trail.bulk import each_record
    from clew.trail.model.selector import Selector

    known = set(workspace.definitions.manifest.agents) if workspace.definitions is not None else set()
    if agent in known:
        return
    keeper = msgspec.structs.replace(app.me, scopes=app.me.scopes | {SCOPE})
    async for each in each_record(app.trail, Selector(schema_name=SCHEMA), by=keeper):
        known.add(str(each.context.get("agent_id", "")))
    if agent not in known:
        error = NotFound("agent", agent)
        error.hint = suggest(agent, sorted(known | {app.me.agent_id} - {""}), "Agents are")
        raise error


def _check_broken(name: str, definitions: FolderDefinitions, *, is_alone: bool = False) -> None:
    """Raise ClewError if the skill has errors. With `is_alone`, raise it if any skill has errors."""
    broken = definitions.broken_skills()
    if name in broken or (is_alone and broken):
        names = [name] if name in broken else list(broken)
        reason = f"the skill{'s' if len(names) > 1 else ''} {', '.join(names[:5])} cannot be used"
        raise ClewError(f"{reason}: there are errors in {broken[names[0]]}", hint="`clew skills lint` shows them")


def _find(name: str, definitions: FolderDefinitions) -> Skill:
    skills = definitions.manifest.skills
    _check_broken(name, definitions)
    if name not in skills:
        error = NotFound("skill", name)
        error.hint = suggest(name, skills, "Skills are") if skills else "This folder defines none"
        raise error
    return skills[name]


def _state(skill: Skill, definitions: FolderDefinitions) -> str:
    if not definitions.withhold(skill):
        return TRUSTED
    return NOT_TRUSTED if skill.digest else definitions.withhold(skill)


def _about(skill: Skill) -> dict[str, Any]:
    toolsets = list(skill.toolsets)
    about = {"name": skill.name, "description": skill.description, "toolsets": toolsets}
    return {**about, "origin": skill.origin, "path": skill.path, "digest": skill.digest}
