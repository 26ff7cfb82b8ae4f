"""`python -m local.demo [PROMPT]`: one real turn on a page of its own cloud, from nothing to a diff.

The last line of its output is one JSON object with the turn's numbers; the exit code is 0 only when it is done.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from fermata_client import ClientError, FermataClient, HtmlFile, HtmlFileExecutor, Outcome, run_turn
from fermata_client.screen import Screen
from local.cloud import LocalCloud
from local.deploy import DeploymentFailedError
from local.processes import ROOT, DidNotStartError
from local.run import real_key, stop_when_told

PAGE = ROOT / "examples/bakery/index.html"
RESULT = ROOT / "build/bakery/index.html"
STATE = ROOT / "build/demo"
PROMPT = "Add a pricing section after the opening hours"


def main() -> None:
    stop_when_told()
    prompt = " ".join(sys.argv[1:]) or os.environ.get("PROMPT") or PROMPT
    shutil.rmtree(STATE, ignore_errors=True)
    print("Starting a local cloud …", flush=True)
    try:
        with LocalCloud(STATE, real_key=real_key()) as cloud:
            summary = demonstrate(cloud, prompt)
    except (DidNotStartError, DeploymentFailedError, ClientError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("Stopped.")
    print(json.dumps(summary, ensure_ascii=False))
    sys.exit(0 if summary["status"] == "done" else 1)


def demonstrate(cloud: LocalCloud, prompt: str) -> dict[str, Any]:
    assert cloud.model is not None
    print(f"Fermata is at {cloud.url}, the model is: {cloud.model.label} ({cloud.model.id}).")
    print(f"> {prompt}\n")
    outcome = edit(cloud, prompt)
    return numbers(cloud, outcome)


def edit(cloud: LocalCloud, prompt: str) -> Outcome:
    """Play the browser: carry out the tools on a copy of the page and show what changed."""
    page, screen = HtmlFile(PAGE, RESULT), Screen()
    before, executor = page.document.source.decode(), HtmlFileExecutor(page)
    with FermataClient(cloud.url, cloud.token) as client:
        outcome = run_turn(client, "site", prompt, executor=executor, snapshot=executor.snapshot, on_event=screen)
    page.finish()
    screen.end_line()
    print()
    screen.show_diff(before, page.document.source.decode(), PAGE.name)
    print(f"\nThe new page: {relative(RESULT)} (the original is as it was).")
    if outcome.error:
        print(f"The turn ended with an error: {outcome.error}")
    return outcome


def numbers(cloud: LocalCloud, outcome: Outcome) -> dict[str, Any]:
    told = outcome.summary()
    wanted = ("status", "bridgeId", "rounds", "browserTools", "serverTools")
    summary = {name: told.get(name) for name in wanted}
    summary["transitions"] = transitions(cloud, str(told.get("bridgeId")))
    return summary | {"events": told["events"], "seconds": told["seconds"]}


def transitions(cloud: LocalCloud, turn: str) -> int:
    """What Step Functions would charge for: every state entered, and the start of each execution."""
    states, count = cloud.client("stepfunctions"), 0
    for execution in cloud.ended_executions(turn):
        pages = states.get_paginator("get_execution_history").paginate(executionArn=execution["executionArn"])
        events = [event["type"] for page in pages for event in page["events"]]
        count += 1 + sum(event.endswith("StateEntered") for event in events)
    return count


def relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    main()
