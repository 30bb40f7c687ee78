"""Commands over the catalog, the same functions as the MCP tools: ask, get, domains, refresh, why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from clew.cli.arguments.route_arguments import read_arguments
from clew.cli.commands.context import why_context
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.markdown import print_markdown
from clew.cli.terminal.output import GREEN, RED, YELLOW, count, note, print_json, print_rows, say
from clew.cli.terminal.progress import progress
from clew.cli.workspace import answer_question, look_again, open_workspace_here, resumable
from clew.errors import InvalidInput

if TYPE_CHECKING:
    from clew.catalog.indexing.pipeline import Report
    from clew.catalog.operations.answers import Item
    from clew.catalog.operations.why import RouteExplanation
    from clew.catalog.registry import DomainRegistry

SHOWN_SKIPPED, SHOWN_PATH = 10, 120

Handle = Annotated[str | None, Parameter(help="The handle of an earlier answer. Routes that it revealed stay visible.")]


async def ask(
    *query: Annotated[str, Parameter(help="A question or a task, in your own words.")],
    domain: Annotated[str | None, Parameter(help="Only this domain.")] = None,
    per_domain: Annotated[int, Parameter(help="At most this many resources of each domain.")] = 10,
    budget: Annotated[int, Parameter(help="At most this many tokens.")] = 2_000,
    handle: Handle = None,
    cached: Annotated[bool, Parameter(help="Do not look at local files again before answering.")] = False,
    agent: Annotated[
        bool, Parameter(help="Print the answer as an agent gets it: all routes, tools and a handle.")
    ] = False,
    no_server: Annotated[
        bool, Parameter(help="Do not let a running `clew up` of this folder answer. CLEW_NO_SERVER=1 says the same.")
    ] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Ask a question about this folder, or about what can be done here.

    Shows the lines that answer the question, with their places, and at most two tools that match it. The first call
    indexes the files of the project; each further call looks for changes. A running `clew up` answers at once.

        clew ask "how are writes made durable"
        clew ask "what calls parse_config" --agent
        clew ask "investigate a payment" --domain warehouse --json
    """
    # the catalog takes as long to load as the rest of a short command
    from clew.catalog.operations.answers import Question

    question = Question(query=" ".join(query), domain=domain, per_domain=per_domain, budget=budget, handle=handle)
    await answer_question(question, here, is_cached=cached, is_for_agents=agent, is_json=json)


async def get(
    *routes: Annotated[str, Parameter(help="A route, then its parameters as key=value; several may follow.")],
    params: Annotated[str | None, Parameter(help="The parameters of the one route as a JSON object.")] = None,
    handle: Handle = None,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Run tools and read resources in parallel.

    Write the parameters of a route after it as key=value; repeat a key for a list. --params takes them all as JSON.
    The exit code is 1 when a route fails.

        clew get repo://tools/search query="claim lease" limit=3
        clew get repo://resources/README.md
        clew get warehouse://tools/analyst logs://tools/investigator text=timeout
    """
    async with open_workspace_here(here) as (app, workspace):
        await look_again(workspace)
        items = parse_items(routes, params, workspace.catalog.registry)
        with progress("Running") as shown:

            async def report(done: float, total: float | None, what: str) -> None:
                shown.advance(int(done), int(total or 0), "routes")

            results = await workspace.catalog.get(items, by=app.me, handle=handle, report=report, refresh=False)
    if json:
        print_json(results)
    else:
        print_markdown(results.markdown)
    return 1 if results.summary.failed else 0


async def domains(*, json: Json = False, here: Here = HERE) -> None:
    """List the domains that you can see.

    Shows the entry points of each domain, the number of its hidden tools, and the sources of its resources. Domains
    that you have not trusted yet are listed, but not loaded.

        clew domains
        clew domains --json
    """
    async with open_workspace_here(here) as (app, workspace):
        found = workspace.domains(by=app.me)
    if json:
        print_json(found)
        return
    rows = [
        (each.name, str(len(each.entry_points)), str(each.hidden), ", ".join(each.sources), each.description)
        for each in found
    ]
    print_rows(("domain", "entries", "hidden", "sources", "about"), rows, main=4, spare=(3, 2))
    if not found:
        note("No domains. Name some in [catalog] of config.toml, or add a server: clew mcp import")


async def refresh(
    source: Annotated[str | None, Parameter(help="The id of one source, as `clew refresh --list` shows them.")] = None,
    /,
    *,
    all: Annotated[bool, Parameter(help="Fetch everything again, even if it is fresh.")] = False,
    force: Annotated[bool, Parameter(help="Accept a source that is suddenly empty.")] = False,
    list: Annotated[bool, Parameter(help="Show the sources and how fresh they are; refresh nothing.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Bring the resources of the catalog up to date.

    Refreshes stale sources, one source, or with --all every source. A source that fails keeps its old documents, and
    the exit code is 1.

        clew refresh
        clew refresh github:prs:owner/name
        clew refresh --all
    """
    if all and source is not None:
        raise InvalidInput("--all", f"cannot be combined with the source {source!r}")
    if force and source is None:
        raise InvalidInput("--force", "needs the name of one source", hint="`clew refresh --list` shows them")
    async with open_workspace_here(here) as (_, workspace):
        with resumable(), progress("Refreshing") as shown:
            lifecycle = workspace.lifecycle(lambda done, total, _: shown.advance(done, total, "documents"))
            if list:
                states = await lifecycle.sources()
            elif source is not None:
                reports = await lifecycle.refresh_source(source, force=force)
            else:
                reports = await (lifecycle.wipe_and_rebuild() if all else lifecycle.restart())
    if list:
        rows = [(each.domain, each.source_id, str(each.documents), _state(each)) for each in states]
        print_json(states) if json else print_rows(("domain", "source", "documents", "state"), rows, main=1)
        return 0
    if json:
        print_json(reports)
    else:
        for report in reports:
            _show_report(report)
        if not reports:
            note("There are no sources. Add one: [sources.NAME] in config.toml")
    return 1 if any(report.outcome == "failed" for report in reports) else 0


async def why(
    *what: Annotated[str, Parameter(help="A route, or skill NAME, toolset NAME, tool NAME, context ID, done TASK.")],
    handle: Handle = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Explain why a route is visible to you or not.

    For a route: who may use it, what revealed it to you and when, and how many tokens it takes. For a skill or toolset:
    whether it is loaded, the reason, and how to load it. For the context of an agent, by its id or the id of the
    message: the breadcrumbs in it; a second id asks about one breadcrumb. For `done` and a task of the team: the
    commands that prove it, or its progress. A session may follow; the default is the newest. Without a task: all tasks.

        clew why repo://tools/search
        clew why warehouse://tools/hidden/query --handle clew-Tu3NKGM5AqgxXEgy
        clew why skill release-notes --handle clew-Tu3NKGM5AqgxXEgy
        clew why context 9b2f4c1d
        clew why done api
    """
    if what[:1] == ("done",) and len(what) <= 3:
        from clew.cli.team.team import why_done_task  # for commands about the team

        task, session = (*what[1:], "", "")[:2]
        return await why_done_task(task, session, as_json=json, here=here)
    if what[:1] == ("context",):
        return await why_context(what[1:], as_json=json, here=here)
    if not what or len(what) > 2:
        raise InvalidInput(
            "WHAT", "must be a route, or a kind and a name", hint="For example clew why skill release-notes"
        )
    async with open_workspace_here(here) as (app, workspace):
        found = await workspace.catalog.why(":".join(what), by=app.me, handle=handle)
    return print_json(found) if json else show_why(found)


def show_why(found: RouteExplanation) -> None:
    """An answer for a person."""
    say(f"{'visible' if found.is_visible else 'not visible'}  {found.route}", GREEN if found.is_visible else RED)
    for reason in found.reasons:
        say(f"  {reason}")
    if found.needs:
        say(f"  scopes: {', '.join(found.needs)}")
    if found.tokens:
        say(f"  about {count(found.tokens, 'token')}")


def parse_items(words: Sequence[str], params: str | None, registry: DomainRegistry) -> list[Item]:
    """Routes with their parameters. Raises InvalidInput."""
    from clew.catalog.operations.answers import Item

    typed = _typed(words)
    if params is None:
        return [Item(route=route, params=read_arguments(route, given, registry)) for route, given in typed]
    if len(typed) > 1 or typed[0][1]:
        raise InvalidInput("--params", "needs exactly one route, and no KEY=VALUE")
    return [Item(route=typed[0][0], params=_read_params(params))]


def _typed(words: Sequence[str]) -> list[tuple[str, dict[str, list[str]]]]:
    """Each route with the texts that were typed for each of its parameters. Raises InvalidInput."""
    items: list[tuple[str, dict[str, list[str]]]] = []
    for word in words:
        key, equals, value = word.partition("=")
        if "://" in key or not equals:
            items.append((word, {}))
        elif not items:
            raise InvalidInput(word, "comes before any route", hint="For example clew get repo://tools/search query=x")
        else:
            items[-1][1].setdefault(key, []).append(value)
    if not items:
        raise InvalidInput("routes", "are missing", hint="For example clew get repo://resources/README.md")
    return items


def _read_params(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput("--params", f"is not a JSON object: {error}") from None
    return found


def _state(source: Any) -> str:
    return source.error or ("fresh" if source.is_fresh else source.reason or "stale")


def _show_report(report: Report) -> None:
    style = {"failed": RED, "dropped": YELLOW}.get(report.outcome, GREEN)
    parts = [count(report.documents, "document"), count(report.nodes, "resource")]
    if report.changed or report.removed:
        parts.append(f"{report.changed:,} changed, {report.removed:,} removed")
    detail = report.error or report.reason or ", ".join(parts)
    say(f"{report.outcome}  {report.domain}  {report.source_id}: {detail}", style)
    for skipped in report.skipped[:SHOWN_SKIPPED]:
        note(f"  skipped {_shortened(skipped.document)}: {skipped.reason}", dim=True)
    if len(report.skipped) > SHOWN_SKIPPED:
        note(f"  and {len(report.skipped) - SHOWN_SKIPPED:,} more; --json has them all", dim=True)
    for kind, number in report.unhandled.items():
        note(f"  {count(number, 'document')} of type {kind}, which no format reads", dim=True)


def _shortened(path: str) -> str:
    """A path that fits on a line, with its beginning and its end."""
    return path if len(path) <= SHOWN_PATH else f"{path[: SHOWN_PATH // 2]}…{path[-SHOWN_PATH // 2 :]}"
