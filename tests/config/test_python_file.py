"""`.clew/config.py` runs after consent to its exact content, in a separate process, and returns only data."""

from __future__ import annotations

import inspect
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew import define_config
from clew.config import Config, McpConfig, ModelsConfig, ServerConfig, SourceConfig, python_file, read_config
from clew.config.define import settings_of
from clew.config.model import NOT_SETTINGS
from clew.config.python_file import python_wish
from clew.config.server_entry import ConfiguredServer
from clew.errors import ConfigError
from clew.trust import Trust

HEAD = "from clew import define_config\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".clew").mkdir()
    return tmp_path / ".clew"


def agree(folder: Path, text: str) -> None:
    (folder / "config.py").write_text(text)
    wish = python_wish(folder)
    assert wish is not None
    Trust.open().grant([wish])


def fail(folder: Path, text: str) -> str:
    agree(folder, text)
    with pytest.raises(ConfigError) as told:
        read_config(folder)
    return str(told.value)


@pytest.mark.req("PLA-27")
def test_it_is_ignored_with_one_notice_until_consent_to_its_exact_content(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = tmp_path / "it-ran"
    text = f"{HEAD}open({str(mark)!r}, 'w').close()\nconfig = define_config(owner='ann')\n"
    (folder / "config.py").write_text(text)
    with caplog.at_level(logging.WARNING, "clew.config"):
        assert [read_config(folder).owner for _ in range(2)] == ["local", "local"]
    assert [each.getMessage() for each in caplog.records] == [
        f"{folder / 'config.py'} is ignored: it is code and waits for your consent (`clew trust`)"
    ]
    assert not mark.exists()
    agree(folder, text)
    assert (read_config(folder).owner, mark.exists()) == ("ann", True)
    (folder / "config.py").write_text(f"{text}# changed\n")
    assert read_config(folder).owner == "local"


def test_config_toml_and_variables_win_over_it(folder: Path) -> None:
    agree(folder, f"{HEAD}config = define_config(owner='py', server={{'port': 1, 'queue': 2}}, embedder='hash')\n")
    (folder / "config.toml").write_text("owner = 'toml'\nserver.queue = 3\n")
    config = read_config(folder, {"CLEW_EMBEDDER": "none"})
    assert (config.owner, config.server.port, config.server.queue, config.embedder) == ("toml", 1, 3, "none")
    assert config.from_file == {"owner", "server.queue"}


def test_it_may_use_its_folder_and_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "ann")
    (folder.parent / "port.txt").write_text("4711")
    agree(
        folder,
        f"import os\n{HEAD}print('x' * 10_000_000)\n"
        "config = define_config(owner=os.environ['TEAM'], server={'port': int(open('port.txt').read())})\n",
    )
    config = read_config(folder)
    assert (config.owner, config.server.port) == ("ann", 4711)


def test_modules_of_the_folder_are_out_of_reach(folder: Path) -> None:
    (folder.parent / "helper.py").write_text("owner = 'ann'")
    (folder / "helper.py").write_text("owner = 'ann'")
    assert f"{folder / 'config.py'}:1: ModuleNotFoundError" in fail(folder, "import helper\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}\nconfig = define_config(\n", "config.py:3: SyntaxError: '(' was never closed"),
        (f"{HEAD}\n\nraise ValueError('no luck')\n", "config.py:4: ValueError: no luck"),
        (f"{HEAD}def f():\n    return 1 / 0\nf()\n", "config.py:3: ZeroDivisionError: division by zero"),
        (
            f"{HEAD}config = define_config(server={{'prot': 1}})\n",
            "config.py:2: there is no setting 'server.prot'. Did you mean server.port?",
        ),
        (f"{HEAD}config = define_config(embedder='gpt')\n", "config.py:2: there is no embedder 'gpt'. Choose one of"),
        (f"{HEAD}config = define_config(sever={{}})\n", "config.py:2: TypeError: define_config() got an unexpected"),
        (f"{HEAD}settings = define_config()\n", "config.py: there is no `config`: write config = define_config(...)"),
        ("config = {'owner': 'ann'}\n", "config.py: there is no `config`: write config = define_config(...)"),
        ("raise SystemExit(3)\n", "config.py:1: SystemExit: 3"),
        ("import os\nos._exit(0)\n", "config.py: ended without a result"),
        ("input()\n", "config.py:1: EOFError"),
        (f"{HEAD}config = define_config(owner='x' * 2_000_000)\n", "config.py: the settings are over 1,000,000 bytes"),
        ("raise ValueError('token=ghp_0123456789abcdefghijklmnop')\n", "config.py:1: ValueError: token=[masked]"),
    ],
)  # fmt: skip
def test_an_error_in_it_is_one_line_with_its_place(folder: Path, text: str, said: str) -> None:
    told = fail(folder, text)
    assert f"{folder / said.partition(':')[0]}" in told
    assert said in told
    assert "\n" not in told


def test_one_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_file, "SECONDS", 0.5)
    told = fail(
        folder, "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'])\nwhile True: pass\n"
    )
    assert "config.py: did not end within 0.5 seconds" in told


def test_every_setting_can_be_defined() -> None:
    fields = [name for name in Config.__struct_fields__ if name not in NOT_SETTINGS]
    assert list(inspect.signature(define_config).parameters) == fields


def test_settings_are_given_as_structs_or_as_tables() -> None:
    server = ConfiguredServer(id="geo", command="geo-server", env={"A": "1"})
    config = define_config(
        server=ServerConfig(port=9000),
        mcp=McpConfig(servers=(server,)),
        models=ModelsConfig(default="ollama:qwen3", roles={"ann": "fast"}),
        sources={"docs": SourceConfig(kind="local", domain="docs", options={"root": "docs"}), "more": {"kind": "qase"}},
    )
    assert (config.server.port, config.mcp.servers, config.models.roles) == (9000, (server,), {"ann": "fast"})
    assert config.sources["docs"].options == {"root": "docs"}
    given = settings_of(config)
    assert given["server"] == {"port": 9000}
    assert given["models"] == {"default": "ollama:qwen3", "ann": "fast"}
    assert define_config(**given) == config
    with pytest.raises(ConfigError, match=r"^server\.port must be a whole number from 0 to 65535, not 70000$"):
        define_config(server=ServerConfig(port=70_000))


@pytest.mark.req("PLA-27")
def test_a_later_layer_chooses_another_model_for_the_agent(folder: Path) -> None:
    given = settings_of(define_config(agent={"model": "ollama:a"}))
    assert given == {"agent": {"model": "ollama:a"}}
    agree(folder, "from clew import define_config\nconfig = define_config(agent={'model': 'ollama:a'})\n")
    assert read_config(folder).models.roles == {"assistant": "ollama:a"}
    assert read_config(folder, {"CLEW_AGENT_MODEL": "ollama:c"}).models.roles == {"assistant": "ollama:c"}
    (folder / "config.toml").write_text("[agent]\nmodel = 'ollama:b'\n")
    assert read_config(folder).models.roles == {"assistant": "ollama:b"}


def test_the_helper_is_loaded_only_when_it_is_used() -> None:
    code = "import sys, clew; assert 'msgspec' not in sys.modules; from clew import define_config; define_config()"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = clew.nothing  # type: ignore[attr-defined]
