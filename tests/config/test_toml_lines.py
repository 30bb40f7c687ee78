"""Lines of settings in TOML documents of any style."""

from __future__ import annotations

import tomllib

import pytest

from clew.config.toml_lines import find_line, find_lines

DOCUMENT = '''\
#:schema ./config.schema.json
owner = "a # b" # c
"quoted key" = 1

text = """
[not.a.table]
x = 1 ""\\""" still
"""
raw = \'\'\'
y = 2\'\'\'
list = [
  "a", # ]
  [1, 2], { z = "]" },
]
inline = { a = 1, b = "}" }
[server]
port = 1
tls . "a.b" = true
[a.'b.c']
x = 1
[[mcp.servers]]
id = "one"
[[mcp.servers]]
id = "two"
[mcp.servers.env]
A = "1"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("owner",), 2),
        (("quoted key",), 3),
        (("text",), 5),
        (("raw",), 9),
        (("list", 1), 11),
        (("inline", "b"), 15),
        (("server",), 16),
        (("server", "port"), 17),
        (("server", "tls", "a.b"), 18),
        (("server", "missing"), 16),
        (("a", "b.c", "x"), 20),
        (("mcp",), 21),
        (("mcp", "servers"), 21),
        (("mcp", "servers", 0, "id"), 22),
        (("mcp", "servers", 1, "id"), 24),
        (("mcp", "servers", 1, "env", "A"), 26),
        (("nothing",), 0),
    ],
)
def test_a_path_has_the_line_of_its_statement_or_of_the_nearest_table(path: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(DOCUMENT)
    assert find_line(DOCUMENT, path) == line


def test_a_document_of_many_lines_is_scanned_once() -> None:
    text = "".join(f"key{number} = '{number}'\n" for number in range(50_000))
    assert [find_line(text, (f"key{number}",)) for number in range(0, 50_000, 10)] == list(range(1, 50_001, 10))


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "a=1", "a=1\r\nb='x'\r\n", "[t]", "[[t]]\n[[t]]\n"])
def test_short_documents_are_read_to_their_end(text: str) -> None:
    assert {path[0] for path in find_lines(text)} == set(tomllib.loads(text))
