"""The files for containers name commands, ports, paths and settings that exist. No engine runs them here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from clew.cli.parser import build_parser
from clew.config import read_config

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
IMAGE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
PATIENCE = 60.0


def instruction(name: str) -> list[str]:
    """The values of all instructions of that name in the Containerfile."""
    return re.findall(rf"^{name} (.+)$", IMAGE, re.MULTILINE)


def commands() -> list[list[str]]:
    """What runs in a container of our image."""
    ours = [service["command"] for service in SERVICES.values() if service["image"] == "clew"]
    return [*ours, json.loads(instruction("CMD")[0])]


def started(service: str, seen: tuple[str, ...] = ()) -> list[str]:
    """The services that have to be there before one, the first to start first."""
    assert service not in seen, "a circle"
    before = [each for needed in SERVICES[service].get("depends_on", {}) for each in started(needed, (*seen, service))]
    return [*before, service]


@pytest.mark.req("RCR-54")
def test_services_start_one_after_the_other_each_when_the_one_before_is_well() -> None:
    assert started("prometheus") == ["check", "clew", "prometheus"]
    assert SERVICES["clew"]["depends_on"]["check"]["condition"] == "service_completed_successfully"
    assert SERVICES["prometheus"]["depends_on"]["clew"]["condition"] == "service_healthy"
    assert SERVICES["clew"]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.req("RCR-54")
def test_what_must_last_lies_on_a_named_volume() -> None:
    lasting = re.findall(r"(?:CLEW_FOLDER|CLEW_TRUST)=(\S+)", IMAGE)
    assert len(lasting) == 2
    for name in ("check", "clew"):
        volume, _, place = SERVICES[name]["volumes"][0].partition(":")
        assert volume in COMPOSE["volumes"]
        assert all(Path(each).is_relative_to(place) for each in lasting)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_in_a_container_exists_with_its_options(words: list[str]) -> None:
    assert json.loads(instruction("ENTRYPOINT")[0]) == ["clew"]
    command, _, _ = build_parser().parse_args(words, print_error=False, exit_on_error=False)
    assert command.__name__ == words[0]


def test_what_the_image_copies_and_reads_is_there() -> None:
    for line in instruction("COPY"):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
    build = SERVICES["clew"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    for mount in SERVICES["prometheus"]["volumes"]:
        source = mount.partition(":")[0]
        assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


def test_one_port_is_meant_everywhere_and_only_this_machine_reaches_it() -> None:
    port = str(read_config(Path("nowhere")).server.port)
    assert instruction("EXPOSE") == [port]
    assert SERVICES["clew"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert SERVICES["clew"]["command"][-1] == port
    scraped = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == [f"clew:{port}"]


@pytest.mark.req("RCR-54")
def test_the_health_check_passes_on_a_served_trail_and_fails_on_nothing(tmp_path: Path) -> None:
    _, program, flag, code = SERVICES["clew"]["healthcheck"]["test"]
    assert (program, flag) == ("python", "-c")
    environment = os.environ | {"CLEW_FOLDER": str(tmp_path / ".clew"), "CLEW_EMBEDDER": "hash"}
    server = [sys.executable, "-m", "clew", "up", "--port", "0", "--json"]
    with subprocess.Popen(server, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["url"]
        check = [sys.executable, flag, code.replace("http://127.0.0.1:8081", address)]
        well = subprocess.run(check, timeout=PATIENCE, check=False, capture_output=True)
        process.terminate()
    gone = subprocess.run(check, timeout=PATIENCE, check=False, capture_output=True)
    assert (well.returncode, gone.returncode) == (0, 1)
