"""Exports tools in the formats of Clew, OpenAI, Anthropic and the Model Context Protocol. Names that a format does not
allow are encoded deterministically, and can be decoded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from clew.errors import ValidationError
from clew.tools.tool import Tool

Shape = Literal["neutral", "openai", "anthropic", "mcp"]
SHAPES: tuple[Shape, ...] = ("neutral", "openai", "anthropic", "mcp")

MAX_OPENAI_DESCRIPTION = 1_024
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MCP = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_WRITTEN = re.compile(r".*__[0-9a-f]{12}", re.DOTALL)
_DIGEST = 12


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """Tools in one format, and the original name of each encoded name."""

    shape: Shape
    tools: list[dict[str, Any]]
    names: dict[str, str]

    def name_of(self, written: str) -> str:
        """Return the original name of the tool that a model called. Raises ValidationError for an unknown name."""
        found = self.names.get(written)
        if found is None:
            raise ValidationError(f"unknown tool {written[:200]!r}", allowed=tuple(self.names), toolName=written)
        return found


def export_tools(tools: Mapping[str, Tool], shape: Shape = "neutral") -> Export:
    """Return all tools in a format, in order. Raises ValidationError for an unknown format."""
    write = _WRITERS.get(shape)
    if write is None:
        raise ValidationError(f"unknown shape {shape!r}", allowed=SHAPES, hint=f"Shapes are {', '.join(SHAPES)}")
    written = {written_name(name, shape): name for name in tools}
    return Export(shape=shape, tools=[write(name, tools[own]) for name, own in written.items()], names=written)


def written_name(name: str, shape: Shape) -> str:
    """Return a name that the format allows: the name itself if it is valid, else its letters with a digest.

    The result is deterministic and unique for each name.
    """
    if shape == "neutral":
        return name
    allowed, limit = (_MCP, 128) if shape == "mcp" else (_PLAIN, 64)
    if allowed.fullmatch(name) and not _WRITTEN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    letters = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: limit - _DIGEST - 2]
    return f"{letters}__{digest}"


def _neutral(name: str, tool: Tool) -> dict[str, Any]:
    shown = {"name": name, "title": tool.title, "description": tool.description, "inputSchema": _schema(tool)}
    extra = {"outputSchema": tool.output_schema, "examples": list(tool.examples)}
    return {**shown, **{key: value for key, value in extra.items() if value}}


def _openai(name: str, tool: Tool) -> dict[str, Any]:
    description = tool.description
    if len(description) > MAX_OPENAI_DESCRIPTION:
        description = f"{description[: MAX_OPENAI_DESCRIPTION - 1]}…"
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": _schema(tool)},
    }


def _anthropic(name: str, tool: Tool) -> dict[str, Any]:
    return {"name": name, "description": tool.description, "input_schema": _schema(tool)}


def _mcp(name: str, tool: Tool) -> dict[str, Any]:
    hints = {
        "readOnlyHint": tool.effects.reads_only,
        "destructiveHint": tool.effects.destroys,
        "idempotentHint": tool.effects.repeats_safely,
        "openWorldHint": tool.effects.reaches_out,
    }
    shown = {"name": name, "description": tool.description, "inputSchema": _schema(tool), "annotations": hints}
    extra = {"title": tool.title, "outputSchema": tool.output_schema}
    return {**shown, **{key: value for key, value in extra.items() if value}}


_WRITERS = {"neutral": _neutral, "openai": _openai, "anthropic": _anthropic, "mcp": _mcp}


def _schema(tool: Tool) -> dict[str, Any]:
    """Return the schema as an object schema, which every format requires."""
    return {"type": "object", "properties": {}, **tool.schema}
