"""Hold the lock of the state directory until this process and those that save its state have ended (decision 0163)."""

import os
from pathlib import Path

from local.lock_or_delete_state import lock_emulator_state

MAX_DESCRIPTOR = 1 << 16
_descriptors: list[int] = []


def hold_state_lock(state: Path) -> None:
    """Wait for the lock and keep it until this process ends: a thread may delete files up to the end."""
    _descriptors.append(lock_emulator_state(state))


def close_inherited_descriptors() -> None:
    """Close what a forked process inherits, except the lock: a killed emulator's snapshot may still get its name."""
    begin = 3
    for descriptor in sorted(_descriptors):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, MAX_DESCRIPTOR)
