"""Python files with newer syntax than that of the running interpreter."""

from __future__ import annotations

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


@pytest.mark.parametrize("text", ["", "x = y[0]\n", "def f(a): return a[1]\n", "type = 3\ntype[0] = 4\nlazy = 1\n"])
def test_text_without_newer_syntax_is_unchanged(text: str) -> None:
    assert downgrade_syntax(text) == text


def test_calls_are_followed_in_files_with_newer_syntax() -> None:
    flow = PythonFlow({"box.py": summarize(dedent(LATER).encode())})
    found = {(call.caller, call.target, call.line) for call in flow.calls("box.py")}
    assert found == {("Box.put", "make", 11), ("Box.put", "mend", 13)}


def test_an_unreadable_file_has_an_error_with_the_line_in_the_original() -> None:
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


def test_rewriting_newer_syntax_takes_linear_time() -> None:
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, timeout=120)
    assert done.stdout == "read\n", done.stderr
