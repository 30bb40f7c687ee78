"""Settings: their origins, and the errors for invalid ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.config import CHOICES, LIMITS, Config, KnownModel, find_folder, read_config
from clew.config.layers import MAX_PROBLEMS, read_settings
from clew.errors import ConfigError
from clew.llm import open_embedder


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "owner = 'file'\n[server]\nport = 1\nqueue = 2\n[webhooks]\nallow = ['10.0.0.0/8']"
    )
    environ = {"CLEW_SERVER_PORT": "3", "CLEW_SERVER_TOKEN_MINUTES": "4", "CLEW_DEBUG": "1"}
    config = read_config(tmp_path, environ, {"server.token_minutes": 5, "owner": None})
    assert (config.owner, config.server.port, config.server.queue, config.server.token_minutes) == ("file", 3, 2, 5)
    assert config.webhooks.allow == ("10.0.0.0/8",)
    assert config.folder == tmp_path


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [("10.0.0.0/8,127.0.0.0/8", "WEBHOOKS_ALLOW", ("10.0.0.0/8", "127.0.0.0/8")), ("", "WEBHOOKS_ALLOW", ())],
)
def test_a_list_in_a_variable_is_separated_by_commas(tmp_path: Path, text: str, kind: str, expected: object) -> None:
    assert read_config(tmp_path, {f"CLEW_{kind}": text}).webhooks.allow == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 1", "there is no setting 'port'. Did you mean server.port?"),
        ("ownr = 'x'", "there is no setting 'ownr'. Did you mean owner?"),
        ("[server]\nprot = 1", "there is no setting 'server.prot'. Did you mean server.port?"),
        ("[sever]\nport = 1", "there is no setting 'sever.port'. Did you mean server.port?"),
        ("zzz = 1", "there is no setting 'zzz'. Choose one of: trail, owner, embedder,"),
        ("server = 1", "there is no setting 'server'. It is a section: write [server]"),
        ("folder = 'x'", "there is no setting 'folder'. The folder is chosen by --folder or CLEW_FOLDER"),
        ("[server]\nport = 'eight'", "server.port must be a whole number from 0 to 65535, not 'eight'"),
        ("[server]\nport = 70000", "server.port must be a whole number from 0 to 65535, not 70000"),
        ("[server.port]\na = 1", "server.port must be a whole number from 0 to 65535, not {'a': 1}"),
        ("[hygiene]\nevery_seconds = nan", "hygiene.every_seconds must be a number from"),
        ("[hygiene]\nenabled = 'perhaps'", "hygiene.enabled must be true or false, not 'perhaps'"),
        ("owner = 5", "owner must be text, not 5"),
        ("embedder = 'wordlama'", "there is no embedder 'wordlama'. Did you mean wordllama?"),
        ("embedder = 'gpt'", "there is no embedder 'gpt'. Choose one of: wordllama, minilm, hash, none"),
        ("[webhooks]\nallow = 'x'", "webhooks.allow must be a list of texts, not 'x'"),
        ("[webhooks]\nallow = ['10.0.0.0/33']", "'10.0.0.0/33' is not a network such as 10.0.0.0/8"),
        ("[sources.docs]\nkind = 'local'\nttl_minutes = 'x'", "[sources.docs] ttl_minutes must be a number, not text"),
        ("[sources.docs]\nkind = 'local'\nttl_minutes = nan", "[sources.docs] ttl_minutes must be from 0 to 5,270,400"),
        ("[sources.docs]\nkind = 'local'\nttl_minutes = inf", "[sources.docs] ttl_minutes must be from 0 to 5,270,400"),
        ("[sources.docs]\nkind = 'local'\nttl_minutes = -1", "[sources.docs] ttl_minutes must be from 0 to 5,270,400"),
        ("[sources.docs]\nkind = 'local'\nscopes = 'x'", "[sources.docs] scopes must be"),
        ("[sources.docs]\nroot = '.'", "[sources.docs] has no kind, such as local or github"),
        ("[sources]\ndocs = 1", "[sources.docs] must be a table with at least a kind"),
        ("sources = 1", "there is no setting 'sources'. It is made of tables: write [sources.NAME]"),
        ("providers = 1", "there is no setting 'providers'. It is made of tables: write [providers.NAME]"),
        ("[providers]\nopenai = 1", "[providers.openai] must be a table of settings"),
        ("[providers.lab]\nbase = 'x'", "[providers.lab] base is not a setting here. Did you mean base_url?"),
        ("[providers.lab]\nbase_url = 'x'", "[providers.lab] base_url must be an http or https address without"),
        ("[providers.lab]\nbase_url = 'http://a b'", "[providers.lab] base_url must be an http or https address"),
        ("[providers.lab]\nbase_url = 'http://x:99999'", "[providers.lab] base_url must be an http or https address"),
        ("[providers.lab]\ntimeout_seconds = nan", "[providers.lab] timeout_seconds must be from 0.001 to 86,400"),
        ("[providers.lab]\ntimeout_seconds = 0", "[providers.lab] timeout_seconds must be from 0.001 to 86,400"),
        ("[models]\nguide = 1", 'models.guide must be text. Write role = "provider:model"'),
        ("[models]\nfast = 1", "models.fast must be text, not 1"),
        ("[models]\nknown = 1", "models.known must be tables. Write [models.known.NAME]"),
        ("[models.roles]\nfast = 'x'", "models.roles must be text. Write role"),
        ("[models.known]\nx = 1", "[models.known.x] must be a table of settings"),
        ("[models.known.x]\ncontext_tokens = 'x'", "[models.known.x] context_tokens must be a whole number or null"),
        ("[models.known.x]\nprice = 1", "[models.known.x] price is not a setting here."),
        ("[catalog]\ndomains = 'x'", "catalog.domains must be a list of texts, not 'x'"),
        ("[catalog]\nstrickt = true", "there is no setting 'catalog.strickt'. Did you mean catalog.strict?"),
        ("[server]\nhosts = 'x'", "server.hosts must be a list of texts, not 'x'"),
        ("owner =", "is not TOML"),
    ],
)
def test_an_error_in_the_file_is_plain_and_names_file_and_setting(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError) as told:
        read_config(tmp_path)
    assert str(told.value).startswith(str(tmp_path / "config.toml"))
    assert said in str(told.value)
    assert "`" not in str(told.value)


def test_sources_are_tables_of_settings_and_options(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[sources.docs]\nkind = 'local'\nroot = 'docs'\n[sources.'a.b']\nkind = 'qase'\ndomain = 'tests'\n"
        "scopes = ['qa']\nttl_minutes = 5\nproject = 'SHOP'\n[catalog]\nstrict = true\n"
    )
    config = read_config(tmp_path, {"CLEW_CATALOG_DOMAINS": "one,two:three", "CLEW_CATALOG_REPOSITORY": "false"})
    docs, tests = config.sources["docs"], config.sources["a.b"]
    assert (docs.kind, docs.domain, docs.options) == ("local", "docs", {"root": "docs"})
    assert (tests.domain, tests.scopes, tests.ttl_minutes, tests.options) == ("tests", ("qa",), 5, {"project": "SHOP"})
    assert config.catalog.domains == ("one", "two:three")
    assert (config.catalog.strict, config.catalog.repository) == (True, False)


def test_models_and_providers_are_set_by_role_and_by_table(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[models]\ndefault = 'lab:big'\nstrong = 'lab:huge'\nlibrarian = 'fast'\n[models.known.'lab:big']\n"
        "context_tokens = 64000\ninput_price = 1\n[providers.lab]\nbase_url = 'https://models.example/v1'\n"
        "key = 'keyring:clew/ann'\n[providers.anthropic]\nkey = 'file:~/keys/anthropic'\ntimeout_seconds = 5\n"
    )
    config = read_config(tmp_path, {"CLEW_MODELS_FAST": "ollama:qwen3", "CLEW_MODELS_STRONG": "openai:o3"})
    models = config.models
    assert (models.default, models.fast, models.strong, models.coding) == ("lab:big", "ollama:qwen3", "openai:o3", "")
    assert models.roles == {"librarian": "fast"}
    assert models.known == {"lab:big": KnownModel(context_tokens=64_000, input_price=1.0)}
    assert config.providers["lab"].key == "keyring:clew/ann"
    assert (config.providers["anthropic"].base_url, config.providers["anthropic"].timeout_seconds) == ("", 5)


@pytest.mark.parametrize(
    "text",
    [
        "[providers.lab]\nkey = 'SECRET'",
        "[providers.lab]\nkey = 'env:SECRET with more'",
        "[providers.lab]\nkey = 'ENV:SECRET'",
        "[providers.lab]\nkey = 'keyring:SECRET'",
        "[providers.lab]\nkey = ['SECRET']",
        "[providers.lab]\napi_key = 'SECRET'",
        "[providers.lab]\nbase_url = 'https://ann:SECRET@models.example/v1'",
        "[providers.lab]\nbase_url = 'https://SECRET@models.example/v1'",
        "[providers.lab]\nbase_url = 'https://models.example/v1?key=SECRET'",
        "[providers.lab]\nbase_url = 'https://models.example/v1#SECRET'",
        "[providers]\nlab = 'SECRET'",
        "[models]\nkey = ['SECRET']",
    ],
)
def test_a_key_in_the_settings_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    secret = "sk-ant-0123456789abcdef"
    (tmp_path / "config.toml").write_text(text.replace("SECRET", secret))
    with pytest.raises(ConfigError) as told:
        read_config(tmp_path)
    assert secret not in str(told.value)
    assert "lab" in str(told.value) or "models.key" in str(told.value)


def test_an_error_outside_of_the_file_names_the_variable_or_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^CLEW_SERVER_PORT: server\.port must be a whole number"):
        read_config(tmp_path, {"CLEW_SERVER_PORT": "x"})
    with pytest.raises(ConfigError, match=r"^--port: server\.port must be .* not 70000$"):
        read_config(tmp_path, {}, {"server.port": 70_000})


def test_every_choice_and_every_default_can_be_used() -> None:
    for name in CHOICES["embedder"]:
        if name != "minilm":  # which needs its extra
            open_embedder(name)
    with pytest.raises(ConfigError) as unknown:
        open_embedder("no such one")
    assert sorted(unknown.value.choices) == sorted(CHOICES["embedder"])
    for name, (least, greatest) in LIMITS.items():
        section, _, inner = name.partition(".")
        assert least <= getattr(getattr(Config(), section), inner) <= greatest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_nearest_folder_upward_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = home / "work" / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    assert find_folder(deep) == Path(".clew")
    (home / "work" / ".clew").mkdir()
    assert find_folder(deep) == home / "work" / ".clew"
    (home / "work" / "project" / ".clew").mkdir()
    assert find_folder(deep) == home / "work" / "project" / ".clew"
    assert find_folder(home / "work" / "project") == Path(".clew")
    monkeypatch.chdir(deep)
    assert read_config().folder == home / "work" / "project" / ".clew"
    assert read_config(environ={"CLEW_FOLDER": "elsewhere"}).folder == Path("elsewhere")
    assert read_config(Path("here"), {"CLEW_FOLDER": "elsewhere"}).folder == Path("here")


def test_the_search_ends_below_the_home_folder(home: Path) -> None:
    (home / ".clew").mkdir()
    (home / "work").mkdir()
    assert find_folder(home / "work") == Path(".clew")
    assert find_folder(home) == Path(".clew")


@pytest.mark.skipif(os.name != "posix", reason="owners of files")
def test_a_folder_of_somebody_else_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".clew").mkdir()
    (tmp_path / "sub").mkdir()
    assert find_folder(tmp_path / "sub") == tmp_path / ".clew"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert find_folder(tmp_path / "sub") == Path(".clew")


def test_a_file_of_that_name_is_no_folder(home: Path) -> None:
    (home / "work" / "sub").mkdir(parents=True)
    (home / "work" / ".clew").write_text("")
    assert find_folder(home / "work" / "sub") == Path(".clew")


def test_in_a_git_repository_the_folder_belongs_to_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root, deep = tmp_path / "project", tmp_path / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    (root / ".git").mkdir()
    assert find_folder(deep) == root / ".clew"
    assert find_folder(root) == Path(".clew")
    (root / "src" / ".clew").mkdir()
    assert find_folder(deep) == root / "src" / ".clew"
    (tmp_path / ".clew").mkdir()
    (root / "src" / ".clew").rmdir()
    assert find_folder(deep) == root / ".clew"


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "folder", "huge", "deep"])
def test_settings_that_are_no_sensible_file_are_refused_at_once(tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "huge").write_text("# x\n" * 1_000_000)
    (tmp_path / "deep").write_text("trail = " + "[\n" * 100_000)
    (tmp_path / "config.toml").symlink_to(target)
    with pytest.raises(ConfigError, match=r"config\.toml (cannot be read|is not TOML)"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" + ".b" * 100_000 + " = 1\n", "config.toml:1 has over 10,000 characters"),
        ("[server]\nport = " + "9" * 9_000 + "\n", "is not TOML"),
    ],
)
def test_settings_that_would_take_minutes_are_refused_at_once(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=expected):
        read_config(tmp_path)


def test_only_the_first_problems_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\n" + "".join(f"x{number} = 1\n" for number in range(20_000)))
    assert len(read_settings(tmp_path).problems) == MAX_PROBLEMS
