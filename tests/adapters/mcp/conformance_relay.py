"""The program that the conformance suite starts for a scenario: it passes its arguments to the client at a port of this
machine, and ends with the exit code of the client. It loads next to nothing, since it is started dozens of times."""

import json
import os
import socket
import sys

told = {
    "url": sys.argv[-1],
    "scenario": os.environ.get("MCP_CONFORMANCE_SCENARIO", ""),
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
}
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as client:
    client.sendall(json.dumps(told).encode() + b"\n")
    error = b"".join(iter(lambda: client.recv(65_536), b""))
sys.exit(error.decode() or 0)
