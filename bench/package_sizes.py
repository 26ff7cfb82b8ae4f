"""Measure how much of a browser's time to load the npm packages take: minified, bundled and compressed."""

import gzip
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.report import ResultRow
from local.install_node_packages import INSTALLED, PACKAGES, node_is_installed


@dataclass(frozen=True)
class SizedEntry:
    """An entry point of a package, with the most bytes that it may have."""

    key: str
    title: str
    path: Path
    max_bytes: int


SIZED_ENTRIES = (
    SizedEntry("size.client", "@fermata/client, gzipped", PACKAGES / "client/src/index.js", 12 * 1024),
    SizedEntry("size.uploads", "its fetch for other clients", PACKAGES / "client/src/uploading-fetch.js", 2 * 1024),
)


def measure_package_sizes() -> Iterator[ResultRow]:
    """Yield a row for each entry point. Without Node.js and the packages, the row says what is missing."""
    for entry in SIZED_ENTRIES:
        target = f"≤ {entry.max_bytes / 1024:g} KB"
        if not (node_is_installed() and INSTALLED.exists()):
            yield ResultRow(entry.key, entry.title, target, "not measured: Node.js or the npm packages are missing")
            continue
        size = measure_gzipped_size(entry.path)
        result = f"{size / 1024:.1f} KB"
        yield ResultRow(entry.key, entry.title, target, result, size <= entry.max_bytes, {"bytes": size})


def measure_gzipped_size(entry: Path) -> int:
    """Return the bytes of a module with all that it imports, minified and compressed."""
    command = [str(PACKAGES / "node_modules/.bin/esbuild"), str(entry), "--bundle", "--minify", "--format=esm"]
    bundled = subprocess.run(command, capture_output=True, check=True, cwd=PACKAGES)
    return len(gzip.compress(bundled.stdout, 9))
