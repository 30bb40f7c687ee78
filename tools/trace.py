"""Which tests show which requirement: every ID of docs/requirements.md with its tests, and those without any.

Usage: trace.py [--json] [--missing ID,ID-ID,...]   `--missing` fails when one of these has no test.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| ((?:ERN|SYL|RCR|PLA|CAR|BEY)-\d\d+|O\d+) \|", re.M)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--missing", default="")
    arguments = parser.parse_args()
    shown = find_tests(ROOT / "tests")
    known = list(dict.fromkeys(ROW.findall((ROOT / "docs/requirements.md").read_text(encoding="utf-8"))))
    unknown = sorted(set(shown) - set(known))
    if arguments.json:
        print(json.dumps({id: shown.get(id, []) for id in known}, indent=1))
    elif not arguments.missing:
        for id in known:
            print(f"{id:8} {len(shown.get(id, []))}  {' '.join(shown.get(id, [])[:3])}")
        print(f"{sum(id in shown for id in known)} of {len(known)} requirements have tests")
    for id in unknown:
        print(f"a test names {id}, which is not in docs/requirements.md", file=sys.stderr)
    lacking = [id for id in expand(arguments.missing) if id not in shown]
    for id in lacking:
        print(f"{id} has no test", file=sys.stderr)
    sys.exit(1 if unknown or lacking else 0)


def find_tests(folder: Path) -> dict[str, list[str]]:
    """Requirement → tests that carry `@pytest.mark.req("ID")`, on themselves, their class or their module."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = [id for node in tree.body if isinstance(node, ast.Assign) for id in ids_in(node.value)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                own = [id for decorator in node.decorator_list for id in ids_in(decorator)]
                for id in dict.fromkeys((*own, *module)):
                    found.setdefault(id, []).append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def ids_in(node: ast.AST) -> list[str]:
    """The IDs of every `pytest.mark.req(...)` within an expression."""
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return [
        str(argument.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "req"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    ]


def expand(text: str) -> list[str]:
    """`RCR-01..03,O2` as single IDs."""
    ids = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("..")
        prefix, _, number = first.rpartition("-")
        ids += [f"{prefix}-{at:02d}" for at in range(int(number), int(last) + 1)] if last else [part]
    return ids


if __name__ == "__main__":
    main()
