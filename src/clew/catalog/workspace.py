"""Everything that `ask` and `get` reach from one folder: domains of packages, the repository, configured sources and
foreign servers, in one catalog that is kept up to date."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.catalog.formats import ALL
from clew.catalog.lifecycle import Lifecycle
from clew.catalog.loading import load_domains
from clew.catalog.pipeline import Progress, Report
from clew.catalog.repository import NAME as REPOSITORY
from clew.catalog.repository import build_repository
from clew.catalog.resource import Pipeline
from clew.catalog.route import check_domain_name
from clew.catalog.servers.config import ServerConfig, read_servers
from clew.catalog.servers.domain import build_domain
from clew.catalog.servers.registry import ServerRegistry, open_registry
from clew.catalog.sources import build_source, secret_names
from clew.clock import Clock
from clew.config import FOLDER, Config, SourceConfig
from clew.errors import AlreadyExists, ClewError, ConfigError, InvalidInput, NotFound
from clew.trail.store import Trail

NO_SECRET = "it names neither a secret nor a variable that is there. Write it with `clew secret put NAME`"
LOOK_SECONDS, WAIT_SECONDS = 2.0, 1.5
"""How long local files count as just looked at, and how long an answer waits for a look."""

_log = logging.getLogger(__name__)


class Workspace:
    """A catalog and what fills it. Made by `open_workspace`, closed by its owner."""

    def __init__(
        self, trail: Trail, clock: Clock, catalog: Catalog, owner: Principal, servers: ServerRegistry | None = None
    ) -> None:
        self._trail = trail
        self._clock = clock
        self._owner = owner
        self.catalog = catalog
        self.servers = servers or ServerRegistry(trail, by=owner, clock=clock)
        self.servers.on_update = self._update_server
        self.problems: dict[str, str] = {}
        """Why a domain is not there, or not all of it; what the trail holds of it stays."""
        self._looking: asyncio.Task[None] | None = None
        self._looked = -LOOK_SECONDS

    def lifecycle(self, report: Progress | None = None) -> Lifecycle:
        """What refreshes the sources of all domains."""
        domains = self.catalog.registry.all_domains()
        spared = frozenset(self.problems)
        return Lifecycle(self._trail, domains, by=self._owner, clock=self._clock, report=report, spared=spared)

    async def look_again(self, report: Progress | None = None) -> list[Report]:
        """Read local sources again, which costs little, and no others."""
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
        """Read local sources again unless that was done a moment ago. What takes longer than a moment goes on while the
        caller is answered: then this is False."""
        if self._looking is None and time.monotonic() - self._looked < LOOK_SECONDS:
            return True
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=WAIT_SECONDS)
        return bool(done)

    async def _look(self) -> None:
        try:
            for report in await self.look_again():
                if report.outcome == "failed":
                    _log.warning("%s was not refreshed: %s", report.source_id, report.error)
        finally:
            self._looking = None

    async def meet_servers(self) -> dict[str, str]:
        """Look at the foreign servers that were never looked at, side by side; why some could not be, by their ids."""
        new = [each.id for each in self.servers.servers.list() if each.enabled and self.servers.about(each.id) is None]
        outcomes = await asyncio.gather(*(self.servers.refresh(id) for id in new), return_exceptions=True)
        problems = {}
        for id, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome, ClewError):
                problems[id] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return problems

    async def _update_server(self, id: str) -> None:
        """Show a server's domain as its entries are now."""
        if any(config.id == id for config in self.servers.servers.list()):
            await self.catalog.replace(build_domain(self.servers.config(id), self.servers.entries(id), self.servers))
        elif any(domain.name == id for domain in self.catalog.registry.all_domains()):
            await self.catalog.remove(id)

    async def close(self) -> None:
        """Let go of connections. Calling it twice is harmless."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self.servers.close()
        for domain in self.catalog.registry.all_domains():
            for pipeline in domain.extractors:
                await pipeline.source.close()


async def open_workspace(trail: Trail, clock: Clock, config: Config, owner: Principal) -> Workspace:
    """The workspace of a configuration. No source is read yet, and no foreign server started. Raises ConfigError."""
    chosen = config.catalog
    catalog = Catalog(trail, clock, owner=owner, strict=chosen.strict, shared=chosen.shared)
    known = [_placed(each, _project(config)) for each in read_servers(config.folder)]
    servers = await open_registry(trail, known, by=owner, clock=clock)
    workspace = Workspace(trail, clock, catalog, owner, servers)
    catalog.keep_up = workspace.keep_up
    sources = await _source_domains(trail, config, owner, workspace.problems)
    domains = [*load_domains(chosen.domains), *sources]
    if has_repository(config) and not any(domain.name == REPOSITORY for domain in domains):
        domains.append(build_repository(_project(config), trail, owner.owner_id))
    foreign = [each for each in servers.servers.list() if each.enabled]
    for domain in (*domains, *(build_domain(each, servers.entries(each.id), servers) for each in foreign)):
        await _add(catalog, domain)
    return workspace


def has_repository(config: Config) -> bool:
    """Whether the files around the folder are a domain. A folder of another name is not part of a project, and a home
    folder is one only where git says so: nobody wants all their private files in an answer."""
    folder = config.folder.absolute()
    is_project = folder.parent != Path.home() or (folder.parent / ".git").exists()
    return config.catalog.repository and folder.name == FOLDER and is_project


def own_names(config: Config) -> set[str]:
    """The names of all domains that are not foreign servers. Raises ConfigError."""
    names = {domain.name for domain in load_domains(config.catalog.domains)}
    names |= {source.domain for source in config.sources.values()}
    return names | ({REPOSITORY} if has_repository(config) else set())


def _placed(server: ServerConfig, project: Path) -> ServerConfig:
    """A program is started in the project wherever the command was given, so that paths in its arguments hold."""
    if server.transport != "stdio":
        return server
    return msgspec.structs.replace(server, cwd=str(project / server.cwd))


def _project(config: Config) -> Path:
    return config.folder.absolute().parent


async def _add(catalog: Catalog, domain: Domain) -> None:
    _check_sources(domain)
    try:
        await catalog.add(domain)
    except AlreadyExists:
        error = ConfigError(f"two domains are named {domain.name}")
        error.hint = "Rename one: a source's `domain`, or a server in mcp.json"
        raise error from None


def _check_sources(domain: Domain) -> None:
    """Raise ConfigError for a source that a domain has twice."""
    ids = [pipeline.source.id for pipeline in domain.extractors]
    for id in ids:
        if ids.count(id) > 1:
            raise ConfigError(f"the domain {domain.name} has the source {id} twice")


async def _source_domains(trail: Trail, config: Config, owner: Principal, problems: dict[str, str]) -> list[Domain]:
    """One domain for all sources that name it. A source without its secret is left out, and told in `problems`:
    settings are shared, secrets are not. Raises ConfigError naming the table that is wrong."""
    grouped: dict[str, list[Pipeline]] = {}
    for name, source in config.sources.items():
        secrets = await _secrets(source, trail, owner)
        if len(secrets) < len(set(secret_names(source.options))):
            problems[source.domain] = f"[sources.{name}] is left out: {NO_SECRET}"
            continue
        try:
            check_domain_name(source.domain)
            pipeline = _pipeline(source, _project(config), secrets)
        except (ConfigError, InvalidInput) as error:
            raise _in_table(name, error) from None
        grouped.setdefault(source.domain, []).append(pipeline)
    return [_source_domain(name, group, config.sources.values()) for name, group in grouped.items()]


def _in_table(name: str, error: ClewError) -> ConfigError:
    told = ConfigError(f"[sources.{name}] {error.message}")
    told.hint = error.hint
    return told


def _source_domain(name: str, pipelines: Sequence[Pipeline], sources: Iterable[SourceConfig]) -> Domain:
    own = [source for source in sources if source.domain == name]
    described = next((source.description for source in own if source.description.strip()), "")
    kinds = ", ".join(dict.fromkeys(source.kind for source in own))
    return Domain(name=name, description=described or f"Documents from {kinds}", extractors=pipelines)


def _pipeline(source: SourceConfig, project: Path, secrets: Mapping[str, str]) -> Pipeline:
    return Pipeline(
        source=build_source(source.kind, _anchored(source, project), secrets=secrets),
        formats=ALL,
        base_path=source.base_path,
        cache_ttl_ms=int(source.ttl_minutes * 60_000),
        scopes=frozenset(source.scopes),
    )


def _anchored(source: SourceConfig, project: Path) -> Mapping[str, Any]:
    """Options in which a local folder counts from the project, wherever the command is called."""
    root = source.options.get("root")
    if source.kind != "local" or not isinstance(root, str):
        return source.options
    return {**source.options, "root": str(project / Path(root).expanduser())}


async def _secrets(source: SourceConfig, trail: Trail, owner: Principal) -> dict[str, str]:
    """Secrets of the trail, or variables of the environment, that are there."""
    found = {}
    for name in secret_names(source.options):
        try:
            found[name] = await trail.secrets.reveal(name, by=owner)
        except NotFound:
            found |= {name: os.environ[name]} if name in os.environ else {}
    return found
