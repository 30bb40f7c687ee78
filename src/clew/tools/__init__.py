"""Tools: one object for every kind, made from a typed function or taken over from elsewhere."""

from clew.tools.content import Guidance, GuidedContent, guide
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

__all__ = ["Effects", "Guidance", "GuidedContent", "Tool", "ToolContext", "ToolLimits", "guide", "tool"]
