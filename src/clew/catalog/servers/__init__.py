"""Foreign MCP servers. Each is a domain that is searched like built-in domains and called through one connection. Its
texts are treated as untrusted data."""

from clew.catalog.servers.config import McpServerConfig, read_servers, write_servers
from clew.catalog.servers.config_import import import_servers, project_files, user_files
from clew.catalog.servers.connections.hooks import Elicitation, Elicited, Hooks, ServerToken
from clew.catalog.servers.domain import build_domain
from clew.catalog.servers.registry import ServerRegistry, open_registry

__all__ = [
    "Elicitation",
    "Elicited",
    "Hooks",
    "McpServerConfig",
    "ServerRegistry",
    "ServerToken",
    "build_domain",
    "import_servers",
    "open_registry",
    "project_files",
    "read_servers",
    "user_files",
    "write_servers",
]
