"""`python -m bench [--quick]`: count and time the service on its local cloud, and compare with the targets."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench import audits, counts, lookups, reference, sites, trials, waits
from bench.cost import Shape
from bench.folding import LENGTHS, folding_cost
from bench.imports import import_ratio
from bench.ledgers import ROWS
from bench.stage import Stage, opened
from bench.table import LATEST, Row, cpus, shown, write
from local import template
from local.cloud import TIMINGS

FAR = 200
HOUR = 3600.0
"""What a minute of the schedules lasts here, so that no sweep is counted with a turn."""


@dataclass(frozen=True)
class Extent:
    """How often everything is done, and how much of it."""

    times: int = 40
    far: int = FAR
    crowd: int = 50
    messages: int = 2000
    rows: int = ROWS
    conversations: int = 250
    streams: tuple[int, ...] = LENGTHS
    shape: Shape = field(default_factory=Shape)


SHORT = Shape(text_seconds=1, first_byte_seconds=0.1, phase_seconds=0.2)
QUICK = Extent(times=2, far=0, crowd=5, messages=100, rows=4000, conversations=10, streams=(100, 1000), shape=SHORT)


def main() -> int:
    options = _options()
    started, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row] = []
    if load > cpus() / 2:
        print(f"This machine is busy (load {load:.1f}): the times will be too long.", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="fermata-bench-") as directory:
        for row in measured(Path(directory), QUICK if options.quick else Extent()):
            rows.append(row)
            print(f"  {row.what}: {row.result}", file=sys.stderr, flush=True)
    print(shown(rows))
    seconds = round(time.monotonic() - started)
    about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "quick": options.quick, "seconds": seconds}
    about |= {"load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)}}
    write(rows, about, options.out)
    print(f"\n{seconds} s; written to {options.out}")
    return 0


def measured(directory: Path, extent: Extent) -> Iterator[Row]:
    """Processor times while nothing else runs; counts, at the settings that are shipped; times, at those of the local
    cloud, on one that is new: the more an emulator holds, the slower it is.
    """
    yield folding_cost(extent.streams)
    yield import_ratio(max(1, extent.times // 2))
    rounds = extent.far + extent.times + 10
    with opened(directory / "counts", minute=HOUR, **shipped(), MaxRounds=rounds) as stage:
        yield from counts.workflow(stage)
        yield counts.browser_round(stage)
        yield lookups.credential_open(stage)
        yield lookups.conversation_list(stage, extent.conversations)
        yield from reference.reference_turn(stage, extent.shape)
    with opened(directory / "times", minute=HOUR, MaxRounds=rounds) as stage:
        yield from times(stage, extent)
        workspace = audits.Workspace(stage, extent.rows)
        yield audits.bytes_read(workspace)
        yield audits.query(workspace, max(3, extent.times // 2))
        yield sites.prompt(stage, extent.times)
        yield sites.heavy_snapshot(stage)
        yield counts.state_size(stage)


def times(stage: Stage, extent: Extent) -> Iterator[Row]:
    yield waits.one_write(stage, 5 * extent.times)
    yield waits.first_text(stage, extent.times)
    yield from waits.server_round(stage, extent.times, extent.far)
    yield waits.browser_round(stage, max(1, extent.times // 3))
    yield waits.five_rounds(stage, max(1, extent.times // 4))
    yield trials.killed(stage, max(1, extent.times // 10))
    yield trials.long_conversation(stage, 20, extent.messages)
    yield trials.crowd(stage, extent.crowd)


def shipped() -> dict[str, str]:
    """The template's own values of what the local cloud usually shortens."""
    parameters = template.load()["Parameters"]
    return {name: str(parameters[name]["Default"]) for name in TIMINGS}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split(": ", 1)[1])
    parser.add_argument("--quick", action="store_true", help="a minute's smoke test; its times mean nothing")
    parser.add_argument("--out", type=Path, default=LATEST, help="where the numbers go, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
