"""An MCP server as somebody else would write it, with the SDK and without Clew: it knows where addresses are."""

from mcp.server.mcpserver import MCPServer

PLACES = {"192.0.2.": ("Northhaven", "NO", False), "203.0.113.": ("Rockford", "US", True)}
"""By the beginning of an address: city, country, and whether it is a relay that hides others."""

server = MCPServer("geo", version="1.0", instructions="Knows where IP addresses are. Nothing leaves this machine.")


def find(ip: str) -> tuple[str, str, bool]:
    place = next((place for start, place in PLACES.items() if ip.startswith(start)), None)
    if place is None:
        raise ValueError(f"{ip} is not in the table")
    return place


@server.tool()
async def locate_ip(ip: str) -> str:
    """City and country of an IP address, and whether it is a relay that hides where somebody really is."""
    city, country, is_relay = find(ip)
    return f"{ip} is in {city} ({country}), {'a relay' if is_relay else 'not a relay'}."


@server.tool()
async def time_zone(ip: str) -> str:
    """The time zone of an IP address, by its usual name."""
    return {"NO": "Europe/Oslo", "US": "America/Chicago"}[find(ip)[1]]


@server.tool()
async def same_place(first: str, second: str) -> bool:
    """Whether two IP addresses are in the same city."""
    return find(first)[0] == find(second)[0]


if __name__ == "__main__":
    server.run("stdio")
