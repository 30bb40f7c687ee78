"""The sandbox: runs foreign programs with limits on files, network, memory and time."""

from clew.tools.sandbox.program import EVERYWHERE, Confinement, Language, Program, Ran
from clew.tools.sandbox.sandbox import LocalSandbox, Sandbox, SandboxStatus, open_sandbox

__all__ = [
    "EVERYWHERE",
    "Confinement",
    "Language",
    "LocalSandbox",
    "Program",
    "Ran",
    "Sandbox",
    "SandboxStatus",
    "open_sandbox",
]
