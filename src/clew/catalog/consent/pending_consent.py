"""The parts of a workspace that wait for the user's consent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from clew.catalog.catalog import DomainInfo
from clew.catalog.consent.consent import NOT_TRUSTED, FolderConsent
from clew.catalog.domain import Domain
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.workspace.domain_loader import load_domains
from clew.config import SourceConfig
from clew.errors import ConfigError

HOOKS = "mcp.hooks"
"""The key under which `problems` reports hooks."""


class PendingConsent:
    """Servers, domains and sources of one folder, as its settings name them. `without_hooks` is the reason why the
    server hooks are not active. No server is used without them, since hooks may filter requests."""

    def __init__(self, consent: FolderConsent | None = None, without_hooks: str = "") -> None:
        self.consent = consent or FolderConsent(Path.cwd())
        self.without_hooks = without_hooks
        self.servers: list[str] = []
        self.domains: list[str] = []
        self.failed: dict[str, str] = {}
        """By name, why a domain in the settings cannot be loaded even with the user's consent."""
        self.sources: dict[str, SourceConfig] = {}
        self._seen: tuple[int, ...] = ()

    def allows_server(self, server: McpServerConfig) -> bool:
        return not self.without_hooks and self.consent.allows_server(server)

    def admit_servers(self, servers: Iterable[McpServerConfig]) -> list[McpServerConfig]:
        """The enabled servers that may be used; the others wait."""
        found = [(each, self.allows_server(each)) for each in servers if each.enabled]
        self.servers = [each.id for each, is_allowed in found if not is_allowed]
        return [each for each, is_allowed in found if is_allowed]

    def admit_domains(self, names: Iterable[str]) -> list[str]:
        """The domains that may be imported; the others wait, or have failed."""
        found = {name: self._allows_domain(name) for name in names}
        self.domains = [name for name, is_allowed in found.items() if not is_allowed and name not in self.failed]
        return [name for name, is_allowed in found.items() if is_allowed]

    def _allows_domain(self, name: str) -> bool:
        try:
            return self.consent.allows_domain(name)
        except ConfigError as error:
            self.failed[name] = str(error)
            return False

    def load(self, names: Iterable[str]) -> list[Domain]:
        """Load the domains of these names, which must be allowed. A domain that cannot be loaded is recorded in
        `failed`."""
        found: list[Domain] = []
        for name in names:
            try:
                found += load_domains([name], self.consent.project)
            except ConfigError as error:  # the others are still of use
                self.failed[name] = str(error)
        return found

    def admit_sources(self, sources: Mapping[str, SourceConfig]) -> dict[str, SourceConfig]:
        """The sources that may be read; the others wait."""
        allowed = {name: each for name, each in sources.items() if self.consent.allows_source(name, each)}
        self.sources = {name: each for name, each in sources.items() if name not in allowed}
        return allowed

    def has_new_consent(self) -> bool:
        """Whether anything waits, hooks included, and the user has agreed to anything since the last call."""
        before, self._seen = self._seen, self.consent.state()
        return bool(self.names or self.without_hooks) and self._seen != before

    @property
    def names(self) -> list[str]:
        return [*self.domains, *self.sources, *self.servers]

    @property
    def spared(self) -> set[str]:
        """The domains of pending sources. Their records on the trail are not deleted."""
        return {source.domain for source in self.sources.values()}

    def problems(self) -> dict[str, str]:
        """By name, why each pending or failed part is not available."""
        waiting = {name: self.consent.problem or f"{name}: {NOT_TRUSTED}" for name in self.names}
        hooks = {HOOKS: self.without_hooks} if self.without_hooks else {}
        return waiting | hooks | self.failed

    def told(self) -> list[str]:
        """One line that names everything pending; an empty list if nothing is."""
        return [self.consent.problem or f"{', '.join(self.names)}: {NOT_TRUSTED}"] if self.names else []

    def listed(self) -> list[DomainInfo]:
        """The pending parts as entries of a domain list, then the failed domains."""
        told = dict.fromkeys(self.names, NOT_TRUSTED) | {name: f"failed: {why}" for name, why in self.failed.items()}
        return [
            DomainInfo(
                name=name,
                description=description,
                entry_points=(),
                hidden=0,
                sources=(),
                scopes=(),
                is_foreign=name in self.servers,
            )
            for name, description in told.items()
        ]
