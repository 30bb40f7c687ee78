"""The SDK as `clew mcp` imports it: faster, but with the same behaviour."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
from pydantic import BaseModel
from clew.adapters.mcp.sdk import load_sdk
load_sdk()
class Later(BaseModel):
    number: int
import mcp_types
from mcp.server.auth.settings import AuthSettings
print("defer_build" in BaseModel.model_config, "defer_build" in Later.model_config)
print(AuthSettings.model_config.get("defer_build"), Later(number="3").number)
print(mcp_types.Tool(name="ask", input_schema={}).model_dump(by_alias=True, exclude_none=True))
"""


def test_models_of_the_sdk_wait_for_their_first_use_and_those_of_others_do_not() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["False False", "True 3", "{'name': 'ask', 'inputSchema': {}}"]
