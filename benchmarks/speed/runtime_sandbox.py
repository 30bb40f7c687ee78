"""The overhead of a call of a sandboxed tool over the code's own time; see `sandbox`."""

from __future__ import annotations

import sandbox
from clew.errors import SandboxUnavailable
from speed.report import Finding, Promise, Row
from speed.step_contenders import Settings
from speed.timing import tell

MEASURE = "calls in the sandbox"
WALLS = {"python": "bubblewrap", "javascript": "deno", "typescript": "deno"}
CALLS = 30


async def measure(settings: Settings) -> list[Finding]:
    calls = settings.count(CALLS, 3)
    tell(f"{MEASURE}: {calls} a language")
    try:
        found = await sandbox.measure(calls)
    except SandboxUnavailable as error:
        return [Row(measure=MEASURE, records=calls, contender="clew", note=str(error))]
    rows: list[Finding] = []
    for language, figures in found.items():
        name = f"{language}, {WALLS[language]}"
        values = {"p50 ms": figures["median_ms"], "p95 ms": figures["p95_ms"]}
        rows.append(Row(measure=MEASURE, records=calls, contender=name, values=values))
        rows.append(
            Promise(
                name=f"{name}: call, median ms",
                records=calls,
                value=figures["median_ms"],
                target=figures["limit_ms"],
                at_least=False,
            )
        )
    return rows
