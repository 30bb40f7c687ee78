"""Small programs, and who calls whom in them."""

from __future__ import annotations

from textwrap import dedent

from clew.knowledge.code.python_calls.program import PythonFlow
from clew.knowledge.code.python_calls.statements import summarize


def flow_of(**files: str) -> PythonFlow:
    """The flow of a program that is treated as a large one. Names are paths with `__` for `/`, without their ending."""
    return PythonFlow({_path(name): summarize(dedent(text).encode()) for name, text in files.items()}, small=0)


def callers(main: str = "", **files: str) -> dict[str, set[str]]:
    """By callee, all callers; both as `file:qualname`, and without the file where that is `main.py`."""
    texts = {"main": main, **files} if main else files
    flow = flow_of(**texts)
    found: dict[str, set[str]] = {}
    for name in texts:
        for call in flow.calls(_path(name)):
            callee = _shown(call.target_path, call.target)
            found.setdefault(callee, set()).add(_shown(_path(name), call.caller))
    return found


def _path(name: str) -> str:
    return name.replace("__init__", "INIT").replace("__", "/").replace("INIT", "__init__") + ".py"


def _shown(path: str, qualname: str) -> str:
    return qualname or "<main>" if path == "main.py" else f"{path.removesuffix('.py')}:{qualname}"
