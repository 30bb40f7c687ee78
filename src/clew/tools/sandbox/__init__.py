"""Programs of others, shut in: what they may reach, how much they may take, and what holds them."""

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
