"""The certificates that HTTPS connections are checked with, loaded once for the whole process."""

from __future__ import annotations

import os
import ssl
from functools import cache


def tls_context(*, trust_env: bool) -> ssl.SSLContext:
    """Return the shared context. Otherwise each HTTP client would load the certificates again.

    With `trust_env`, SSL_CERT_FILE and SSL_CERT_DIR choose the certificates. Raises OSError when they cannot be read.
    """
    named = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")) if trust_env else ()
    return _load(named)


@cache
def _load(named: tuple[str | None, ...]) -> ssl.SSLContext:
    import httpx2  # takes a tenth of a second, and few commands connect to anything

    return httpx2.create_ssl_context(trust_env=bool(named))
