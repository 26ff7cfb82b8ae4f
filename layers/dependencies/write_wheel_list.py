"""Write wheels.json: the files that the dependency layer would hold, as pip chooses them for Lambda.

    make -C layers/dependencies wheels.json

tests/template/test_layers.py compares the list with the lock, so that it needs no package index itself.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def list_wheels(report: dict[str, list[dict[str, dict[str, object]]]]) -> list[dict[str, str]]:
    """Return file name and hash of each wheel in a report of `pip install --report`, without its origin."""
    found = []
    for entry in report["install"]:
        download = entry["download_info"]
        archive = download["archive_info"]
        assert isinstance(archive, dict)
        found.append({"file": str(download["url"]).rsplit("/", 1)[1], "sha256": archive["hashes"]["sha256"]})
    return sorted(found, key=lambda wheel: wheel["file"].lower())


def write_wheel_list(pip_options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--target", folder, "--report", str(report), "--require-hashes", *pip_options]
        command += ["--requirement", str(FOLDER / "requirements.txt")]
        subprocess.run(command, check=True)  # noqa: S603 (our own arguments, no shell)
        found = list_wheels(json.loads(report.read_text()))
    (FOLDER / "wheels.json").write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    write_wheel_list(sys.argv[1:])
