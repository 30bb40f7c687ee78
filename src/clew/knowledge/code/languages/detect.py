"""The language of a file, and its grammar, which the first file of a language loads."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from clew.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Language

LANGUAGES = ("python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "ruby")

_EXTENSIONS = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw",
        "javascript": "js mjs cjs jsx",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh ino",
        "ruby": "rb rake gemspec ru",
    }.items()
    for extension in extensions.split()
}
_NAMES = {"Rakefile": "ruby", "Gemfile": "ruby"}
_SHEBANG = lazy_pattern(rb"#![^\n]*?[/ \t](?P<name>python|pypy|ruby|node|deno|bun|ts-node|tsx)[\d.]*(?:[ \t\r\n]|\Z)")
_INTERPRETERS = {b"pypy": "python", b"node": "javascript"} | dict.fromkeys((b"deno", b"bun", b"ts-node"), "typescript")
_CPLUSPLUS = lazy_pattern(
    rb"^[ \t]*(?:class\s+\w+[^;\n]*\{?$|class\s+\w+\s*;|namespace\b|template\s*<|using\s+\w"
    rb"|(?:public|private|protected)\s*:)|\w::\w",
    re.MULTILINE,
)


def language_of(path: str, head: bytes = b"") -> str:
    """The language of a file by its name, or by the first line of `head`, its first bytes; empty without a parser. Only
    `head` shows whether a header is C or C++."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem:
        return _NAMES.get(name) or _interpreter(head)
    return "cpp" if extension == "h" and _CPLUSPLUS.search(head) else _EXTENSIONS.get(extension.lower(), "")


def _interpreter(head: bytes) -> str:
    found = _SHEBANG.match(head[:200])
    return _INTERPRETERS.get(found["name"], found["name"].decode()) if found else ""


@cache
def load_grammar(language: str) -> Language:
    """The grammar of one of LANGUAGES. Raises KeyError."""
    if language not in LANGUAGES:
        raise KeyError(language)
    from tree_sitter import Language  # native code, loaded only to read code

    package = import_module(f"tree_sitter_{'typescript' if language == 'tsx' else language}")
    maker = f"language_{language}" if language in ("typescript", "tsx") else "language"
    return Language(getattr(package, maker)())
