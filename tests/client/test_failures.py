"""Error answers as errors."""

from __future__ import annotations

import msgspec
import pytest

from clew.adapters.rest.errors import STATUS, RestProblem, error_response
from clew.client.failures import error_of
from clew.errors import ClewError, Conflict, NotFound


@pytest.mark.parametrize("kind", STATUS, ids=lambda kind: kind.__name__)
def test_every_error_that_the_door_can_send_is_raised_as_its_own_class(kind: type[ClewError]) -> None:
    status, code = STATUS[kind]
    body = error_response(status, RestProblem(code=code, message="m", hint="h")).body
    error = error_of(status, bytes(body))
    assert type(error) is kind
    assert (error.message, error.hint, str(error)) == ("m", "h", "m. h")


def test_the_data_of_an_error_comes_along() -> None:
    data = {"id": "x", "expected": 1, "actual": 2}
    body = msgspec.json.encode({"error": {"code": "conflict", "message": "m", "hint": "", "data": data}})
    error = error_of(412, body)
    assert isinstance(error, Conflict)
    assert (error.id, error.expected, error.actual) == ("x", 1, 2)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"{}", b'{"error": "x"}', b"\xff"])
def test_an_answer_of_something_else_than_clew_says_its_status(body: bytes) -> None:
    error = error_of(502, body)
    assert type(error) is ClewError
    assert "502" in error.message


def test_a_code_that_is_not_known_yet_is_the_root_error() -> None:
    body = b'{"error": {"code": "from_the_future", "message": "m", "hint": "h", "extra": 1}}'
    assert type(error_of(418, body)) is ClewError
    assert not isinstance(error_of(418, body), NotFound)
