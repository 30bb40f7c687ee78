"""Data about models: `models.json`, and the user's `[models.known.NAME]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from clew.config import KnownModel
from clew.errors import ConfigError
from clew.lazy_pattern import lazy_pattern

ProviderKind = Literal["openai", "openai-compatible", "anthropic"]
SMALLEST_BUDGET, LARGEST_BUDGET = 50_000, 750_000
"""The minimum and maximum token budget of a context, if the model's window is large enough."""
SURCHARGE = 0.25
"""The surcharge of Anthropic and OpenAI for tokens written to their cache."""
UNKNOWN_CONTEXT = 32_768
"""The context size of an unknown model at an unknown provider."""

_SAME = lazy_pattern(r"(?:-\d{6,8}|-\d{4}-\d{2}-\d{2}|-latest|[:@].*)?")
"""Suffixes that keep the model the same: a date or a tag."""


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The catalogue entry of a model. `budget_tokens` is the limit of a context. Prices are in US dollars per million
    tokens, None if unknown. `is_known` is False for cautious defaults."""

    name: str
    provider: str
    context_tokens: int
    budget_tokens: int
    output_tokens: int = 4_096
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    formatter: str = "native"
    capabilities: tuple[str, ...] = ()
    is_known: bool = True

    @property
    def full_name(self) -> str:
        return f"{self.provider}:{self.name}"

    def cost_of(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, kept_tokens: int = 0
    ) -> float | None:
        """The cost of a call in US dollars; None if a price is unknown. Without a separate price, cached tokens cost as
        much as other input tokens. Tokens that the provider writes to its cache cost a quarter more."""
        if self.input_price is None or self.output_price is None:
            return None
        cached = self.input_price if self.cached_price is None else self.cached_price
        fresh = max(input_tokens - cached_tokens, 0) + kept_tokens * SURCHARGE
        return (fresh * self.input_price + cached_tokens * cached + output_tokens * self.output_price) / 1_000_000


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known provider, which needs no table in the settings. The environment variable `address_variable` overrides its
    address. `roles` are the default models."""

    kind: ProviderKind
    base_url: str
    key: str = ""
    address_variable: str = ""
    is_local: bool = False
    context_tokens: int = UNKNOWN_CONTEXT
    roles: dict[str, str] = {}


class _CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model. `provider` is empty for a model that any provider may serve."""

    name: str
    provider: str
    context_tokens: int
    output_tokens: int
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None
    formatter: str = "native"
    capabilities: tuple[str, ...] = ()


class _Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    as_of: str
    providers: dict[str, Preset]
    models: tuple[_CatalogueEntry, ...]


@lru_cache(maxsize=1)
def shipped() -> _Shipped:
    """The data that comes with Clew."""
    return msgspec.json.decode((Path(__file__).parent / "models.json").read_bytes(), type=_Shipped)


class Catalogue:
    """The shipped models, overridden by the user's settings, by the name of the model with or without its provider.
    Raises ConfigError for invalid settings."""

    def __init__(self, known: Mapping[str, KnownModel] | None = None) -> None:
        self._known = dict(known or {})
        for name, facts in self._known.items():
            _check(name, facts)

    def names(self) -> tuple[str, ...]:
        """The names of all models, prefixed with the provider if a single provider sells them."""
        return tuple(f"{each.provider}:{each.name}" if each.provider else each.name for each in shipped().models)

    def seller(self, name: str) -> str:
        """The provider that sells a model; empty if there is none or the model is unknown."""
        entry = _find(name)
        return entry.provider if entry is not None else ""

    def look_up(self, provider: str, name: str, kind: str = "") -> ModelInfo:
        """The catalogue entry of a model at a provider. If the user chose the provider's name, `kind` is its preset.
        Prices apply only to their own seller; models on this machine cost nothing."""
        preset = shipped().providers.get(provider) or shipped().providers.get(kind)
        entry = _find(name)
        facts = self._known.get(f"{provider}:{name}") or self._known.get(name) or KnownModel()
        context = facts.context_tokens or _context(entry, preset)
        prices = _prices(entry, preset, provider if provider in shipped().providers else kind)
        given = {key: getattr(facts, key) for key in (*prices, "formatter", "capabilities", "output_tokens")}
        values = {
            **prices,
            "formatter": entry.formatter if entry else "native",
            "capabilities": entry.capabilities if entry else (),
            "output_tokens": entry.output_tokens if entry else 4_096,
            **{key: value for key, value in given.items() if value is not None},
        }
        values["output_tokens"] = min(values["output_tokens"], context // 2)
        return ModelInfo(
            name=name,
            provider=provider,
            context_tokens=context,
            budget_tokens=min(facts.budget_tokens or _budget(context), context),
            is_known=entry is not None or facts.context_tokens is not None,
            **values,
        )


def _budget(context: int) -> int:
    """Three quarters of the context, so that there is room for the question and the answer; at least the smallest
    budget, if that is at most half of the context."""
    return min(max(context * 3 // 4, min(SMALLEST_BUDGET, context // 2)), LARGEST_BUDGET)


def _context(entry: _CatalogueEntry | None, preset: Preset | None) -> int:
    if entry is not None:
        return entry.context_tokens
    return preset.context_tokens if preset is not None else UNKNOWN_CONTEXT


def _prices(entry: _CatalogueEntry | None, preset: Preset | None, seller: str) -> dict[str, float | None]:
    if preset is not None and preset.is_local:
        return {"input_price": 0.0, "output_price": 0.0, "cached_price": 0.0}
    sold = entry if entry is not None and entry.provider and entry.provider == seller else None
    return {key: getattr(sold, key, None) for key in ("input_price", "output_price", "cached_price")}


def _find(name: str) -> _CatalogueEntry | None:
    """The entry for a name: of the model with this name, or of the model whose name it extends with a date or a tag."""
    for spelled in _spellings(name):
        fitting = [
            each
            for each in shipped().models
            if spelled.startswith(each.name) and _SAME.fullmatch(spelled, len(each.name))
        ]
        if fitting:
            return max(fitting, key=lambda each: len(each.name))
    return None


def _spellings(name: str) -> Iterable[str]:
    """The spellings to look up for the name of a reseller: as it is, without the vendor before the slash, and with
    hyphens for dots."""
    own = name.rpartition("/")[2].lower()
    return dict.fromkeys((name, own, own.replace(".", "-")))


def _check(name: str, facts: KnownModel) -> None:
    place = f"[models.known.{name}]"
    for field in ("context_tokens", "budget_tokens", "output_tokens"):
        value = getattr(facts, field)
        if value is not None and not 256 <= value <= 100_000_000:
            raise ConfigError(f"{place} {field} must be from 256 to 100,000,000, not {value}")
    for field in ("input_price", "output_price", "cached_price"):
        value = getattr(facts, field)
        if value is not None and not 0 <= value <= 1_000_000:
            raise ConfigError(f"{place} {field} must be from 0 to 1,000,000, not {value}")
