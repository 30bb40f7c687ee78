"""Checks of the catalog for `clew doctor`: it loads domains, builds sources and reads servers.

It fetches, starts and writes nothing, and uses nothing that needs consent.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from clew.app import App, open_app
from clew.cli.checks.folder_checks import CheckFinding, ok, remark, wrong
from clew.cli.project import trail_file
from clew.cli.terminal.output import count
from clew.config import Config, SourceConfig
from clew.errors import ClewError, ConfigError, InvalidInput

if TYPE_CHECKING:
    from clew.catalog.consent.consent import FolderConsent
    from clew.catalog.servers.config import McpServerConfig

CORRECT = "Correct it in config.toml"
TRUST = "Look at it and agree: clew trust"


async def check_catalog(config: Config) -> AsyncIterator[CheckFinding]:
    """Check domains, sources and servers: the problems of each, or their number."""
    # the catalog takes as long to load as the rest of a short command
    from clew.catalog.consent.consent import FolderConsent, project_of

    consent = FolderConsent(project_of(config))
    names: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        app = await _open(config, stack)
        for finding in check_domains(config, consent, names):
            yield finding
        async for finding in check_sources(config, app, consent, names):
            yield finding
        async for finding in check_servers(config, app, consent, names):
            yield finding
    for finding in check_trust(config):
        yield finding
    for name in sorted(name for name, times in names.items() if times > 1):
        yield wrong(
            "names", f"two domains are named {name}", "Rename one: a source's `domain`, or a server in mcp.json"
        )


async def _open(config: Config, stack: AsyncExitStack) -> App | None:
    """The trail; None if it does not exist or cannot be opened, which another check reports."""
    file = trail_file(config)
    if file is not None and not file.exists():
        return None
    try:
        return await stack.enter_async_context(open_app(config))
    except ClewError:
        return None


def check_domains(config: Config, consent: FolderConsent, names: Counter[str]) -> Iterator[CheckFinding]:
    """Check that each domain in the settings can be loaded. Untrusted domains are not imported."""
    from clew.catalog.workspace.domain_loader import load_domains
    from clew.catalog.workspace.repository import NAME, has_repository
    from clew.knowledge.domains import code, history, reference

    found = [NAME] if has_repository(config) else []
    known = (code.NAME, history.NAME, reference.NAME) if found else ()
    for name in config.catalog.domains:
        try:
            if consent.allows_domain(name):
                found += [domain.name for domain in load_domains([name], consent.project)]
            else:
                yield remark("domains", f"{name} is not trusted yet, so it was not loaded", TRUST)
        except ConfigError as error:
            yield wrong("domains", error.message, error.hint or CORRECT)
    names.update(found)
    yield ok("domains", ", ".join(dict.fromkeys((*found, *known))) or "none")  # one of such a name has precedence


async def check_sources(
    config: Config, app: App | None, consent: FolderConsent, names: Counter[str]
) -> AsyncIterator[CheckFinding]:
    """Check that each source is trusted, can be built, has its secret and its files, and was refreshed without an
    error."""
    kept = set(await app.trail.secrets.names(by=app.me)) if app is not None else set()
    errors = await _last_errors(app)
    usable = 0
    for name, source in config.sources.items():
        if consent.allows_source(name, source):
            finding = _check_source(name, source, config, kept, errors)
        else:
            finding = remark("sources", f"[sources.{name}] is not trusted yet", TRUST)
        usable += finding is None
        if finding is not None:
            yield finding
    names.update({source.domain for source in config.sources.values()})
    yield ok("sources", f"{usable} of {count(len(config.sources), 'source')} in order" if config.sources else "none")


def _check_source(
    name: str, source: SourceConfig, config: Config, kept: Collection[str], errors: Mapping[tuple[str, str], str]
) -> CheckFinding | None:
    from clew.catalog.consent.consent import project_of
    from clew.catalog.route import check_domain_name
    from clew.catalog.sources import build_source, secret_names
    from clew.catalog.sources.local import LocalSource
    from clew.catalog.sources.warehouse import WarehouseSource

    table, needed = f"[sources.{name}]", secret_names(source.options)
    # the name is not shown: it may be the secret itself, written where its name belongs
    if any(each not in kept and each not in os.environ for each in needed):
        return remark("sources", f"{table} names a secret that is not there", "Write it with `clew secret put NAME`")
    try:
        check_domain_name(source.domain)
        built = build_source(source.kind, source.options, secrets=dict.fromkeys(needed, ""), base=project_of(config))
    except (ConfigError, InvalidInput) as error:
        return wrong("sources", f"{table} {error.message}", error.hint or CORRECT)
    place = built.place if isinstance(built, LocalSource | WarehouseSource) else None
    if place is not None and not place.exists():
        return wrong("sources", f"{table} there is no {place}", CORRECT)
    if told := errors.get((source.domain, built.id)):
        return wrong("sources", f"{table} {told}", "Then try again: clew refresh")
    return None


async def _last_errors(app: App | None) -> dict[tuple[str, str], str]:
    from clew.catalog.indexing.source_ledger import read_sources

    books = await read_sources(app.trail, by=app.me) if app is not None else []
    return {(book.domain, book.source_id): book.error for book in books}


async def check_servers(
    config: Config, app: App | None, consent: FolderConsent, names: Counter[str]
) -> AsyncIterator[CheckFinding]:
    """Check that each enabled foreign server has a valid and trusted entry, that its program exists, and that its last
    start had no error."""
    from clew.catalog.servers.config import servers_of

    try:
        servers = [each for each in servers_of(config) if each.enabled]
    except ConfigError as error:
        yield wrong("servers", error.message, error.hint or "Correct it in mcp.json")
        return
    usable = 0
    for server in servers:
        finding = await _check_server(server, app, consent)
        usable += finding is None
        if finding is not None:
            yield finding
    names.update(server.id for server in servers)
    yield ok("servers", f"{usable} of {count(len(servers), 'server')} in order" if servers else "none")


async def _check_server(server: McpServerConfig, app: App | None, consent: FolderConsent) -> CheckFinding | None:
    from clew.catalog.servers.login.vault import MemoryVault, TrailVault
    from clew.catalog.servers.server_status import ServerFailures, is_logged_in

    if not consent.allows_server(server):
        return remark("servers", f"{server.id} is not trusted yet", TRUST)
    program = server.command[0] if server.command else ""
    if program and "$" not in program and shutil.which(program, path=_path_of(server)) is None:
        return wrong("servers", f"{server.id}: there is no program {server.target}", "Install it, or correct mcp.json")
    try:
        logged_in = await is_logged_in(server, TrailVault(app.trail, app.me) if app else MemoryVault(), os.environ)
    except ConfigError as error:
        return wrong("servers", error.message, error.hint or "Set it before you start Clew")
    if logged_in is False:
        return remark("servers", f"{server.id}: not logged in", f"Run `clew mcp login {server.id}`")
    problem = await ServerFailures(app.trail, app.me).problem(server.id) if app is not None else ""
    return wrong("servers", problem, "`clew up` and `clew mcp` look at it again") if problem else None


def check_trust(config: Config) -> Iterator[CheckFinding]:
    """One line about everything that waits for consent."""
    from clew.catalog.consent.consent import read_wishes
    from clew.trust import Trust

    try:
        wishes = read_wishes(config)
    except ConfigError:  # reported by an earlier check, with its subject
        return
    try:
        trust = Trust.open()
        waiting = [f"{each.kind} {each.name}" for each in wishes if not trust.holds(each)]
    except ConfigError as error:
        yield wrong("trust", error.message, error.hint)
        return
    if waiting:
        yield remark("trust", f"{count(len(waiting), 'thing')} not trusted yet: {', '.join(waiting)}", TRUST)
    else:
        yield ok("trust", "nothing waits for your consent")


def _path_of(server: McpServerConfig) -> str | None:
    """The PATH for its program: its own if the settings have one, otherwise ours."""
    own = server.env.get("PATH")
    return own if isinstance(own, str) and "$" not in own else None
