"""Facts as short lines, to be compared."""

from __future__ import annotations

from textwrap import dedent

from clew.knowledge.code.languages.extract import extract
from clew.knowledge.code.models import FileFacts


def read(language: str, text: str) -> FileFacts:
    return extract(dedent(text).lstrip("\n").encode(), language)


def symbols(facts: FileFacts) -> list[str]:
    return [f"{each.kind} {each.qualname} {each.line_start}-{each.line_end}" for each in facts.symbols]


def imports(facts: FileFacts) -> list[str]:
    return [f"{each.line}: {each.module or '-'} {each.name or '-'} {each.alias or '-'}" for each in facts.imports]


def references(facts: FileFacts) -> list[str]:
    return [f"{each.line}: {each.kind} {each.target} in {each.inside or '-'}" for each in facts.references]


def signatures(facts: FileFacts) -> dict[str, str]:
    return {each.qualname: each.signature for each in facts.symbols}


def docs(facts: FileFacts) -> dict[str, str]:
    return {each.qualname: each.doc for each in facts.symbols if each.doc}
