"""A conversation survives `kill -9`. A process answers a passenger with a tool, and is killed when the tool has
answered. A second process goes on where the first one stopped: the tool does not run again. The model is a script, so
that this runs without a key."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from clew.agents.conversations.conversation import open_conversations
from clew.agents.conversations.steps import Answered, ToolAnswered, ToolCalled
from clew.app import App, open_app
from clew.config import Config
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, read_script
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector

QUESTION = "How long is the crossing?"
SCRIPT = """
- user: How long is the crossing
  say: I look that up.
  call: {crossing-time: {miles: 42, knots: 14}}
- expect: '"hours":3.0'
  say: The crossing takes three hours.
"""
TOOL = {
    "name": "crossing-time",
    "description": "How many hours a ferry takes for so many miles at so many knots.",
    "language": "python",
    "code": 'def run(input, context):\n    return {"hours": input["miles"] / input["knots"]}\n',
    "input_schema": {
        "type": "object",
        "properties": {"miles": {"type": "number"}, "knots": {"type": "number"}},
        "required": ["miles", "knots"],
    },
    "effects": {"reads_only": True},
}
AGENT = {
    "agent_id": "purser",
    "system_prompt": "You answer passengers of a ferry.",
    "capabilities": {"tools": ["crossing-time"]},
    "context_trigger": {"schema_name": "user.message.v1", "all_tags": ["consumer:purser"]},
}


def main() -> None:
    """Run this file twice as a process of its own, on the same folder."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"> {QUESTION}", flush=True)
        first = subprocess.run([sys.executable, __file__, folder, "dies"], check=False)
        assert first.returncode == -signal.SIGKILL
        print("  (kill -9; a new process goes on)", flush=True)
        subprocess.run([sys.executable, __file__, folder, "lives"], check=True)


async def converse(folder: Path, *, dies: bool) -> None:
    """Send the message, which is written once whoever sends it, and follow what comes of it."""
    async with open_app(Config(folder=folder / ".clew")) as app:
        runtime = await app.runtime(open_models(app.config).with_model("*", ScriptedModel(read_script(SCRIPT))))
        async with runtime.running():
            if dies:
                await write(app, "tool.code.v1", TOOL)
                await write(app, "agent.def.v1", AGENT)
            conversations = await open_conversations(app.trail, app.clock, by=app.me)
            sent = await conversations.send(QUESTION, agent="purser", key="crossing", by=app.me)
            async for step in conversations.follow(sent, by=app.me):
                match step:
                    case ToolCalled() if dies:
                        print(f"  calls {step.tool}", flush=True)
                    case ToolAnswered() if dies:
                        print(f"  {step.status}: {step.output}", flush=True)
                        os.kill(os.getpid(), signal.SIGKILL)
                    case Answered():
                        print(f"  {step.text}")
            answers = Selector(schema_name="tool.response.v1", context_match=())
            found = (await app.trail.records.list(answers, by=app.me, limit=50)).items
            print(f"  The tool ran {sum(each.context.get('tool') == TOOL['name'] for each in found)} time.")


async def write(app: App, schema: str, context: dict[str, object]) -> None:
    draft = Draft(title=schema, schema_name=schema, context=context, tags=["workspace:tools"])
    await app.trail.records.create(draft, by=app.me)


if len(sys.argv) == 1:
    main()
else:
    asyncio.run(asyncio.wait_for(converse(Path(sys.argv[1]), dies=sys.argv[2] == "dies"), 50))
