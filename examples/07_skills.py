"""Skills in markdown: an agent finds the one for its work, loads it with its tools, and unloads it again."""

import asyncio
from pathlib import Path

from clew.skills.library import Skills
from clew.tools import tool


@tool
async def refund(amount: int) -> str:
    """Give money back to a passenger."""
    return f"{amount} cents are on their way."


async def main() -> None:
    async with Skills.from_folder(Path(__file__).with_suffix(""), tools=[refund]) as skills:
        (found,) = await skills.suggest_skills("a passenger wants the money back", "clerk", limit=1)
        print("suggested:", found.skill)
        print("before:", [name for name in await skills.get_tools("clerk") if name == "refund"])
        done = await skills.load_skill("clerk", found.skill)
        print("loaded:", list(done.state.exposed_domain_tools), "at a cost of tokens:", done.tokens_after > 0)
        prompt = await skills.get_prompt("clerk", variables={"PASSENGER": "Ms Vale"})
        print(prompt.content.splitlines()[0])
        done = await skills.unload_skill("clerk", "refunding")
        print("unloaded:", list(done.state.exposed_domain_tools), "tokens:", done.tokens_after)


asyncio.run(main())
