"""`clew ask` without the parser: a question with plain arguments is read here, and a running server or this process
answers it. The parser loads more modules than it takes to read a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.cli import is_dashed_text
from clew.cli.local_server.client import ask_server

_TEXTS = ("--domain", "--handle", "--folder", "--owner", "--scopes")
_NUMBERS = ("--per-domain", "--budget")
_FLAGS = ("--agent", "--json", "--cached", "--no-server")
_DEFAULTS = {"per_domain": 10, "budget": 2_000}
OBJECTS = 2_000_000
"""New objects before the garbage collector runs: one question makes fewer, and they end with the process."""


def ask_plainly(arguments: Sequence[str]) -> int | None:
    """Answer a question and return the exit code; None for arguments that need the parser. Raises ClewError."""
    given = read_arguments(arguments)
    if given is None:
        return None
    code = None if "no_server" in given else ask_server(given)
    return code if code is not None else _ask_here(given)


def _ask_here(given: dict[str, Any]) -> int:
    # if a server answers, nothing of this is loaded
    import asyncio
    import gc

    from clew.catalog.operations.answers import Question
    from clew.cli.folder_access import FolderAccess
    from clew.cli.terminal.logs import start_logging
    from clew.cli.workspace import answer_question

    gc.set_threshold(OBJECTS)
    start_logging()
    folder = given.get("folder")
    here = FolderAccess(
        folder=None if folder is None else Path(folder), owner=given.get("owner"), scopes=given.get("scopes", "")
    )
    question = Question(
        query=given["query"],
        domain=given.get("domain"),
        per_domain=given["per_domain"],
        budget=given["budget"],
        handle=given.get("handle"),
    )
    flags = {"is_cached": "cached" in given, "is_for_agents": "agent" in given, "is_json": "json" in given}
    asyncio.run(answer_question(question, here, **flags))
    return 0


def read_arguments(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `clew ask` by name, if all are plain: words, known options, and valid values. None otherwise."""
    words: list[str] = []
    seen: set[str] = set()
    found: dict[str, Any] = dict(_DEFAULTS)
    rest = iter(arguments)
    for each in rest:
        option, equals, value = each.partition("=") if each.startswith("--") else (each, "", "")
        name = option[2:].replace("-", "_")
        if option in _FLAGS and not equals:
            found[name] = True
        elif option in (*_TEXTS, *_NUMBERS):
            value = value if equals else next(rest, "")
            is_number = value.isascii() and value.isdigit() and len(value) < 10
            is_right = value and not value.startswith("-") and (is_number or option in _TEXTS)
            if not is_right or option in seen:
                return None
            seen.add(option)
            found[name] = int(value) if option in _NUMBERS else value
        elif each.startswith("-") and not is_dashed_text(each):
            return None
        else:
            words.append(each)
    query = " ".join(words)
    return {**found, "query": query} if query.strip() else None
