"""The purpose of each setting in a few words, for config.toml, the JSON schema and the reference."""

from __future__ import annotations

SCHEMA = "config.schema.json"
DIRECTIVE = f"#:schema ./{SCHEMA}"
"""The first line of config.toml, by which editors with Taplo find the schema."""
ABOUT = {
    "trail": "where the trail is, such as sqlite://PATH; empty means trail.db in this folder",
    "owner": "the owner of the records that you write here",
    "embedder": "wordllama, minilm (needs clew[minilm]), hash or none",
    "agents": "whether `clew up` runs agents, tools and workflows",
    "production": "true: code of tools runs only if a sandbox can confine it",
    "server.host": "0.0.0.0 makes the trail reachable from other machines",
    "server.port": "0 takes a free one",
    "server.max_body": "bytes of one request",
    "server.queue": "pending writes before callers get an error and have to retry",
    "server.token_minutes": "how long a token is good for",
    "server.hosts": "further names under which MCP is reached, such as clew.example.org behind a proxy",
    "bus.url": "a NATS server that wakes other processes of the trail, such as nats://127.0.0.1:4222; empty: they poll",
    "bus.credentials": "where its login is, as env:NAME or file:PATH: USER:PASSWORD, a token or a .creds file",
    "bus.ca": "a file with the certificates that the bus's is checked with; empty: those of the system",
    "search.memory_mb": "memory for records in each process that searches a trail on PostgreSQL; about twice while"
    " loading, and up to a tenth more for filters; 0: it asks the server",
    "hygiene.enabled": "whether `clew up` removes expired records",
    "hygiene.every_seconds": "the time from one run to the next",
    "hygiene.idle_days": "an agent that was not seen for this time is forgotten",
    "webhooks.allow": 'networks that webhooks may reach although they are not public, such as "10.0.0.0/8"',
    "webhooks.timeout_seconds": "how long a receiver may take to answer",
    "catalog.domains": 'domains that are on: names that installed packages offer, or "module:name"',
    "catalog.repository": "whether the files around this folder are indexed as the domain repo",
    "catalog.max_files": "a folder with more files is read only after you agreed: clew index --yes",
    "catalog.strict": "whether `get` refuses routes that `ask` or guidance has not shown",
    "catalog.shared": "whether callers of other owners see the catalog",
    "knowledge.model": 'a role or "provider:model" that writes an answer if no source answers directly; empty: none',
    "permissions.allow": 'calls that need no permission, such as "exec(git status*)"; waits for `clew trust`',
    "permissions.ask": "what agents ask about",
    "permissions.deny": 'calls that agents may never make, such as "write-file(secrets/**)"',
    "agent.name": "the agent that a conversation starts with; `clew agents` lists them",
    "agent.model": 'its model, such as "ollama:qwen3"; short for an entry of [models] under its name',
    "mcp.hooks": 'Python hooks around foreign MCP servers, as "module:name"; wait for `clew trust`',
    "skills.root": "the folder of the project that holds its skills",
    "rules.root": "the file with the rules that hold for the whole project",
    "team.model_calls": "calls of models at a time, over all sessions and processes",
    "team.tool_calls": "calls of tools at a time, over all sessions and processes",
    "team.session_calls": "calls at a time for one session, of models and of tools",
    "team.queue": "the team takes no new request while more calls than this wait",
    "adapters.sandbox": "auto (the best of this machine) or bubblewrap; landlock and none wait for `clew trust`",
    "scripts.persistence": "for Python programs that call open_scripts: file, or callback if the program stores them",
    "scripts.path": "for Python programs: the file of promoted scripts; outside of the project it needs `clew trust`",
    "scripts.expiration_days": "for Python programs: how long a promoted script is kept",
    "models.default": 'the model of every role that has none, such as "ollama:qwen3"; an agent\'s own likewise',
    "models.fast": "the model for quick and cheap work",
    "models.strong": "the model for difficult steps",
    "models.coding": "the model for writing and testing code",
}
"""The purpose of each setting by its dotted name."""

TABLES = {
    "sources": "places that documents come from, one table each: [sources.NAME]",
    "providers": "places where models answer, one table each: [providers.NAME]",
    "mcp.servers": "foreign MCP servers beside those of mcp.json, one table each: [[mcp.servers]]",
    "models.known": "your facts about a model, one table each: [models.known.NAME]",
}
"""The purpose of each setting that is made of tables."""
