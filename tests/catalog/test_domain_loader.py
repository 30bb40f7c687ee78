"""Domains of other packages: real entry points and modules, found and not found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from clew.catalog.workspace.domain_loader import GROUP, load_domains, offered_domains
from clew.errors import ConfigError

DOMAIN = """
from clew.catalog.domain import Domain

logs = Domain(name="logs", description="What happened.")
traces = Domain(name="traces", description="How it happened.")
several = [logs, traces]
none = []
mixed = [logs, "traces"]
number = 5

def make():
    return (logs, traces)

def fail():
    raise RuntimeError("no network")
"""

Offer = Callable[..., str]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Install a package with a module and entry points, as an installer leaves it; the name of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(code: str = DOMAIN, **points: str) -> str:
        module = f"offered_{uuid4().hex}"
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{attribute}" for name, attribute in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        sys.path_importer_cache.pop(str(tmp_path), None)
        return module

    return install


@pytest.mark.req("ERN-05")
def test_a_package_offers_domains_through_an_entry_point(offer: Offer) -> None:
    offer(monitoring="several", made="make", one="logs")
    assert {"monitoring", "made", "one"} <= offered_domains().keys()
    assert [domain.name for domain in load_domains(["monitoring"])] == ["logs", "traces"]
    assert [domain.name for domain in load_domains(["made"])] == ["logs", "traces"]
    assert [domain.name for domain in load_domains(["one"])] == ["logs"]


def test_an_entry_point_is_imported_only_when_it_is_named(offer: Offer) -> None:
    module = offer("raise RuntimeError('imported')", eager="logs")
    assert "eager" in offered_domains()
    assert load_domains([]) == []
    assert module not in sys.modules


@pytest.mark.req("ERN-05")
def test_a_local_domain_is_named_by_its_module(offer: Offer) -> None:
    module = offer()
    assert [domain.name for domain in load_domains([f"{module}:traces", f"{module}:logs"])] == ["traces", "logs"]


def test_an_unknown_name_suggests_the_nearest_one(offer: Offer) -> None:
    offer(monitoring="logs")
    with pytest.raises(ConfigError) as told:
        load_domains(["monitorin"])
    assert "no installed package offers a domain 'monitorin'" in str(told.value)
    assert "Did you mean monitoring?" in str(told.value)
    assert "module:name" in str(told.value)
    with pytest.raises(ConfigError, match=r"Offered are: .*monitoring"):
        load_domains(["zzzzzz"])


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("number", "is not a Domain, nor a list of them"),
        ("none", "is not a Domain, nor a list of them"),
        ("mixed", "is not a Domain, nor a list of them"),
        ("missing", "cannot be loaded: AttributeError"),
        ("fail", "cannot be loaded: RuntimeError: no network"),
        ("", "cannot be loaded"),
    ],
)
def test_an_object_that_is_no_domain_is_reported_by_name(offer: Offer, attribute: str, said: str) -> None:
    module = offer()
    with pytest.raises(ConfigError) as told:
        load_domains([f"{module}:{attribute}"])
    assert said in str(told.value)
    assert f"{module}:{attribute}" in str(told.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('bad luck')", "ValueError: bad luck"),
        ("this is no python", "SyntaxError"),
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("from clew.catalog.domain import Domain\nlogs = Domain(name='Not A Name', description='x')", "InvalidInput"),
    ],
)
def test_a_module_that_raises_is_reported(offer: Offer, code: str, said: str) -> None:
    offer(code, broken="logs")
    with pytest.raises(ConfigError) as told:
        load_domains(["broken"])
    assert "catalog.domains: broken cannot be loaded" in str(told.value)
    assert said in str(told.value)


@pytest.mark.parametrize("name", ["no_such_module_x:logs", ":logs", "..:x", "a b:c"])
def test_a_missing_module_is_reported(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        load_domains([name])
