"""Run by the Python that has serena and jedi-language-server: for each name on standard input, the seconds that
`find_symbol` takes, and how many symbols it finds. The first line is the time until the first answer.

Usage: serena_worker.py FOLDER FIRST-NAME
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ["SERENA_USAGE_REPORTING"] = "false"
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
# the language server is installed beside this Python
os.environ["SERENA_HOME"] = str(Path(sys.argv[1]) / ".serena_home")

from serena.agent import SerenaAgent
from serena.config.serena_config import SerenaConfig
from serena.tools import FindSymbolTool

PROJECT = "project_name: measured\nlanguages: [python_jedi]\nencoding: utf-8\n"


def main() -> None:
    folder, first = Path(sys.argv[1]), sys.argv[2]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what serena prints is no answer
    (folder / ".serena").mkdir(parents=True, exist_ok=True)
    (folder / ".serena" / "project.yml").write_text(PROJECT, encoding="utf-8")
    began = time.perf_counter()
    agent = SerenaAgent(project=str(folder), serena_config=SerenaConfig(gui_log_window=False, web_dashboard=False))
    tool = agent.get_tool(FindSymbolTool)
    agent.execute_task(lambda: tool.apply(first))
    answers.write(json.dumps({"seconds": time.perf_counter() - began}) + "\n")
    answers.flush()
    for line in sys.stdin:
        name = line.strip()
        began = time.perf_counter()
        found = agent.execute_task(lambda name=name: tool.apply(name))
        taken = time.perf_counter() - began
        answers.write(json.dumps({"seconds": taken, "found": found.count('"name_path"')}) + "\n")
        answers.flush()
    os._exit(0)  # its language server and threads would keep the process


if __name__ == "__main__":
    main()
