"""REST and server-sent events. `build_app` makes the ASGI application, `run_server` serves it."""

from clew.adapters.rest.app import build_app
from clew.adapters.rest.auth import Keys, open_keys
from clew.adapters.rest.server import run_server
from clew.telemetry.metrics import Metrics

__all__ = ["Keys", "Metrics", "build_app", "open_keys", "run_server"]
