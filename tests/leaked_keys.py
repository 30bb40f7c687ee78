"""Keys as people leave them in files by mistake, and the complete content of a trail, in which tests search for
them."""

from __future__ import annotations

import msgspec

from clew.access import Principal
from clew.trail.bulk import each_record
from clew.trail.model.selector import EVERYTHING
from clew.trail.store import Trail

TOKEN = "ghp_" + "Zq7" * 10
KEY_BODY = "MIIEowIBAAKCAQEAzqleaked"
CARELESS = f"""Sign with this key:

-----BEGIN RSA PRIVATE KEY-----
{KEY_BODY}
-----END RSA PRIVATE KEY-----

and push with {TOKEN} as ever."""


async def read_whole_trail(trail: Trail, by: Principal) -> str:
    """Everything that a caller may see on a trail, as text."""
    found = [each async for each in each_record(trail, EVERYTHING, by=by)]
    return msgspec.json.encode(found).decode()
