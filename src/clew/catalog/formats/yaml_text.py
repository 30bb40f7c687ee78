"""YAML from outside, without what makes it dangerous: aliases, tags and endless depth."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from clew.errors import FormatError

MAX_YAML = 8_000_000
MAX_EVENTS = 400_000
MAX_DEPTH = 100


def load_yaml(document: str, text: str) -> Any:
    """What the text of a document says, as plain values, dates as text. Raises FormatError."""
    # Loaded here: only reading documents should pay for it.
    import yaml

    # The loader in C is ten times as fast; some builds of PyYAML lack it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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


def _check_events(document: str, events: Iterable[Any]) -> None:
    """Looks at everything before anything is built, so that a bomb never goes off."""
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
