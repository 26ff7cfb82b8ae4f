"""Keep libraries that only development has installed out of the processes of the local cloud.

httpx loads its command line, and with it what prints in colours, wherever that is installed: 4 MB and 30 ms in each
process. Neither the layers nor the installation of a demo have these libraries. Standard library only.
"""

import sys

DEVELOPMENT_LIBRARIES = ("pygments", "rich")


def hide_development_libraries() -> None:
    """Let imports of these libraries fail as where they are not installed. Call this before anything imports them."""
    for name in DEVELOPMENT_LIBRARIES:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # what the import system reads as "not there"
