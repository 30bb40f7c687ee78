"""The environment of programs, and their remaining processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clew.tools.processes import run_process, safe_environment


async def test_a_script_of_a_skill_leaves_no_compiled_files_which_would_need_consent(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("said = 'helped'\n")
    (tmp_path / "main.py").write_text("import helper\nprint(helper.said)\n")
    ended = await run_process((sys.executable, "main.py"), env=safe_environment(os.environ), cwd=str(tmp_path))
    assert ended.stdout.strip() == b"helped"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helper.py", "main.py"]
