"""The reference page: the OpenAPI document as plain HTML that needs nothing from outside."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} {version}: REST reference</title>
<style>{style}</style>
</head>
<body>
<nav>{contents}</nav>
<main>
<h1>{title} {version}</h1>
<p>{summary}. Also as an <a href="/openapi.json">OpenAPI document</a>.</p>
{operations}
<h2 id="schemas">Schemas</h2>
{schemas}
</main>
</body>
</html>
"""


def render_reference(document: dict[str, Any]) -> str:
    """One page with every operation by group, and every schema."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    info, schemas = document["info"], document["components"]["schemas"]
    return _PAGE.format(
        title=escape(info["title"]),
        version=escape(info["version"]),
        summary=escape(info["summary"]),
        style=_style(),
        contents="".join(f'<a href="#{name}">{name}</a>' for name in (*groups, "schemas")),
        operations="".join(_render_group(name, entries) for name, entries in groups.items()),
        schemas="".join(_render_schema(name, schemas[name]) for name in sorted(schemas)),
    )


@cache
def _style() -> str:
    return files("clew.adapters.rest").joinpath("reference.css").read_text(encoding="utf-8")


def _render_group(name: str, entries: list[tuple[str, str, dict[str, Any]]]) -> str:
    return f'<h2 id="{name}">{name}</h2>' + "".join(_render_operation(*entry) for entry in entries)


def _render_operation(method: str, path: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    lines = (
        f'<section id="{operation["operationId"]}">',
        f'<h3><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code></h3>',
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>",
        _render_parameters(operation.get("parameters", [])),
        f"<p>Body: {_kind(body)}</p>" if body else "",
        _render_responses(operation["responses"]),
        "</section>",
    )
    return "".join(lines)


def _render_parameters(parameters: list[dict[str, Any]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code>{' *' if each['required'] else ''}</td>"
        f"<td>{each['in']}</td><td>{_kind(each['schema'])}</td><td>{escape(each['description'])}</td></tr>"
        for each in parameters
    )
    return f"<table><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>{rows}</table>"


def _render_responses(responses: dict[str, Any]) -> str:
    shown = []
    for status, response in responses.items():
        content = response.get("content", {})
        kind = next((_kind(each["schema"]) for each in content.values()), "") if int(status) < 400 else ""
        shown.append(f"<li><b>{status}</b> {escape(response['description'])} {kind}</li>")
    return f"<ul>{''.join(shown)}</ul>"


def _render_schema(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{' *' if field in required else ''}</td><td>{_kind(each)}</td></tr>"
        for field, each in schema.get("properties", {}).items()
    )
    about = escape(schema.get("description", ""))
    return f'<section id="schema-{name}"><h3>{name}</h3><p>{about}</p><table>{rows}</table></section>'


def _kind(schema: dict[str, Any]) -> str:
    """A schema in one line, with links to the named ones."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_kind(schema['items'])}"
    return escape(str(schema.get("type", "any value")))
