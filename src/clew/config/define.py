"""`define_config`: the settings as a program writes them, checked like those of config.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from clew.config.layers import Origin, build_config, flatten
from clew.config.model import (
    NOT_SETTINGS,
    AdaptersConfig,
    AgentConfig,
    BusConfig,
    CatalogConfig,
    Config,
    HygieneConfig,
    KnowledgeConfig,
    McpConfig,
    ModelsConfig,
    PermissionsConfig,
    ProviderConfig,
    RulesConfig,
    ScriptsConfig,
    ServerConfig,
    SkillsConfig,
    SourceConfig,
    TeamConfig,
    TrailSearchConfig,
    WebhookConfig,
)
from clew.errors import ConfigError

Table = Mapping[str, Any]


def define_config(
    *,
    trail: str | None = None,
    owner: str | None = None,
    embedder: str | None = None,
    agents: bool | None = None,
    production: bool | None = None,
    server: ServerConfig | Table | None = None,
    bus: BusConfig | Table | None = None,
    search: TrailSearchConfig | Table | None = None,
    hygiene: HygieneConfig | Table | None = None,
    webhooks: WebhookConfig | Table | None = None,
    catalog: CatalogConfig | Table | None = None,
    knowledge: KnowledgeConfig | Table | None = None,
    permissions: PermissionsConfig | Table | None = None,
    agent: AgentConfig | Table | None = None,
    mcp: McpConfig | Table | None = None,
    skills: SkillsConfig | Table | None = None,
    rules: RulesConfig | Table | None = None,
    team: TeamConfig | Table | None = None,
    adapters: AdaptersConfig | Table | None = None,
    scripts: ScriptsConfig | Table | None = None,
    sources: Mapping[str, SourceConfig | Table] | None = None,
    models: ModelsConfig | Table | None = None,
    providers: Mapping[str, ProviderConfig | Table] | None = None,
) -> Config:
    """Check settings and return them, with defaults for the rest. A section is a struct of `clew.config` or a dict.

    Raises ConfigError for the first setting that cannot be used.
    """
    given = {name: _plain(value) for name, value in locals().items() if value is not None}
    problems: list[ConfigError] = []
    config, _ = build_config(flatten(given, Origin(kind="config.py", label="define_config")), problems)
    if problems:
        error = problems[0]
        error.message = error.message.removeprefix("define_config: ")
        raise error
    return config


def settings_of(config: Config) -> dict[str, Any]:
    """The settings of a configuration that are not defaults, as config.toml would hold them."""
    found: dict[str, Any] = _changed(_without_agent_role(config))
    return {name: value for name, value in found.items() if name not in NOT_SETTINGS}


def _without_agent_role(config: Config) -> Config:
    """The configuration without the model role that `agent.model` sets, so that a later layer can change the model."""
    agent, roles = config.agent, config.models.roles
    if not agent.model or roles.get(agent.name) != agent.model:
        return config
    others = {name: model for name, model in roles.items() if name != agent.name}
    return msgspec.structs.replace(config, models=msgspec.structs.replace(config.models, roles=others))


def _plain(value: Any) -> Any:
    """A value without structs and tuples."""
    if isinstance(value, msgspec.Struct):
        return _changed(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return value


def _changed(struct: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct that differ from their defaults. Roles and options stand beside the other fields."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        default = {} if field.default_factory is dict else field.default
        if value == default or (field.default_factory is list and not value):
            continue
        if field.name in ("roles", "options") and isinstance(value, dict):
            found |= value
        else:
            found[field.name] = _plain(value)
    return found
