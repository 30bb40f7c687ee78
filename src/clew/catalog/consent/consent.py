"""The parts of a folder that need the user's consent: foreign servers, Python modules with domains, sources, model
providers, and definitions of agents and skills."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from clew.catalog.consent.module_files import is_inside, locate
from clew.catalog.servers.config import McpServerConfig, servers_of, written
from clew.catalog.servers.secret_references import mask_arguments, mask_words, plain_address
from clew.catalog.servers.value_references import FromEnv, FromSecret, Value
from clew.catalog.skills.wishes import definition_wishes, find_definition_root
from clew.catalog.workspace.domain_loader import offered_domains, target_of
from clew.config import Config, SourceConfig
from clew.errors import ConfigError
from clew.lazy_pattern import lazy_pattern
from clew.llm.providers.provider import provider_wishes
from clew.secrecy import MASK
from clew.tools.permissions.permission_settings import permissions_wish
from clew.trust import Trust, Wish, digest_files, digest_parts, printable, real_folder

SERVER, DOMAIN, SOURCE, HOOK = "server", "domain", "source", "hook"
NOT_TRUSTED = "not trusted yet: run `clew trust`"

_HARMLESS = ("name", "enabled", "idle_seconds", "timeout_seconds")
"""The keys of a server's entry that may change without consent."""
_SCRIPTS = {".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".lua", ".jar", ".ps1", ".cmd"}
_PLAIN = lazy_pattern(r"[\w.~+/=:@%-]+")
"""Characters that no shell interprets."""
_REFERENCE = lazy_pattern(r"\$\{(?:env:)?([A-Za-z_]\w*)")


class FolderConsent:
    """The user's consent to the parts of one folder. If the file of grants cannot be read, nothing is allowed and
    `problem` says why."""

    def __init__(self, project: Path, trust: Trust | None = None) -> None:
        self.project = project
        self._trust = trust
        self.problem = ""

    def allows_server(self, server: McpServerConfig) -> bool:
        return self._holds(server_wish(server, self.project))

    def allows_domain(self, name: str) -> bool:
        """Whether a domain may be imported. Raises ConfigError if no such domain exists."""
        wish = domain_wish(name, self.project)
        return wish is None or self._holds(wish)

    def allows_hook(self, name: str) -> bool:
        """Whether a name in `mcp.hooks` may be imported. A module that Python cannot find needs no consent, since
        importing it fails anyway."""
        wish = hook_wish(name, self.project)
        return wish is None or self._holds(wish)

    def allows_source(self, name: str, source: SourceConfig) -> bool:
        wish = source_wish(name, source, self.project)
        return wish is None or self._holds(wish)

    def allows(self, wish: Wish) -> bool:
        return self._holds(wish)

    def granted(self, kind: str, folder: Path) -> frozenset[str]:
        """The names of this kind that the user agreed to in a folder, even if their files have changed or are gone."""
        try:
            self._trust = self._trust or Trust.open()
            return frozenset(each.name for each in self._trust.grants(folder) if each.kind == kind)
        except ConfigError:
            return frozenset()

    def state(self) -> tuple[int, ...]:
        """A value that changes when the user agrees to something."""
        return self._trust.state() if self._trust is not None else ()

    def _holds(self, wish: Wish) -> bool:
        try:
            self._trust = self._trust or Trust.open()
            held = self._trust.holds(wish)
        except ConfigError as error:
            self.problem = str(error)
            return False
        self.problem = ""
        return held


def project_of(config: Config) -> Path:
    """The folder that the settings are for."""
    return config.folder.absolute().parent


def read_wishes(config: Config) -> list[Wish]:
    """Everything in the folder that needs consent to be run, loaded or contacted: enabled servers, domains, sources,
    model providers, then agents, skills and rules. Raises ConfigError for settings that cannot be used."""
    source = find_definition_root(config)
    rules = source.rule_files().wishes() if source.is_repository else []
    return [*workspace_wishes(config), *definition_wishes(source.read().manifest, source.root), *rules]


def workspace_wishes(config: Config) -> list[Wish]:
    """The wishes of servers, domains, hooks, sources, providers and permissions. Raises ConfigError."""
    project = project_of(config)
    servers = [server_wish(each, project) for each in servers_of(config) if each.enabled]
    domains = (_known_domain_wish(name, project) for name in dict.fromkeys(config.catalog.domains))
    hooks = (hook_wish(name, project) for name in dict.fromkeys(config.mcp.hooks))
    sources = (source_wish(name, source, project) for name, source in config.sources.items())
    reached = [each for each in (*domains, *hooks, *sources) if each is not None]
    allowed = permissions_wish(config.permissions, project)
    return [*servers, *reached, *provider_wishes(config, project), *([allowed] if allowed is not None else [])]


def _known_domain_wish(name: str, project: Path) -> Wish | None:
    """Like `domain_wish`, but also returns None for an unavailable domain, which the workspace reports."""
    try:
        return domain_wish(name, project)
    except ConfigError:
        return None


def trust_servers(config: Config, ids: Collection[str], trust: Trust | None = None) -> list[Wish]:
    """Grant consent to the servers that the user has just named. Returns the granted wishes. Raises ConfigError,
    ReadOnly."""
    wishes = [each for each in workspace_wishes(config) if each.kind == SERVER and each.name in ids]
    (trust or Trust.open()).grant(wishes)
    return wishes


def trust_skills(config: Config, digests: Mapping[Path, str], trust: Trust | None = None) -> list[Wish]:
    """Grant consent to the skills that the user has just chosen, only if a skill's file has the given digest. Skills
    that use toolsets of the folder are left to `clew trust`. Returns the granted wishes. Raises ConfigError, ReadOnly.
    """
    source = find_definition_root(config)
    manifest = source.read().manifest
    wanted = {os.path.realpath(file): digest for file, digest in digests.items()}
    chosen = [
        each
        for each in definition_wishes(manifest, source.root)
        if each.kind == "skill"
        and wanted.get(os.path.realpath(source.root / manifest.skills[each.name].path)) == each.digest
    ]
    (trust or Trust.open()).grant(chosen)
    return chosen


def server_wish(server: McpServerConfig, project: Path) -> Wish:
    """The wish of a server. It covers every key of the server's entry that affects the program, its address, its
    requests or the shown text, and the project's scripts that the command names."""
    entry = {key: value for key, value in written(server).items() if key not in _HARMLESS}
    if server.transport == "stdio":
        entry["cwd"] = real_folder(project / server.cwd)
    scripts = digest_files(_scripts(server, project), project)
    return Wish(
        folder=real_folder(project),
        kind=SERVER,
        name=server.id,
        digest=digest_parts([msgspec.json.encode(entry, order="sorted"), scripts.encode()]),
        summary=printable(_describe(server, project)),
    )


def domain_wish(name: str, project: Path) -> Wish | None:
    """The wish of a name in `catalog.domains`; None for a module that Python cannot find, since nothing could run. The
    wish covers the project's files that belong to the module. Raises ConfigError for an unknown name."""
    return _module_wish(DOMAIN, name, target_of(name, offered_domains()), project)


def hook_wish(name: str, project: Path) -> Wish | None:
    """The wish of a name in `mcp.hooks`, built like the wish of a domain."""
    return _module_wish(HOOK, name, name, project)


def _module_wish(kind: str, name: str, target: str, project: Path) -> Wish | None:
    located = locate(target.partition(":")[0].strip(), project)
    if located is None:
        return None
    number = len(located.files)
    own = f", {number:,} file{'' if number == 1 else 's'} of this folder" if number else ""
    return Wish(
        folder=real_folder(project),
        kind=kind,
        name=printable(name),
        digest=digest_parts([os.fsencode(name), os.fsencode(target), digest_files(located.files, project).encode()]),
        summary=printable(f"imports {target} from {located.place}{own}"),
    )


def source_wish(name: str, source: SourceConfig, project: Path) -> Wish | None:
    """The wish of a table `[sources.NAME]`; None for a source that stays in the project and uses no secret. The wish
    covers all settings except the description and the times, and the resolved paths."""
    from clew.catalog.sources.reach import place_of, reach_of  # for folders that configure sources

    reached = reach_of(source.kind, source.options, project)
    if not reached:
        return None
    chosen = [name, source.kind, source.domain, source.base_path, source.scopes, source.options]
    place = place_of(source.kind, source.options, project)
    return Wish(
        folder=real_folder(project),
        kind=SOURCE,
        name=printable(name).strip() or "''",
        digest=digest_parts([json.dumps(chosen, sort_keys=True, default=str).encode(), os.fsencode(place)]),
        summary=printable("; ".join(reached)),
    )


def _scripts(server: McpServerConfig, project: Path) -> Iterator[Path]:
    """The files of the project that a command line names to be run: the program, and scripts among its arguments. Data
    files, which change while a server works, are not among them."""
    for at, part in enumerate(server.command):
        file = project / server.cwd / part
        is_program = at == 0 or file.suffix.lower() in _SCRIPTS
        if is_program and os.path.isfile(file) and is_inside(file, project):
            yield file


def _describe(server: McpServerConfig, project: Path) -> str:
    """A summary of a server's program or address, without secrets."""
    if server.transport == "http":
        parts = [f"contacts {urlsplit(server.url).hostname} at {plain_address(server.url)}"]
        if server.extra_headers:
            parts.append(f"sends the headers {', '.join(server.extra_headers)}")
    else:
        place = f" in {server.cwd}" if project / server.cwd != project else ""
        parts = [f"runs {shlex.join(_plain_command(server.command))}{place}"]
        if server.env:
            parts.append(f"sets {', '.join(server.env)}")
    if server.features.sampling:
        parts.append("asks your model")
    named = sorted({name for value in _values(server) for name in _references(value)})
    return "; ".join([*parts, *([f"gives it {', '.join(named)}"] if named else [])])


def _plain_command(command: tuple[str, ...]) -> list[str]:
    """The parts of a command without secrets. A part with shell syntax is never masked as a whole; only words in it
    that look like secrets are masked."""
    masked = mask_arguments(command, "", [])
    return [
        f"{new.partition('${')[0]}{MASK}" if new != part and _PLAIN.fullmatch(part) else mask_words(part)
        for part, new in zip(command, masked, strict=True)
    ]


def _values(server: McpServerConfig) -> list[Value]:
    auth = server.auth
    kept = [each for each in (auth.token, auth.client_secret, auth.private_key) if each is not None]
    return [*server.command, server.url, *server.env.values(), *server.extra_headers.values(), *kept]


def _references(value: Any) -> list[str]:
    """The variables and secrets that a value names."""
    match value:
        case FromEnv(name):
            return [f"the variable {name}"]
        case FromSecret(name):
            return [f"the secret {name}"]
        case _:
            return [f"the variable {name}" for name in _REFERENCE.findall(value)]
