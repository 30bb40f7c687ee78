"""Tools stored as code: a record with schemas, permissions and limits becomes a tool that runs in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput, NotFound, SchemaViolation, ToolFailure
from clew.tools.content import GuidedContent, as_content
from clew.tools.sandbox import Confinement, Language, Program, Sandbox
from clew.tools.sandbox.calls import call_code
from clew.tools.tool import Effects, Tool, ToolContext, ToolLimits
from clew.trail.model.validation import SchemaCheck, compile_schema

Reveal = Callable[[str], Awaitable[str]]
"""Returns the value of a secret by its name. Raises NotFound."""

MAX_CODE = 500_000
MAX_TIMEOUT_MS = 3_600_000
MAX_MEMORY_MB = 4_096
MAX_OUTPUT = 16_000_000
_GRACE_SECONDS = 5.0
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie")


class CodePermissions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts, paths and variables that a tool needs. The sandbox denies all others."""

    net: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


class CodeLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    timeout_ms: int = 300_000
    memory_mb: int = 512
    output_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        most = {"timeout_ms": MAX_TIMEOUT_MS, "memory_mb": MAX_MEMORY_MB, "output_bytes": MAX_OUTPUT}
        for name, limit in most.items():
            if not 0 < getattr(self, name) <= limit:
                raise ValueError(f"{name} must be from 1 to {limit:,}")


class CodeEffects(msgspec.Struct, frozen=True, kw_only=True):
    reads_only: bool = False
    repeats_safely: bool = False
    keyed: bool = False
    destroys: bool = False


class CodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a breadcrumb that holds a tool as code."""

    name: str
    code: str
    description: str = ""
    title: str = ""
    language: Language = "javascript"
    input_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    examples: tuple[dict[str, Any], ...] = ()
    permissions: CodePermissions = CodePermissions()
    limits: CodeLimits = CodeLimits()
    effects: CodeEffects = CodeEffects()


def tool_from_record(
    context: dict[str, Any],
    sandbox: Sandbox,
    reveal: Reveal,
    *,
    config: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str = "",
) -> Tool:
    """Build the tool of a record. The code gets only the `secrets` of `config`, the configuration of the tool.

    Raises InvalidInput for an invalid record.
    """
    return CodeTool(read_record(context), sandbox, reveal, config=config, environ=environ, cwd=cwd).as_tool()


def read_record(context: dict[str, Any]) -> CodeRecord:
    """Parse a record. Raises InvalidInput with the name of the field."""
    try:
        record = msgspec.convert(context, CodeRecord)
    except msgspec.ValidationError as error:
        raise in_plain_words(error, CodeRecord, "tool", called="field") from None
    if len(record.code) > MAX_CODE:
        raise InvalidInput("code", f"{len(record.code):,} characters are over the limit of {MAX_CODE:,}")
    return record


class CodeTool:
    """A callable record. Every call looks up its secrets, and masks them in the result."""

    def __init__(
        self,
        record: CodeRecord,
        sandbox: Sandbox,
        reveal: Reveal,
        *,
        config: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: str = "",
    ) -> None:
        self.record = record
        self._sandbox = sandbox
        self._reveal = reveal
        self._config = config or {}
        self._environ = environ or {}
        self._cwd = cwd
        self._input = compile_schema(record.input_schema, "input_schema")
        self._output = None if record.output_schema is None else compile_schema(record.output_schema, "output_schema")

    def as_tool(self) -> Tool:
        record = self.record
        return Tool(
            name=record.name,
            title=record.title,
            description=record.description or f"The tool {record.name}",
            call=self._call,
            check=self.check,
            schema=record.input_schema or {"type": "object"},
            output_schema=record.output_schema,
            limits=ToolLimits(
                seconds=record.limits.timeout_ms / 1000 + _GRACE_SECONDS, characters=record.limits.output_bytes
            ),
            effects=Effects(
                reads_only=record.effects.reads_only,
                destroys=record.effects.destroys,
                repeats_safely=record.effects.repeats_safely,
                keyed=record.effects.keyed,
                reaches_out=bool(record.permissions.net),
            ),
            examples=record.examples,
        )

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments after a check against the input schema. Raises InvalidInput."""
        given = dict(arguments)
        try:
            self._input.check(given, self.record.name)
        except SchemaViolation as error:
            raise InvalidInput(error.field.replace("context", "input", 1), error.reason) from None
        return given

    async def result(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Run the code, and return a JSON value that matches the output schema. Raises ToolFailure."""
        program = Program(
            language=self.record.language,
            code=self.record.code,
            names=(re.sub(r"\W", "_", self.record.name), "run"),
            input=arguments,
            context={"key": context.key},
        )
        value = await call_code(self._sandbox, program, await self._confinement())
        if self._output is not None:
            _check_output(self._output, value, self.record.name)
        return value

    async def _call(self, arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        return as_content(await self.result(arguments, context))

    async def _confinement(self) -> Confinement:
        permissions, limits = self.record.permissions, self.record.limits
        return Confinement(
            read=permissions.read,
            write=permissions.write,
            net=permissions.net,
            env=self._variables(),
            secrets=await self._secrets(),
            seconds=limits.timeout_ms / 1000,
            memory_mb=limits.memory_mb,
            output_bytes=limits.output_bytes,
            cwd=self._cwd,
        )

    def _variables(self) -> dict[str, str]:
        for name in self.record.permissions.env:
            if _SECRET_NAME.search(name):
                hint = "Add it to the secrets of the tool's configuration"
                raise ToolFailure("permission", f"the variable {name[:100]!r} looks like a secret", hint=hint)
        return {name: self._environ[name] for name in self.record.permissions.env if name in self._environ}

    async def _secrets(self) -> dict[str, str]:
        found = {}
        for name, reference in dict(self._config.get("secrets") or {}).items():
            match reference:
                case {"$secret": str(stored)} if len(reference) == 1:
                    found[name] = await self._look_up(stored)
                case _:
                    raise ToolFailure("config", f'the secret {name!r} must have the form {{"$secret": "NAME"}}')
        return found

    async def _look_up(self, stored: str) -> str:
        try:
            return await self._reveal(stored)
        except NotFound:
            hint = f"Store it: clew secret put {stored}"
            raise ToolFailure("config", f"the secret {stored!r} does not exist", hint=hint) from None


def _check_output(check: SchemaCheck, value: Any, name: str) -> None:
    try:
        check.check(cast(dict[str, Any], value), name)  # the check accepts any JSON value
    except InvalidInput as error:
        place = error.field.replace("context", "result", 1)
        raise ToolFailure("validation", f"{place}: {error.reason}", hint="Correct the code or output_schema") from None
