"""Write docs/reference from the code itself: commands, settings, REST, schemas, modules and the library.

Usage: reference.py [--check]   `--check` writes nothing, and fails when a page is out of date.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from cyclopts import App
from reference_source import modules_page, one_line, python_page, table
from rich.console import Console

from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.openapi import build_document
from clew.cli.command_table import COMMANDS, CliCommand
from clew.cli.parser import build_parser, label_of, meaning_of
from clew.config import NOT_SETTINGS, Config, ConfiguredServer, KnownModel, ProviderConfig, SourceConfig, is_table
from clew.config.descriptions import ABOUT
from clew.trail.bootstrap import read_pieces

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
HEAD = "<!-- Written by `make reference` from the code; a test checks that it is fresh. -->\n\n"


def main() -> None:
    stale = [path for path, text in render_pages() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run make reference" if stale else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in render_pages():
        path.write_text(text, encoding="utf-8")


def render_pages() -> Iterator[tuple[Path, str]]:
    """Each page with the text that it should have. The same code gives the same text."""
    pages: dict[str, Callable[[], Iterator[str]]] = {
        "cli.md": cli_page,
        "config.md": config_page,
        "modules.md": modules_page,
        "python.md": python_page,
        "rest.md": rest_page,
        "schemas.md": schemas_page,
    }
    for name, render in pages.items():
        yield FOLDER / name, HEAD + "\n".join(render()).rstrip() + "\n"


# -- the commands -----------------------------------------------------------------------------------------


class Collected:
    """Takes the parts of a help page instead of printing them."""

    def __init__(self) -> None:
        self.usage, self.about = "", ""
        self.rows: list[tuple[str, str]] = []

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        self.rows += [(label_of(entry), meaning_of(entry)) for entry in panel.entries]

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        self.usage = str(usage).strip()

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        self.about = description.primary_renderable.plain.strip()


def cli_page() -> Iterator[str]:
    yield "# Commands\n"
    yield "`clew --help` lists them, `clew COMMAND --help` explains one. Errors are one line on stderr; the exit code"
    yield "is 1 for an error, 2 for wrong usage, 130 after Ctrl-C. Output is a table on a terminal, and lines with tabs"
    yield "or JSON (`--json`) elsewhere.\n"
    for entry in COMMANDS:
        commands = (
            [(entry.name,)] if isinstance(entry, CliCommand) else [(entry.name, one.name) for one in entry.commands]
        )
        for words in commands:
            yield from command_section(words)


def command_section(words: Sequence[str]) -> Iterator[str]:
    collected = Collected()
    parser: App = build_parser(collected)
    parser.help_print(words, console=Console(file=io.StringIO(), width=200))
    yield f"## clew {' '.join(words)}\n"
    yield f"    {collected.usage}\n"
    yield f"{collected.about}\n"
    yield from table(("option", "meaning"), [(f"`{label}`", meaning) for label, meaning in collected.rows])


# -- the settings -----------------------------------------------------------------------------------------


def config_page() -> Iterator[str]:
    yield "# Settings\n"
    yield "Defaults < `.clew/config.py` < `.clew/config.toml` < environment < flags; see"
    yield "[the guide](../guides/configuration.md). `clew up` writes a `config.toml` with every setting as a comment. A"
    yield "name with a dot is in a section: `server.port` is `port` under `[server]`.\n"
    rows = [
        (f"`{name}`", f"`CLEW_{name.replace('.', '_').upper()}`", f"`{default}`", ABOUT[name])
        for name, default in settings(Config(), "")
    ]
    yield from table(("setting", "environment", "default", "meaning"), rows)
    yield "Other variables: `CLEW_FOLDER` is the folder itself, `CLEW_DEBUG=1` shows where an error comes from,"
    yield "`CLEW_NO_SERVER=1` keeps `clew ask` from using a running server, and"
    yield "`NO_COLOR` turns colours off.\n"
    yield "## `[sources.NAME]`\n"
    yield "One table for each place that documents come from; see [the guide](../guides/sources.md). All other keys"
    yield "are options of its kind.\n"
    yield from table(("setting", "type", "default"), list(table_settings(SourceConfig)))
    yield "## `[providers.NAME]`\n"
    yield "One table for each place where models answer. A key is named and never written here: `env:NAME`,"
    yield "`file:PATH` or `keyring:SERVICE/USER`.\n"
    yield from table(("setting", "type", "default"), list(table_settings(ProviderConfig)))
    yield "## `[[mcp.servers]]`\n"
    yield "One table for each foreign MCP server beside those of `mcp.json`; see"
    yield "[the guide](../guides/mcp-servers.md).\n"
    yield from table(("setting", "type", "default"), list(table_settings(ConfiguredServer)))
    yield "## `[models.known.NAME]`\n"
    yield "Your facts about a model; other values come from the catalogue. Prices are in US dollars per million"
    yield "tokens.\n"
    yield from table(("setting", "type", "default"), list(table_settings(KnownModel)))


def table_settings(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(kind):
        if field.name != "options":
            made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            default = "the name of the table" if field.name == "domain" else made
            needed = "needed" if default is msgspec.NODEFAULT else default
            shown = needed if isinstance(needed, str) and needed else msgspec.json.encode(needed).decode()
            yield f"`{field.name}`", str(getattr(field.type, "__name__", field.type)), shown


def settings(config: msgspec.Struct, prefix: str) -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(config):
        default = getattr(config, field.name)
        if isinstance(default, msgspec.Struct):
            yield from settings(default, f"{field.name}.")
        elif field.name not in NOT_SETTINGS and not is_table(field):
            yield prefix + field.name, msgspec.json.encode(default).decode()


# -- the REST door ----------------------------------------------------------------------------------------


def rest_page() -> Iterator[str]:
    document = build_document(OPERATIONS, "")
    yield "# REST\n"
    yield "`clew up` serves this on port 8081, with this reference at `/docs` and the OpenAPI document at"
    yield "`/openapi.json`. Send a token (`clew token`, or POST /auth/token) as `Authorization: Bearer`. An error is"
    yield '`{"error": {"code", "message", "hint", ...}}`.\n'
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield from operation_section(method.upper(), path, operation)
    yield "## Types\n"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield from type_section(name, schema)


def operation_section(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"## {method} {path}\n"
    yield f"{operation['summary']}. {operation.get('description', '')}".strip() + "\n"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    statuses = operation["responses"]
    answer = next(iter(next(iter(statuses.values())).get("content", {}).values()), {}).get("schema", {})
    if body:
        yield f"Body: {type_name(body)}.\n"
    yield f"Answers: {next(iter(statuses))} with {type_name(answer)}; otherwise {', '.join(list(statuses)[1:])}.\n"
    rows = [
        (f"`{each['name']}`", each["in"], type_name(each["schema"]), each["description"])
        for each in operation.get("parameters", ())
    ]
    yield from table(("parameter", "in", "type", "meaning"), rows)


def type_section(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{one_line(schema.get('description', ''))}\n"
    needed = schema.get("required", ())
    rows = [
        (
            f"`{field}`",
            type_name(each),
            "needed" if field in needed else f"`{msgspec.json.encode(each.get('default')).decode()}`",
        )
        for field, each in schema.get("properties", {}).items()
    ]
    yield from table(("field", "type", "default"), rows)


def type_name(schema: dict[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(type_name(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {type_name(schema.get('items') or {})}"
    kind = schema.get("type", "anything" if schema else "nothing")
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


# -- the schemas ------------------------------------------------------------------------------------------


def schemas_page() -> Iterator[str]:
    pieces = read_pieces()
    yield "# Schemas\n"
    yield "The records that `clew up` writes to a new trail. A `schema.def.v1` breadcrumb describes a schema; editing"
    yield "it changes the rules from the next write on, without a restart. Any other schema name may be used freely.\n"
    for piece in pieces:
        if piece.schema_name == "schema.def.v1":
            yield from schema_section(piece.context)
    yield "## TTL policies\n"
    policies = [piece for piece in pieces if piece.schema_name == "ttl.policy.v1"]
    rows = [(piece.title, f"`{msgspec.json.encode(piece.context).decode()}`") for piece in policies]
    yield from table(("policy", "context"), rows)


def schema_section(definition: dict[str, Any]) -> Iterator[str]:
    yield f"## {definition['schema_name']}\n"
    yield f"{definition['description']}\n"
    schema = definition.get("json_schema", {})
    rows = [
        (f"`{name}`", type_name(each), "needed" if name in schema.get("required", ()) else "")
        for name, each in schema.get("properties", {}).items()
    ]
    yield from table(("field", "type", ""), rows)
    if either := schema.get("anyOf"):
        yield f"Needs one of: {', '.join(f'`{name}`' for each in either for name in each['required'])}.\n"
    if hints := definition.get("llm_hints"):
        yield f"Shown to a model with: `{msgspec.json.encode(hints).decode()}`\n"
    if definition.get("embed") == "never":
        yield "Not found by meaning, only by its words.\n"


if __name__ == "__main__":
    main()
