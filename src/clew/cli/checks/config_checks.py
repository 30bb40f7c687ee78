"""Checks of the settings for `clew config check`, with the place of each problem.

Nothing is imported, contacted or written. Missing keys, secrets and consent are not problems of the settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from clew.config import Config, PermissionsConfig, SourceConfig
from clew.config.layers import GivenSetting, ReadSettings
from clew.errors import ClewError, ConfigError, InvalidInput, ModelError
from clew.secrecy import mask_secrets
from clew.trust import Wish


class ConfigProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the settings, with its place."""

    message: str
    hint: str = ""


def find_problems(found: ReadSettings) -> list[ConfigProblem]:
    """All problems of the settings: first values that cannot be read, then values that cannot be used."""
    checks = (
        _check_permissions,
        _check_sources,
        _check_modules,
        _check_models,
        _check_providers,
        _check_servers,
        _check_roots,
    )
    read = [ConfigProblem(message=each.message, hint=each.hint) for each in found.problems]
    return [*read, *(problem for check in checks for problem in check(found))]


def _check_permissions(found: ReadSettings) -> Iterator[ConfigProblem]:
    from clew.tools.permissions.permission_settings import rules_of  # tools are not for every command

    for verdict in ("allow", "ask", "deny"):
        for number, text in enumerate(getattr(found.config.permissions, verdict)):
            try:
                rules_of(PermissionsConfig(**{verdict: (text,)}))
            except ConfigError as error:
                yield _located(found.given[f"permissions.{verdict}"], error, path=(number,))


def _check_sources(found: ReadSettings) -> Iterator[ConfigProblem]:
    for name, source in found.config.sources.items():
        try:
            _build_source(source, _project(found.config))
        except (ConfigError, InvalidInput) as error:
            yield _located(found.given[f"sources.{name}"], error, f"[sources.{name}] ")


def _build_source(source: SourceConfig, project: Path) -> None:
    """Build a source, which reads nothing, as if its secrets were there. Raises ConfigError, InvalidInput."""
    from clew.catalog.route import check_domain_name  # the catalog takes long to load
    from clew.catalog.sources import build_source, secret_names

    check_domain_name(source.domain)
    build_source(source.kind, source.options, secrets=dict.fromkeys(secret_names(source.options), ""), base=project)


def _check_modules(found: ReadSettings) -> Iterator[ConfigProblem]:
    """Domains and hooks whose module Python finds."""
    from clew.catalog.consent.consent import domain_wish, hook_wish  # of the catalog, as above

    config = found.config
    yield from _check_names("catalog.domains", config.catalog.domains, domain_wish, found)
    yield from _check_names("mcp.hooks", config.mcp.hooks, hook_wish, found)


def _check_names(
    setting: str, names: tuple[str, ...], wish_of: Callable[[str, Path], Wish | None], found: ReadSettings
) -> Iterator[ConfigProblem]:
    for number, name in enumerate(names):
        try:
            if wish_of(name, _project(found.config)) is None:
                error = ConfigError(f"{setting}: Python finds no module for {name!r}")
                error.hint = "Install it, or set PYTHONPATH to the folder that holds it"
                raise error
        except ConfigError as error:
            yield _located(found.given[setting], error, path=(number,))


def _check_models(found: ReadSettings) -> Iterator[ConfigProblem]:
    from clew.llm.model import ROLES, open_models  # models are not for every command

    models, config = open_models(found.config), found.config
    named = {f"models.{role}": getattr(config.models, role) for role in ROLES}
    named |= {f"models.{role}": model for role, model in config.models.roles.items()}
    named["knowledge.model"] = config.knowledge.model
    for name, model in named.items():
        given = found.given.get(name) or found.given.get("agent.model")  # which is a role of the agent's name
        if not model or given is None:
            continue
        try:
            models.check_name(model)
        except ModelError as error:
            yield _located(given, error, f"{given.name}: ")


def _check_providers(found: ReadSettings) -> Iterator[ConfigProblem]:
    from clew.llm.providers.provider import find_provider  # as above

    for name in found.config.providers:
        try:
            find_provider(name, found.config, os.environ)
        except ModelError as error:
            yield _located(found.given[f"providers.{name}"], error)


def _check_servers(found: ReadSettings) -> Iterator[ConfigProblem]:
    from clew.catalog.servers.config import WHERE, InvalidServer, read_each_server  # of the catalog, as above

    places = {each.id: number for number, each in enumerate(found.config.mcp.servers)}
    for error in read_each_server(found.config):
        if not isinstance(error, ConfigError):
            continue
        if isinstance(error, InvalidServer):
            error.hint = "" if error.hint == WHERE else error.hint
            yield _located(found.given["mcp.servers"], error, path=(places[error.server],))
        else:
            yield ConfigProblem(message=error.message, hint=error.hint)


def _check_roots(found: ReadSettings) -> Iterator[ConfigProblem]:
    """Files and folders in the settings that do not exist."""
    project = _project(found.config)
    for name, path in (("skills.root", found.config.skills.root), ("rules.root", found.config.rules.root)):
        given = found.given.get(name)
        if given is not None and not (project / path).exists():
            error = ConfigError(f"{name}: there is no {project / path}")
            error.hint = "Create it, or correct the path"
            yield _located(given, error)


def _project(config: Config) -> Path:
    return config.folder.absolute().parent


def _located(
    given: GivenSetting, error: ClewError, prefix: str = "", path: tuple[str | int, ...] = ()
) -> ConfigProblem:
    """A problem with the place of its setting. A value that looks like a secret is masked."""
    return ConfigProblem(message=f"{given.place(path)}: {prefix}{mask_secrets(error.message)}", hint=error.hint)
