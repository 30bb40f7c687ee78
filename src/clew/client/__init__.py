"""The Python client of the REST server, with the same records and errors as the trail."""

from clew.client.calls import Client
from clew.client.stream import StreamEvent

__all__ = ["Client", "StreamEvent"]
