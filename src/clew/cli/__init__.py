"""The `clew` command: arguments → use case → print. One module for each group of commands.

Help and version are answered here, from the table of commands. Any other command loads the parser and the module of
that command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from itertools import pairwise, takewhile
from typing import Any

from clew import __version__
from clew.cli.command_table import COMMANDS, HELP_FLAGS, Group, find_command, find_page, spell_out
from clew.cli.terminal.output import note, one_line
from clew.errors import ClewError, InvalidInput, NotFound, SchemaViolation
from clew.lazy_pattern import lazy_pattern

INTERRUPTED, PIPE_CLOSED = 130, 141
"""Exit codes after SIGINT and SIGPIPE, as a shell reports them."""

_WHERE_LISTED = {
    "breadcrumb": "`clew trail ls` shows ids",
    "secret": "`clew secret ls` lists them",
    "dead letter": "`clew dlq ls` lists them",
    "server": "`clew mcp ls` lists them",
    "file": "Check the path",
}
"""Hints for a NotFound error by its kind."""
_MEANT = lazy_pattern(r'(Unknown command "([^"]+)"\. Did you mean ")([^"]+)')


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for work that failed, 2 for wrong usage.

    Errors are one line on stderr. CLEW_DEBUG=1 shows where they come from.
    """
    given = spell_out(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _answer(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the terminal shows ^C: begin a new line for the next prompt
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("CLEW_DEBUG") == "1":
            raise
        note(f"clew: {one_line(_explain(error))}")
        return 2 if _is_usage(error) else 1


def _answer(given: list[str]) -> int:
    if given == ["--version"]:
        sys.stdout.write(f"{__version__}\n")
        return 0
    page = find_page(given)
    if page is not None:
        sys.stdout.write(page)
        return 0
    return _run(given)


def _run(given: list[str]) -> int:
    _check_arguments(given)
    given = _mark_text(given)
    if given[:1] == ["ask"]:
        from clew.cli.plain_question import ask_plainly  # for this command alone

        code = ask_plainly(given[1:])
        if code is not None:
            return code
    # The parser takes as long to load as the rest of a short command, and help does not need it.
    import asyncio
    import inspect

    from cyclopts import CycloptsError

    from clew.cli.arguments.argument_separator import remember_typed
    from clew.cli.parser import build_parser
    from clew.cli.terminal.logs import start_logging

    start_logging()
    remember_typed(given)
    try:
        command, bound, _ = build_parser().parse_args(given, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        error.verbose = False
        note(f"clew: {one_line(_in_words(error, given))} {_where_to_look(given)}")
        return 2
    call: Callable[..., Any] = command
    code = call(*bound.args, **bound.kwargs)
    if inspect.iscoroutine(code):
        code = asyncio.run(code)
    return int(code or 0)


def _check_arguments(given: Sequence[str]) -> None:
    """Raise InvalidInput for arguments that are not UTF-8, and for an empty `--folder`, which would mean the current
    folder."""
    for number, each in enumerate(given, 1):
        if any("\ud800" <= letter <= "\udfff" for letter in each):
            raise InvalidInput(f"argument {number}", "is not valid UTF-8. Check the encoding of your terminal")
    own = list(takewhile(lambda each: each != "--", given))  # the others are those of another program
    if "--folder=" in own or ("--folder", "") in pairwise(own):
        raise InvalidInput("--folder", "is empty. Name a folder, or leave the option out")


def _mark_text(given: list[str]) -> list[str]:
    """Put `--` before a last argument that is a text starting with a dash, such as `"--verbose prints nothing"`."""
    *others, last = given
    return [*others, "--", last] if is_dashed_text(last) and "--" not in others else given


def is_dashed_text(argument: str) -> bool:
    """Whether an argument that starts with a dash is a text: no option has a space in its name."""
    return argument.startswith("-") and any(map(str.isspace, argument.partition("=")[0]))


def _in_words(error: Exception, given: list[str]) -> str:
    """A readable message for a usage error."""
    if given and given[0].startswith("-"):
        return f"{given[0]} belongs behind the command."
    # as the parser itself: only a command that is run needs it
    from cyclopts import UnusedCliTokensError

    left = error.unused_tokens if isinstance(error, UnusedCliTokensError) else None
    if left and not left[0].startswith("-"):
        return f"too many arguments: {' '.join(left)}. Put a text of several words in quotes."
    return _MEANT.sub(lambda found: _same_letters(found, given), " ".join(str(error).split()))


def _same_letters(found: re.Match[str], given: list[str]) -> str:
    """The parser's guess for a mistyped command. If a command has the same letters in another order, return that
    command instead."""
    group = next((each for each in COMMANDS if isinstance(each, Group) and each.name == given[0]), None)
    names = [each.name for each in (group.commands if group is not None else COMMANDS)]
    swapped = [each for each in names if sorted(each) == sorted(found[2])]
    return f"{found[1]}{swapped[0] if swapped else found[3]}"


def _where_to_look(given: list[str]) -> str:
    """A sentence that names the closest help page for these arguments."""
    words = [word for word in given[:2] if not word.startswith("-")]
    while words and find_page([*words, HELP_FLAGS[0]]) is None and find_command(words) is None:
        words.pop()
    return f"See `{' '.join(['clew', *words, HELP_FLAGS[0]])}`"


def _is_usage(error: Exception) -> bool:
    """Whether an error is a usage error: the arguments are invalid by themselves. A context that violates its schema is
    no usage error, because only the trail can check it."""
    return isinstance(error, InvalidInput) and not isinstance(error, SchemaViolation)


def _explain(error: Exception) -> str:
    """An error in words: the problem and the next step."""
    if isinstance(error, NotFound) and not error.hint:
        error.hint = _WHERE_LISTED.get(error.kind, "")
    if isinstance(error, ClewError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return f"{told}. Check its permissions" if isinstance(error, PermissionError) else told
    return f"unforeseen {type(error).__name__}: {error}. Set CLEW_DEBUG=1 to see where it comes from"


def _drop_output() -> None:
    """Redirect standard output to the null device after its reader has gone, so that the interpreter's final flush does
    not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
