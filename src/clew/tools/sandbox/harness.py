"""Runs inside the sandbox: reads one call from stdin, runs the tool's code, writes the result to a pipe of its own.

Started as a text, without any package: only the standard library is here, and each import is paid with every call.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, check-untyped-defs=False

import errno
import os
import sys

FILE = "tool.py"
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL}


def main():
    import json

    call = json.loads(sys.stdin.buffer.read())
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    try:
        answer = json.dumps(answer_to(call), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        answer = json.dumps({"error": {"kind": "validation", **describe(error, call)}})
    sys.stdout.flush()
    sys.stderr.flush()
    data = answer.encode("utf-8", "replace")
    while data:
        data = data[os.write(call["result_to"], data) :]
    os._exit(0)


def answer_to(call):
    try:
        return {"value": run(call)}
    except MemoryError:
        return {"error": {"kind": "memory", "type": "MemoryError", "message": "", "stack": ""}}
    except BaseException as error:
        return {"error": {"kind": kind_of(error, call["allowed"]), **describe(error, call)}}


def run(call):
    space = {"__name__": "tool", "__file__": FILE}
    exec(compile(call["code"], FILE, "exec"), space)
    found = next((space[name] for name in call["names"] if callable(space.get(name))), None)
    if found is None:
        raise LookupError("clew: no function " + " or ".join(call["names"]))
    value = found(call["input"], Context(call["context"]))
    if hasattr(value, "__await__"):
        import asyncio

        async def wait():
            return await value

        value = asyncio.run(wait())
    return value


class Context(dict[str, object]):
    """`context.secrets` and `context["secrets"]` are the same."""

    __getattr__ = dict.__getitem__


def describe(error, call):
    import linecache
    import traceback

    code = call["code"]
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    whole = traceback.TracebackException.from_exception(error, limit=-50)
    whole.stack = traceback.StackSummary.from_list([frame for frame in whole.stack if frame.filename == FILE])
    whole.__cause__ = whole.__context__ = None
    stack = "".join(whole.format())
    return {
        "type": type(error).__name__,
        "message": str(error)[:2000],
        "stack": stack[-8000:],
    }


def kind_of(error, allowed):
    if isinstance(error, LookupError) and str(error).startswith("clew: no function"):
        return "config"
    if not isinstance(error, OSError):
        return "runtime"
    inner = getattr(error, "reason", error)
    if getattr(inner, "errno", None) in REFUSED or type(inner).__name__ == "gaierror":
        return "permission"
    place = error.filename
    is_outside = (
        isinstance(place, str)
        and place.startswith("/")
        and not any(place == root or place.startswith(root + "/") for root in [*allowed, "/tmp"])
    )
    return "permission" if is_outside else "runtime"


if __name__ == "__main__":
    main()
