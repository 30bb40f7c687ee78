"""Tools: one class for every kind, built from a typed function or from an external definition."""

from clew.tools.content import Guidance, GuidedContent, guide
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits, tool

__all__ = ["Effects", "Guidance", "GuidedContent", "Tool", "ToolContext", "ToolLimits", "guide", "tool"]
