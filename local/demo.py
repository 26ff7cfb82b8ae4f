"""Run one turn on a page, on a new local cloud, and show what it changed: `python -m local demo [PROMPT]`.

The last line of output is a JSON object with the turn's numbers. The exit code is 0 only when the turn is done.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from fermata_client import FermataClient, FermataClientError, HtmlFile, HtmlFileExecutor, TurnOutcome, run_turn
from fermata_client.terminal.turn_printer import TurnPrinter
from fermata_command import EXIT_CODE_INTERRUPTED
from local.check_real_key import RealModelUnavailableError, check_real_key
from local.cloud import LocalCloud
from local.deploy import DeploymentFailedError
from local.processes import ROOT, DidNotStartError
from local.run import install_stop_signals, real_api_key

PAGE_PATH = ROOT / "examples/bakery/index.html"
RESULT_PATH = ROOT / "build/bakery/index.html"
DEMO_DIRECTORY = ROOT / "build/demo"
DEFAULT_PROMPT = "Add a pricing section after the opening hours"


def main() -> None:
    install_stop_signals()
    prompt = " ".join(sys.argv[1:]) or os.environ.get("PROMPT") or DEFAULT_PROMPT
    shutil.rmtree(DEMO_DIRECTORY, ignore_errors=True)
    try:
        check_real_key(real_api_key())
        print("Starting a local cloud …", flush=True)
        with LocalCloud(DEMO_DIRECTORY, real_api_key=real_api_key()) as cloud:
            summary = run_demo(cloud, prompt)
    except (RealModelUnavailableError, DidNotStartError, DeploymentFailedError, FermataClientError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(EXIT_CODE_INTERRUPTED)
    print(json.dumps(summary, ensure_ascii=False))
    sys.exit(0 if summary["status"] == "done" else 1)


def run_demo(cloud: LocalCloud, prompt: str) -> dict[str, Any]:
    assert cloud.model is not None
    print(f"Fermata is at {cloud.url}, the model is: {cloud.model.label} ({cloud.model.id}).")
    print(f"> {prompt}\n")
    outcome = edit_page(cloud, prompt)
    return summarize_outcome(cloud, outcome)


def edit_page(cloud: LocalCloud, prompt: str) -> TurnOutcome:
    """Run the turn, with its browser tools on a copy of the page, and print the diff."""
    page = HtmlFile(PAGE_PATH, RESULT_PATH)
    printer = TurnPrinter()
    source_before = page.document.source.decode()
    executor = HtmlFileExecutor(page)
    with FermataClient(cloud.url, cloud.token) as client, printer:
        outcome = run_turn(client, "site", prompt, executor=executor, snapshot=executor.snapshot, on_event=printer)
    page.write_copy()
    print()
    printer.print_diff(source_before, page.document.source.decode(), PAGE_PATH.name)
    print(f"\nThe new page: {relative_path(RESULT_PATH)} (the original is as it was).")
    if outcome.error:
        print(f"The turn ended with an error: {outcome.error}")
    return outcome


def summarize_outcome(cloud: LocalCloud, outcome: TurnOutcome) -> dict[str, Any]:
    """Get the turn's numbers, with the state transitions that Step Functions would bill."""
    client_summary = outcome.to_summary()
    summary = {
        name: client_summary.get(name) for name in ("status", "bridgeId", "rounds", "browserTools", "serverTools")
    }
    summary["transitions"] = count_transitions(cloud, str(client_summary.get("bridgeId")))
    return summary | {"events": client_summary["events"], "seconds": client_summary["seconds"]}


def count_transitions(cloud: LocalCloud, turn: str) -> int:
    """Count what Step Functions bills: every state entered, and the start of each execution."""
    histories = cloud.get_client("stepfunctions").get_paginator("get_execution_history")
    transitions = 0
    for execution in cloud.wait_for_executions(turn):
        pages = histories.paginate(executionArn=execution["executionArn"])
        event_types = [event["type"] for page in pages for event in page["events"]]
        transitions += 1 + sum(event_type.endswith("StateEntered") for event_type in event_types)
    return transitions


def relative_path(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    main()
