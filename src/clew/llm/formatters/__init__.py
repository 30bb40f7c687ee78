"""Formatters: how models without tool calls of their own are told of tools, and how their calls are read."""

from clew.llm.formatters.formatter import Formatter, ParsedText, find_formatter, register_formatter
from clew.llm.formatters.model import FormattedModel

__all__ = ["FormattedModel", "Formatter", "ParsedText", "find_formatter", "register_formatter"]
