"""Five questions about this repository, answered from its code, decisions and history. Each answer cites its sources.
No model, no key.

    python examples/09_knowledge.py
"""

import asyncio
import tempfile
import time
from pathlib import Path

from clew.app import App, open_app
from clew.config import Config
from clew.knowledge.base import Knowledge, open_knowledge
from clew.llm import open_embedder

ROOT = Path(__file__).parents[1]
QUESTIONS = (
    "where is the lease of a claim extended",
    "which file decides how close a hit is to the question",
    "what did we decide about code on the trail",
    "where is a cancelled command killed with all that it started",
    "what approach did we take for exposure",
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_app(Config(folder=Path(folder) / ".clew")) as app:
            await app.bootstrap()
            known = open_knowledge(app.trail, app.clock, Path(folder), ROOT, app.me, open_embedder(app.config.embedder))
            try:
                await show(app, known)
            finally:
                await known.close()


async def show(app: App, known: Knowledge) -> None:
    began = time.perf_counter()
    gathered = await known.gather()
    seconds = time.perf_counter() - began
    read = f"{gathered.code.files:,} files, {gathered.commits:,} commits and {gathered.decisions} decisions"
    print(f"Read {read} in {seconds:.0f} s.")
    for question in QUESTIONS:
        answer = await known.resolver.resolve(question, by=app.me)
        print(f"\n> {question}")
        for cited in answer.items[:2]:
            print(f"  {cited.place}: {cited.text}")
    calls = await known.code.dependents("src/clew/trail/search/closeness.py#closeness", edge_type="calls")
    print("\n> what calls closeness")
    for link in calls[:4]:
        print(f"  {link.node.path}:{link.line} {link.node.name}")


asyncio.run(main())
