"""How long a call in the sandbox takes above the code's own time. Run: python benchmarks/sandbox.py"""

from __future__ import annotations

import asyncio
import statistics
import time

from clew.tools.sandbox import Confinement, Language, Program, open_sandbox
from clew.tools.sandbox.calls import call_code

CALLS = 30
CODE: dict[Language, str] = {
    "python": "def run(input, context):\n    return input",
    "javascript": "function run(input) { return input }",
    "typescript": "function run(input: unknown) { return input }",
}
LIMITS = {"python": 80.0, "javascript": 60.0, "typescript": 60.0}


async def measure(calls: int = CALLS) -> dict[str, dict[str, float]]:
    """Milliseconds of successive empty calls: median, 95th percentile, and the limit."""
    sandbox = open_sandbox(production=True)
    found = {}
    for language, code in CODE.items():
        program = Program(language=language, code=code, input={"a": 1})
        await call_code(sandbox, program, Confinement())
        times = [await _time(lambda program=program: call_code(sandbox, program, Confinement())) for _ in range(calls)]
        found[language] = {
            "median_ms": statistics.median(times),
            "p95_ms": statistics.quantiles(times, n=20)[-1],
            "limit_ms": LIMITS[language],
        }
    return found


async def _time(call) -> float:
    started = time.perf_counter()
    await call()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    for name, figures in asyncio.run(measure()).items():
        print(f"{name:<12}" + "  ".join(f"{what} {value:7.1f}" for what, value in figures.items()))
