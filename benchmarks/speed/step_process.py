"""One contender in a separate process, so that contenders do not share threads or garbage.

Usage: step_process.py CONTENDER FOLDER serve | crash STEPS AT | resume STEPS. Served, it answers each line of JSON with
`sessions` and `steps` with the seconds that it took, those of the processor, and the steps where it counts them;
resumed, it says when the session is done, and how many seconds of the processor it has used since its start.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from speed.step_payload import Step, Stepper

CRASHED = "crashed"


def open_stepper(name: str, folder: Path, step: Step, steps: int) -> Stepper:
    """Each imports only its own modules, because the import time is part of a restart."""
    if name == "clew":
        from speed.step_clew import ClewStepper

        return ClewStepper(folder, step, steps)
    if name == "conversation":
        from speed.step_conversation import ConversationStepper

        return ConversationStepper(folder, step, steps)
    if name == "team":
        from speed.step_team import TeamStepper

        return TeamStepper(folder, step, steps)
    if name.startswith("supervisor"):
        from speed.team_graph import TeamGraphStepper

        return TeamGraphStepper(folder, agents=not name.endswith("bare"))
    if name == "dbos":
        from speed.step_dbos import DbosStepper

        return DbosStepper(folder, step)
    from speed.step_langgraph import LangGraphStepper

    return LangGraphStepper(folder, step, "async" if name.endswith("async") else "sync")


def serve(stepper: Stepper) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        began, worked = time.perf_counter(), time.process_time()
        stepper.run(order["sessions"], order["steps"])
        took, busy = time.perf_counter() - began, time.process_time() - worked
        say({"seconds": took, "processor": busy, "steps": getattr(stepper, "steps", 0)})


def say(answer: dict[str, float]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    name, folder, what, *numbers = sys.argv[1:]
    steps, die_at = (*map(int, numbers), 0, 0)[:2]
    step = Step(die_at if what == "crash" else None)
    stepper = open_stepper(name, Path(folder), step, steps)
    if what == "serve":
        say({"ready": 1})
        serve(stepper)
    elif what == "crash":
        stepper.run([CRASHED], steps)
    else:
        stepper.resume(CRASHED)
        say({"processor": time.process_time()})
    stepper.close()


if __name__ == "__main__":
    main()
