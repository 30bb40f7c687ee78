"""What of a workspace is left out until the user agrees to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from clew.catalog.catalog import DomainInfo
from clew.catalog.consent import NOT_TRUSTED, Consent
from clew.catalog.servers.config import ServerConfig
from clew.config import SourceConfig


class Waiting:
    """Servers, domains and sources of one folder, as its settings name them."""

    def __init__(self, consent: Consent | None = None) -> None:
        self.consent = consent or Consent(Path.cwd())
        self.servers: list[str] = []
        self.domains: list[str] = []
        self.sources: dict[str, SourceConfig] = {}
        self._seen: tuple[int, ...] = ()

    def admit_servers(self, servers: Iterable[ServerConfig]) -> list[ServerConfig]:
        """Those of the servers that are on and may be used; the others wait."""
        found = [(each, self.consent.allows_server(each)) for each in servers if each.enabled]
        self.servers = [each.id for each, is_allowed in found if not is_allowed]
        return [each for each, is_allowed in found if is_allowed]

    def admit_domains(self, names: Iterable[str]) -> list[str]:
        """Those of the domains that may be imported; the others wait. Raises ConfigError for one that is not there."""
        found = [(name, self.consent.allows_domain(name)) for name in names]
        self.domains = [name for name, is_allowed in found if not is_allowed]
        return [name for name, is_allowed in found if is_allowed]

    def admit_sources(self, sources: Mapping[str, SourceConfig]) -> dict[str, SourceConfig]:
        """Those of the sources that may be read; the others wait."""
        allowed = {name: each for name, each in sources.items() if self.consent.allows_source(name, each)}
        self.sources = {name: each for name, each in sources.items() if name not in allowed}
        return allowed

    def has_news(self) -> bool:
        """Whether something waits, and the user has agreed to anything since this was last asked."""
        before, self._seen = self._seen, self.consent.state()
        return bool(self.names) and self._seen != before

    @property
    def names(self) -> list[str]:
        return [*self.domains, *self.sources, *self.servers]

    @property
    def spared(self) -> set[str]:
        """The domains of sources that wait: what the trail holds of them stays."""
        return {source.domain for source in self.sources.values()}

    def problems(self) -> dict[str, str]:
        """Why each is not there."""
        return {name: self.consent.problem or f"{name}: {NOT_TRUSTED}" for name in self.names}

    def told(self) -> list[str]:
        """The same in one line, or none where nothing waits."""
        return [self.consent.problem or f"{', '.join(self.names)}: {NOT_TRUSTED}"] if self.names else []

    def listed(self) -> list[DomainInfo]:
        """Each as a list of domains shows it."""
        return [
            DomainInfo(
                name=name,
                description=NOT_TRUSTED,
                entry_points=(),
                hidden=0,
                sources=(),
                scopes=(),
                is_foreign=name in self.servers,
            )
            for name in self.names
        ]
