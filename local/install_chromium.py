"""Install Chromium for the tests in a real browser, unless a browser is there: `python local/install_chromium.py`.

Standard library only, because it runs beside the installation of the packages.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM_VARIABLE = "FERMATA_CHROMIUM"
PROGRAM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_PROGRAMS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
MISSING_TEXT = (
    "Chromium is missing: the tests in a real browser need it. Install it (on Debian and Ubuntu: "
    f"sudo apt-get install chromium), or name the program of another Chromium: {PROGRAM_VARIABLE}=/path/to/chrome"
)


def find_chromium() -> str | None:
    """Return the path of a browser that is based on Chromium."""
    if named := os.environ.get(PROGRAM_VARIABLE):
        return named
    on_path = next(filter(None, map(shutil.which, PROGRAM_NAMES)), None)
    return on_path or next((program for program in MAC_PROGRAMS if Path(program).exists()), None)


def find_install_commands() -> list[list[str]]:
    """Return the commands that install it without a question; none where there is no apt, or no right to use it."""
    if shutil.which("apt-get") is None:
        return []
    prefix: list[str] = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None or subprocess.call(["sudo", "-n", "true"], stderr=subprocess.DEVNULL) != 0:  # noqa: S607
            return []
        prefix = ["sudo", "-n"]
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
    return [[*apt, "update"], [*apt, "install", "--no-install-recommends", "chromium"]]


def main() -> None:
    if find_chromium():
        return
    print("chromium: installing it for the tests in a real browser", flush=True)
    for command in find_install_commands():
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)
    if not find_chromium():
        sys.exit(MISSING_TEXT)
    print("chromium: ready", flush=True)


if __name__ == "__main__":
    main()
