"""The credentials that go with the requests to one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.launch_values import Values
from clew.catalog.servers.login.browser import Browser
from clew.catalog.servers.login.login_store import LoginStore
from clew.catalog.servers.login.tokens import Tokens
from clew.catalog.servers.login.vault import Vault
from clew.clock import Clock
from clew.errors import ServerError

if TYPE_CHECKING:
    import httpx2


class Access:
    """Chooses the credentials of a server's requests: the token of a hook or of the configuration if there is one,
    otherwise a login with OAuth."""

    def __init__(
        self, config: McpServerConfig, tokens: Tokens, vault: Vault, clock: Clock, browser: Browser | None
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._vault = vault
        self._clock = clock
        self._browser = browser

    @property
    def hint(self) -> str:
        """The next step after a refusal; empty while a login is under way."""
        id, auth = self._config.id, self._config.auth
        if self._browser is not None:
            return ""
        if auth.asks_user:
            return f"Run `clew mcp login {id}`"
        return f"Set auth.{'client_id' if auth.type == 'oauth' else 'token'} of {id} in .clew/mcp.json"

    async def check_login(self, values: Values) -> None:
        """Raise ServerError if a person has to log in first. Does not contact the server."""
        if not self._config.auth.asks_user or self._browser is not None or await self._tokens.current() is not None:
            return
        if (await self._logins(values).read()).tokens is None:
            raise ServerError(self._config.id, "needs a login", hint=self.hint)

    async def build_auth(self, values: Values, faults: Faults) -> httpx2.Auth:
        from clew.catalog.servers.connections.http import TokenAuth  # loads the HTTP client

        auth, store = self._config.auth, self._logins(values)
        if auth.type != "oauth" or await self._tokens.current() is not None:
            return TokenAuth(self._tokens)
        from clew.catalog.servers.login import oauth

        credentials = oauth.Credentials(secret=values.client_secret, private_key=values.private_key)
        if auth.grant == "client_credentials":
            return oauth.build_credentials_login(auth, credentials, store)
        if self._browser is not None:
            return oauth.NewLogin(auth, credentials, store, self._browser)
        return oauth.SavedLogin(auth, credentials, store, faults)

    def _logins(self, values: Values) -> LoginStore:
        return LoginStore(self._config.id, values.url, self._vault, lambda: self._clock.now().timestamp())
