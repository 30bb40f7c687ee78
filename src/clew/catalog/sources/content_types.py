"""Guess the content type of a file from its name and its beginning."""

from __future__ import annotations

import re

from clew.catalog.formats.types import MARKDOWN, NOTEBOOK, OPENAPI, PLAIN_TEXT, RESTRUCTURED_TEXT, SOURCE_CODE
from clew.lazy_pattern import lazy_pattern

HEAD_BYTES = 8_192
"""Bytes of a file that are read for the guess."""

_DOCUMENTS = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".mdx": MARKDOWN,
    ".mdc": MARKDOWN,
    ".rst": RESTRUCTURED_TEXT,
    ".rest": RESTRUCTURED_TEXT,
    ".ipynb": NOTEBOOK,
}
_CODE = lazy_pattern(
    r"\.(py|pyi|pyx|[cm]?js|jsx|[cm]?ts|tsx|go|rs|java|kts?|scala|groovy|c|h|cc|cpp|cxx|hh|hpp|cs|fs|vb|mm?|swift|rb|php"
    r"|p[lm]|lua|r|jl|dart|exs?|[eh]rl|hs|mli?|cljs?|el|lisp|nim|zig|s?v|vhd|sol|sql|sh|bash|zsh|fish|ps1|bat|cmd|html?"
    r"|s?css|sass|less|vue|svelte|astro|proto|thrift|graphql|gql|tf|hcl|nix|cmake|mk|gradle|asm|s|f90|pas|tcl|awk)"
    r"|(gnu)?makefile|dockerfile|containerfile|jenkinsfile|rakefile|gemfile"
)
_OPENAPI_YAML = lazy_pattern(rb"""^["']?(openapi|swagger)["']?[ \t]*:[ \t]*["']?[23]\.""", re.M)
_OPENAPI_JSON = lazy_pattern(rb"""^(\xef\xbb\xbf)?\s*\{.*?"(openapi|swagger)"\s*:\s*"[23]\.""", re.S)


def content_type_of(name: str, head: bytes) -> str:
    """The content type of a text file with this name, whose first bytes are `head`."""
    base = name.rpartition("/")[2].lower()
    stem, dot, ending = base.rpartition(".")
    suffix = dot + ending if stem else ""
    if suffix in (".yaml", ".yml"):
        return OPENAPI if _OPENAPI_YAML.search(head) else PLAIN_TEXT
    if suffix == ".json":
        return OPENAPI if _OPENAPI_JSON.match(head) else PLAIN_TEXT
    if _CODE.fullmatch(suffix or base):
        return SOURCE_CODE
    return _DOCUMENTS.get(suffix, PLAIN_TEXT)


def is_binary(head: bytes) -> bool:
    return b"\0" in head
