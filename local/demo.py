"""`python -m local.demo [PROMPT]`: one real turn on a page of its own cloud, from nothing to a diff.

The last line of its output is one JSON object with the turn's numbers; the exit code is 0 only when it is done.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from fermata_client import FermataClient, FermataClientError, HtmlFile, HtmlFileExecutor, TurnOutcome, run_turn
from fermata_client.terminal.screen import TurnPrinter
from local.cloud import LocalCloud
from local.deploy import DeploymentFailedError
from local.processes import ROOT, DidNotStartError
from local.run import install_stop_signals, real_api_key

PAGE_PATH = ROOT / "examples/bakery/index.html"
RESULT_PATH = ROOT / "build/bakery/index.html"
STATE_DIRECTORY = ROOT / "build/demo"
DEFAULT_PROMPT = "Add a pricing section after the opening hours"


def main() -> None:
    install_stop_signals()
    prompt = " ".join(sys.argv[1:]) or os.environ.get("PROMPT") or DEFAULT_PROMPT
    shutil.rmtree(STATE_DIRECTORY, ignore_errors=True)
    print("Starting a local cloud …", flush=True)
    try:
        with LocalCloud(STATE_DIRECTORY, real_api_key=real_api_key()) as cloud:
            summary = run_demo(cloud, prompt)
    except (DidNotStartError, DeploymentFailedError, FermataClientError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped.")
    print(json.dumps(summary, ensure_ascii=False))
    sys.exit(0 if summary["status"] == "done" else 1)


def run_demo(cloud: LocalCloud, prompt: str) -> dict[str, Any]:
    assert cloud.model is not None
    print(f"Fermata is at {cloud.url}, the model is: {cloud.model.label} ({cloud.model.id}).")
    print(f"> {prompt}\n")
    outcome = edit_page(cloud, prompt)
    return summarize_outcome(cloud, outcome)


def edit_page(cloud: LocalCloud, prompt: str) -> TurnOutcome:
    """Play the browser: carry out the tools on a copy of the page and show what changed."""
    page, screen = HtmlFile(PAGE_PATH, RESULT_PATH), TurnPrinter()
    before, executor = page.document.source.decode(), HtmlFileExecutor(page)
    with FermataClient(cloud.url, cloud.token) as client:
        outcome = run_turn(client, "site", prompt, executor=executor, snapshot=executor.snapshot, on_event=screen)
    page.write_copy()
    screen.end_line()
    print()
    screen.print_diff(before, page.document.source.decode(), PAGE_PATH.name)
    print(f"\nThe new page: {relative_path(RESULT_PATH)} (the original is as it was).")
    if outcome.error:
        print(f"The turn ended with an error: {outcome.error}")
    return outcome


def summarize_outcome(cloud: LocalCloud, outcome: TurnOutcome) -> dict[str, Any]:
    told = outcome.to_summary()
    wanted = ("status", "bridgeId", "rounds", "browserTools", "serverTools")
    summary = {name: told.get(name) for name in wanted}
    summary["transitions"] = count_transitions(cloud, str(told.get("bridgeId")))
    return summary | {"events": told["events"], "seconds": told["seconds"]}


def count_transitions(cloud: LocalCloud, turn: str) -> int:
    """What Step Functions would charge for: every state entered, and the start of each execution."""
    states, count = cloud.get_client("stepfunctions"), 0
    for execution in cloud.wait_for_executions(turn):
        pages = states.get_paginator("get_execution_history").paginate(executionArn=execution["executionArn"])
        events = [event["type"] for page in pages for event in page["events"]]
        count += 1 + sum(event.endswith("StateEntered") for event in events)
    return count


def relative_path(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    main()
