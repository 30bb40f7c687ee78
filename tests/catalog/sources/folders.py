"""Folders for tests, and the results of listing them."""

from __future__ import annotations

from pathlib import Path

from clew.catalog.resource import DocumentListing


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def ids(listing: DocumentListing) -> list[str]:
    return [document.id for document in listing.documents]


def reasons(listing: DocumentListing) -> dict[str, str]:
    return {left_out.document: left_out.reason for left_out in listing.skipped}
