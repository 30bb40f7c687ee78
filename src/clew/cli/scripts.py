"""The option --script of commands that ask a model: a file says what the model answers."""

from __future__ import annotations

from pathlib import Path

from clew.errors import InvalidInput
from clew.llm.model import Models
from clew.llm.scripted_model import ScriptedModel, read_script


def with_script(models: Models, script: Path) -> Models:
    """A copy of `models` in which every model is replaced by one that answers from a script. Raises InvalidInput."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--script", f"{script} cannot be read: {error}") from None
    try:
        return models.with_model("*", ScriptedModel(read_script(text)))
    except InvalidInput as error:
        raise InvalidInput(f"{script}: {error.field}", error.reason, hint=error.hint) from None
