"""An agent answers with a tool that is a breadcrumb. The tool has a bug: another agent mends it. Every prompt has a
receipt, and can be had again byte for byte. The model is a script, so that this runs without a key."""

import asyncio
import tempfile
from pathlib import Path

from clew.agents.conversations.conversation import open_conversations
from clew.agents.conversations.steps import Answered, ToolAnswered, ToolCalled
from clew.agents.runs.prompts import rebuild_prompt
from clew.app import App, open_app
from clew.config import Config
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, read_script
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector

SCRIPT = Path(__file__).with_suffix("") / "script.yaml"
TOOL = {
    "name": "crossing-time",
    "description": "How many hours a ferry takes for so many miles at so many knots.",
    "language": "python",
    "code": 'def run(input, context):\n    return {"hours": input["miles"] / (input["knots"] - 14)}\n',
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


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_app(Config(folder=Path(folder) / ".clew")) as app:
            model = ScriptedModel(read_script(SCRIPT.read_text()))
            runtime = await app.runtime(open_models(app.config).with_model("*", model))
            async with runtime.running():
                await write(app, "tool.code.v1", TOOL)
                await write(app, "agent.def.v1", AGENT)
                await say(app, "How long is the crossing?")
                await wait_for_repair(app)
                await say(app, "Once more: how long is it?")
                await show_receipt(app)


async def write(app: App, schema: str, context: dict[str, object]) -> None:
    draft = Draft(title=schema, schema_name=schema, context=context, tags=["workspace:tools"])
    await app.trail.records.create(draft, by=app.me)


async def say(app: App, text: str) -> None:
    """Send a message, and print the steps of the run as they arrive."""
    conversations = await open_conversations(app.trail, app.clock, by=app.me)
    print(f"> {text}")
    sent = await conversations.send(text, agent="purser", by=app.me)
    async for step in conversations.follow(sent, by=app.me):
        match step:
            case ToolCalled():
                print(f"  calls {step.tool} with {told(step.input)}")
            case ToolAnswered():
                print(f"  {step.status}: {step.error or told(step.output)}")
            case Answered():
                print(f"  {step.text}")


def told(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


async def wait_for_repair(app: App) -> None:
    """Until the agent that mends tools has answered."""
    mended = Selector(schema_name="agent.response.v1", all_tags=["agent:tool-debugger"])
    async for event in app.trail.log.follow(0, by=app.me, selector=mended):
        if event.breadcrumb is not None:
            print(f"tool-debugger: {event.breadcrumb.context['message']}")
            return


async def show_receipt(app: App) -> None:
    """Why the last prompt is what it is, and that it can be had again."""
    newest = Selector(schema_name="agent.context.v1", all_tags=["consumer:purser"])
    (context,) = (await app.trail.records.list(newest, by=app.me, limit=1)).items
    print("The breadcrumbs that the model saw, and the reason for each:")
    for item in context.context["receipt"]["items"]:
        print(f"  {item['section']}: {item['reason']} ({item['tokens']} tokens)")
    runtime = await app.runtime()
    requests = Selector(schema_name="tool.request.v1", tag_prefix="run:")
    for request in (await app.trail.records.list(requests, by=app.me, limit=10)).items:
        if request.context["tool"] == "llm":
            prompt = await rebuild_prompt(app.trail, runtime.parts.flow, request, by=app.me)
            print(f"The last prompt, had again byte for byte: {len(prompt.messages)} messages ({prompt.digest[:8]}…)")
            return


asyncio.run(asyncio.wait_for(main(), 50))
