"""`make chaos`: simulate turns under faults and print what was injected and which seeds broke a promise.

make chaos                     # 10,000 faults, or ten minutes
make chaos FAULTS=500          # fewer
make chaos SEED=90             # repeat one seed and print its problems
"""

import argparse
import itertools
import os
import sys
from collections import Counter, defaultdict

from tests.chaos.campaign import RunReport, run_campaign, run_seed

MAX_SHOWN_PROBLEMS = 5


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description="Simulate turns under faults.")
    parser.add_argument("--faults", type=int, default=10_000, help="stop after so many injected faults")
    parser.add_argument("--seconds", type=float, default=600, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, help="run this seed only")
    options = parser.parse_args()
    if options.seed is not None:
        reports = [run_seed(options.seed)]
        print_failure(reports[0])
    else:
        reports = []
        processes = os.cpu_count() or 1
        for report in run_campaign(
            itertools.count(), max_faults=options.faults, max_seconds=options.seconds, processes=processes
        ):
            reports.append(report)
            print_failure(report)
    print_summary(reports)
    return 1 if any(report.problems for report in reports) else 0


def print_failure(report: RunReport) -> None:
    if not report.problems:
        return
    count = len(report.problems)
    print(f"seed {report.seed} broke {format_count(count, 'promise')}; repeat it: make chaos SEED={report.seed}")
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
