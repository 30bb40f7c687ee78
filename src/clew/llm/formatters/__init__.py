"""Formatters: tool descriptions and tool calls as text, for models without tool calling."""

from clew.llm.formatters.formatter import Formatter, ParsedAnswer, find_formatter, register_formatter
from clew.llm.formatters.model import FormattedModel

__all__ = ["FormattedModel", "Formatter", "ParsedAnswer", "find_formatter", "register_formatter"]
