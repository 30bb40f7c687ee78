"""The results: rows for the tables, the targets, and the machine of the run."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("apsw", "chromadb", "clew", "fastapi", "lancedb", "numpy", "psycopg", "starlette", "tantivy", "uvicorn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a measure's table. `note` replaces the values if there are none."""

    measure: str
    records: int
    contender: str
    values: dict[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A figure that is to be at least, or at most, the target."""

    name: str
    records: int
    value: float
    target: float
    at_least: bool = True

    @property
    def is_kept(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target


Finding = Row | Promise


def render(findings: Iterable[Finding]) -> str:
    """Markdown: a table for each measure, and one of the promises."""
    findings = list(findings)
    rows = [each for each in findings if isinstance(each, Row)]
    parts = [
        f"### {measure}\n\n" + _table([row for row in rows if row.measure == measure])
        for measure in dict.fromkeys(row.measure for row in rows)
    ]
    promises = [each for each in findings if isinstance(each, Promise)]
    if promises:
        parts.append("### promises\n\n" + _promises(promises))
    return "\n\n".join(parts)


def _table(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.values))
    notes = ["note"] if any(row.note for row in rows) else []
    lines = [_line(["records", "contender", *names, *notes]), "|---" * (2 + len(names) + len(notes)) + "|"]
    for row in rows:
        cells = [_number(row.values[name]) if name in row.values else "" for name in names]
        lines.append(_line([f"{row.records:,}", row.contender, *cells, *([row.note] if notes else [])]))
    return "\n".join(lines)


def _promises(promises: Sequence[Promise]) -> str:
    lines = [_line(["records", "promise", "measured", "target", "kept"]), "|---|---|---|---|---|"]
    for each in promises:
        sign = "≥" if each.at_least else "≤"
        kept = "yes" if each.is_kept else "**no**"
        target = f"{sign} {_number(each.target)}"
        lines.append(_line([f"{each.records:,}", each.name, _number(each.value), target, kept]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    """A count unchanged, other numbers with three significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def write_json(path: Path, findings: Iterable[Finding], about: dict[str, Any]) -> None:
    found = list(findings)
    promises = [{**asdict(each), "is_kept": each.is_kept} for each in found if isinstance(each, Promise)]
    content = {**about, "rows": [asdict(each) for each in found if isinstance(each, Row)], "promises": promises}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def describe_machine(scratch: Path) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_at_start": os.getloadavg()[0],
        "file_system": find_file_system(scratch),
        "sqlite3": sqlite3.sqlite_version,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def find_file_system(folder: Path) -> str:
    """The kind of file system that holds a folder: on tmpfs nothing is durable, and flushing costs nothing."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    place = str(folder.resolve())
    holding = [(len(at), kind) for _, at, kind, *_ in mounts if place.startswith(at.rstrip("/") + "/") or place == at]
    return max(holding, default=(0, "unknown"))[1]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
