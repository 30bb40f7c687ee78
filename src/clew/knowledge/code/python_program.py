"""A file of a program while values are followed through it. Variables are numbered over the whole program: the number
of the file, then that in the file."""

from __future__ import annotations

from clew.knowledge.code.python_summary import Summary

SHIFT = 20
MASK = (1 << SHIFT) - 1


class Loaded:
    """A file in the program: its number, its summary, and the values of what it defines."""

    __slots__ = ("classes", "functions", "number", "path", "summary")

    def __init__(self, path: str, number: int, summary: Summary) -> None:
        self.path = path
        self.number = number
        self.summary = summary
        self.functions: list[int] = []
        self.classes: list[int] = []
