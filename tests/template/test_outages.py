"""Alarms that ring when a dependency breaks; and the table of them in docs/operations.md.

`python -m tests.template.test_outages` writes the table.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.hosts.errors import HostError
from fermata.hosts.open_content_host import open_content_host
from fermata.hosts.registry import register_host
from fermata.turns.turn import build_turn_pk
from fermata.turns.webhooks.outbox import build_outbox_put, resend_outbox
from tests.chaos.outages import CALM_SECONDS, OUTAGE_SECONDS, SECONDS_BETWEEN_PROMPTS, LogLine, Outage, OutageWorld
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_host import HOST_CALLER
from tests.template.alarm_evaluation import Datapoint, is_raised
from tests.template.templates import (
    OWN_TABLES,
    ROOT,
    TEMPLATE,
    Template,
    read_template,
    resolve_conditions,
    resources_of_type,
)
from tests.tenant_tokens import make_tenant
from tests.unit.turns.scripted_queue import install_scripted_queue

pytestmark = pytest.mark.exhaustive

PAGE = ROOT / "docs" / "operations.md"
TABLE = re.compile(r"(?<=<!-- outages -->\n).*(?=<!-- end of outages -->)", re.DOTALL)
TASKS = re.compile(r"(?<=<!-- alarms -->\n).*(?=<!-- end of alarms -->)", re.DOTALL)
SECONDS_BETWEEN_FEWER_PROMPTS = 40.0
"""Where the table in the document does not say which alarms ring. Half as many turns take a quarter of the time."""
NOTHING = "nothing"
OUTAGES = {
    NOTHING: Outage("no such point"),
    "DynamoDB": Outage("dynamodb."),
    "DynamoDB: transactions": Outage("dynamodb.TransactWriteItems"),
    "DynamoDB: what rollup calls": Outage("dynamodb.", "rollup"),
    "DynamoDB: what round calls": Outage("dynamodb.", "round"),
    "S3": Outage("s3."),
    "KMS": Outage("kms."),
    "KMS: what round calls": Outage("kms.", "round"),
    "Step Functions": Outage("stepfunctions."),
    "Step Functions: `SendTaskSuccess`": Outage("stepfunctions.SendTaskSuccess"),
    "a model provider": Outage("provider."),
}
HOST = "a tenant's host"
WEBHOOK_QUEUE = "SQS: the queue of webhooks"
EXPECTED = {
    NOTHING: set[str](),
    "DynamoDB": {"ApiErrorsAlarm", "TurnErrorsAlarm"},
    "DynamoDB: transactions": {"ApiErrorsAlarm"},
    "DynamoDB: what rollup calls": {"RollupLagAlarm"},
    "DynamoDB: what round calls": {"TurnErrorsAlarm"},
    "S3": {"ApiErrorsAlarm"},
    "KMS": {"ApiErrorsAlarm"},
    "KMS: what round calls": {"FailedTurnsAlarm"},
    "Step Functions": {"StuckTurnsAlarm"},
    "Step Functions: `SendTaskSuccess`": {"TurnErrorsAlarm"},
    "a model provider": {"ProviderFailuresAlarm", "FailedTurnsAlarm"},
    HOST: {"HostFailuresAlarm"},
    WEBHOOK_QUEUE: {"WaitingWebhooksAlarm"},
}
"""Alarms without which an operator would not hear of an outage, or not of its cause."""


@cache
def load_source() -> Template:
    return dict(resolve_conditions(read_template(TEMPLATE.read_text()), OWN_TABLES))


def list_raised(points: Iterable[Datapoint], lines: Iterable[LogLine]) -> list[str]:
    """Return the alarms that ring, in the template's order."""
    source = load_source()
    collected = [*points, *filter_lines(lines)]
    now = CALM_SECONDS + OUTAGE_SECONDS
    alarms = resources_of_type(source, "AWS::CloudWatch::Alarm")
    return [name for name, alarm in alarms.items() if is_raised(alarm, source["Parameters"], collected, now)]


def filter_lines(lines: Iterable[LogLine]) -> Iterable[Datapoint]:
    """Yield the values that metric filters make of log lines."""
    lines, source = list(lines), load_source()
    groups = {
        name: function["LoggingConfig"]["LogGroup"]["Ref"]
        for name, function in resources_of_type(source, "AWS::Serverless::Function").items()
    }
    for found in resources_of_type(source, "AWS::Logs::MetricFilter").values():
        (made,) = found["MetricTransformations"]
        for line in lines:
            if {"Ref": groups.get(line.function, "")} == found["LogGroupName"] and matches(found, line.facts):
                yield Datapoint(made["MetricNamespace"], made["MetricName"], frozenset(), line.at, 1)


def matches(found: Template, facts: dict[str, Any]) -> bool:
    pattern = found["FilterPattern"]
    events = [event.replace("*", ".*") for event in re.findall(r'\$\.event = "([^"]+)"', pattern)]
    needed = re.findall(r"\$\.(\w+) IS TRUE", pattern)
    return any(re.fullmatch(event, facts["event"]) for event in events) and all(facts.get(name) for name in needed)


@cache
def run_outage(dependency: str, kind: str = "denied") -> tuple[str, ...]:
    seconds = SECONDS_BETWEEN_PROMPTS if kind == "denied" else SECONDS_BETWEEN_FEWER_PROMPTS
    world = OutageWorld(replace(OUTAGES[dependency], kind=kind), seconds)
    world.run_outage()
    points = [
        Datapoint(one.namespace, one.name, one.dimensions, one.at, one.value) for one in world.values if one.at >= 0
    ]
    return tuple(list_raised(points, world.lines))


@pytest.mark.parametrize("dependency", OUTAGES)
def test_an_outage_rings(dependency: str) -> None:
    raised = run_outage(dependency)
    assert EXPECTED[dependency] <= set(raised)
    assert bool(raised) == (dependency != NOTHING), raised


@pytest.mark.parametrize("kind", ["throttle", "request lost"])
@pytest.mark.parametrize("dependency", ["DynamoDB", "S3", "KMS", "Step Functions"])
def test_an_outage_rings_also_when_calls_are_throttled_or_never_answered(dependency: str, kind: str) -> None:
    raised = run_outage(dependency, kind)
    assert EXPECTED[dependency] <= set(raised)
    if kind == "request lost":
        assert "RequestErrorsAlarm" in raised, "functions wait for answers until their time is over"


def test_a_host_that_does_not_answer_rings(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[LogLine] = []
    monkeypatch.setattr(
        observability,
        "log_warning",
        lambda event, **facts: lines.append(LogLine("RoundFunction", {"event": event, **facts}, 60 + len(lines))),
    )
    make_tenant(resources, HOST_CALLER.tenant)
    local = resources_of_new_process(resources, fermata_stage="local")
    register_host(local, HOST_CALLER.tenant, "http://127.0.0.1:9")
    client = open_content_host(local, HOST_CALLER)
    assert client is not None
    for _ in range(10):
        with pytest.raises(HostError):
            client.list_users()
    working = [Datapoint("AWS/Lambda", "Invocations", SWEEP, at, 1) for at in range(0, 1000, 60)]
    assert set(list_raised(working, lines)) == EXPECTED[HOST]


def test_a_queue_of_webhooks_that_takes_nothing_rings(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[LogLine] = []

    def log(event: str, **facts: Any) -> None:
        lines.append(LogLine("RecoverFunction", {"event": event, **facts}, clock.time() - begun_at))

    monkeypatch.setattr(observability, "log_warning", log)
    begun_at, local = clock.time(), resources_of_new_process(resources)
    install_scripted_queue(local).is_down = True
    put = build_outbox_put(local, build_turn_pk("bakery", "turn"), 3, int(begun_at * 1000), int(begun_at) + 9999)
    local.tables.write_items(put)
    working: list[Datapoint] = []
    for at in range(0, 900, 60):
        clock.advance(60)
        resend_outbox(local)
        working.append(Datapoint("AWS/Lambda", "Invocations", SWEEP, at, 1))
    assert set(list_raised(working, lines)) == EXPECTED[WEBHOOK_QUEUE]


SWEEP = frozenset({("FunctionName", "RecoverFunction")})


def test_a_sweep_that_is_not_invoked_rings() -> None:
    assert list_raised([], []) == ["SilentSweepAlarm"]


def test_the_table_of_outages_is_current() -> None:
    (written,) = TABLE.findall(PAGE.read_text())
    assert written == render_outages(), "run `python -m tests.template.test_outages`"


def test_the_table_of_alarms_is_current() -> None:
    (written,) = TASKS.findall(PAGE.read_text())
    assert written == render_alarms(), "run `python -m tests.template.test_outages`"


def render_outages() -> str:
    """Render which alarms ring within a quarter of an hour in which a dependency refuses every call."""
    raised = {name: run_outage(name) for name in OUTAGES if name != NOTHING} | {
        name: tuple(EXPECTED[name]) for name in (HOST, WEBHOOK_QUEUE)
    }
    rows = [f"| {name} | {', '.join(f'`{alarm}`' for alarm in alarms)} |" for name, alarms in raised.items()]
    return "\n".join(["", "| what refuses every call | alarms |", "|---|---|", *rows, "", ""])


def render_alarms() -> str:
    alarms = resources_of_type(load_source(), "AWS::CloudWatch::Alarm")
    rows = [f"| `{name}` | {alarm['AlarmDescription'].strip()} |" for name, alarm in alarms.items()]
    return "\n".join(["", "| alarm | what it says |", "|---|---|", *rows, "", ""])


if __name__ == "__main__":
    page = TABLE.sub(lambda _: render_outages(), PAGE.read_text())
    PAGE.write_text(TASKS.sub(lambda _: render_alarms(), page))
