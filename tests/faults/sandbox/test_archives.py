"""Archives that try to escape from their folder, or to fill the disk."""

from __future__ import annotations

import io
import tarfile
import zipfile
from functools import cache
from pathlib import Path

import pytest

from clew.errors import ToolFailure
from tests.faults.sandbox.escapes import allowed, everything_below, linux_only, told
from tests.tools.sandbox.boxes import Box

pytestmark = [pytest.mark.req("PLA-25"), pytest.mark.req("RCR-42"), linux_only]


@cache
def malicious_archives() -> tuple[bytes, bytes]:
    """A tar that leaves its folder by names and by a link, and a zip that does and that is far larger inside."""
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        link = tarfile.TarInfo("way-out")
        link.type, link.linkname = tarfile.SYMTYPE, ".."
        archive.addfile(link)
        for name in ("../../escaped-1", "way-out/../escaped-2", "/tmp/../etc/escaped-3"):
            entry = tarfile.TarInfo(name)
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"owned"))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../escaped-4", "owned")
        archive.writestr("bomb", bytes(150_000_000))
    return tar.getvalue(), packed.getvalue()


EXTRACT = """
import io, os, shutil, tarfile, zipfile

def run(input, context):
    base = input["folder"]
    failed = []
    with tarfile.open(os.path.join(base, "evil.tar")) as archive:
        for member in archive.getmembers():
            target = os.path.join(base, "out", member.name)
            try:
                if member.issym(): os.symlink(member.linkname, target)
                else:
                    with open(target, "wb") as file: shutil.copyfileobj(archive.extractfile(member), file)
            except OSError as error: failed.append(member.name)
    with zipfile.ZipFile(os.path.join(base, "evil.zip")) as archive:
        for name in archive.namelist():
            try:
                with open(os.path.join(base, "out", name), "wb") as file, archive.open(name) as inner:
                    shutil.copyfileobj(inner, file)
            except OSError as error: failed.append(name)
    return failed
"""
EXTRACT_JS = """
import fs from "node:fs";
function run(input) {
  const failed = [];
  try { Deno.symlinkSync("..", input.folder + "/out/way-out") } catch { failed.push("way-out") }
  try { fs.symlinkSync("/etc", input.folder + "/out/other-way") } catch { failed.push("other-way") }
  for (const name of ["../../escaped-1", "way-out/../../escaped-2", "/tmp/../etc/escaped-3", "../../escaped-4"]) {
    try { Deno.writeTextFileSync(input.folder + "/out/" + name, "owned") } catch { failed.push(name) }
  }
  return failed;
}
"""


async def test_a_malicious_archive_stays_within_its_folder_and_its_limits(box: Box, home: Path) -> None:
    project = home / "project"
    (project / "out").mkdir()
    for name, content in zip(("evil.tar", "evil.zip"), malicious_archives(), strict=True):
        (project / name).write_bytes(content)
    outcome = await box.call(EXTRACT, EXTRACT_JS, allowed(home, memory_mb=96), folder=str(project))
    assert not isinstance(outcome, ToolFailure), told(outcome)
    outside = [path for path in everything_below(home) if "escaped" in path and not path.startswith(f"{project}/")]
    assert outside == []
    assert not Path("/etc/escaped-3").exists()
    if box.is_python:
        assert "bomb" in outcome
        assert (project / "out/bomb").stat().st_size <= 96 * 1024 * 1024
