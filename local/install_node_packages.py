"""Install the npm packages of `packages/` from their lock: `python -m local.install_node_packages [--optional]`.

Standard library only, because it runs beside the installation of the Python packages. With `--optional`, a machine
without Node.js is told in one line what is missing; otherwise apt installs Node.js, where it asks no question.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from local.apt_packages import install_with_apt

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
INSTALLED = PACKAGES / "node_modules" / ".installed-lock"
OLDEST_NODE = 20
MISSING_TEXT = (
    f"Node.js {OLDEST_NODE} or later with npm is missing (on Debian and Ubuntu: sudo apt-get install nodejs npm, "
    "elsewhere https://nodejs.org/)"
)


def node_is_installed() -> bool:
    """Return whether npm and a Node.js that is new enough are on the path."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S607
    major = version.strip().removeprefix("v").split(".")[0]
    return major.isdigit() and int(major) >= OLDEST_NODE


def install_packages() -> None:
    """Run `npm ci`, unless what the lock names is installed already.

    Raises:
        SystemExit: npm failed; what it said was printed.
    """
    lock = hashlib.sha256((PACKAGES / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.exists() and INSTALLED.read_text() == lock:
        return
    print("packages: installing the npm packages of packages/package-lock.json", flush=True)
    npm = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    if subprocess.call(npm, cwd=PACKAGES, stdin=subprocess.DEVNULL) != 0:  # noqa: S603
        sys.exit("packages: npm could not install them; its messages are above")
    INSTALLED.write_text(lock)
    print("packages: ready", flush=True)


def main() -> None:
    if not node_is_installed():
        if "--optional" in sys.argv[1:]:
            print(f"packages: the editor and the console need npm packages, and {MISSING_TEXT}", flush=True)
            return
        print("node: installing it for the tests of the packages for browsers", flush=True)
        install_with_apt("nodejs", "npm")
        if not node_is_installed():
            sys.exit(MISSING_TEXT)
    install_packages()


if __name__ == "__main__":
    main()
