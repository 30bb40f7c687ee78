"""A small shop: a repository whose commits have days and authors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
POOL = '''"""Connections to the warehouse, kept open between requests."""

import logging

from shop.errors import PoolExhausted

log = logging.getLogger(__name__)
MAX_CONNECTIONS = 8


class ConnectionPool:
    """Hands out connections and takes them back."""

    def __init__(self, size: int = MAX_CONNECTIONS) -> None:
        self.size = size
        self.idle: list[object] = []

    def acquire_connection(self, timeout: float) -> object:
        """Wait for an idle connection; raise PoolExhausted after the timeout."""
        if not self.idle:
            raise PoolExhausted(timeout)
        return self.idle.pop()

    def release_connection(self, connection: object) -> None:
        """Give a connection back to the pool."""
        self.idle.append(connection)


class ThreadedPool(ConnectionPool):
    """A pool with a lock around each call."""

    def acquire_connection(self, timeout: float) -> object:
        log.debug("waiting")
        return super().acquire_connection(timeout)
'''
ERRORS = 'class PoolExhausted(Exception):\n    """No connection became idle in time."""\n'
ORDERS = '''"""Orders of customers."""

from shop.pool import ConnectionPool
from shop.retry import backoff


def place_order(pool: ConnectionPool, basket: list[str]) -> str:
    """Write the basket of a customer to the warehouse as one order."""
    connection = pool.acquire_connection(5.0)
    pool.release_connection(connection)
    return ",".join(basket)


def cancel_order(pool: ConnectionPool, order: str) -> None:
    """Take an order back before it ships."""
    connection = pool.acquire_connection(1.0)
    backoff(2)
    pool.release_connection(connection)
'''
RETRY = '''"""Trying again."""


def backoff(attempt: int) -> float:
    """Seconds to wait before the next attempt: they double each time."""
    return float(2**attempt)


def unused_helper() -> None:
    return None
'''
REPORT = '''"""Nightly reports."""

import httpx

from shop.pool import ConnectionPool


def write_report(pool: ConnectionPool) -> str:
    """Sum the revenue of the day."""
    pool.acquire_connection(9.0)
    return httpx.get("https://example.org").text
'''
EXPORT = '''def {name}_header() -> str:
    return "{name}"


def stream_rows(rows: list[list[str]]) -> list[str]:
    """Stream the rows of an export, one spreadsheet line at a time."""
    lines = []
    for row in rows:
        lines.append(",".join(row))
    return lines
'''
TEST_POOL = """from shop.orders import place_order
from shop.pool import ConnectionPool


def test_acquire_connection_waits_for_an_idle_connection():
    pool = ConnectionPool()
    pool.idle.append(object())
    assert pool.acquire_connection(1.0)


def test_place_order():
    assert place_order(ConnectionPool(), ["kettle"])
"""
GUIDE = """# Guide

Shop sells kettles.

## Configuring timeouts

Set `SHOP_TIMEOUT` in the environment to change how long a request waits.

## Deployment

Run `make deploy` on the release machine. Deployments need two approvals.
"""
CHANGES = """Shop news
=========

2.1.0
-----

Baskets keep their order when a customer signs in. Contributed by the warehouse team.

* Removed the ``legacy_invoice`` command.
* Added a whistle to kettles.

2.0.1 (2026-03-01)
------------------

* Fixed the spout that dripped.
"""
FILES = {
    "shop/__init__.py": "",
    "shop/pool.py": POOL,
    "shop/errors.py": ERRORS,
    "shop/orders.py": ORDERS,
    "shop/retry.py": RETRY,
    "shop/jobs/report.py": REPORT,
    "shop/export/csv_export.py": EXPORT.format(name="csv"),
    "shop/export/tsv_export.py": EXPORT.format(name="tsv"),
    "tests/test_pool.py": TEST_POOL,
    "docs/guide.md": GUIDE,
    "docs/news.rst": CHANGES,
    "CHANGES.md": "# Changes\n\n## 3.0.0\n\n- Pots are painted.\n",
    "README.md": "# Shop\n\nA shop of kettles for people who like tea.\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "2.1.0"\n',
    ".gitignore": ".clew/\n",
}


class Shop:
    """Commits with a day and an author each."""

    def __init__(self, root: Path) -> None:
        self.root, self.head = root, ""
        root.mkdir(parents=True)
        self._git("init", "-q", day="2026-01-01", author="Nobody")

    def commit(self, message: str, day: str, author: str, files: Mapping[str, str]) -> str:
        """Write files and commit everything; returns the commit id."""
        for path, content in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(content)
        self._git("add", "-A", day=day, author=author)
        self._git("commit", "-q", "--allow-empty", "-m", message, day=day, author=author)
        self.head = self._git("rev-parse", "HEAD", day=day, author=author).strip()
        return self.head

    def tag(self, name: str, revision: str) -> None:
        self._git("tag", "-a", "-m", name, name, revision, day="2026-11-12", author="Bo Lind")

    def _git(self, *arguments: str, day: str, author: str) -> str:
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", author), ("EMAIL", "someone@example.org"), ("DATE", f"{day}T10:00:00+0000"))
        }
        env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True)
        return done.stdout


def make_shop(root: Path) -> Shop:
    """The shop with five months of history."""
    shop = Shop(root)
    first = {path: content for path, content in FILES.items() if path != "shop/jobs/report.py"}
    shop.commit("Begin with a pool", "2026-06-15", "Ada Byron", first)
    why = "Double the waiting time\n\nThe gateway drops the first connection."
    shop.commit(why, "2026-08-04", "Ada Byron", {"shop/retry.py": f"{RETRY}\n\nLIMIT = 9\n"})
    shop.commit("Add nightly reports", "2026-10-20", "Bo Lind", {"shop/jobs/report.py": REPORT})
    shop.commit("Choose marmalade over jam because it keeps longer", "2026-11-11", "Bo Lind", {"shop/retry.py": RETRY})
    shop.tag("v5.0.0", "HEAD~2")
    shop.tag("v5.1.0", "HEAD")
    return shop
