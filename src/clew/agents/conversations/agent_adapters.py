"""Adapters that wrap an agent, to speak another protocol or to change its messages. Each takes an agent and returns
one."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from clew.agents.conversations.agent_interface import Agent
from clew.errors import InvalidInput

EXPORTS = ("adapter", "default")
"""The names under which a module may define its adapter."""


class AgentAdapter(Protocol):
    """Wraps an agent."""

    @property
    def name(self) -> str: ...

    def wrap(self, agent: Agent, config: Mapping[str, Any]) -> Agent:
        """The agent inside this adapter. `config` are the settings of the adapter."""
        ...


def wrap_all(agent: Agent, adapters: Sequence[AgentAdapter], config: Mapping[str, Any] | None = None) -> Agent:
    """The agent in all adapters, the first of them innermost. Each gets the settings under its name. An adapter defines
    the methods that it changes; the others go to the agent inside."""
    for adapter in adapters:
        wrapped = adapter.wrap(agent, (config or {}).get(adapter.name, {}))
        agent = cast(Agent, _WrappedAgent(wrapped, agent))
    return agent


class _WrappedAgent:
    """An agent with the methods of the outer agent; methods that the outer agent lacks come from the inner one."""

    def __init__(self, outer: object, inner: Agent) -> None:
        self._outer = outer
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outer, name) if hasattr(self._outer, name) else getattr(self._inner, name)


def load_adapter(path: Path) -> AgentAdapter:
    """Run a Python file and return its adapter. Naming the file is the consent to run it. Raises InvalidInput."""
    if not path.is_file():
        raise InvalidInput("--adapter", f"{path} is not a file", hint="Name a Python file that defines `adapter`")
    name = f"clew_adapter_{abs(hash(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput("--adapter", f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles of the file look for it there
    try:
        spec.loader.exec_module(module)
        found: Any = next((getattr(module, each) for each in EXPORTS if hasattr(module, each)), None)
        found = found() if isinstance(found, type) else found
    except Exception as error:  # code of others may raise anything
        del sys.modules[name]
        raise InvalidInput("--adapter", f"{path} failed with {type(error).__name__}: {error}") from error
    if not isinstance(getattr(found, "name", None), str) or not callable(getattr(found, "wrap", None)):
        raise InvalidInput("--adapter", f"{path} defines no `adapter` with a name and wrap(agent, config)")
    adapter: AgentAdapter = found
    return adapter
