"""A client of the REST door: the same records and the same errors as the trail itself, over HTTP."""

from clew.client.calls import Client
from clew.client.stream import StreamEvent

__all__ = ["Client", "StreamEvent"]
