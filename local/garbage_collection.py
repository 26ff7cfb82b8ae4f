"""Let Python look for garbage less often in processes of the local cloud (decision 0602)."""

import gc

GARBAGE_THRESHOLDS = (5_000, 20, 20)


def collect_garbage_seldom() -> None:
    """Leave what there is out of later collections, and make those rarer. Call it when a process is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
