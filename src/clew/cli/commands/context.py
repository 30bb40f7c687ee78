"""Commands on contexts: `clew context preview` and `clew why context ID`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import DIM, GREEN, RED, count, note, print_json, print_rows, say, short_ids
from clew.cli.trail.record_ids import find_id
from clew.errors import InvalidInput
from clew.fences import clean

if TYPE_CHECKING:
    from clew.app import App
    from clew.context.receipts import ItemExplanation, Receipt

SHOWN_DROPPED = 10
TRIGGER, NOT_SENT = "trigger", "(your message)"


async def preview(
    *message: Annotated[str, Parameter(help="What you would say.")],
    agent: Annotated[
        str | None, Parameter(help="The agent whose context is shown. [default: agent.name of the settings]")
    ] = None,
    session: Annotated[str | None, Parameter(help="The session that you would say it in.")] = None,
    text: Annotated[bool, Parameter(help="Print the context itself.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the context that a message would get.

    Sends and writes nothing. Lists the titles of the breadcrumbs in it with their source, score and tokens, then those
    that were left out, with the reason. --json has the ids.

        clew context preview "how are writes made durable"
        clew context preview "and then?" --session 0190a1b2-… --text
    """
    # the builder and the models take as long to load as the rest of a short command
    from clew.agents.conversations.context_explanations import preview_context
    from clew.agents.conversations.conversation import open_conversations
    from clew.context.builder import ContextBuilder
    from clew.llm.model import open_models

    async with open_here(here, create=True) as app:
        await app.bootstrap()
        conversations = await open_conversations(app.trail, app.clock, by=app.me)
        builder = ContextBuilder(app.trail, open_models(app.config), conversations.flow, app.clock)
        found = await preview_context(
            builder,
            conversations,
            app.clock,
            " ".join(message),
            by=app.me,
            agent=agent or app.config.agent.name,
            session=session,
        )
        titles = await _read_titles(app, found.receipt)
    if json:
        print_json(found.as_draft().context)
    elif text:
        say(clean(found.formatted_context))
    else:
        _show_receipt(found.receipt, titles, _size(found.token_estimate, found.budget, found.model))


async def why_context(words: Sequence[str], *, as_json: bool, here: Here) -> None:
    """Show the breadcrumbs in a context, or explain why one breadcrumb is or is not in it. Raises InvalidInput,
    NotFound."""
    # of use for this one kind only
    from clew.agents.conversations.context_explanations import explain_context
    from clew.agents.conversations.conversation import open_conversations
    from clew.context.receipts import Explanation

    if not 1 <= len(words) <= 2:
        reason = "takes the id of a context or message, and perhaps of a breadcrumb"
        raise InvalidInput("context", reason, hint="For example clew why context ID")
    async with open_here(here) as app:
        flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
        id, item = await find_id(app, words[0]), words[1] if len(words) == 2 else None
        found = await explain_context(app.trail, flow, id, by=app.me, item=item)
        titles = await _read_titles(app, found.receipt) if isinstance(found, Explanation) else {}
    if as_json:
        print_json(found)
    elif isinstance(found, Explanation):
        say(f"Context of {found.consumer_id}")
        _show_receipt(found.receipt, titles, _size(found.token_estimate, found.budget, found.model))
    else:
        _show_item(found)


async def _read_titles(app: App, receipt: Receipt) -> dict[str, str]:
    """The titles of the breadcrumbs in a receipt by id. Breadcrumbs that are deleted, or were never stored, are
    missing."""
    ids = [*(each.id for each in receipt.items), *(each.id for each in receipt.dropped)]
    return {id: each.title for id, each in (await app.trail.records.find_many(ids, by=app.me)).items()}


def _show_receipt(receipt: Receipt, titles: Mapping[str, str], size: str) -> None:
    rows = [
        (
            str(number),
            titles.get(each.id) or (NOT_SENT if each.origin == TRIGGER else short_ids([each.id])[0]),
            each.section,
            each.origin,
            f"{each.score:.2f}",
            str(each.tokens),
            each.reason,
        )
        for number, each in enumerate(receipt.items, 1)
    ]
    print_rows(("no", "title", "section", "origin", "score", "tokens", "reason"), rows, main=1, spare=(2, 4, 6))
    for each in receipt.dropped[:SHOWN_DROPPED]:
        about = f"{each.origin}, score {each.score:.2f}, {count(each.tokens, 'token')}: {each.why}"
        say(f"left out  {titles.get(each.id, each.id)}  {about}", DIM)
    unlisted = max(len(receipt.dropped) - SHOWN_DROPPED, 0) + receipt.more_dropped
    if unlisted:
        note(f"and {unlisted:,} more were left out", dim=True)
    for missing in receipt.missing:
        note(f"missing: {missing.source}: {missing.reason}")
    note(f"{count(len(receipt.items), 'breadcrumb')}, {size}", dim=True)


def _size(tokens: int, budget: int, model: str) -> str:
    """The tokens of a context and their limit, which is unknown without a model."""
    if model and budget:
        return f"{tokens:,} of {budget:,} tokens for {model}"
    cut = f", so it was made for one that takes {budget:,}" if budget else ""
    return f"{count(tokens, 'token')}; no model is configured{cut}"


def _show_item(item: ItemExplanation) -> None:
    say(f"{item.verdict}  {item.id}", GREEN if item.verdict == "in" else RED)
    say(f"  {item.why}")
