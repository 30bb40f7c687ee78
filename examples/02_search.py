"""Search by words and by meaning, with filters.

Run it: python examples/02_search.py
"""

import asyncio
from pathlib import Path

from clew.access import Principal
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.transfer import import_trail

DATA = Path(__file__).parent / "data" / "northline.jsonl"

REQUESTS = {
    "by meaning": SearchRequest(text="send an SMS to travellers", limit=2),
    "by exact name": SearchRequest(text="weather_at_port", limit=1),
    "only tools": SearchRequest(text="money back", selector=Selector(schema_name="tool.code.v1"), limit=2),
    "in a session": SearchRequest(text="bicycle", selector=Selector(session="quay-7"), limit=2),
}


async def main() -> None:
    # The embedder comes with its weights: nothing is downloaded. `None` would leave full text alone.
    trail = await open_trail("sqlite://:memory:", embedder=open_embedder("wordllama"))
    me = Principal(owner_id="local")
    with DATA.open("rb") as lines:
        report = await import_trail(trail, me, lines)
    print(f"imported {report.created} breadcrumbs and {report.edges} edges")

    for name, request in REQUESTS.items():
        print(f"\n{name}: {request.text!r}")
        result = await trail.index.search(request, by=me)
        for hit in result.hits:
            print(f"  {hit.score:.2f}  {hit.breadcrumb.title}")
    await trail.close()


asyncio.run(main())
