"""The tables `[sources.NAME]` of the settings as domains: one domain for all tables that name it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.formats import ALL
from clew.catalog.resource import Pipeline
from clew.catalog.route import check_domain_name
from clew.catalog.sources import build_source, secret_names
from clew.config import SourceConfig
from clew.errors import ClewError, ConfigError, InvalidInput, NotFound
from clew.trail.store import Trail

NO_SECRET = "it names neither a secret nor a variable that is there. Write it with `clew secret put NAME`"

_Filled = tuple[SourceConfig, Pipeline]


class SourceTables:
    """Builds domains from the source tables of one folder. No source is read here."""

    def __init__(self, trail: Trail, project: Path, owner: Principal) -> None:
        self._trail = trail
        self._project = project
        self._owner = owner
        self._filled: dict[str, list[_Filled]] = {}
        self._made: dict[str, Domain] = {}
        self.problems: dict[str, str] = {}
        """By domain, why a source is left out. Settings are shared between machines and secrets are not, so a secret
        may be missing."""

    def made(self, domain: Domain | None) -> bool:
        """Whether this object built the domain, as opposed to another domain of the same name."""
        return domain is not None and self._made.get(domain.name) is domain

    async def take(self, sources: Mapping[str, SourceConfig]) -> list[Domain]:
        """Add source tables. Returns the domains that these fill, each with all its sources so far. A source without
        its secret is left out and reported in `problems`. Raises ConfigError with the name of an invalid table."""
        taken: dict[str, list[_Filled]] = {}
        for name, source in sources.items():
            secrets = await self._secrets(source)
            if len(secrets) < len(set(secret_names(source.options))):
                self.problems[source.domain] = f"[sources.{name}] is left out: {NO_SECRET}"
                continue
            taken.setdefault(source.domain, []).append((source, self._build(name, source, secrets)))
        whole = {name: [*self._filled.get(name, ()), *added] for name, added in taken.items()}
        domains = {name: _domain(name, filled) for name, filled in whole.items()}
        self._filled |= whole
        self._made |= domains
        return list(domains.values())

    def _build(self, name: str, source: SourceConfig, secrets: Mapping[str, str]) -> Pipeline:
        try:
            check_domain_name(source.domain)
            built = build_source(source.kind, source.options, secrets=secrets, base=self._project)
        except (ConfigError, InvalidInput) as error:
            raise _in_table(name, error) from None
        return Pipeline(
            source=built,
            formats=ALL,
            base_path=source.base_path,
            cache_ttl_ms=int(source.ttl_minutes * 60_000),
            scopes=frozenset(source.scopes),
        )

    async def _secrets(self, source: SourceConfig) -> dict[str, str]:
        """The secrets of a source that exist, from the trail or else from environment variables."""
        found = {}
        for name in secret_names(source.options):
            try:
                found[name] = await self._trail.secrets.reveal(name, by=self._owner)
            except NotFound:
                found |= {name: os.environ[name]} if name in os.environ else {}
        return found


def _domain(name: str, filled: Sequence[_Filled]) -> Domain:
    described = next((source.description for source, _ in filled if source.description.strip()), "")
    kinds = ", ".join(dict.fromkeys(source.kind for source, _ in filled))
    pipelines = [pipeline for _, pipeline in filled]
    try:
        return Domain(name=name, description=described or f"Documents from {kinds}", extractors=pipelines)
    except InvalidInput as error:
        raise ConfigError(f"[sources] {error.message}") from None


def _in_table(name: str, error: ClewError) -> ConfigError:
    told = ConfigError(f"[sources.{name}] {error.message}")
    told.hint = error.hint
    return told
