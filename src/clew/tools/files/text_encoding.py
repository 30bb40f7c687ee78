"""Decodes and encodes the text of a file. Its encoding, byte order mark and line ends stay the same."""

from __future__ import annotations

import codecs

import msgspec

from clew.errors import InvalidInput

HEAD_BYTES = 8_192
"""The number of bytes that decide whether a file is text."""

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded text with its original line ends. `newline` is the most frequent one."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"

    def encode(self, text: str) -> bytes:
        """Encode another text in the same encoding. Raises InvalidInput for a character that it lacks."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            odd = text[error.start]
            raise InvalidInput(
                "text", f"U+{ord(odd):04X} cannot be written in {self.encoding}, the encoding of the file"
            ) from None

    def with_newlines(self, text: str) -> str:
        """Convert a text to the line ends of the file."""
        plain = text.replace("\r\n", "\n")
        return plain.replace("\n", self.newline) if self.newline != "\n" else text


def is_binary(head: bytes) -> bool:
    """Whether the beginning of a file shows that it is not text."""
    return b"\0" in head[:HEAD_BYTES] and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(content: bytes) -> Decoded | None:
    """Decode a file; None if it is binary. Bytes that are not valid UTF-8 count as Latin-1, in which every byte is a
    character."""
    if is_binary(content):
        return None
    mark, encoding = next(((mark, name) for mark, name in _MARKS if content.startswith(mark)), (b"", "utf-8"))
    body = content[len(mark) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        mark, encoding, text = b"", "latin-1", content.decode("latin-1")
    return Decoded(text=text, encoding=encoding, mark=mark, newline=_newline_of(text))


def _newline_of(text: str) -> str:
    pairs = text.count("\r\n")
    return "\r\n" if pairs and pairs * 2 > text.count("\n") else "\n"
