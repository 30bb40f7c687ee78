"""The sandbox: runs foreign programs with limits on files, network, memory and time."""

from clew.tools.sandbox.program import EVERYWHERE, Confinement, Language, Program, ProgramResult
from clew.tools.sandbox.sandbox import LocalSandbox, Sandbox, SandboxStatus, open_sandbox

__all__ = [
    "EVERYWHERE",
    "Confinement",
    "Language",
    "LocalSandbox",
    "Program",
    "ProgramResult",
    "Sandbox",
    "SandboxStatus",
    "open_sandbox",
]
