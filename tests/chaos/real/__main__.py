"""`make chaos REAL=1`: run turns on the local cloud under faults of its calls and processes.

make chaos REAL=1              # 200 turns
make chaos REAL=1 TURNS=50     # fewer
make chaos REAL=1 SEED=12      # repeat one seed and print its problems
"""

import argparse
import asyncio
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from local.logs import read_log_lines
from tests.chaos.__main__ import format_count, print_summary
from tests.chaos.real.real_cloud import RealCloud, open_real_cloud
from tests.chaos.real.real_seed import RealReport, RealSeed

MAX_SHOWN_PROBLEMS = 8


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos REAL=1", description="Disturb turns on the local cloud.")
    parser.add_argument("--turns", type=int, default=200, help="start no seed after so many turns")
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--first", type=int, default=0, help="begin with this seed")
    options = parser.parse_args()
    logging.getLogger("fermata").setLevel(logging.WARNING)
    seeds = itertools.count(options.first) if options.seed is None else [options.seed]
    reports = asyncio.run(run_real_campaign(seeds, max_turns=options.turns))
    print_summary(reports, "seed")
    return 1 if any(report.problems for report in reports) else 0


async def run_real_campaign(seeds: Iterable[int], *, max_turns: int) -> list[RealReport]:
    """Run one seed after the other on one cloud, and print each."""
    reports: list[RealReport] = []
    directory = Path(tempfile.mkdtemp(prefix="fermata-chaos-"))
    async with open_real_cloud(directory) as real:
        for seed in seeds:
            begun = time.monotonic()
            report = await run_real_seed(RealSeed.from_seed(real, seed))
            reports.append(report)
            print_report(report, time.monotonic() - begun)
            if report.problems or report.ends["error broken"]:
                save_logs(real, seed)
            if sum(report.turns for report in reports) >= max_turns:
                break
    return reports


async def run_real_seed(seed: RealSeed) -> RealReport:
    """Run a seed; one that does not come to an end is reported too."""
    try:
        return await seed.run()
    except TimeoutError:
        return RealReport(
            seed.seed, [f"it did not come to an end: {problem}" for problem in seed.describe_unfinished()]
        )


def save_logs(real: RealCloud, seed: int) -> None:
    """Write down what the functions have logged about a seed."""
    file = real.cloud.directory / f"seed-{seed}.log"
    lines = read_log_lines(real.cloud.get_client("logs"), real.cloud.directory)
    file.write_text("\n".join(line for line in lines if f"chaos{seed}x" in line or '"exception"' in line))
    print(f"    what the functions logged: {file}")


def print_report(report: RealReport, seconds: float) -> None:
    ends = ", ".join(f"{count} {end}" for end, count in report.ends.most_common())
    print(
        f"seed {report.seed}: {report.turns} turns ({ends}), {report.fault_count} faults, {seconds:.0f} s", flush=True
    )
    if not report.problems:
        return
    count = len(report.problems)
    print(f"    it broke {format_count(count, 'promise')}; repeat it: make chaos REAL=1 SEED={report.seed}")
    for problem in report.problems[:MAX_SHOWN_PROBLEMS]:
        print(f"    {problem}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
