"""Handle events: a function from one event to new breadcrumbs, run exactly once however many workers there are.

Run it: python examples/03_handlers.py
"""

import asyncio

from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.work.handlers import Worker, handles

ME = Principal(owner_id="acme", agent_id="desk")


@handles(Selector(schema_name="user.message.v1"))
async def greet(event: Event, prices: dict[str, int]) -> list[Draft]:
    """Answer a message. The answer and the acknowledgement of the event are one transaction."""
    message = event.breadcrumb
    wanted = message.context["message"]
    answer = f"A {wanted} is {prices[wanted]} euros."
    return [
        Draft(title="Answer", schema_name="agent.response.v1", tags=message.session_tags, context={"message": answer})
    ]


async def main() -> None:
    trail = await open_trail("sqlite://:memory:")
    # Two workers share the events of the handler; in real life they are two processes.
    workers = [Worker(trail, [greet], by=ME, worker_id=name, deps={"ticket": 12, "cabin": 80}) for name in "ab"]
    await workers[0].register()
    running = [asyncio.create_task(worker.run()) for worker in workers]

    for session, wanted in (("1", "ticket"), ("2", "cabin"), ("1", "cabin")):
        await trail.records.create(
            Draft(
                title=f"A question about a {wanted}",
                schema_name="user.message.v1",
                tags=[f"session:{session}"],
                context={"message": wanted},
            ),
            by=ME,
        )

    answers = trail.log.follow(0, by=ME, selector=Selector(schema_name="agent.response.v1"))
    for _ in range(3):
        event = await anext(answers)
        print(f"{event.tags[0]}: {event.breadcrumb.context['message']}")

    for worker in workers:
        worker.stop()
    await asyncio.gather(*running)
    await trail.close()


asyncio.run(main())
