"""Python of later versions than the one that reads it."""

from __future__ import annotations

import ast
import subprocess
import sys
from textwrap import dedent

import pytest

from clew.knowledge.code.python_calls.program import PythonFlow
from clew.knowledge.code.python_calls.statements import downgrade_syntax, summarize

LATER = """
    type Name = str
    type Pair[T] = tuple[T, list[T]]

    class Box[T: (int, str), *Ts, **P]:
        def put[
            X,
            Y: list[int],
        ](self, what: X) -> Y:
            try:
                make()
            except ValueError, TypeError:
                mend()

    class Crate[T](Box):
        type = 3
        rows = [1, 2]

    lazy import json
    lazy from os import path

    def make(): ...
    def mend(): ...
"""


def test_what_later_versions_brought_is_said_otherwise_and_every_line_stays() -> None:
    text = dedent(LATER)
    older = downgrade_syntax(text)
    ast.parse(older)
    lines = older.split("\n")
    assert len(lines) == len(text.split("\n"))
    assert lines[1:3] == ["Name = str", "Pair = tuple[T, list[T]]"]
    assert (lines[4], lines[5], lines[8]) == ("class Box():", "    def put(", "self, what: X) -> Y:")
    assert lines[11] == "        except (ValueError, TypeError):"
    assert lines[14:17] == ["class Crate(Box):", "    type = 3", "    rows = [1, 2]"]
    assert lines[18:20] == ["import json", "from os import path"]


@pytest.mark.parametrize("text", ["", "x = y[0]\n", "def f(a): return a[1]\n", "type = 3\ntype[0] = 4\nlazy = 1\n"])
def test_older_python_stays_as_it_is(text: str) -> None:
    assert downgrade_syntax(text) == text


def test_calls_are_followed_through_python_of_later_versions() -> None:
    flow = PythonFlow({"box.py": summarize(dedent(LATER).encode())})
    found = {(call.caller, call.target, call.line) for call in flow.calls("box.py")}
    assert found == {("Box.put", "make", 11), ("Box.put", "mend", 13)}


def test_what_is_no_python_at_all_is_told_with_the_line_of_its_own() -> None:
    assert summarize(b"type A = int\n\ndef f(:\n").error.startswith("line ")
    assert summarize(b"def f(:\n").error.startswith("line 1")


READ = """
from clew.knowledge.code.python_calls.statements import downgrade_syntax
parts = ("type ", "type a", "type a[", "def f[", "def f[\\n", "class A[", "[", "[]", "except a,", "lazy ", " ", "\\n")
for part in parts:
    downgrade_syntax(part * 20_000)
    downgrade_syntax("def f" + part * 20_000)
print("read")
"""


def test_no_text_takes_long_to_be_said_otherwise() -> None:
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, timeout=120)
    assert done.stdout == "read\n", done.stderr
