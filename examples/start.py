"""Clew in two screens: a question, an agent's walk, a conversation and a team that survive `kill -9`. `make run` shows
this."""

import asyncio
import sys

from question import say, show_question

if __name__ == "__main__":
    try:
        asyncio.run(show_question())
    except KeyboardInterrupt:
        say()
        sys.exit(130)
    from run_demo import run  # its imports take a second, which the first answer does not wait for

    run("start")
