"""Placeholders `{{ NAME }}` in prompts and skills, and the sources of their values.

Values are inserted verbatim and not scanned again, so user input cannot refer to another variable, and there are no
cycles. All other text stays unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from clew.errors import ConfigError, ValidationError
from clew.skills.arguments import check_texts

Value = str | int | float | bool | Sequence[str]

ENV_PREFIXES = ("CLEW_PROMPT_",)
"""Prefixes of environment variables that a model may see."""

Source = Literal["constructor", "additional", "call", "environment"]
ORDER: tuple[Source, ...] = ("constructor", "additional", "call", "environment")
"""The sources of values. If several have a name, the last one wins."""

_MAX_NAME = 200
_OPENING, _CLOSING = re.compile(r"\{\{+"), re.compile(r"\}\}+")  # ten times as fast as one pattern for both
_NAME = re.compile(r"\s*([^\W\d][\w.-]*)\s*")


class Variables:
    """Values by name from several sources: the constructor, additional values, the values of one call, and environment
    variables with an allowed prefix.

    Raises ConfigError for an empty prefix, and for an order that does not have each source once.
    """

    def __init__(
        self,
        values: Mapping[str, Value] | None = None,
        *,
        env_prefixes: Sequence[str] = ENV_PREFIXES,
        environ: Mapping[str, str] | None = None,
        order: Sequence[Source] = ORDER,
    ) -> None:
        check_texts("order", order)
        env_prefixes = (env_prefixes,) if isinstance(env_prefixes, str) else env_prefixes  # not its letters
        check_texts("env_prefixes", env_prefixes)
        if not all(prefix.strip() for prefix in env_prefixes):
            raise ConfigError("an empty prefix would show the whole environment to a model", choices=ENV_PREFIXES)
        if sorted(order) != sorted(ORDER):
            raise ConfigError(f"the order of sources must name each once, not {', '.join(order)}", choices=ORDER)
        self._values = dict(_as_texts(values))
        self._prefixes = tuple(env_prefixes)
        self._environ = os.environ if environ is None else environ
        self._order = tuple(order)

    def resolve(
        self, additional: Mapping[str, Value] | None = None, call: Mapping[str, Value] | None = None
    ) -> dict[str, str]:
        """Return all values by name. Raises ValidationError for a name that is not text, and for a value that is
        neither text, number nor list of strings."""
        shown = [name for name in self._environ if name.startswith(self._prefixes)]
        sources: dict[Source, Mapping[str, str]] = {
            "constructor": self._values,
            "additional": dict(_as_texts(additional)),
            "call": dict(_as_texts(call)),
            "environment": {name: self._environ[name] for name in shown},
        }
        return {name: text for source in self._order for name, text in sources[source].items()}


def inject(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders by their values in one pass, in linear time."""
    parts, done = [], 0
    for start, end in _placeholders(text):
        name = _NAME.fullmatch(text, start + 2, end - 2)
        if name is None or name[1] not in values:
            continue
        parts += [text[done:start], values[name[1]]]
        done = end
    return "".join([*parts, text[done:]])


def find_names(text: str) -> list[str]:
    """Return the names of the placeholders in a text, in order and without duplicates."""
    found = (_NAME.fullmatch(text, start + 2, end - 2) for start, end in _placeholders(text))
    return list(dict.fromkeys(name[1] for name in found if name is not None))


def _placeholders(text: str) -> Iterator[tuple[int, int]]:
    """Yield the outermost pairs of braces, in order. The text between them may not be a name."""
    pairs: list[tuple[int, int]] = []
    opened: list[int] = []
    for run in sorted((*_OPENING.finditer(text), *_CLOSING.finditer(text)), key=re.Match.start):
        if run.re is _OPENING:
            opened.append(run.start())
        elif opened and run.end() - (first := opened.pop()) <= _MAX_NAME:
            pairs.append((first, run.end()))
    end = 0
    for start, stop in sorted(pairs):
        if start >= end:  # else it is inside another pair, which stays unchanged
            end = stop
            yield start, stop


def _as_texts(values: Mapping[str, Value] | None) -> Iterator[tuple[str, str]]:
    if not isinstance(values, Mapping | type(None)):
        raise ValidationError(f"variables must be a mapping from names to values, not {type(values).__name__}")
    for name, value in (values or {}).items():
        if not isinstance(name, str):
            raise ValidationError(f"the name {name!r} of a variable is not text", variable=str(name))
        if isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, str | int | float):
            yield name, str(value)
        elif isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
            yield name, ", ".join(value)
        else:
            allowed = ("text", "number", "true or false", "list of strings")
            raise ValidationError(
                f"the variable {name} is {type(value).__name__}, not one of: {', '.join(allowed)}",
                allowed=allowed,
                variable=name,
            )
