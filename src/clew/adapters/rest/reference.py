"""The pages of the server: `/` with its addresses, and `/docs`, the OpenAPI document as HTML with a form to try it.

Both need nothing from outside: style and script are in the page, and the policy of the page allows no others.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import Any

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""

_HOME = """<main>
<h1>{title} {version}</h1>
<p>This server is running.</p>
<table>
<tr><td>MCP, for coding agents</td><td><code id="mcp">{mcp}</code> <button data-copy="mcp">Copy</button></td></tr>
<tr><td>REST</td><td><a href="/docs">Reference with a form to try each operation</a>,
<a href="/openapi.json">OpenAPI document</a></td></tr>
<tr><td>Operation</td><td><a href="/metrics">Metrics</a>, <a href="/health">health</a>,
<a href="/ready">readiness</a></td></tr>
</table>
<p>Most calls need a token. Make one with <code>clew token</code> in the folder that is served.</p>
</main>"""

_REFERENCE = """<nav>{contents}</nav>
<main>
<h1>{title} {version}</h1>
<p>{summary}. Also as an <a href="/openapi.json">OpenAPI document</a>.</p>
<p><label>Token for “Try it”: <input id="token" type="password" autocomplete="off"
placeholder="printed by clew token"></label></p>
{operations}
<h2 id="statuses">Status codes</h2>
{statuses}
<h2 id="schemas">Schemas</h2>
{schemas}
</main>"""

_TRIES = ("get", "post", "patch", "put", "delete")
STATUS_MEANINGS = {
    200: "The call succeeded.",
    201: "The record was written, and is on disk.",
    202: "The call was accepted; its result comes later.",
    204: "The call succeeded; there is nothing to return.",
    400: "The request cannot be read. The error names the field.",
    401: "The token is missing, wrong or expired. Make one with `clew token`.",
    403: "The token does not have the role or scope that this needs.",
    404: "There is no such record, or you may not see it.",
    409: "The record changed since the version that you named. Read it again.",
    412: "The version in If-Match is not the current one. Read it again.",
    413: "The body is over the limit of the server.",
    415: "The body must be JSON: send Content-Type: application/json.",
    422: "A field has a value that is not allowed. The error names it and what is allowed.",
    428: "An update needs the version that it was made from: send If-Match.",
    500: "Clew has a defect here. The log has the details under the request id.",
    502: "A tool, model, source or foreign server failed. The error names it.",
    503: "The server is busy or stopping: retry after the time in Retry-After.",
    507: "The disk is full. Nothing was written.",
}
"""The meaning of each status, and the next step."""


def render_home(title: str, version: str, host: str) -> tuple[bytes, bytes]:
    """The page at `/` for a host, and its content security policy."""
    mcp = f"http://{host}/mcp"
    return _render(f"{title} {version}", _HOME.format(title=escape(title), version=escape(version), mcp=escape(mcp)))


def render_reference(document: dict[str, Any]) -> tuple[bytes, bytes]:
    """The page at `/docs` with every operation by group and every schema, and its content security policy."""
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    info, schemas = document["info"], document["components"]["schemas"]
    statuses = sorted({int(status) for group in groups.values() for *_, each in group for status in each["responses"]})
    body = _REFERENCE.format(
        title=escape(info["title"]),
        version=escape(info["version"]),
        summary=escape(info["summary"]),
        contents="".join(f'<a href="#{name}">{name}</a>' for name in (*groups, "statuses", "schemas")),
        operations="".join(_render_group(name, entries, schemas) for name, entries in groups.items()),
        statuses=_render_statuses(statuses),
        schemas="".join(_render_schema(name, schemas[name]) for name in sorted(schemas)),
    )
    return _render(f"{info['title']} {info['version']}: REST reference", body)


def _render(title: str, body: str) -> tuple[bytes, bytes]:
    script = _asset("reference.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'; connect-src 'self'"
    policy = f"default-src 'none'; {allowed}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    page = _PAGE.format(title=escape(title), style=_asset("reference.css"), body=body, script=script)
    return page.encode(), policy.encode()


@cache
def _asset(name: str) -> str:
    return files("clew.adapters.rest").joinpath(name).read_text(encoding="utf-8")


def _render_group(name: str, entries: list[tuple[str, str, dict[str, Any]]], schemas: Mapping[str, Any]) -> str:
    return f'<h2 id="{name}">{name}</h2>' + "".join(_render_operation(*entry, schemas) for entry in entries)


def _render_operation(method: str, path: str, operation: dict[str, Any], schemas: Mapping[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    example = json.dumps(build_example(body, schemas), indent=2, ensure_ascii=False) if body else ""
    lines = (
        f'<section id="{operation["operationId"]}">',
        f'<h3><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code></h3>',
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>",
        _render_parameters(operation.get("parameters", [])),
        f"<p>Body: {_kind(body)}, for example</p><pre>{escape(example)}</pre>" if body else "",
        _render_responses(operation["responses"]),
        _render_form(method, path, operation.get("parameters", []), example),
        "</section>",
    )
    return "".join(lines)


def _render_form(method: str, path: str, parameters: list[dict[str, Any]], example: str) -> str:
    """A form that sends the request from the page, and shows the answer."""
    if method not in _TRIES:
        return ""
    fields = "".join(
        f'<label>{escape(each["name"])} <input name="{escape(each["name"])}" data-in="{each["in"]}"></label>'
        for each in parameters
    )
    body = f"<textarea rows=6>{escape(example)}</textarea>" if example else ""
    return (
        f'<details><summary>Try it</summary><form data-method="{method.upper()}" data-path="{escape(path)}">'
        f"{fields}{body}<button>Send</button><pre hidden></pre></form></details>"
    )


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
    """The answers of success with their schemas, then the errors as links to their meaning."""
    good, bad = [], []
    for status, response in responses.items():
        phrase = f"{status} {_phrase(int(status))}"
        if int(status) < 400:
            kind = next((_kind(each["schema"]) for each in response.get("content", {}).values()), "")
            good.append(f"<li><b>{phrase}</b> {kind}</li>")
        else:
            bad.append(f'<a href="#status-{status}" title="{escape(_meaning(int(status)))}">{phrase}</a>')
    errors = f"<li>Errors: {', '.join(bad)}</li>" if bad else ""
    return f"<ul>{''.join(good)}{errors}</ul>"


def _render_statuses(statuses: list[int]) -> str:
    rows = (
        f'<tr id="status-{status}"><td><b>{status}</b> {_phrase(status)}</td><td>{escape(_meaning(status))}</td></tr>'
        for status in statuses
    )
    return f"<table>{''.join(rows)}</table>"


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _meaning(status: int) -> str:
    return STATUS_MEANINGS[status]


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


def build_example(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 0) -> Any:
    """A small value that fits a schema: the required fields, with the first choice and the least number."""
    if "$ref" in schema:
        return build_example(schemas[schema["$ref"].rsplit("/", 1)[-1]], schemas, depth)
    if "anyOf" in schema:
        return build_example(schema["anyOf"][0], schemas, depth)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            known = {name: each for name, each in schema.get("properties", {}).items() if name in required}
            return {name: build_example(each, schemas, depth + 1) for name, each in known.items()} if depth < 5 else {}
        case "array":
            return [build_example(schema["items"], schemas, depth + 1)] if "items" in schema and depth < 5 else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text"
