"""Text of Google Drive: documents in its own formats, exported, and text files as they are."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import msgspec

from clew.catalog.formats.types import MARKDOWN, PLAIN_TEXT
from clew.catalog.resource import DocumentListing, RawContent, RawDocument, Skipped
from clew.catalog.sources.content_types import HEAD_BYTES, content_type_of, is_binary
from clew.catalog.sources.http import Api, HttpReader, count_pages
from clew.catalog.sources.ids import check_document_id, source_id
from clew.errors import ConfigError, SourceError

API = Api(
    source="drive",
    base_url="https://www.googleapis.com/drive/v3",
    scheme="Bearer",
    renew="Access tokens last an hour: get one with `gcloud auth print-access-token` and the scope drive.readonly",
)
PAGE = 1_000
MAX_BYTES = 2_000_000

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_FOLDER = "application/vnd.google-apps.folder"
_EXPORTS = {
    "application/vnd.google-apps.document": ("text/markdown", MARKDOWN),
    "application/vnd.google-apps.spreadsheet": ("text/csv", PLAIN_TEXT),
    "application/vnd.google-apps.presentation": ("text/plain", PLAIN_TEXT),
}
"""The export format of each of Google's own types, and its content type."""

_TEXT = re.compile(r"text/.+|application/((.+\+)?(json|xml|yaml)|x-(yaml|sh|ipynb\+json)|javascript|sql|toml)")
_FILE_FIELDS = "id,name,mimeType,modifiedTime,md5Checksum,size,webViewLink"


class DriveSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All files that the token may see, or those in a `folder` (an id) and its subfolders."""

    folder: str = ""
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if self.folder and not _ID.fullmatch(self.folder):
            raise ConfigError(f"drive: folder: {self.folder!r} is not an id; it is the last part of a folder's URL")


class _DriveFile(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    mime_type: str
    modified_time: str = ""
    md5_checksum: str = msgspec.field(name="md5Checksum", default="")
    size: str = "0"
    web_view_link: str = ""


class _DriveFiles(msgspec.Struct, frozen=True, rename="camel"):
    files: list[_DriveFile]
    next_page_token: str = ""
    incomplete_search: bool = False


class DriveSource:
    """A file has its id as id, and as version its checksum or the time of its last change."""

    name = "drive"
    is_local = False

    def __init__(self, settings: DriveSettings, http: HttpReader) -> None:
        self._settings = settings
        self._http = http

    @property
    def id(self) -> str:
        limit = "" if self._settings.max_bytes == MAX_BYTES else str(self._settings.max_bytes)
        return source_id(
            f"drive:{self._settings.folder or 'all'}",
            {"max_bytes": limit, "base_url": self._http.other_base_url},
        )

    async def list_documents(self) -> DocumentListing:
        found = {file.id: file async for file in self._files()}
        documents, skipped = [], []
        for file in (found[id] for id in sorted(found)):
            if reason := self._refusal(file):
                skipped.append(Skipped(document=f"{file.name} ({file.id})", reason=reason))
            else:
                documents.append(_document(file))
        return DocumentListing(documents=documents, skipped=skipped)

    async def fetch_content(self, id: str) -> RawContent:
        check_document_id(self.id, id, _ID, "1A2b3C4d5E6f7G8h")
        params = {"fields": _FILE_FIELDS, "supportsAllDrives": "true"}
        file = (await self._http.get(f"/files/{id}", params, document=id)).read(_DriveFile)
        if reason := self._refusal(file):
            raise SourceError(self.id, f"{file.name} {reason}")
        body = await self._read(file)
        document = _document(file, body[:HEAD_BYTES])
        return RawContent(
            id=id, name=file.name, content_type=document.content_type, body=body, metadata=document.metadata
        )

    async def close(self) -> None:
        await self._http.close()

    async def _files(self) -> AsyncIterator[_DriveFile]:
        """All files of the drive, or of a folder and its subfolders. Each subfolder is read once."""
        pending, entered = [self._settings.folder], {self._settings.folder}
        while pending:
            async for file in self._files_in(pending.pop()):
                if file.mime_type != _FOLDER:
                    yield file
                elif self._settings.folder and file.id not in entered:
                    check_document_id(self.id, file.id, _ID, "1A2b3C4d5E6f7G8h")
                    entered.add(file.id)
                    pending.append(file.id)

    async def _files_in(self, folder: str) -> AsyncIterator[_DriveFile]:
        params: dict[str, str | int] = {
            "q": "trashed = false" + (f" and '{folder}' in parents" if folder else ""),
            "pageSize": PAGE,
            "fields": f"nextPageToken,incompleteSearch,files({_FILE_FIELDS})",
            "supportsAllDrives": "true",
            "includeItemsFromAllDrives": "true",
        }
        for _ in count_pages(self.id):
            page = await self._http.get_json("/files", _DriveFiles, params)
            if page.incomplete_search:
                raise SourceError(self.id, "could not search all drives", hint="Choose a `folder`, or try again later")
            for file in page.files:
                yield file
            if not page.next_page_token:
                return
            params["pageToken"] = page.next_page_token

    async def _read(self, file: _DriveFile) -> bytes:
        """The text of a file, within the limit."""
        if export := _EXPORTS.get(file.mime_type):
            answer = await self._http.get(f"/files/{file.id}/export", {"mimeType": export[0]}, document=file.id)
        else:
            params = {"alt": "media", "supportsAllDrives": "true"}
            answer = await self._http.get(f"/files/{file.id}", params, document=file.id)
        if len(answer.body) > self._settings.max_bytes:
            raise SourceError(self.id, f"{file.name} {_over(len(answer.body), self._settings.max_bytes)}")
        if is_binary(answer.body[:HEAD_BYTES]):
            raise SourceError(self.id, f"{file.name} is binary")
        return answer.body

    def _refusal(self, file: _DriveFile) -> str | None:
        """The reason why a file is left out; None if it is read."""
        if file.mime_type in _EXPORTS:
            return None
        if not _TEXT.fullmatch(file.mime_type):
            return f"is not text ({file.mime_type[:100]})"
        size = int(file.size) if file.size.isascii() and file.size.isdecimal() else 0
        return _over(size, self._settings.max_bytes) if size > self._settings.max_bytes else None


def _over(size: int, limit: int) -> str:
    return f"has {size:,} bytes, over the limit of {limit:,}"


def _document(file: _DriveFile, head: bytes = b"") -> RawDocument:
    export = _EXPORTS.get(file.mime_type)
    told = export[1] if export else content_type_of(file.name, head)
    return RawDocument(
        id=file.id,
        name=file.name,
        content_type=MARKDOWN if told == PLAIN_TEXT and file.mime_type == "text/markdown" else told,
        version=file.md5_checksum or file.modified_time,
        metadata={"url": file.web_view_link} if file.web_view_link else {},
    )
