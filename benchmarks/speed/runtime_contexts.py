"""How long a context takes on a large trail; see `context_assembly`."""

from __future__ import annotations

from speed import context_assembly
from speed.report import Finding, Promise, Row
from speed.step_contenders import Settings
from speed.timing import tell

MEASURE = "context assembly"
RECORDS, BUILDS = 100_000, 200
MOST = 40.0


async def measure(settings: Settings) -> list[Finding]:
    records = settings.count(RECORDS, 300)
    tell(f"{MEASURE}: {records:,} records")
    found = await context_assembly.measure(
        settings.folder("contexts"), records=records, builds=settings.count(BUILDS, 5)
    )
    shares = {name: value for name, value in found.items() if "p95" in name}
    return [
        Row(measure=MEASURE, records=records, contender="clew", values=found),
        *(
            Promise(name=f"context, {name}", records=records, value=value, target=MOST, at_least=False)
            for name, value in shares.items()
        ),
    ]
