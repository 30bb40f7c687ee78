"""Every wall with every language, and a home with secrets to steal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.sandbox.escapes import TREASURE
from tests.tools.sandbox.boxes import BOXES, Box, open_box

SECRET_FILES = (
    *("id_rsa", "server.pem", ".npmrc", ".envrc", "keys/.ENV", "Server.KEY", "secrets.yaml", "credentials.json"),
    *("deep/.git-credentials", "node_modules/x/.env", "node_modules/@a/b/.npmrc", "site-packages/x/.env"),
)


@pytest.fixture(params=BOXES)
def box(request: pytest.FixtureRequest) -> Box:
    return open_box(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with secrets, and below it the folder `project`, which tools are allowed to read and to write."""
    home = tmp_path / "home"
    secrets = (".ssh/id_ed25519", ".aws/credentials", ".env", "trail.db", "trail.db-wal", "sessions/other/notes.txt")
    inside = (".env", ".env.local", "deep/down/.env", ".clew/trail.db", "store.db", "store.db-wal", *SECRET_FILES)
    for name in (*secrets, *(f"project/{each}" for each in inside)):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TREASURE)
    project = home / "project"
    (project / "open.txt").write_text("open to all")
    (project / "desk").mkdir()
    (project / "shortcut").symlink_to(home / ".ssh")
    (project / "env-link").symlink_to(project / ".env")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TREASURE", TREASURE)
    return home
