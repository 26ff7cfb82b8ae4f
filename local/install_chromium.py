"""Install Chromium for the tests in a real browser, unless a browser is there: `python -m local.install_chromium`.

Standard library only, because it runs beside the installation of the packages.
"""

import os
import shutil
import sys
from pathlib import Path

from local.apt_packages import install_with_apt

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


def main() -> None:
    if find_chromium():
        return
    print("chromium: installing it for the tests in a real browser", flush=True)
    install_with_apt("chromium")
    if not find_chromium():
        sys.exit(MISSING_TEXT)
    print("chromium: ready", flush=True)


if __name__ == "__main__":
    main()
