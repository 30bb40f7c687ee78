"""The blocks agent, mcp, skills, rules, adapters and scripts: defaults, located errors and effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.app import open_app
from clew.catalog.skills.wishes import find_definition_root, skills_folder
from clew.clock import ManualClock
from clew.config import (
    AdaptersConfig,
    AgentConfig,
    Config,
    McpConfig,
    ModelsConfig,
    RulesConfig,
    ScriptsConfig,
    SkillsConfig,
    read_config,
)
from clew.config.layers import read_settings
from clew.errors import ConfigError, NotFound, SandboxUnavailable
from clew.llm.model import Models
from clew.skills.scripts import CallbackStore, Script, open_scripts
from clew.tools.sandbox import open_sandbox
from clew.tools.sandbox.landlock import find_landlock
from clew.trail.config_consent import confirm_settings, setting_wishes
from clew.trust import Trust


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".clew").mkdir()
    return tmp_path / ".clew"


def write(folder: Path, text: str) -> Config:
    (folder / "config.toml").write_text(text)
    return read_config(folder)


@pytest.mark.req("PLA-27")
def test_missing_blocks_have_defaults(folder: Path) -> None:
    config = write(folder, "[agent]\n")
    assert config.agent == AgentConfig(name="assistant", model="")
    assert config.mcp == McpConfig(servers=(), hooks=())
    assert (config.skills, config.rules) == (SkillsConfig(root=".clew/skills"), RulesConfig(root="AGENTS.md"))
    assert config.adapters == AdaptersConfig(sandbox="auto")
    assert config.scripts == ScriptsConfig(persistence="file", path=".clew/scripts.json", expiration_days=30)


@pytest.mark.req("PLA-27")
@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[adapters]\nsandbox = 'bubblewarp'", 2, "no adapters.sandbox 'bubblewarp'. Did you mean bubblewrap?"),
        ("[scripts]\n\npersistence = 'disk'", 3, "no scripts.persistence 'disk'. Choose one of: file, callback"),
        ("[scripts]\nexpiration_days = 0", 2, "scripts.expiration_days must be a whole number from 1 to 36600, not 0"),
        ("[scripts]\nexpirationDays = 3", 2, "scripts.expirationDays'. Did you mean scripts.expiration_days?"),
        ("owner = 'a'\n[agnt]\nname = 'x'", 3, "there is no setting 'agnt.name'. Did you mean agent.name?"),
        ("[agent]\nname = ' '", 2, "agent.name is empty"),
        ("[agent]\nname = 'fast'\nmodel = 'a:b'", 3, "agent.model is not for an agent called 'fast'"),
        ("[agent]\nmodel = 'a:b'\n[models]\nassistant = 'a:c'", 2, "agent.model and models.assistant name two models"),
        ("[adapters]\nacp = 'stdio'", 2, "there is no setting 'adapters.acp'. Clew does not serve ACP"),
        ("[skills]\nroot = '/etc'", 2, "skills.root must be a path below the project, not '/etc'"),
        ("[skills]\nroot = 'a/../../b'", 2, "skills.root must be a path below the project"),
        ("[skills]\nroot = '~/skills'", 2, "skills.root must be a path below the project"),
        ("[rules]\nroot = 'rules.py'", 2, "rules.root must be a text file, not 'rules.py'"),
        ("[mcp]\nservers = 1", 2, "mcp.servers must be a list of tables. Write [[mcp.servers]]"),
        ("[mcp]\nhooks = ['masking']", 2, "mcp.hooks: 'masking' is not module:name"),
        ("[[mcp.servers]]\ncommand = 'x'", 1, "[[mcp.servers]] id is missing"),
        ("[[mcp.servers]]\nid = 'a'\n\n[[mcp.servers]]\nid = 'b'\ncomand = 'x'", 6, "comand is not a setting here"),
        ("[[mcp.servers]]\nid = 'a'\n[[mcp.servers]]\nid = 'a'", 4, "id 'a' is there twice. Rename one"),
        ("[providers.lab]\n\nkey = 'sk-0123456789'", 3, "[providers.lab] key must be a reference to the key"),
        ("[models]\nknown = 'x:y'", 2, "models.known must be tables. Write [models.known.NAME]"),
        ("[models.known.x]\nprice = 1", 2, "[models.known.x] price is not a setting here"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_setting_and_choices(folder: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as told:
        write(folder, text)
    assert str(told.value).startswith(f"{folder / 'config.toml'}:{line}: ")
    assert said in str(told.value)


@pytest.mark.req("PLA-27")
def test_all_problems_are_found_at_once_and_the_rest_is_read(folder: Path) -> None:
    (folder / "config.toml").write_text("ownr = 'a'\n[server]\nport = 'x'\nqueue = 5\n")
    found = read_settings(folder, {"CLEW_SCRIPTS_PERSISTENCE": "disk"})
    assert [str(each).partition(": ")[0] for each in found.problems] == [
        f"{folder / 'config.toml'}:1",
        f"{folder / 'config.toml'}:3",
        "CLEW_SCRIPTS_PERSISTENCE",
    ]
    assert (found.config.server.queue, found.config.server.port) == (5, 8081)


def test_the_model_of_the_agent_is_an_entry_of_models_under_its_name(folder: Path) -> None:
    config = write(folder, "[agent]\nname = 'ann'\nmodel = 'ollama:qwen3'\n[models]\ndefault = 'ollama:other'\n")
    assert config.models == ModelsConfig(default="ollama:other", roles={"ann": "ollama:qwen3"})
    models = Models(config, {})
    assert models.for_agent("ann")[1].name == "qwen3"
    assert models.for_agent("bob")[1].name == "other"


def test_skills_are_read_from_their_root(folder: Path) -> None:
    place = folder.parent / "team" / "know-how" / "release"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\ndescription: How we release.\ntoolsets: []\n---\nTag it.\n")
    config = write(folder, "[skills]\nroot = 'team/know-how'\n[catalog]\nrepository = false\n")
    assert list(find_definition_root(config).read().manifest.skills) == ["release"]
    assert skills_folder(config) == folder.parent / "team/know-how"
    assert list(find_definition_root(write(folder, "catalog.repository = false")).read().manifest.skills) == []


def test_a_chosen_sandbox_is_used_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_sandbox(production=False, wall="none").wall == "none"
    if find_landlock():
        assert open_sandbox(production=False, wall="landlock").wall == "landlock"
    monkeypatch.setattr("clew.tools.sandbox.sandbox.find_bubblewrap", lambda: None)
    with pytest.raises(SandboxUnavailable, match=r"no bubblewrap for adapters\.sandbox"):
        open_sandbox(production=False, wall="bubblewrap")


@pytest.mark.req("PLA-27")
async def test_agents_run_behind_the_sandbox_of_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.tools.sandbox.sandbox.find_bubblewrap", lambda: None)
    environ = {"CLEW_EMBEDDER": "hash", "CLEW_ADAPTERS_SANDBOX": "bubblewrap"}
    async with open_app(read_config(folder, environ)) as app:
        with pytest.raises(SandboxUnavailable, match=r"no bubblewrap for adapters\.sandbox"):
            await app.runtime()
    async with open_app(read_config(folder, {**environ, "CLEW_ADAPTERS_SANDBOX": "none"})) as app:
        assert await app.runtime() is not None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[adapters]\nsandbox = 'none'", "adapters.sandbox"),
        ("[adapters]\nsandbox = 'landlock'", "adapters.sandbox"),
        ("[scripts]\npath = '../elsewhere.json'", "scripts.path"),
        ("[scripts]\npath = '~/scripts.json'", "scripts.path"),
    ],
)
def test_settings_that_widen_rights_wait_for_consent(folder: Path, text: str, name: str) -> None:
    config = write(folder, text)
    (wish,) = setting_wishes(config)
    assert wish.name == name
    assert confirm_settings(config).adapters == AdaptersConfig()
    assert confirm_settings(config).scripts == ScriptsConfig()
    Trust.open().grant([wish])
    assert confirm_settings(config) == config


@pytest.mark.parametrize("text", ["[adapters]\nsandbox = 'bubblewrap'", "[scripts]\npath = 'sub/scripts.json'"])
def test_settings_that_stay_inside_need_no_consent(folder: Path, text: str) -> None:
    assert setting_wishes(write(folder, text)) == []


@pytest.mark.req("PLA-27")
@pytest.mark.req("PLA-28")
def test_scripts_are_stored_and_expire_as_the_settings_say(folder: Path, clock: ManualClock) -> None:
    config = write(folder, "[scripts]\npath = 'kept/scripts.json'\nexpiration_days = 2\n")
    (folder.parent / "kept").mkdir()
    open_scripts(config, clock).promote("count", "bash", "wc -l a.txt")
    assert (folder.parent / "kept/scripts.json").exists()
    assert open_scripts(config, clock).get("count").code == "wc -l a.txt"
    clock.advance(days=2)
    with pytest.raises(NotFound):
        open_scripts(config, clock).get("count")


def test_callbacks_are_used_where_the_settings_say_so(folder: Path, clock: ManualClock) -> None:
    kept: list[Script] = []

    def save(scripts: object) -> None:
        kept[:] = list(scripts)  # type: ignore[call-overload]

    callbacks = CallbackStore(lambda: kept, save)
    config = write(folder, "[scripts]\npersistence = 'callback'\n")
    open_scripts(config, clock, callbacks).promote("count", "bash", "wc")
    assert ([each.name for each in kept], (folder / "scripts.json").exists()) == (["count"], False)
    with pytest.raises(ConfigError, match=r"scripts\.persistence is 'callback'\. Give callbacks to open_scripts"):
        open_scripts(config, clock)
    with pytest.raises(ConfigError, match=r"scripts\.persistence is 'file'"):
        open_scripts(write(folder, ""), clock, callbacks)
