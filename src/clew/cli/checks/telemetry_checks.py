"""The check of `clew doctor` whether the OpenTelemetry collector of the environment answers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

from clew.cli.checks.folder_checks import CheckFinding, ok, wrong
from clew.config import Config
from clew.secrecy import mask_secrets
from clew.telemetry.settings import read_telemetry
from clew.telemetry.telemetry import INSTALL, MISSING, is_installed

NAME = "telemetry"


async def check_telemetry(config: Config) -> AsyncIterator[CheckFinding]:
    """Check that the collector accepts an empty export. Without a collector there is nothing to report."""
    settings = read_telemetry(os.environ)
    for problem in settings.problems:
        yield wrong(NAME, problem, "Correct that variable")
    if not settings.is_on:
        return
    if not is_installed():
        yield wrong(NAME, MISSING, INSTALL)
        return
    from clew.telemetry.exporter import try_collector  # httpx2 takes a tenth of a second to import

    for url in filter(None, (settings.traces, settings.metrics)):
        problem = await try_collector(settings, url)
        shown = mask_secrets(url)
        if problem:
            todo = "Start it, or correct OTEL_EXPORTER_OTLP_ENDPOINT; Clew works without it"
            yield wrong(NAME, f"the collector at {shown} {mask_secrets(problem)}", todo)
        else:
            yield ok(NAME, f"the collector at {shown} answers")
