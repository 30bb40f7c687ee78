"""Adds the words of contents that were stored without words. Value tracking and word extraction take about the same
time, each on one core. A command that does not answer questions, such as `clew index`, runs both in parallel."""

from __future__ import annotations

from collections.abc import Callable

from clew.knowledge.code import rows
from clew.knowledge.code.file_content import read_content, readable_text
from clew.knowledge.code.search.passages import encode_text
from clew.knowledge.code.search.search_index import VECTORS
from clew.knowledge.code.store import CodeStore, read_meta, write_meta

_BATCH = 100
"""Contents that get their words in one transaction."""
_WAITING = "wordless"


def lacks_words(store: CodeStore) -> bool:
    """Whether words were left for `make_words`."""
    return bool(store.meta(_WAITING, 0))


def leave_words(store: CodeStore) -> None:
    """Record that contents are stored without words, until `make_words` has run."""
    with store.writing() as sql:
        write_meta(sql, _WAITING, 1)


def make_words(store: CodeStore, root: str, is_stopped: Callable[[], bool]) -> None:
    """Make the words of all contents without them, of files that still have their content. Contents of changed files
    wait for the next pass, which reads these files again."""
    with store.reading() as sql:
        waiting = rows.find_wordless(sql)
    for at in range(0, len(waiting), _BATCH):
        if is_stopped():
            return
        made = [(key, words) for key in waiting[at : at + _BATCH] if (words := _find_words(store, root, *key))]
        with store.writing() as sql:
            for (_, blob, language), words in made:
                rows.write_words(sql, blob, language, words)
    with store.writing() as sql:
        write_meta(sql, _WAITING, int(bool(rows.find_wordless(sql))))
        write_meta(sql, VECTORS, read_meta(sql, VECTORS, 0) + 1)


def _find_words(store: CodeStore, root: str, path: str, blob: str, language: str) -> tuple[bytes, bytes] | None:
    content = read_content(root, path)
    with store.reading() as sql:
        facts = rows.find_facts(sql, blob, language)
    if content is None or content.blob != blob or facts is None:
        return None
    text = readable_text(content.body).encode("utf-8", "replace").decode()
    return encode_text(rows.decode_facts(facts), text)
