"""A process that serves a catalog on standard input and output: `python -m tests.adapters.mcp.stdio_server FOLDER`.

Its tools print and start programs, as tools do.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from clew.adapters.mcp.stdio import serve_stdio
from clew.tools import ToolContext, tool
from tests.adapters.mcp.catalogs import ME, Gate, fraud_domain, open_catalog


@tool
async def chatter(context: ToolContext) -> str:
    """A tool that prints, starts a program that prints, and reads standard input, which it must not do."""
    print("a line of Python")
    await (await asyncio.create_subprocess_exec("echo", "a line of a program")).wait()
    return f"read {sys.stdin.read()!r}"


class ToldGate(Gate):
    """Says on standard error when a tool waits, and when it was cancelled."""

    async def wait(self) -> None:
        print("waiting", file=sys.stderr, flush=True)
        try:
            await super().wait()
        finally:
            print("cancelled", file=sys.stderr, flush=True)


async def main(folder: Path) -> None:
    domain = fraud_domain(ToldGate())
    domain = msgspec.structs.replace(domain, tools=(*domain.tools, chatter))
    async with open_catalog(folder, domain) as catalog:
        await serve_stdio(catalog, ME)
    print("closed", file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
