"""The settings of the export to an OpenTelemetry collector: the standard `OTEL_*` variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from clew.trail.work.trace_context import TraceContext

_PREFIX = "OTEL_EXPORTER_OTLP_"
PROTOCOL = "http/protobuf"
_NAME, _VALUE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+"), re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
"""The characters that HTTP allows in a header."""
_FRAMING = frozenset(("connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"))
_SAMPLERS = ("always_on", "always_off", "traceidratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """The addresses for spans and metrics, and how to send them. An empty address turns that export off. `headers` may
    contain a login and are never shown. `ratio` is the share of new traces that is exported. Times are in seconds.
    `problems` are the variables that cannot be used, one line each."""

    traces: str = ""
    metrics: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 10.0
    is_compressed: bool = False
    certificate: str = ""
    resource: Mapping[str, str] = field(default_factory=dict)
    ratio: float = 1.0
    queue: int = 2_048
    batch: int = 512
    delay: float = 1.0
    metrics_every: float = 60.0
    problems: tuple[str, ...] = ()

    @property
    def is_on(self) -> bool:
        return bool(self.traces or self.metrics)

    def is_sampled(self, trace_id: str, given: TraceContext | None = None) -> bool:
        """Whether a trace is exported: as its caller decided, else by its id, so that all processes agree."""
        if given is not None:
            return given.is_sampled
        return int(trace_id[16:], 16) < self.ratio * 2**64


def _is_usable(name: str, value: str) -> bool:
    """Whether a header may be sent, and is not one that the HTTP client sets itself."""
    return bool(_NAME.fullmatch(name) and _VALUE.fullmatch(value)) and name not in _FRAMING


def read_telemetry(environ: Mapping[str, str]) -> TelemetrySettings:
    """The settings of an environment. Without an endpoint nothing is exported. It raises no errors, because telemetry
    must not keep a process from its work."""
    read = _VariableReader(environ)
    if read.text("OTEL_SDK_DISABLED").lower() == "true":
        return TelemetrySettings()
    traces, metrics = read.address("TRACES", "/v1/traces"), read.address("METRICS", "/v1/metrics")
    if not (traces or metrics):
        return TelemetrySettings(problems=tuple(read.problems))
    resource = read.pairs("OTEL_RESOURCE_ATTRIBUTES")
    name = read.text("OTEL_SERVICE_NAME") or resource.get("service.name", "clew")
    batch = int(read.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, least=1))
    return TelemetrySettings(
        traces=traces,
        metrics=metrics,
        headers=read.headers(f"{_PREFIX}HEADERS"),
        timeout=read.number(f"{_PREFIX}TIMEOUT", 10_000, least=1) / 1_000,
        is_compressed=read.text(f"{_PREFIX}COMPRESSION") == "gzip",
        certificate=read.text(f"{_PREFIX}CERTIFICATE"),
        resource={**resource, "service.name": name},
        ratio=read.ratio(),
        queue=max(batch, int(read.number("OTEL_BSP_MAX_QUEUE_SIZE", 2_048, least=1))),
        batch=batch,
        delay=read.number("OTEL_BSP_SCHEDULE_DELAY", 1_000, least=1) / 1_000,
        metrics_every=read.number("OTEL_METRIC_EXPORT_INTERVAL", 60_000, least=1) / 1_000,
        problems=tuple(read.problems),
    )


class _VariableReader:
    """Reads variables. An empty variable is treated as missing. Variables that cannot be used are collected as
    problems."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self._environ.get(name, "").strip()

    def number(self, name: str, default: float, least: float = 0) -> float:
        text = self.text(name)
        try:
            value = float(text) if text else default
            if not least <= value < 1e12:
                raise ValueError
        except ValueError:
            self.problems.append(f"{name} is not a number of at least {least:g}; {default:g} is used")
            return default
        return value

    def pairs(self, name: str) -> dict[str, str]:
        """The pairs of a list such as `name=value,name=value`."""
        found = {}
        for pair in filter(None, (part.strip() for part in self.text(name).split(","))):
            key, equals, value = pair.partition("=")
            if not (key.strip() and equals):
                self.problems.append(f"{name} is not a list of NAME=VALUE")
                continue
            found[unquote(key.strip())] = unquote(value.strip()).strip()
        return found

    def headers(self, name: str) -> dict[str, str]:
        """The pairs of a list that HTTP can carry, with their names in small letters."""
        found = {key.lower(): value for key, value in self.pairs(name).items()}
        usable = {key: value for key, value in found.items() if _is_usable(key, value)}
        if len(usable) < len(found):
            self.problems.append(f"{name} has a header that cannot be sent, which is left out")
        return usable

    def address(self, signal: str, path: str) -> str:
        """The address for a signal; empty if it is off."""
        exporter, base = self.text(f"OTEL_{signal}_EXPORTER"), self.text(f"{_PREFIX}ENDPOINT")
        found = self.text(f"{_PREFIX}{signal}_ENDPOINT") or (base.rstrip("/") + path if base else "")
        if not found or exporter == "none":
            return ""
        if exporter not in ("", "otlp"):
            self.problems.append(f"OTEL_{signal}_EXPORTER={exporter} is not known: say otlp or none")
            return ""
        name = next((each for each in (f"{_PREFIX}{signal}_PROTOCOL", f"{_PREFIX}PROTOCOL") if self.text(each)), "")
        if name and self.text(name) != PROTOCOL:
            self.problems.append(f"{name}={self.text(name)} is not spoken: say {PROTOCOL}, often on port 4318")
            return ""
        if not found.startswith(("http://", "https://")):
            self.problems.append(f"the endpoint for {signal.lower()} must begin with http:// or https://")
            return ""
        return found

    def ratio(self) -> float:
        """The share of new traces that is exported."""
        name = self.text("OTEL_TRACES_SAMPLER").removeprefix("parentbased_") or "always_on"
        if name not in _SAMPLERS:
            self.problems.append(f"OTEL_TRACES_SAMPLER={name} is not known: say one of {', '.join(_SAMPLERS)}")
        if name != "traceidratio":
            return float(name != "always_off")
        return min(1.0, self.number("OTEL_TRACES_SAMPLER_ARG", 1.0))
