"""Builds the application: from a `Config` to an `App` with an open trail and the services that work on it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clew.access import Principal
from clew.background_tasks import cancel_all, log_failure
from clew.clock import Clock, SystemClock
from clew.config import Config
from clew.errors import ClewError
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import OwnerSetup
from clew.trail.config_consent import confirm_settings
from clew.trail.ownership import Ownership, open_owned
from clew.trail.store import Trail
from clew.trail.work.hygiene import Hygiene
from clew.trust import Trust

if TYPE_CHECKING:
    from pathlib import Path

    from clew.agents.runtime import Runtime
    from clew.bus.notice import Bus
    from clew.catalog.operations.answers import Known
    from clew.catalog.workspace.workspace import Workspace
    from clew.knowledge.base import Knowledge
    from clew.llm.model import Models
    from clew.llm.recorded_model import RecordedModel
    from clew.team.assembly import FolderParts
    from clew.team.router import Router
    from clew.team.team import Team
    from clew.tools.permissions.policy import Policy
    from clew.trail.work.webhooks import WebhookSender

REFRESH_SECONDS = 300.0
"""The interval, in seconds, at which a server checks for stale sources."""
CODE_FIRST_SECONDS = 20.0
"""The longest time, in seconds, that reading documents waits until the code is indexed."""

LOOK_SECONDS = 5.0
"""The interval, in seconds, at which a server checks for changed agents and for consent to the trail."""

log = logging.getLogger(__name__)


class App:
    """An open trail with its sweeper, its workspace and the person at this machine. Made by `open_app`."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        trail: Trail,
        ownership: Ownership,
        me: Principal,
        patience: float | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.trail = trail
        self.ownership = ownership
        self.me = me
        self.owners = OwnerSetup(trail)
        self.hygiene = Hygiene(
            trail,
            by=me,
            clock=clock,
            every=config.hygiene.every_seconds,
            idle_after=timedelta(days=config.hygiene.idle_days),
            enabled=config.hygiene.enabled,
        )
        self.refusal = ""
        """The reason why the files of the folder are not read, and the next step; set when the workspace is opened."""
        self._workspace: Workspace | None = None
        self._models: Models | None = None
        self._knowledge: Knowledge | None = None
        self._sender: WebhookSender | None = None
        self._has_read = asyncio.Event()
        """Set when the code has been read, could not be read, or need not be read."""
        self._reads_code = False
        self._patience = patience
        self._bus = bus
        self._opening = asyncio.Lock()

    async def workspace(self) -> Workspace:
        """The workspace behind `ask` and `get`. Built once, at the first call, even if several calls are concurrent.

        Raises ConfigError.
        """
        async with self._opening:
            if self._workspace is None:
                # commands on the trail alone do without
                from clew.catalog.workspace.repository import find_refusal, without_repository
                from clew.catalog.workspace.workspace import open_workspace

                self.refusal = await asyncio.to_thread(find_refusal, self.config)
                knows = self._answer if self.has_knowledge() else None
                self._workspace = await open_workspace(
                    self.trail,
                    self.clock,
                    self.config if not self.refusal else without_repository(self.config),
                    self.me,
                    refusal=self.refusal,
                    knows=knows,
                    goes_first=self._wait_until_code_is_read,
                    model_for=self._model_for_server,
                )
                if knows is not None:
                    await self._offer_knowledge(self._workspace)
            return self._workspace

    def has_knowledge(self) -> bool:
        """Whether the folder is in a project whose files can be indexed."""
        from clew.catalog.workspace.repository import has_repository

        return not self.refusal and has_repository(self.config)

    async def _offer_knowledge(self, workspace: Workspace) -> None:
        """Add the knowledge of the folder's files as domains. Another domain with one of these names takes
        precedence."""
        from clew.knowledge.domains.code import build_code  # without code, none of these modules are loaded
        from clew.knowledge.domains.history import build_history
        from clew.knowledge.domains.reference import build_reference

        for domain in (build(self._open_knowledge) for build in (build_code, build_history, build_reference)):
            if workspace.catalog.registry.find_domain(domain.name) is None:
                await workspace.catalog.add(domain)

    async def _answer(self, question: str, by: Principal, previous: str) -> Known:
        return await self.knowledge().answer(question, by, previous)

    async def _open_knowledge(self) -> Knowledge:
        return self.knowledge()

    def knowledge(self, models: Models | None = None) -> Knowledge:
        """Knowledge of the files around the folder. Nothing is read before the first use. A model is used only if the
        settings name one; it is taken from `models` of the first call, or else from the models of the settings. Raises
        StorageError."""
        if self._knowledge is None:
            from clew.knowledge.base import open_knowledge  # for commands that ask about code and history

            root = self.config.folder.absolute().parent
            self._knowledge = open_knowledge(
                self.trail,
                self.clock,
                self.config.folder,
                root,
                self.me,
                open_embedder(self.config.embedder),
                self._knowledge_model(models),
                self.ownership,
                self._patience,
            )
        return self._knowledge

    def _knowledge_model(self, models: Models | None) -> RecordedModel | None:
        name = self.config.knowledge.model
        if not name:
            return None
        from clew.llm.model import open_models  # models are for those who named one
        from clew.llm.recorded_model import RecordedModel

        return RecordedModel(
            "knowledge",
            lambda found: found.resolve(name),
            lambda: models or self._own_models(open_models),
            self.trail,
            self.ownership,
            self.me,
        )

    def _model_for_server(self, server: str) -> RecordedModel:
        """The default model, for the requests of an MCP server; the ledger names the server."""
        from clew.llm.model import open_models  # models are for servers that may ask one
        from clew.llm.recorded_model import RecordedModel

        return RecordedModel(
            f"mcp-{server}",
            lambda found: found.resolve(),
            lambda: self._own_models(open_models),
            self.trail,
            self.ownership,
            self.me,
        )

    def router(self, models: Models | None = None) -> Router:
        """The router of the Guide, with the model of the settings or of `models` if one is configured."""
        from clew.llm.model import open_models  # models are for commands that may ask one
        from clew.llm.recorded_model import RecordedModel
        from clew.team.router import AGENT, Router

        found = models or self._own_models(open_models)
        if not found.is_configured(AGENT):
            return Router(clock=self.clock)
        model = RecordedModel(
            AGENT, lambda each: each.for_agent(AGENT), lambda: found, self.trail, self.ownership, self.me
        )
        return Router(model, self.clock)

    async def runtime(
        self, models: Models | None = None, *, roles: frozenset[str] | None = None, tags: Sequence[str] = ()
    ) -> Runtime:
        """The runtime of this folder's agents, with the models of its settings unless others are given: all of it, or
        the part of some roles. `tags` are those of the worker.

        Raises ConfigError, for example for a trail of somebody else, and SandboxUnavailable in production without
        isolation.
        """
        from clew.agents.workers.roles import EVERY_ROLE  # agents are for commands that run them
        from clew.team.assembly import build_folder_runtime

        await self.ownership.require()
        await self.bootstrap()
        if roles is None or "knowledge" in roles:  # other processes may have no files, or older ones
            await self.mirror_agents()
        return await build_folder_runtime(self._parts(models), EVERY_ROLE if roles is None else roles, tags)

    async def team(self, models: Models | None = None) -> Team:
        """The team of this folder. A `runtime` does its work, in this process or another one. Raises ConfigError."""
        from clew.team.assembly import build_team  # agents are for commands that run them

        await self.bootstrap()
        return await build_team(self._parts(models), self.ownership.require)

    def _parts(self, models: Models | None) -> FolderParts:
        from clew.llm.model import open_models  # models are for commands that may ask one
        from clew.team.assembly import FolderParts

        return FolderParts(
            trail=self.trail,
            clock=self.clock,
            me=self.me,
            config=self.config,
            models=models or self._own_models(open_models),
            policy=self._policy(self.config.folder.absolute().parent),
            workspace=self.workspace,
            knowledge=self._open_knowledge,
            router=self.router(models),
        )

    def _own_models(self, open_models: Callable[[Config], Models]) -> Models:
        """The models of the settings, opened once and closed with the rest."""
        self._models = self._models or open_models(self.config)
        return self._models

    async def mirror_agents(self) -> None:
        """Copy the current agents of the folder's markdown files to the trail so that they can run. Only agents that
        the user agreed to are copied."""
        from clew.agents.folder.folder_agents import mirror_agents  # for commands that run agents
        from clew.team.members.member_definitions import mirror_members
        from clew.team.messages.message_types import AGENTS
        from clew.trail.model.flow import read_flow

        definitions = (await self.workspace()).definitions
        await definitions.refresh()
        definitions.notice_consent()
        flow = await read_flow(self.trail, by=self.me)
        await mirror_agents(self.trail, flow, definitions, by=self.me, reserved=AGENTS)
        await mirror_members(self.trail, flow, definitions, by=self.me)

    def _policy(self, root: Path) -> Policy:
        """The permission policy of this folder; rules beyond the default need the user's consent. Raises
        ConfigError."""
        from clew.tools.permissions.permission_settings import (  # for commands that run agents
            permissions_wish,
            policy_of,
        )

        wish = permissions_wish(self.config.permissions, root)
        return policy_of(self.config.permissions, is_granted=wish is None or Trust.open().holds(wish))

    @contextlib.asynccontextmanager
    async def keeping_fresh(self) -> AsyncIterator[None]:
        """While the context is open, refresh stale sources at once and every few minutes, and update the knowledge of
        files, skills, agents and rules whenever they change."""
        works = (self._keep_fresh(), self._keep_knowledge(), self._keep_definitions())
        tasks = [asyncio.create_task(work) for work in works]
        for task in tasks:
            task.add_done_callback(log_failure)
        try:
            yield
        finally:
            await cancel_all(tasks)

    async def _keep_knowledge(self) -> None:
        try:
            await self.workspace()
            if self.has_knowledge():
                self._reads_code = True
                await self.knowledge().keep_up(sweeps=self.config.hygiene.enabled, on_read=self._has_read.set)
        finally:
            self._has_read.set()  # ends the wait also if there is no code, or reading failed

    async def _keep_definitions(self) -> None:
        workspace = await self.workspace()
        async with workspace.definitions.watch(workspace.renew_definitions):
            await asyncio.Event().wait()

    async def _keep_fresh(self) -> None:
        while True:
            try:
                await self._refresh()
            except ClewError as error:  # the next round may do better
                log.warning("the catalog was not refreshed: %s", error)
            await asyncio.sleep(REFRESH_SECONDS)

    async def _refresh(self) -> None:
        workspace = await self.workspace()
        await workspace.notice_consent()
        for problem in workspace.tell_problems():
            log.warning("%s", problem)
        for id, problem in (await workspace.meet_servers()).items():
            log.warning("the server %s cannot be used yet: %s", id, problem)
        await self._wait_for_code()
        for report in await workspace.lifecycle().restart():
            if report.outcome == "failed":
                log.warning("%s was not refreshed: %s", report.source_id, report.error)

    async def _wait_until_code_is_read(self) -> None:
        if self._reads_code:
            await self._wait_for_code()

    async def _wait_for_code(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CODE_FIRST_SECONDS):
                await self._has_read.wait()

    async def close(self) -> None:
        """Close the models, the workspace and the knowledge of files. `open_app` closes the trail."""
        if self._models is not None:
            await self._models.close()
        if self._workspace is not None:
            await self._workspace.close()
        if self._knowledge is not None:
            await self._knowledge.close()

    @contextlib.asynccontextmanager
    async def background(
        self,
        on_delivery: Callable[[str, float], None] = lambda outcome, seconds: None,
        roles: frozenset[str] | None = None,
    ) -> AsyncIterator[Callable[[], None]]:
        """Warm the index, and run the sweeper and the webhooks while the context is open, as far as the roles include
        them. Yields a function that makes the sender look for new webhooks."""
        # Making the sender takes a third of a second (httpx2, certificates), which no start should wait for.
        building = asyncio.create_task(asyncio.to_thread(self._build_sender, on_delivery))

        async def send() -> None:
            self._sender = sender = await building
            await self.ownership.wait(LOOK_SECONDS)
            await sender.run()

        async def refresh() -> None:
            await (await building).refresh()

        tasks: set[asyncio.Task[None]] = set()

        def start(work: Coroutine[Any, Any, None]) -> None:
            """Start the work as a task, log its failure at once, and drop the task when it ends."""
            task = asyncio.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(log_failure)

        start(self.trail.index.warm())
        if roles is None or "server" in roles:
            start(send())
        if self.config.hygiene.enabled and (roles is None or "hygiene" in roles):
            start(self.hygiene.run_forever())
        try:
            yield lambda: start(refresh())
        finally:
            await cancel_all(tasks)
            await asyncio.gather(building, return_exceptions=True)

    async def check_bus(self) -> None:
        """Return when the first attempt to connect to the bus has ended. Raises ConfigError if the bus refuses the
        connection."""
        if self._bus is not None:
            await self._bus.check()

    async def drain_webhooks(self, seconds: float) -> bool:
        """Claim no more deliveries, and finish those in progress. Returns False if that takes longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await (self._sender.drain() if self._sender is not None else asyncio.sleep(0))
        except TimeoutError:
            return False
        return True

    def _build_sender(self, on_delivery: Callable[[str, float], None]) -> WebhookSender:
        from clew.trail.work.webhooks import WebhookSender  # httpx2 is for serving processes only

        return WebhookSender(
            self.trail,
            owners=self.trail.upkeep.webhook_senders,
            clock=self.clock,
            worker_id=f"{socket.gethostname()}:{os.getpid()}",
            allow=self.config.webhooks.allow,
            timeout=self.config.webhooks.timeout_seconds,
            on_delivery=on_delivery,
        )

    async def bootstrap(self) -> None:
        """Put the definitions that Clew relies on onto the trail for the owner of this folder."""
        await self.owners.set_up(self.me.owner_id)


@contextlib.asynccontextmanager
async def open_app(
    config: Config,
    clock: Clock | None = None,
    *,
    scopes: frozenset[str] = frozenset(),
    patience: float | None = None,
    wrap: Callable[[Trail], Trail] = lambda trail: trail,
) -> AsyncIterator[App]:
    """Open the trail of a configuration, and close it at the end. `scopes` are the scopes of the local user, `patience`
    the time limit of an answer in seconds, if it is not the default. The app works on the trail as `wrap` makes it."""
    clock = clock or SystemClock()
    config = confirm_settings(config)
    embedder = open_embedder(config.embedder)
    trail, ownership = await open_owned(
        config, lambda: open_trail(config.trail_url, clock, embedder, **config.trail_limits)
    )
    bus: Bus | None = None
    if config.bus.url:
        from clew.bus import join_bus  # most trails have one process

        trail, bus = await join_bus(trail, config.bus, config.folder.absolute().parent)
    trail = wrap(trail)
    me = Principal(owner_id=config.owner, agent_id="cli", scopes=scopes)
    app = App(config, clock, trail, ownership, me, patience, bus)
    try:
        yield app
    finally:
        try:
            await app.close()
        finally:
            await trail.close()
