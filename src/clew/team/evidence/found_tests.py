"""Test files and the tests in them, read without running anything: names, assertions, skip markers and parameter sets.
Python is parsed; other languages are matched with the patterns of their test frameworks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_FOLDERS = frozenset(("test", "tests", "__tests__", "spec", "specs", "testing"))
_NAME = re.compile(
    r"test_.*\.py|.*_test\.py|tests?\.py|.*_test\.go|.*[._-](?:test|spec)\.[cm]?[jt]sx?|.*_(?:test|spec)\.(?:rb|exs|dart)"
    r"|.*Tests?\.(?:java|kt|cs|php|swift)|.*\.bats|test_.*\.(?:sh|c|cpp)|.*_test\.(?:cc|cpp|rs)|conftest\.py"
)
_IN_FOLDER = re.compile(r".*\.(?:py|[cm]?[jt]sx?|rs|rb|java|kt|go|php|cs|swift|exs|dart|bats)")
_SKIPS = frozenset(("skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "importorskip"))
_EXACT = frozenset(("assertEqual", "assertEquals", "assertIs", "assertDictEqual", "assertListEqual", "assertRaises"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTest:
    """One test. `exact` counts assertions that compare for equality or expect an error. `cases` counts parameter sets.
    `body` identifies a test that was only renamed or moved."""

    name: str
    asserts: int
    exact: int
    is_skipped: bool
    cases: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The syntax of tests in a language: a pattern for the start and the name of a test, and patterns for its
    contents."""

    begin: re.Pattern[str]
    asserts: re.Pattern[str]
    exact: re.Pattern[str]
    skips: re.Pattern[str]


_SCRIPT = _Form(
    begin=re.compile(
        r"(?m)^[ \t]*(?P<skip>x)?(?:it|test)(?P<more>(?:\.\w+)*)(?:\([^)]*\))?\s*\(\s*(['\"`])(?P<name>.+?)\3"
    ),
    asserts=re.compile(r"\b(?:expect|assert)\w*[.(]"),
    exact=re.compile(r"\.to(?:Be|Equal|StrictEqual|Throw)\w*\(|\b(?:strictEqual|deepEqual|equal|throws)\("),
    skips=re.compile(r"\.(?:skip|todo|only|fixme)\b|\bxdescribe\b|\bthis\.skip\(|\b(?:it|test|describe)\.only\b"),
)
_GO = _Form(
    begin=re.compile(r"(?m)^func (?P<name>(?:Test|Fuzz|Example)\w*)\("),
    asserts=re.compile(r"\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\("),
    exact=re.compile(r"!=|\b(?:assert|require)\.(?:Equal|Error)\w*\("),
    skips=re.compile(r"\b[tb]\.Skip\w*\("),
)
_RUST = _Form(
    begin=re.compile(r"(?m)^[ \t]*#\[(?:\w+::)?test\][^{;]*?\bfn (?P<name>\w+)"),
    asserts=re.compile(r"\b(?:debug_)?assert\w*!|#\[should_panic|\bpanic!"),
    exact=re.compile(r"\bassert_eq!|#\[should_panic"),
    skips=re.compile(r"#\[ignore|#\[cfg\(any\(\)\)\]"),
)
_OTHER = _Form(
    begin=re.compile(
        r"(?m)^[ \t]*(?:@Test\b[^{;]*?\s(?P<name>\w+)\s*\(|(?:it|test|specify)\s+['\"](?P<title>[^'\"]+))"
    ),
    asserts=re.compile(r"(?i)\b(?:assert|expect|should)\w*"),
    exact=re.compile(r"(?i)\bassert(?:_?equals?|Throws)\w*|\.to\s+eq|shouldBe"),
    skips=re.compile(r"@(?:Disabled|Ignore)\b|\bx(?:it|describe)\b|\b(?:skip|pending)\b"),
)


def is_test_file(path: str) -> bool:
    """Whether a file holds tests, by its name and its folder."""
    *folders, name = path.split("/")
    if _NAME.fullmatch(name):
        return True
    return bool(_FOLDERS.intersection(folders)) and _IN_FOLDER.fullmatch(name) is not None


def read_tests(path: str, text: str) -> dict[str, FoundTest]:
    """The tests of a file by name. A Python file that cannot be parsed has none."""
    if path.endswith(".py"):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return {}
        is_all_skipped = _has_module_skip(tree)
        return {found.name: found for found in _python_tests(tree, "", is_skipped=is_all_skipped)}
    return {found.name: found for found in _tests_by_form(text, _form_of(path))}


def _form_of(path: str) -> _Form:
    if re.search(r"\.[cm]?[jt]sx?$", path):
        return _SCRIPT
    return _GO if path.endswith(".go") else _RUST if path.endswith(".rs") else _OTHER


# -- Python ------------------------------------------------------------------------------------------------------


def _python_tests(node: ast.Module | ast.ClassDef, owner: str, *, is_skipped: bool) -> Iterator[FoundTest]:
    for each in node.body:
        if isinstance(each, ast.ClassDef) and (each.name.startswith("Test") or _is_test_case(each)):
            skipped = is_skipped or any(map(_is_skip, each.decorator_list))
            yield from _python_tests(each, f"{owner}{each.name}.", is_skipped=skipped)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test"):
            yield _python_test(each, owner, is_skipped=is_skipped)


def _python_test(function: ast.FunctionDef | ast.AsyncFunctionDef, owner: str, *, is_skipped: bool) -> FoundTest:
    found = [kind for node in ast.walk(function) if (kind := _assertion(node))]
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return FoundTest(
        name=f"{owner}{function.name}",
        asserts=len(found),
        exact=found.count("exact"),
        is_skipped=is_skipped or any(map(_is_skip, [*function.decorator_list, *calls])) or _ends_first(function),
        cases=_count_cases(function.decorator_list),
        body="".join(ast.dump(each) for each in function.body),
    )


def _assertion(node: ast.AST) -> str:
    """The kind of an assertion: `exact` for one of equality or of an error, `loose` for others; empty if the node is
    not an assertion, or a trivial one."""
    if isinstance(node, ast.Assert):
        if _is_trivial(node.test):
            return ""
        compares = [each for each in ast.walk(node.test) if isinstance(each, ast.Compare)]
        return "exact" if any(isinstance(op, ast.Eq | ast.Is) for each in compares for op in each.ops) else "loose"
    if isinstance(node, ast.Call):
        name = _called(node)
        if name in _EXACT or name in ("raises", "warns"):
            return "exact"
        is_constant = bool(node.args) and all(isinstance(each, ast.Constant) for each in node.args)
        return "loose" if name.startswith("assert") and not is_constant else ""
    return ""


def _is_trivial(test: ast.expr) -> bool:
    """Whether an assertion always holds: `assert True`, `assert x or True`, `assert x == x`."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(map(_is_trivial, test.values))
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        return ast.dump(test.left) == ast.dump(test.comparators[0])
    return False


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_skip(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name in _SKIPS or name == "skipTest"


def _ends_first(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a test returns before it does anything."""
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    return bool(body) and isinstance(body[0], ast.Return)


def _has_module_skip(tree: ast.Module) -> bool:
    """Whether a module skips all of its tests: `pytestmark = pytest.mark.skip`, `pytest.skip(...)` at the top."""
    for each in tree.body:
        value = each.value if isinstance(each, ast.Assign | ast.Expr) else None
        names = [getattr(target, "id", "") for target in each.targets] if isinstance(each, ast.Assign) else []
        items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value] if value is not None else []
        if (not names or "pytestmark" in names) and any(
            isinstance(item, ast.expr) and _is_skip(item) for item in items
        ):
            return True
    return False


def _is_test_case(node: ast.ClassDef) -> bool:
    return any("TestCase" in ast.dump(base) for base in node.bases)


def _count_cases(decorators: list[ast.expr]) -> int:
    """The number of parameter sets of a test."""
    count = 1
    for each in decorators:
        if isinstance(each, ast.Call) and _called(each) == "parametrize" and len(each.args) > 1:
            values = each.args[1]
            count *= len(values.elts) if isinstance(values, ast.List | ast.Tuple | ast.Set) else 1
    return count


# -- other languages ---------------------------------------------------------------------------------------------


def _tests_by_form(text: str, form: _Form) -> Iterator[FoundTest]:
    starts = list(form.begin.finditer(text))
    is_all_skipped = re.search(r"\b(?:describe\.skip|xdescribe)\b", text) is not None
    for at, match in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        segment = text[match.start() : end]
        groups = match.groupdict()
        line_before = text[: match.start()].rpartition("\n")[0].rpartition("\n")[2]
        skipped = form.skips.search(segment) or groups.get("skip") or form.skips.search(line_before)
        yield FoundTest(
            name=(groups.get("name") or groups.get("title") or "").strip(),
            asserts=len(form.asserts.findall(segment)),
            exact=len(form.exact.findall(segment)),
            is_skipped=bool(skipped) or is_all_skipped,
            cases=1,
            body=" ".join(segment[match.end() - match.start() :].split()),
        )
