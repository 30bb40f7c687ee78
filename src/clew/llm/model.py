"""Models by name or role. The configuration chooses the model of an agent; the catalogue has its properties."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from clew.config import Config
from clew.config.key_references import read_key
from clew.decode_errors import suggest
from clew.errors import ModelError
from clew.llm.formatters import FormattedModel, find_formatter
from clew.llm.model_catalogue import Catalogue, ModelInfo, shipped
from clew.llm.providers.provider import Provider, check_consent, find_provider
from clew.llm.providers.remote_model import WireModel
from clew.llm.requests import FinishReason, Model, ModelReply, ModelRequest, OnText
from clew.trust import Trust

__all__ = ["FinishReason", "Model", "ModelInfo", "ModelReply", "ModelRequest", "Models", "OnText", "open_models"]

ROLES = ("default", "fast", "strong", "coding")
EVERY = "*"
"""In `with_model`, matches any name."""
HOW_TO_ADD = (
    "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or name a model below [models] in .clew/config.toml: "
    'default = "ollama:qwen3"'
)


class Models:
    """The configured models. Each model is opened only once; `close` closes all of them."""

    def __init__(self, config: Config, environ: Mapping[str, str], trust: Trust | None = None) -> None:
        self._config = config
        self._environ = environ
        self._trust = trust
        self._catalogue = Catalogue(config.models.known)
        self._given: dict[str, tuple[Model, ModelInfo]] = {}
        self._open: dict[tuple[Provider, str], tuple[Model, WireModel, ModelInfo]] = {}

    def with_model(self, name: str, model: Model, info: ModelInfo | None = None) -> Models:
        """Return a copy of these models in which `model` answers for a name, a role, or, with `*`, for all names. For
        tests and demos."""
        found = Models(self._config, self._environ, self._trust)
        known = info or self._catalogue.look_up("scripted", name if name != EVERY else "model")
        found._given = {**self._given, name: (model, known)}
        found._open = self._open
        return found

    def resolve(
        self, name_or_role: str = "default", config: Mapping[str, Any] | None = None
    ) -> tuple[Model, ModelInfo]:
        """The model for a role or a name ("provider:model", or a name in the catalogue). The entry `model` of `config`
        overrides the name. Nothing is imported or connected yet. Raises ModelError of the kind `config` for an unknown
        name, for a provider without consent or without a key, and if no model is configured at all."""
        asked = str((config or {}).get("model") or name_or_role or "default")
        given = self._given.get(EVERY) or self._given.get(asked)
        if given is not None:
            return given
        name = self._follow(asked)
        return self._given.get(name) or self._opened(*self._split(name))

    def for_agent(self, agent_id: str, model: str = "") -> tuple[Model, ModelInfo]:
        """The model of an agent: the model that [models] names for the agent, else the model of its definition, else
        the default. Raises the same errors as `resolve`."""
        return self.resolve(agent_id if agent_id in self._config.models.roles or agent_id in self._given else model)

    def is_configured(self, agent_id: str, model: str = "") -> bool:
        """Whether a model was named for an agent, even an unusable one: by the settings, by its definition, or by a
        provider's key."""
        roles = self._config.models.roles
        role: str | None = (agent_id if agent_id in roles or agent_id in self._given else model) or "default"
        seen: set[str] = set()
        while role is not None and EVERY not in self._given and self._is_open_role(role) and role not in seen:
            seen.add(role)
            role = self._given_to(role)
        return role is not None

    def has_any(self) -> bool:
        """Whether at least one role resolves to a usable model."""
        return bool(self._given) or any(map(self._is_usable, (*ROLES, *self._config.models.roles)))

    def _is_usable(self, role: str) -> bool:
        try:
            self.resolve(role)
        except ModelError:
            return False
        return True

    def names(self) -> tuple[str, ...]:
        """Return all names: roles, then models of the catalogue."""
        return (*ROLES, *self._config.models.roles, *self._given, *self._catalogue.names())

    async def listed(self, name_or_role: str = "default", *, seconds: float) -> tuple[str, ...]:
        """The models that the provider of a model lists; empty if the provider has no list, and for a model given to
        `with_model`. The request is free of charge. Raises ModelError like `resolve`, and if the provider does not
        answer in time."""
        found, _ = self.resolve(name_or_role)
        wires = (wire for model, wire, _ in self._open.values() if model is found)
        wire = next(wires, None)
        return await wire.list_models(seconds=seconds) if wire is not None else ()

    async def close(self) -> None:
        """Close every connection."""
        for _, wire, _ in self._open.values():
            await wire.close()

    def check_name(self, name_or_role: str) -> None:
        """Check that a name is a role, or a model of a known provider. Keys and consent are not checked. Raises
        ModelError, for example for circular roles."""
        self._chain(name_or_role)
        if not self._is_open_role(name_or_role):
            self._split(name_or_role)

    def _follow(self, asked: str) -> str:
        """Follow roles to the name of a model. Raises ModelError for circular roles, and for roles without a model."""
        name = self._chain(asked)[-1]
        if self._is_open_role(name):
            raise ModelError("config", "no model is configured", hint=HOW_TO_ADD)
        return name

    def _chain(self, asked: str) -> list[str]:
        """The chain of roles from a name on, and the model name at its end, if any. Raises ModelError for a circle."""
        seen = [asked]
        while self._is_open_role(role := seen[-1]) and (following := self._given_to(role)) is not None:
            if following in seen:
                raise ModelError(
                    "config",
                    f"the roles {' → '.join([*seen, following])} refer to each other in a circle",
                    hint=_ROLES_HINT,
                )
            seen.append(following)
        return seen

    def _is_open_role(self, name: str) -> bool:
        """Whether a name is a role that must be resolved to another name."""
        return name not in self._given and (name in ROLES or name in self._config.models.roles)

    def _given_to(self, role: str) -> str | None:
        """Return the next name for a role: the model from the settings, else the default role, else a model of a
        provider whose key is set."""
        roles = self._config.models
        said = roles.roles.get(role) or (getattr(roles, role) if role in ROLES else "")
        if said:
            return said
        if role != "default" and (roles.default or "default" in self._given):
            return "default"
        return next(self._found(role), None)

    def _found(self, role: str) -> Iterator[str]:
        """Yield the models for a role at preset providers whose key is set in its usual variable."""
        for name, preset in shipped().providers.items():
            scheme, _, variable = preset.key.partition(":")
            if role in preset.roles and scheme == "env" and self._environ.get(variable):
                yield f"{name}:{preset.roles[role]}"

    def _split(self, name: str) -> tuple[str, str]:
        """Provider and model. Raises ModelError for a name that is neither a role nor a model."""
        provider, colon, model = name.partition(":")
        if colon and model and (provider in self._config.providers or provider in shipped().providers):
            return provider, model
        seller = self._catalogue.seller(name)
        if seller:
            return seller, name
        if colon:
            find_provider(provider, self._config, self._environ)
        raise ModelError("config", f"there is no model or role {name!r}", hint=self._name_hint(name))

    def _name_hint(self, name: str) -> str:
        """Suggest near names. A local model needs the name of its provider."""
        near = suggest(name, self.names(), "").partition("Did you mean ")[2].partition("?")[0]
        if near and (":" in near or near not in self._catalogue.names()):
            return f"Did you mean {near}?"
        return f"Write provider:model, such as ollama:{near or 'qwen3'}"

    def _opened(self, name: str, model: str) -> tuple[Model, ModelInfo]:
        check_consent(name, self._config, self._trust)
        provider = find_provider(name, self._config, self._environ)
        key = (provider, model)
        if key not in self._open:
            self._check_key(provider)
            info = self._catalogue.look_up(name, model, provider.preset)
            wire = WireModel(provider, info, lambda: self._key_of(provider))
            formatter = find_formatter(info.formatter)
            self._open[key] = (FormattedModel(wire, formatter) if formatter is not None else wire, wire, info)
        found, _, info = self._open[key]
        return found, info

    def _check_key(self, provider: Provider) -> None:
        """Raise ModelError if the key is in a variable that is not set. Files and keyrings are read with the first
        call."""
        scheme, _, variable = provider.key.partition(":")
        if scheme == "env" and not self._environ.get(variable):
            raise ModelError("config", f"{provider.name} needs a key: {variable} is not set", hint=_key_hint(variable))

    def _key_of(self, provider: Provider) -> str:
        project = self._config.folder.absolute().parent
        return read_key(provider.key, self._environ, project) if provider.key else ""


_ROLES_HINT = "Give one of them a model in [models] of config.toml"


def _key_hint(variable: str) -> str:
    return f"Set {variable}, or name another model in [models] of config.toml"


def open_models(config: Config, environ: Mapping[str, str] | None = None, trust: Trust | None = None) -> Models:
    """The models of a configuration. Keys in variables are read from `environ`, by default the environment of this
    process. Nothing is read or connected yet. Raises ConfigError."""
    return Models(config, os.environ if environ is None else environ, trust)
