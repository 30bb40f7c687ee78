"""Runs the tests that failed in the last parallel run once more, one after the other.

A test that passes now is printed as FLAKY with its first failure: it is a defect to mend, but does not fail the build.

Usage: rerun_failures.py REPORT   where REPORT is the JUnit file of the parallel run. Exits with 1 when a test fails
again, when more than MOST tests failed, or when the parallel run ended without a report.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

MOST = 25
"""More failures than this are no accident."""
MESSAGE = 500

Failures = dict[str, str]


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print("no report of the parallel run: nothing can be run again", file=sys.stderr)
        return 1
    first = read_failures(Path(sys.argv[1]))
    if not first or len(first) > MOST:
        print(f"{len(first)} failed tests in the report: not run again", file=sys.stderr)
        return 1
    print(f"\nrunning {len(first)} failed tests again, alone")
    with TemporaryDirectory() as folder:
        report = Path(folder) / "again.xml"
        done = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", f"--junitxml={report}", *first], check=False)
        again = read_failures(report) if report.is_file() else first
    was_run = done.returncode in (0, 1)  # otherwise pytest was interrupted, such as by a module that cannot be imported
    flaky = {test: why for test, why in first.items() if was_run and test not in again}
    for test, why in flaky.items():
        print(f"FLAKY {test}\n    first failure: {why}")
    return 1 if again or done.returncode else 0


def read_failures(report: Path) -> Failures:
    """The failed tests of a JUnit report by their ids, each with the beginning of its message."""
    failures: Failures = {}
    for case in ElementTree.parse(report).iter("testcase"):
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            message = problem.get("message") or problem.text or ""
            failures[_test_id(case)] = " ".join(message.split())[:MESSAGE]
    return failures


def _test_id(case: ElementTree.Element) -> str:
    """The id by which pytest selects a test: its file, its class if any, and its name."""
    name, module = case.get("name") or "", case.get("classname") or ""
    found = re.match(r"(?P<module>(?:[^.A-Z][^.]*\.)*[^.A-Z][^.]*)(?:\.(?P<classes>[A-Z].*))?$", module)
    if found is None:  # the module could not be imported, so the name is the module
        return name.replace(".", "/") + ".py"
    classes = [each for each in (found["classes"] or "").split(".") if each]
    return "::".join([found["module"].replace(".", "/") + ".py", *classes, name])


if __name__ == "__main__":
    sys.exit(main())
