"""What a tool gave back, as its response holds it."""

from __future__ import annotations

from typing import Any

from clew.tools.content import GuidedContent, Valued


def output_of(content: GuidedContent, most: int) -> Any:
    """What a response holds: a value as it is, where it is not too long, and else text."""
    if isinstance(content, Valued) and len(content.content) <= most:
        return content.value
    return _within(content, most)


def _within(content: GuidedContent, most: int) -> str:
    """What a tool gave back as text, no longer than its limit."""
    text = content.content
    steps = "\n".join(f"- {step.route}: {step.prose}" for step in content.guidance)
    text = f"{text}\n\nNext steps:\n{steps}" if steps else text
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were left out]"
