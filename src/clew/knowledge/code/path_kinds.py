"""What a path tells of a file before it is read: a test, something beside the product, something that is not code."""

from __future__ import annotations

import re

TEST, ASIDE, TEXT, LOCK = 1, 2, 4, 8
"""Bits of a path's kind; a plain source file has none."""
ALL_KINDS = range(2 * LOCK)

_TESTS = re.compile(
    r"(^|/)(tests?|testing|__tests__|testdata|specs?|fixtures?|e2e|[\w-]*[_-]tests?)/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*(_test|\.test|\.spec|Tests?|TestCase)\.\w+)$"
)
_ASIDE = re.compile(
    r"(^|/)(docs?|examples?|benchmarks?|asv_bench|tutorials?|gallery|changelog|news|scripts?|tools|build_tools|ci"
    r"|\.github|vendor|vendored|extern|externals?|third_party|node_modules|dist|\w+_dist|demos?|samples?)/"
    r"|(^|/)(setup\.py|[^/]*(\.min\.js|_pb2\.py|\.pb\.go|\.d\.ts|_generated\.\w+))$"
)
_LOCK = re.compile(r"(^|/)([^/]*\.lock|[^/]*-lock\.(json|ya?ml)|go\.sum|npm-shrinkwrap\.json|[^/]*\.(map|min\.css))$")
_CODE = re.compile(r"\.(pyx?|pxd|pyi|[cm]?[jt]sx?|go|rs|java|kt|c|cc|cpp|cxx|h|hh|hpp|rb)$")


def kind_of(path: str) -> int:
    """The bits of a path: TEST for tests and what they need; ASIDE for examples, scripts, what was generated or copied
    from others; TEXT for all that no program is written in; LOCK for lists that a package manager writes."""
    return (
        (TEST if _TESTS.search(path) else 0)
        | (ASIDE if _ASIDE.search(path) else 0)
        | (0 if _CODE.search(path) else TEXT)
        | (LOCK if _LOCK.search(path) else 0)
    )
