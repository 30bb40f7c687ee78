"""Everything that `ask` and `get` reach from one folder: domains of packages, the repository, configured sources and
foreign servers, in one catalog that is kept up to date."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.access import Principal
from clew.catalog.catalog import Catalog, DomainInfo, Knows, Providers
from clew.catalog.consent.consent import NOT_TRUSTED, FolderConsent, project_of
from clew.catalog.consent.pending_consent import HOOKS, PendingConsent
from clew.catalog.domain import Domain, without_duplicates
from clew.catalog.indexing.lifecycle import Lifecycle
from clew.catalog.indexing.pipeline import Progress, Report
from clew.catalog.operations.dead_ends import find_dead_ends
from clew.catalog.servers.config import McpServerConfig, servers_of
from clew.catalog.servers.connections.hooks import Hooks
from clew.catalog.servers.domain import build_domain
from clew.catalog.servers.hook_loader import load_hooks
from clew.catalog.servers.registry import ServerRegistry, open_registry
from clew.catalog.skills.definitions import FolderDefinitions
from clew.catalog.skills.wishes import DefinitionRoot, find_definition_root
from clew.catalog.sources.source_tables import SourceTables
from clew.catalog.workspace.repository import NAME as REPOSITORY
from clew.catalog.workspace.repository import build_repository, has_repository
from clew.clock import Clock
from clew.config import Config, SourceConfig
from clew.errors import AlreadyExists, ClewError, ConfigError
from clew.llm import open_embedder
from clew.trail.store import Trail
from clew.trust import Trust

if TYPE_CHECKING:
    from clew.catalog.servers.connections.sampling import ModelFor
    from clew.catalog.skills.loaded_skills import LoadedSkills
    from clew.skills.discovery.skill_search import SkillSearch

SKILLS_TAKEN = "the skills of this folder are left out: another domain is named skills. Rename that one"
LOOK_SECONDS, WAIT_SECONDS = 2.0, 1.5
"""The time for which local files count as fresh, and the longest time that an answer waits for reading them, in
seconds."""

_log = logging.getLogger(__name__)


class Workspace:
    """A catalog with the domains, sources and servers that fill it. Made by `open_workspace`, closed by its owner."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        config: Config,
        owner: Principal,
        *,
        servers: ServerRegistry,
        waiting: PendingConsent,
        definitions: FolderDefinitions,
        tables: SourceTables,
        knows: Knows | None = None,
        refusal: str = "",
        goes_first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._trail = trail
        self._clock = clock
        self._config = config
        self._owner = owner
        self.servers = servers
        self.servers.on_update = self._update_server
        self.problems: dict[str, str] = {}
        """Why a domain, or a part of it, is missing. The trail keeps its records."""
        self.waiting = waiting
        self.definitions = definitions
        """The skills, agents and rules that the folder defines."""
        self.loaded_skills: LoadedSkills | None = None
        self.skill_search: SkillSearch | None = None
        """Finds skills by a need, if there are any."""
        self._goes_first = goes_first
        """Awaited before local sources are read again."""
        self._tables = tables
        self._embedder = open_embedder(config.embedder)
        self._noticing = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._looked = -LOOK_SECONDS
        self.catalog = Catalog(
            trail,
            clock,
            owner=owner,
            strict=config.catalog.strict,
            shared=config.catalog.shared,
            providers=Providers(
                keep_up=self.keep_up,
                knows=knows,
                refusal=refusal,
                count_pending=lambda: len(self.waiting.names),
                pending_domains=lambda: {*self.waiting.servers, *self.waiting.spared},
                skills=lambda: self.loaded_skills,
                tell_broken=definitions.tell_broken,
                rules=definitions.source.rules(trail, owner) if definitions.source.is_repository else None,
            ),
        )

    def lifecycle(self, report: Progress | None = None) -> Lifecycle:
        """The object that refreshes the sources of all domains."""
        domains = self.catalog.registry.all_domains()
        # the domains of a module are known only after its import
        is_whole = not self.waiting.domains and not self.waiting.failed
        spared = self.waiting.spared | self.problems.keys() if is_whole else None
        return Lifecycle(self._trail, domains, by=self._owner, clock=self._clock, report=report, spared=spared)

    async def look_again(self, report: Progress | None = None) -> list[Report]:
        """Read skills and local sources again, and no others."""
        await self.offer_skills()
        return await self.read_sources(report)

    async def read_sources(self, report: Progress | None = None) -> list[Report]:
        """Read local sources again: enough for a workspace that was opened just now."""
        lifecycle = self.lifecycle(report)
        found = {
            pipeline.source.id: None
            for domain in self.catalog.registry.all_domains()
            for pipeline in domain.extractors
            if pipeline.source.is_local
        }
        reports = [each for id in found for each in await lifecycle.refresh_source(id)]
        self._looked = time.monotonic()
        return reports

    async def keep_up(self) -> bool:
        """Read local sources again unless they are fresh. Returns False when that takes longer than WAIT_SECONDS; it
        then goes on in the background."""
        await self.notice_consent()
        if self._looking is None and time.monotonic() - self._looked < LOOK_SECONDS:
            return True
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=WAIT_SECONDS)
        return bool(done)

    async def _look(self) -> None:
        try:
            if self._goes_first is not None:
                await self._goes_first()
            for report in await self.look_again():
                if report.outcome == "failed":
                    _log.warning("%s was not refreshed: %s", report.source_id, report.error)
        finally:
            self._looking = None

    async def meet_servers(self) -> dict[str, str]:
        """List new foreign servers, side by side. Returns the errors by server id."""
        known = (each for each in self.servers.servers.list() if each.enabled and each.id not in self.waiting.servers)
        new = [each.id for each in known if self.servers.about(each.id) is None]
        outcomes = await asyncio.gather(*(self.servers.refresh(id) for id in new), return_exceptions=True)
        problems = {}
        for id, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome, ClewError):
                problems[id] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return problems

    async def notice_consent(self) -> None:
        """Load the parts that the user has agreed to since the start, without a restart."""
        async with self._noticing:
            if self.definitions.notice_consent():
                self._looked = -LOOK_SECONDS
            if not self.waiting.has_new_consent():
                return
            waiting = self.waiting
            before = {*waiting.names, HOOKS}
            if waiting.without_hooks:
                hooks, waiting.without_hooks = _open_hooks(self._config, waiting.consent)
                self.servers.use_hooks(hooks)
            names = waiting.admit_domains(waiting.domains)
            servers = waiting.admit_servers(self.servers.config(id) for id in waiting.servers)
            sources = waiting.admit_sources(waiting.sources)
            self.problems = {name: text for name, text in self.problems.items() if name not in before}
            for name in names:
                await self._add_allowed(name, partial(waiting.load, [name]))
            for each in servers:
                await self._add_allowed(each.id, partial(self._foreign, each))
            for name, source in sources.items():
                await self._add_allowed_source(name, source)
            self.problems |= self.waiting.problems()

    async def offer_skills(self) -> None:
        """Add the skills of the folder as a domain as soon as there is one."""
        if self.loaded_skills is None:
            await self.definitions.refresh()
            await self._add_skills()

    async def read_definitions(self) -> None:
        """Read the skills, agents and rules of the folder for the first time."""
        await self.definitions.read()
        await self._add_skills()

    async def _add_skills(self) -> None:
        if not self.definitions.manifest.skills:
            return
        # sessions, search and tools of skills are for folders that have some
        from clew.catalog.skills.domain import build_skills
        from clew.catalog.skills.loaded_skills import LoadedSkills
        from clew.skills.discovery.skill_search import SkillSearch

        loaded = LoadedSkills(self.definitions, self.catalog.exposures, self._clock)
        search = SkillSearch(self.definitions, self._trail, self._owner.owner_id, self._embedder)
        domain = build_skills(loaded, self.catalog.registry, search)
        if self.catalog.registry.find_domain(domain.name) is not None:
            self.problems[domain.name] = SKILLS_TAKEN
            return
        await self.catalog.add(domain)
        self.loaded_skills, self.skill_search = loaded, search

    async def renew_definitions(self) -> None:
        """Reload the skills, agents and rules of the folder from their files, and log those that need new consent after
        a change."""
        before = self.definitions.told()
        await self.offer_skills()
        if self.loaded_skills is not None:
            from clew.catalog.skills.source import SOURCE as SKILL_SOURCE  # as in `offer_skills`

            for report in await self.lifecycle().refresh_source(SKILL_SOURCE):
                if report.outcome == "failed":
                    _log.warning("the skills of this folder were not read again: %s", report.error)
        else:
            await self.definitions.refresh()
        await self.definitions.look_at_rules()
        for told in self.definitions.told():
            if told not in before:
                _log.warning("%s", told)

    async def _add_allowed(self, name: str, load: Callable[[], list[Domain]]) -> None:
        try:
            for domain in load():
                await self.add(domain)
        except ConfigError as error:  # the others are still of use
            self.problems[name] = str(error)

    async def add(self, domain: Domain) -> None:
        """Add a domain without its duplicate routes. Each duplicate route is recorded as a problem. Raises
        ConfigError."""
        kept, duplicates = without_duplicates(domain)
        await _add(self.catalog, kept)
        self.problems |= {f"{domain.name} {at}": text for at, text in enumerate(duplicates)}

    async def _add_allowed_source(self, name: str, source: SourceConfig) -> None:
        """Add one source. If its domain already has sources, the source is added to that domain."""
        is_there = self._tables.made(self.catalog.registry.find_domain(source.domain))
        add = self.catalog.replace if is_there else self.add
        try:
            for domain in await self._tables.take({name: source}):
                await add(domain)
        except ConfigError as error:  # as above
            self.problems[name] = str(error)
        self.problems |= self._tables.problems

    def _foreign(self, server: McpServerConfig) -> list[Domain]:
        return [build_domain(server, self.servers.entries(server.id), self.servers)]

    def domains(self, *, by: Principal) -> list[DomainInfo]:
        """The domains that the caller may see. A curator of the owner also sees domains that wait for consent."""
        is_keeper = by.owner_id == self._owner.owner_id and by.may("administer")
        return [*self.catalog.domains(by=by), *(self.waiting.listed() if is_keeper else ())]

    def tell_problems(self) -> list[str]:
        """The problems, one line each; all that waits for consent shares a line."""
        known = (text for name, text in self.problems.items() if name not in self.waiting.names)
        return [
            *known,
            *self.waiting.told(),
            *self.definitions.told(),
            *map(str, find_dead_ends(self.catalog.registry)),
        ]

    async def _update_server(self, id: str) -> None:
        """Replace a server's domain by its present entries."""
        if id in self.waiting.servers:
            return
        if any(config.id == id for config in self.servers.servers.list()):
            await self.catalog.replace(build_domain(self.servers.config(id), self.servers.entries(id), self.servers))
        elif any(domain.name == id for domain in self.catalog.registry.all_domains()):
            await self.catalog.remove(id)

    async def close(self) -> None:
        """Close connections. Calling it twice is harmless."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self.servers.close()
        for domain in self.catalog.registry.all_domains():
            for pipeline in domain.extractors:
                await pipeline.source.close()


async def open_workspace(
    trail: Trail,
    clock: Clock,
    config: Config,
    owner: Principal,
    trust: Trust | None = None,
    *,
    model_for: ModelFor | None = None,
    knows: Knows | None = None,
    refusal: str = "",
    goes_first: Callable[[], Awaitable[None]] | None = None,
) -> Workspace:
    """The workspace of a configuration. No source is read yet, and no foreign server started. Parts without the user's
    consent are left out. Raises ConfigError."""
    project = project_of(config)
    consent = FolderConsent(project, trust)
    hooks, without_hooks = _open_hooks(config, consent)
    waiting = PendingConsent(consent, without_hooks)
    known = [_placed(each, project) for each in servers_of(config)]
    servers = await open_registry(
        trail, known, by=owner, clock=clock, allows=waiting.allows_server, model_for=model_for, hooks=hooks
    )
    definitions = FolderDefinitions(find_definition_root(config), waiting.consent)
    tables = SourceTables(trail, project, owner)
    workspace = Workspace(
        trail,
        clock,
        config,
        owner,
        servers=servers,
        waiting=waiting,
        definitions=definitions,
        tables=tables,
        knows=knows,
        refusal=refusal,
        goes_first=goes_first,
    )
    sources = await tables.take(waiting.admit_sources(config.sources))
    workspace.problems |= tables.problems
    domains = [*waiting.load(waiting.admit_domains(config.catalog.domains)), *sources]
    if has_repository(config):
        domains.append(build_repository(project, trail, owner.owner_id))
    foreign = waiting.admit_servers(servers.servers.list())
    for domain in (*domains, *(build_domain(each, servers.entries(each.id), servers) for each in foreign)):
        await workspace.add(domain)
    await workspace.read_definitions()
    workspace.problems |= waiting.problems()
    return workspace


def _open_hooks(config: Config, consent: FolderConsent) -> tuple[list[Hooks], str]:
    """The hooks around foreign servers. If one waits for consent or cannot be loaded, returns no hooks and the
    reason."""
    waiting = [name for name in config.mcp.hooks if not consent.allows_hook(name)]
    if waiting:
        return [], f"mcp.hooks {', '.join(waiting)}: {consent.problem or NOT_TRUSTED}. Servers wait for them"
    try:
        return load_hooks(config.mcp.hooks, project_of(config)), ""
    except ConfigError as error:
        return [], str(error)


def empty_workspace(trail: Trail, clock: Clock, owner: Principal) -> Workspace:
    """A workspace without a folder: no domains, no skills, no sources."""
    waiting = PendingConsent()
    return Workspace(
        trail,
        clock,
        Config(owner=owner.owner_id),
        owner,
        servers=ServerRegistry(trail, by=owner, clock=clock),
        waiting=waiting,
        definitions=FolderDefinitions(DefinitionRoot(root=Path(os.devnull), is_repository=False), waiting.consent),
        tables=SourceTables(trail, Path.cwd(), owner),
    )


def own_names(config: Config) -> set[str]:
    """The names of all domains other than foreign servers. Package domains that may not or cannot be imported are left
    out."""
    waiting = PendingConsent(FolderConsent(project_of(config)))
    names = {domain.name for domain in waiting.load(waiting.admit_domains(config.catalog.domains))}
    names |= {source.domain for source in config.sources.values()}
    return names | ({REPOSITORY} if has_repository(config) else set())


def _placed(server: McpServerConfig, project: Path) -> McpServerConfig:
    """The server's entry with the project as the program's working folder, so that relative paths in its arguments work
    from anywhere."""
    if server.transport != "stdio":
        return server
    return msgspec.structs.replace(server, cwd=str(project / server.cwd))


async def _add(catalog: Catalog, domain: Domain) -> None:
    try:
        await catalog.add(domain)
    except AlreadyExists:
        error = ConfigError(f"two domains are named {domain.name}")
        error.hint = "Rename one: a source's `domain`, or a server in mcp.json"
        if domain.name == REPOSITORY:
            error.hint = "The files of this folder are named so. Rename the other, or set [catalog] repository = false"
        raise error from None
