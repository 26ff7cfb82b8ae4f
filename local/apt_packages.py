"""Install packages of the system with apt, where that needs no question. Standard library only."""

import os
import shutil
import subprocess
import sys


def install_with_apt(*packages: str) -> None:
    """Install packages; do nothing where there is no apt, or no right to use it without a password.

    What fails is printed. Whether the packages are there afterwards is for the caller to see.
    """
    for command in _list_commands(packages):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            print(done.stdout[-2000:] + done.stderr[-2000:], file=sys.stderr)


def _list_commands(packages: tuple[str, ...]) -> list[list[str]]:
    if shutil.which("apt-get") is None:
        return []
    prefix: list[str] = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None or subprocess.call(["sudo", "-n", "true"], stderr=subprocess.DEVNULL) != 0:  # noqa: S607
            return []
        prefix = ["sudo", "-n"]
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
    return [[*apt, "update"], [*apt, "install", "--no-install-recommends", *packages]]
