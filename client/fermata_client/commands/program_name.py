"""Find the words that start this program, for commands that its hints suggest."""

import os
import shlex
import shutil
import sys
from pathlib import Path

PROGRAM_NAME = "fermata"


def get_program() -> str:
    """Return `fermata` if the shell finds this program under its name, or else the path that it was started with."""
    path = sys.argv[0]
    if Path(path).name != PROGRAM_NAME:
        return PROGRAM_NAME  # started as a module or by a test
    found = shutil.which(PROGRAM_NAME)
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(path)
    return PROGRAM_NAME if is_found else shlex.quote(path)
