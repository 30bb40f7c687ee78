"""Sample documents for tests of references: files, a valid PDF and an RFC."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from clew.knowledge.documents.ingest import Ingested, NewSource
from clew.knowledge.documents.research import Library

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


OpenLibrary = Callable[..., Library]


def practice(title: str, text: str) -> NewSource:
    return NewSource(kind="best_practice", title=title, text=text)


async def verified(library: Library, source: NewSource) -> Ingested:
    """Ingest a source and verify it as a person."""
    return await library.verify_source((await library.ingest_source(source)).ids[0])
