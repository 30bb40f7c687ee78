"""Tools: one object for every kind, made from a typed function or taken over from elsewhere."""

from clew.tools.content import Guidance, GuidedContent, guide
from clew.tools.tool import Effects, Limits, Tool, ToolContext, tool

__all__ = ["Effects", "Guidance", "GuidedContent", "Limits", "Tool", "ToolContext", "guide", "tool"]
