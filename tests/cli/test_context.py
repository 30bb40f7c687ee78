"""Context previews on the command line."""

from __future__ import annotations

from tests.cli.conftest import Clew


def test_a_preview_shows_titles(clew: Clew) -> None:
    put = clew("trail", "put", "--title", "The kettle is blue", "--schema", "note.v1", "--context", '{"text": "blue"}')
    shown = [row[1] for row in clew("context", "preview", "which colour has the kettle").rows]
    assert {"(your message)", "The kettle is blue"} <= {*shown}
    assert put.out.strip() not in clew("context", "preview", "which colour has the kettle").out


def test_a_preview_without_a_model_says_so(clew: Clew) -> None:
    shown = clew("context", "preview", "hello")
    assert shown.code == 0
    assert "no model is configured" in shown.err
    assert " of 50,000" not in shown.err
