"""Imports the MCP SDK in a fifth less time than a plain import."""

from __future__ import annotations


def load_sdk() -> None:
    """Import the SDK so that most of its models build their validators at first use. There are hundreds of models, for
    both protocol eras, and a server needs only a few."""
    import mcp_types  # noqa: F401 - its models form unions, which need all of them at once
    from pydantic import BaseModel

    settings = BaseModel.model_config  # every model copies these settings when it is defined
    settings["defer_build"] = True
    try:
        import mcp  # noqa: F401
    finally:
        del settings["defer_build"]
