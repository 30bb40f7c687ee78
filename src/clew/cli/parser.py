"""The parser, built from the table of commands, and the look of a command's help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts import App, Parameter

from clew import __version__
from clew.cli.command_table import COMMANDS, HELP_FLAGS, CliCommand, render_rows

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from cyclopts.help.protocols import HelpFormatter
    from rich.console import Console, ConsoleOptions


def build_parser(page: HelpFormatter | None = None) -> App:
    """A parser that knows every command, and imports the one that is asked for. `page` renders help."""
    root = App(
        name="clew",
        version=__version__,
        version_flags=(),
        help_flags=HELP_FLAGS,
        help_format="plaintext",
        help_formatter=page or HelpPage(),
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
    )
    for entry in COMMANDS:
        if isinstance(entry, CliCommand):
            root.command(entry.target, name=entry.name, usage=usage_of(entry))
            continue
        group = App(name=entry.name, help=entry.summary)
        for command in entry.commands:
            group.command(command.target, name=command.name, usage=usage_of(command, entry.name))
        root.command(group)
    return root


def usage_of(command: CliCommand, group: str = "") -> str:
    """The usage line of a command."""
    return " ".join(filter(None, ("clew", group, command.name, "[OPTIONS]", command.takes)))


class HelpPage:
    """Prints the help of a command in the look of `clew --help`."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        if panel.entries:
            rows = [(label_of(entry), meaning_of(entry)) for entry in panel.entries]
            _print(console, "\n" + render_rows("Options" if panel.title == "Parameters" else str(panel.title), rows))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        _print(console, f"Usage: {str(usage).strip()}")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        _print(console, f"\n{description.primary_renderable.plain.strip()}")


def label_of(entry: HelpEntry) -> str:
    return ", ".join(entry.display_labels_with_metavar).replace(" STR", " TEXT")


def meaning_of(entry: HelpEntry) -> str:
    described = entry.description
    text = str(getattr(getattr(described, "primary_renderable", described), "plain", described or "")).strip()
    if entry.choices:
        text += f" One of: {', '.join(entry.choices)}."
    if entry.default not in (None, '""', "()", "False"):
        text += f" [default: {entry.default}]"
    return text


def _print(console: Console, text: str) -> None:
    console.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)
