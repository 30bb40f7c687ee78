"""The files for containers name commands, ports, paths and settings that exist. No engine runs them here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from clew.cli.parser import build_parser
from clew.config import read_config
from clew.telemetry.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SCALE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.scale.yaml").read_text(encoding="utf-8"))
MANIFESTS = [
    manifest
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for manifest in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
DEPLOYMENTS = [each for each in MANIFESTS if each["kind"] == "Deployment"]
IMAGE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
PATIENCE = 60.0


def instruction(name: str) -> list[str]:
    """The values of all instructions of that name in the Containerfile."""
    return re.findall(rf"^{name} (.+)$", IMAGE, re.MULTILINE)


def commands() -> list[list[str]]:
    """The processes in a container of our image."""
    services = [*SERVICES.values(), *SCALE["services"].values()]
    ours = [service["command"] for service in services if service["image"] == "clew"]
    pods = [pod["args"] for pod in map(container, DEPLOYMENTS) if pod["name"] == "clew"]
    return [*ours, *pods, json.loads(instruction("CMD")[0])]


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def started(service: str, services: dict[str, Any] = SERVICES, seen: tuple[str, ...] = ()) -> list[str]:
    """The services that have to be there before one, the first to start first."""
    assert service not in seen, "a circle"
    needed = services[service].get("depends_on", {})
    before = [each for name in needed for each in started(name, services, (*seen, service))]
    return list(dict.fromkeys([*before, service]))


@pytest.mark.req("RCR-54")
def test_services_start_one_after_the_other_each_when_the_one_before_is_well() -> None:
    assert started("prometheus") == ["check", "clew", "prometheus"]
    assert SERVICES["clew"]["depends_on"]["check"]["condition"] == "service_completed_successfully"
    assert SERVICES["prometheus"]["depends_on"]["clew"]["condition"] == "service_healthy"
    assert SERVICES["clew"]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.req("RCR-54")
def test_durable_data_is_on_a_named_volume() -> None:
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


def test_files_that_the_image_copies_and_reads_exist() -> None:
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


@pytest.mark.req("RCR-54")
def test_workers_start_after_the_server_and_the_server_after_the_engines() -> None:
    services = SCALE["services"]
    assert started("agents", services) == ["postgres", "nats", "check", "server", "agents"]
    assert started("grafana", services)[-2:] == ["prometheus", "grafana"]
    assert {each["condition"] for each in services["check"]["depends_on"].values()} == {"service_healthy"}
    assert services["agents"]["deploy"]["replicas"] == 2
    for name in ("postgres", "nats", "server", "agents", "tools"):
        assert services[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.req("RCR-54")
def test_every_volume_of_the_larger_service_is_named_and_every_file_is_there() -> None:
    for service in SCALE["services"].values():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in SCALE["volumes"]
    assert "database" in SCALE["services"]["postgres"]["volumes"][0]


def test_settings_of_the_larger_service_are_settings_of_clew(tmp_path: Path) -> None:
    (settings,) = [each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap"]
    for given in (SCALE["services"]["server"]["environment"], settings):
        config = read_config(tmp_path / ".clew", {key: value for key, value in given.items() if key != "CLEW_FOLDER"})
        assert config.trail.startswith("postgresql://")
        assert config.bus.url.startswith("nats://")


@pytest.mark.req("RCR-54")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_manifests_fit_the_schema_of_kubernetes(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.33", strict=True)
    assert manifest["kind"] == "Namespace" or manifest["metadata"]["namespace"] == "clew"


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_pods_are_probed_bounded_and_without_rights(deployment: dict[str, Any]) -> None:
    pod, inside = deployment["spec"]["template"]["spec"], container(deployment)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert inside["securityContext"]["allowPrivilegeEscalation"] is False
    assert inside["securityContext"]["readOnlyRootFilesystem"] is True
    assert inside["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert {"readinessProbe", "livenessProbe"} <= inside.keys()
    assert "memory" in inside["resources"]["limits"]
    drain = next((int(b) for a, b in pairwise(inside["args"]) if a == "--drain"), 0)
    assert pod.get("terminationGracePeriodSeconds", 30) > drain


def test_every_manifest_is_applied() -> None:
    listed = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(listed) == sorted(
        each.name for each in (DEPLOY / "kubernetes").glob("*.yaml") if each.name != "kustomization.yaml"
    )


@pytest.mark.req("RCR-54")
def test_the_dashboard_shows_metrics_that_clew_has() -> None:
    dashboard = json.loads((DEPLOY / "grafana/dashboards/clew.json").read_text(encoding="utf-8"))
    shown = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:http|webhook)_\w+?(?=_bucket|\{|\[)", target["expr"])
    }
    known = set(re.findall(r"^# TYPE (\w+)", Metrics().render().decode(), re.MULTILINE))
    assert shown
    assert shown <= known
