"""What the packages of a project say of themselves, read on demand and never run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.knowledge.documents.packages import PackageDocs
from clew.knowledge.documents.research import Library
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_store import Node, NodeGraph
from clew.trail.store import Trail
from tests.knowledge.documents.writing import write

SITE = ".venv/lib/python3.11/site-packages"
MODULE = '''\
"""Talks to weather stations."""

from ._offered import forecast

raise SystemExit("nobody may run this")


class Station:
    """A station that measures."""

    def read(self, timeout: float = 2.0) -> int:
        """The temperature in kelvin."""

    def _hidden(self) -> None:
        """Nobody is told of this."""


async def find_stations(near: str) -> list[Station]:
    """All stations near a place."""
'''


def install(root: Path, version: str, description: str = "# Weather\n\nReads stations.\n") -> None:
    info = f"{SITE}/Weather_Lib-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: Weather.Lib\nVersion: {version}\nSummary: Weather for all\n"
        f"Description-Content-Type: text/markdown\nProject-URL: Home, https://weather.example/\n\n{description}"
    )
    write(root, f"{info}/METADATA", metadata)
    inside = ("weather_lib/__init__.py", "weather_lib/_private.py", "weather_lib/_offered.py")
    record = "".join(f"{path},,\n" for path in (*inside, "../../../../../etc/passwd.py", "/etc/hosts.py"))
    write(root, f"{info}/RECORD", record)
    write(root, f"{SITE}/weather_lib/__init__.py", MODULE)
    write(root, f"{SITE}/weather_lib/_private.py", '"""Not shown."""\n')
    write(root, f"{SITE}/weather_lib/_offered.py", 'def forecast(day: str) -> str:\n    """What comes."""\n')
    write(root, "pyproject.toml", '[project]\nname = "x"\ndependencies = ["weather-lib>=1", "absent"]\n')


async def nodes(trail: Trail, me: Principal, ids: tuple[str, ...]) -> dict[str, Node]:
    graph = NodeGraph(trail, me)
    return {node.name: node for node in [await graph.get_node(id) for id in ids]}


async def learn(packages: PackageDocs, name: str) -> tuple[str, ...]:
    [named] = await packages.mentioned(f"how to use {name}?")
    return await packages.learn(named)


async def test_a_package_gives_its_description_and_docstrings_without_being_run(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    install(root, "1.2")
    kept = await learn(PackageDocs(trail, clock, root, by=me), "Weather.Lib")
    found = await nodes(trail, me, kept)
    assert "All stations near a place" in found["weather_lib.find_stations"].content
    assert "timeout: float=2.0" in found["weather_lib.Station.read"].content
    assert not [name for name in found if "_hidden" in name or "_private" in name or "etc" in name]
    assert "Talks to weather stations" in found["weather_lib"].content
    assert found["weather_lib.forecast"].metadata["file"] == "weather_lib/_offered.py"
    read = found["weather_lib.Station.read"]
    assert (read.line_start, read.metadata["file"], read.package) == (11, "weather_lib/__init__.py", "weather-lib")
    assert all(each.node_type is NodeType.DOCUMENTATION and each.trust == 70 for each in found.values())
    assert {each.source for each in found.values()} == {"weather-lib 1.2"}
    assert "Weather for all" in found["weather-lib 1.2"].content


async def test_a_package_is_read_again_only_with_another_version(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    install(root, "1.2")
    packages = PackageDocs(trail, clock, root, by=me)
    first = await learn(packages, "weather_lib")
    head = await trail.log.head()
    assert await learn(packages, "weather-lib") == first
    assert await trail.log.head() == head
    (root / SITE / "Weather_Lib-1.2.dist-info").rename(root / SITE / "Weather_Lib-1.3.dist-info")
    again = await learn(packages, "weather-lib")
    assert {each.source for each in (await nodes(trail, me, again)).values()} == {"weather-lib 1.3"}


async def test_only_packages_of_the_manifests_that_are_installed_are_read(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    install(root, "1.2")
    packages = PackageDocs(trail, clock, root, by=me)
    assert await packages.mentioned("pip and ../weather-lib") == []
    with pytest.raises(NotFound):
        await learn(packages, "absent")


async def test_the_readme_of_a_package_of_node_is_read(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "package.json", json.dumps({"dependencies": {"@wx/client": "^2"}, "devDependencies": {"../up": "1"}}))
    write(root, "node_modules/@wx/client/package.json", '{"version": "2.1.0"}')
    write(root, "node_modules/@wx/client/README.md", "# Client\n\nCall `connect()`.\n")
    kept = await learn(PackageDocs(trail, clock, root, by=me), "@wx/client")
    [node] = (await nodes(trail, me, kept)).values()
    assert "connect()" in node.content
    assert (node.source, node.metadata["file"]) == ("@wx/client 2.1.0", "node_modules/@wx/client/README.md")


async def test_a_question_that_names_a_package_has_it_read(root: Path, library: Library) -> None:
    install(root, "1.2")
    found = await library.research("How do I find stations with weather-lib?")
    source = next(each for each in found.sources if each.name == "weather_lib.find_stations")
    assert source.place.startswith("weather-lib 1.2: weather_lib/__init__.py:18-19@")
