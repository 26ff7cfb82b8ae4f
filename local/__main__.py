"""Run a program of the local cloud by its name: `python -m local demo`.

The programs take a moment to load. Ctrl-C meanwhile ends them as quietly as later.
"""

import sys
from importlib import import_module

from fermata_command import exit_quietly_on_ctrl_c

PROGRAMS = ("demo", "run")


def main() -> None:
    exit_quietly_on_ctrl_c()
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in PROGRAMS:
        sys.exit(f"usage: python -m local {{{','.join(PROGRAMS)}}}")
    del sys.argv[1]
    import_module(f"local.{name}").main()


if __name__ == "__main__":
    main()
