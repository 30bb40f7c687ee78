"""The command `clew route`: the agent that takes a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import note, print_json, print_rows
from clew.team.router import Router

if TYPE_CHECKING:
    from clew.llm.model import Models
    from clew.team.route import MessageRoute


async def route(
    *message: Annotated[str, Parameter(help="The message, as the user wrote it.")],
    talking_to: Annotated[str, Parameter(help="The agent who answered last: a follow-up stays there.")] = "",
    script: Annotated[Path | None, Parameter(help="A file with scripted answers, instead of a model.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show which agent takes a message, and with what confidence.

    Slash commands come first, then the classifier if its confidence is 0.8 or more, then a model if you configured one.
    Otherwise the message stays with the agent who is talking, or goes to the Architect, who asks you back.

        clew route "where is the auth middleware"
        clew route --talking-to inspector "and the error handling?" --json
    """
    found = await _route(" ".join(message), talking_to, script, here)
    if json:
        print_json(found)
        return
    shown = ("confidence", "decided_by", "intent", "subject", "time_scope")
    rows = [("target", found.target.value), *((name, str(getattr(found, name))) for name in shown)]
    print_rows(("what", "value"), [(name, value) for name, value in rows if value])
    if found.question:
        note(found.question)


async def _route(message: str, talking_to: str, script: Path | None, here: Here) -> MessageRoute:
    """Route the message. The trail is opened only if a model is configured and needed."""
    found = await Router().route(message, talking_to=talking_to)
    if found.decided_by in ("command", "classifier"):
        return found
    models = _models(here, script)
    if models is None:
        return found
    async with open_here(here, create=True) as app:
        await app.bootstrap()
        return await app.router(models).route(message, talking_to=talking_to, owner=app.me.owner_id)


def _models(here: Here, script: Path | None) -> Models | None:
    """The models of the folder, or one that answers by a script; None if the Guide has no model."""
    # models take longer to load than a message takes to be routed
    from clew.llm.model import open_models
    from clew.team.router import AGENT

    models = open_models(here.config())
    if script is not None:
        from clew.cli.scripts import with_script  # for demos and tests only

        return with_script(models, script)
    return models if models.is_configured(AGENT) else None
