"""Runs inside the sandbox: reads one call from stdin, runs the tool's code, writes the result to a separate pipe.

The sandbox passes this file as text. Only the standard library is available, and every call pays for each import.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, check-untyped-defs=False

import errno
import os
import sys

FILE = "tool.py"
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_NETWORK = {
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT),
    *(errno.ECONNREFUSED, errno.ENOTCONN, errno.ETIMEDOUT, errno.ENOENT),
}
MOST_ERRORS = 20


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
        return {"error": {"kind": kind_of(error, call), **describe(error, call)}}


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
    """Gives `context.secrets` the value of `context["secrets"]`."""

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


def kind_of(error, call):
    if isinstance(error, LookupError) and str(error).startswith("clew: no function"):
        return "config"
    return "permission" if any(is_denial(each, call) for each in related(error)) else "runtime"


def related(error):
    """The error and the errors that led to it, nearest first."""
    waiting, seen = [error], []
    while waiting and len(seen) < MOST_ERRORS:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and each not in seen:
            seen.append(each)
            waiting += [getattr(each, "reason", None), each.__cause__]
            waiting += [] if each.__suppress_context__ else [each.__context__]
            waiting += getattr(each, "exceptions", ())
    return seen


def is_denial(error, call):
    """Whether the sandbox caused an error: it refused the call, hid the path, or has no network."""
    if not isinstance(error, OSError):
        return False
    if error.errno in REFUSED:
        return True
    paths = [each for each in (error.filename, error.filename2) if isinstance(each, (str, bytes))]
    if not paths:
        is_of_network = error.errno in NO_NETWORK or type(error).__name__ == "gaierror"
        return is_of_network and not call["has_network"]
    roots = [*call["allowed"], "/tmp"]
    return not all(any(is_below(path, root) for root in roots) for path in paths)


def is_below(path, root):
    """Whether the real path is inside a folder."""
    real, root = os.path.realpath(os.fsdecode(path)), os.path.realpath(root)
    return real == root or real.startswith(root.rstrip("/") + "/")


if __name__ == "__main__":
    main()
