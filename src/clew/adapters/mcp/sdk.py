"""The MCP SDK, imported in a fifth less time than by naming it."""

from __future__ import annotations


def load_sdk() -> None:
    """Import the SDK. The validators of most of its models are built when they are first used: there are hundreds, of
    both protocol eras, and a server needs a few."""
    import mcp_types  # noqa: F401 - these are put together into unions, which need all of them at once
    from pydantic import BaseModel

    settings = BaseModel.model_config  # every model takes over what stands here while it is defined
    settings["defer_build"] = True
    try:
        import mcp  # noqa: F401
    finally:
        del settings["defer_build"]
