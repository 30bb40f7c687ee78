"""YAML from outside, without its dangerous parts: aliases, tags, unlimited depth and unlimited numbers."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import cache
from typing import Any

from clew.errors import FormatError
from clew.lazy_pattern import lazy_pattern

MAX_YAML = 8_000_000
MAX_EVENTS = 400_000
MAX_DEPTH = 100

# As in YAML 1.1, but not to base 60, which takes quadratic time and turns times of day into numbers. A number with more
# digits is text. Python itself refuses decimal numbers that are too long.
_INT = lazy_pattern(r"[-+]?(?:0b[01_]{1,64}|0x[0-9a-fA-F_]{1,64}|0[0-7_]{0,64}|[1-9][0-9_]*)\Z")
_FLOAT = lazy_pattern(
    r"(?:[-+]?(?:[0-9][0-9_]{0,400}\.[0-9_]{0,400}|\.[0-9][0-9_]{0,400})(?:[eE][-+][0-9]{1,9})?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)


def load_yaml(document: str, text: str) -> Any:
    """Parse a YAML document into plain values, dates as text. Raises FormatError."""
    # Loaded here: only reading documents should pay for it.
    import yaml

    loader = _loader()
    if len(text) > MAX_YAML:
        raise FormatError(document, f"{len(text):,} characters of YAML is over the limit of {MAX_YAML:,}")
    try:
        _check_events(document, yaml.parse(text, Loader=loader))
        return _plain(yaml.load(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise FormatError(document, f"is not YAML: {error.problem}{line}") from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise FormatError(document, f"is not YAML: {reason}") from error


@cache
def _loader() -> Any:
    """A YAML loader class for plain values that accepts only the number formats defined above."""
    import yaml

    # The loader in C is ten times as fast; some builds of PyYAML lack it.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    numbers = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    kept = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in numbers]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    loader: Any = type("PlainLoader", (base,), {"yaml_implicit_resolvers": kept})
    for tag, pattern in zip(numbers, (_INT, _FLOAT), strict=True):
        loader.add_implicit_resolver(tag, pattern, list("-+0123456789."))
    return loader


def _check_events(document: str, events: Iterable[Any]) -> None:
    """Check all parser events before any value is built, so that a YAML bomb never expands. Raises FormatError."""
    import yaml

    depth = 0
    for count, event in enumerate(events):
        if count > MAX_EVENTS:
            raise FormatError(document, f"has more than {MAX_EVENTS:,} values")
        if isinstance(event, yaml.AliasEvent):
            raise FormatError(document, "uses a YAML alias; write the value out instead")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) not in (None, "!"):
            raise FormatError(document, "uses a YAML tag; plain values are expected")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise FormatError(document, f"goes more than {MAX_DEPTH} levels deep")


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case datetime.date():
            return value.isoformat()
        case _:
            return value
