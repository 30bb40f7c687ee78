"""The template of a new skill, and the check for text of it that is still there."""

from __future__ import annotations

import msgspec

from clew.skills.files.document import MarkdownDocument

_TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

What this is about, in a sentence or two.

## When to use it

- a situation in which it helps
- a word that people use for it

## How it is done

1. The first step: what to look at, and what to do.
2. The next step. Long texts go to a file of their own, which is read when it is needed:
   link it from here, as in `[templates](references/templates.md)`.
3. How to see that it worked.

## What to avoid

- a mistake that is easily made, and why it is one
"""
_ABOUT = "Say what it does, and when it is of use, in words that people would use"


def begin_text(name: str, description: str = "") -> str:
    """Return the text of a new skill."""
    about = msgspec.json.encode(" ".join(description.split()) or _ABOUT).decode()
    return _TEMPLATE.format(name=name, description=about, title=name.replace("-", " ").capitalize())


_BODY = _TEMPLATE.partition("# {title}")[2]
_SENTENCES = frozenset(line.strip() for line in _BODY.splitlines() if line.strip() and not line.startswith("#"))


def find_placeholder(document: MarkdownDocument) -> int:
    """Return the first line with text of the template; 0 if there is none."""
    if document.meta.get("description") == _ABOUT:
        return document.line_of("description")
    lines = enumerate(document.body.split("\n"), document.body_line)
    return next((number for number, line in lines if line.strip() in _SENTENCES), 0)
