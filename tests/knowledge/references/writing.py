"""What tests of references read: files, a PDF that is one, an RFC, and code in memory."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from clew.errors import NotFound
from clew.knowledge.references.ingesting import NewSource
from clew.trail.nodes import Node, ScoredNode
from tests.knowledge.nodes import CODE, node

RFC = """\
Internet Engineering Task Force (IETF)                       R. Fielding
Request for Comments: 9110                                   M. Nottingham, Ed.
Category: Standards Track                                      June 2022


                             HTTP Semantics

Abstract

   The Hypertext Transfer Protocol is a stateless protocol.

Table of Contents

   1.  Introduction . . . . . . . . . . . . . . . . . . . . . . .   3
   2.  Retry-After  . . . . . . . . . . . . . . . . . . . . . . .   4

1.  Introduction

   A client sends requests and a server answers them.

Fielding & Nottingham        Standards Track                    [Page 1]
\f
RFC 9110                     HTTP Semantics                    June 2022

2.  Retry-After

   A server sends Retry-After to say how long a client should wait.

2.1.  Delay

   The delay is a number of seconds.
"""

RETRIES = """\
# Retries

Requests that failed should be retried with exponential backoff.

## Limits

A client must never retry more than five times, and should add jitter.
"""


class Code:
    """Code in memory, found by the words of its name and content."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = [
            node(CODE, name, content, id=f"code:src/{name}.py#{name}", path=f"src/{name}.py", line_start=1)
            for name, content in nodes.items()
        ]

    async def search(
        self, query: str, *, limit: int = 10, symbol_type: str | None = None, file_pattern: str | None = None
    ) -> list[ScoredNode]:
        words = set(query.lower().split())
        scored = [(len(words & set(f"{each.name} {each.content}".lower().split())), each) for each in self._nodes]
        found = sorted((each for each in scored if each[0]), key=lambda each: -each[0])
        return [ScoredNode(node=each, similarity=hits / len(words)) for hits, each in found][:limit]

    async def symbol(self, ref: str) -> Node:
        for each in self._nodes:
            if each.id == ref:
                return each
        raise NotFound("symbol", ref)

    async def look(self) -> None:
        """Nothing here changes."""

    def contains(self, text: str) -> bool:
        return True


def write(root: Path, path: str, text: str | bytes) -> str:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pdf(*pages: str, title: str = "", author: str = "", created: str = "", password: str = "") -> bytes:
    """A PDF with a line of text for each line of each page."""
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(width=600, height=800)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 14 TL 50 700 Td {lines} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    told = {"/Title": title, "/Author": author, "/CreationDate": created}
    writer.add_metadata({key: value for key, value in told.items() if value})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def practice(title: str, text: str) -> NewSource:
    return NewSource(kind="best_practice", title=title, text=text)
