"""`make chaos`: simulate turns under faults and print what was injected and which seeds broke a promise.

make chaos                     # 10,000 faults, or ten minutes
make chaos FAULTS=500          # fewer
make chaos KIND=remote-tools   # of a kind in which one part of the service has more to do
make chaos FIRST=5000          # begin with this seed
make chaos SEED=90             # repeat one seed and print its problems
"""

import argparse
import itertools
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.campaign import RunReport, run_campaign, run_seed
from tests.chaos.simulation_kinds import KINDS

MAX_SHOWN_PROBLEMS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description="Simulate turns under faults.")
    parser.add_argument("--faults", type=int, default=10_000, help="stop after so many injected faults")
    parser.add_argument("--seconds", type=float, default=600, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, help="run this seed only")
    parser.add_argument("--first", type=int, default=0, help="begin with this seed")
    parser.add_argument("--kind", choices=["", *KINDS], default="", help="simulate this kind")
    options = parser.parse_args()
    reports = []
    for report in [run_seed(options.seed, options.kind)] if options.seed is not None else run_seeds(options):
        reports.append(report)
        print_failure(report, options.kind)
    print_summary(reports)
    return 1 if any(report.problems for report in reports) else 0


def run_seeds(options: argparse.Namespace) -> Iterator[RunReport]:
    return run_campaign(
        itertools.count(options.first),
        max_faults=options.faults,
        max_seconds=options.seconds,
        processes=os.cpu_count() or 1,
        kind=options.kind,
    )


def print_failure(report: RunReport, kind: str) -> None:
    if not report.problems:
        return
    count = len(report.problems)
    command = f"make chaos {f'KIND={kind} ' if kind else ''}SEED={report.seed}"
    print(f"seed {report.seed} broke {format_count(count, 'promise')}; repeat it: {command}", flush=True)
    for problem in report.problems[:MAX_SHOWN_PROBLEMS]:
        print(f"    {problem}")


def format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def print_summary(reports: list[RunReport], noun: str = "simulation") -> None:
    faults = sum((report.faults for report in reports), Counter[tuple[str, str]]())
    kinds, calls = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for (kind, call), count in faults.items():
        kinds[kind] += count
        calls[call][kind] += count
    failed = [report.seed for report in reports if report.problems]
    print(f"\n{format_count(len(reports), noun)}, {sum(report.turns for report in reports)} turns, ", end="")
    print(f"{sum(report.provider_requests for report in reports)} provider requests, {sum(kinds.values())} faults")
    print(f"\n{'fault':36} count")
    for name, count in kinds.most_common():
        print(f"{name:36} {count:5}")
    print(f"\n{'at call or point':36} count")
    for name, counts in sorted(calls.items(), key=lambda item: -item[1].total()):
        print(f"{name:36} {counts.total():5}  {', '.join(f'{kind} {count}' for kind, count in counts.most_common())}")
    print(f"\n{format_count(len(failed), noun)} broke a promise{': ' + str(failed) if failed else '.'}")


if __name__ == "__main__":
    sys.exit(main())
