"""From the content of a file to what is kept of it: the same in every process."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from clew.knowledge.code.file_content import Content
from clew.knowledge.code.languages.detect import LANGUAGES, language_of
from clew.knowledge.code.languages.extract import extract, is_hard, takes_long
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.pool import GIVEN_UP, Job, Pool, unread
from clew.knowledge.code.python_flow import summarize
from clew.knowledge.code.rows import Parsed, encode_facts
from clew.knowledge.code.secret_files import BINARY, is_text, looks_secret
from clew.knowledge.code.text_index import encode_text
from clew.secrecy import mask_in_place, may_hold_keys

HEAD_BYTES = 4_096


class Readable(NamedTuple):
    """A file as it is taken in: its language, or nothing, and its text without keys. One that is left out has no text,
    and says why."""

    content: Content
    language: str
    text: str = ""
    left_out: str = ""

    @property
    def job(self) -> Job:
        return Job(self.text.encode("utf-8", errors="replace"), self.language)


def make_readable(content: Content) -> Readable:
    """What may be taken in of a file. Keys in its text are masked, with every line where it was."""
    if content.left_out:
        return Readable(content, "", left_out=content.left_out)
    if not is_text(content.body):
        return Readable(content, "", left_out=BINARY)
    if reason := looks_secret(content.path, content.body):
        return Readable(content, "", left_out=reason)
    language = language_of(content.path, content.body[:HEAD_BYTES]) or ""
    return Readable(content, language, readable_text(content.body))


def readable_text(body: bytes) -> str:
    """The text of a file without keys, with every line where it is; what is not UTF-8 is taken for Latin-1."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return mask_in_place(body.decode("utf-16", errors="replace"))
    try:
        text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
    return mask_in_place(text) if may_hold_keys(text) else text


def run_jobs(jobs: Sequence[Job], pool: Pool | None = None) -> list[Parsed]:
    """What is kept of each content, in the same order. Those that may take long are read by a worker, and have an error
    when that is not done in time: nobody waits here for a file that was made to be waited for."""
    hard = [at for at, job in enumerate(jobs) if not job.is_flow and is_hard(job.body, job.language)]
    found = {at: run_job(job) for at, job in enumerate(jobs) if at not in hard}
    if hard:
        with contextlib.nullcontext(pool) if pool is not None else Pool(1) as workers:
            found.update(zip(hard, workers.submit([jobs[at] for at in hard]).result(), strict=True))
    return [found[at] for at in range(len(jobs))]


def run_easy(job: Job) -> Parsed:
    """As `run_job`, but a content that takes a parser long is not read."""
    is_code = not job.is_flow and job.language in LANGUAGES
    return unread(job, GIVEN_UP) if is_code and takes_long(job.body, job.language) else run_job(job)


def run_job(job: Job) -> Parsed:
    """What is kept of a content. Without a language that is known there are no symbols."""
    if job.is_flow:
        return Parsed(b"", msgspec.msgpack.encode(summarize(job.body)))
    text = job.body.decode("utf-8", errors="replace")
    known = extract(job.body, job.language) if job.language else None
    facts = known or FileFacts(language="", lines=text.count("\n") + 1)
    return Parsed(encode_facts(facts), words=encode_text(facts, text))
