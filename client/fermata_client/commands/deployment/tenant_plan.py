"""`fermata tenant plan`: give a tenant of a deployment its plan."""

import json
from datetime import UTC, datetime
from typing import Any

import click

from fermata_client.commands.deployment.stack_options import stack_options
from fermata_client.stack.resources import open_operator_resources

PLAN_LIMIT_HELP = "A limit in place of the plan's, such as chatMessages=500, or =unlimited. Repeat for more."
PLAN_MODEL_HELP = "A model of the studio in place of the plan's, such as claude-haiku-*; * for all. Repeat for more."


@click.command("plan")
@click.argument("name")
@click.argument("plan", type=click.Choice(["community", "free", "starter", "pro", "enterprise"]))
@click.option("--state", type=click.Choice(["active", "trial", "grace", "cancelled"]), default="active")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="When the state ends (UTC). Then nothing may be used.")
@click.option("--overage/--no-overage", default=False, help="Admit more than the plan has in a month, and bill it.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", help=PLAN_LIMIT_HELP)
@click.option("--model", "models", multiple=True, metavar="NAME", help=PLAN_MODEL_HELP)
@stack_options
def choose_plan(
    name: str,
    plan: str,
    state: Any,
    until: datetime | None,
    overage: bool,
    limits: tuple[str, ...],
    models: tuple[str, ...],
    stack: str | None,
    region: str | None,
) -> None:
    """Give the tenant NAME the plan PLAN, in place of the one before with all of its options."""
    from pydantic import ValidationError

    from fermata.domain.workspace_plan import Subscription
    from fermata.wire.auth.tenant_store import update_tenant

    ends = int(until.replace(tzinfo=UTC).timestamp()) if until else None
    chosen = dict(map(_parse_plan_limit, limits))
    try:
        subscription = Subscription(plan=plan, state=state, until=ends, overage=overage, limits=chosen, models=models)
    except ValidationError as error:  # the other options were checked one by one
        first = error.errors(include_url=False)[0]
        raise click.BadParameter(first["msg"].removeprefix("Value error, "), param_hint="--model") from error
    changed = update_tenant(open_operator_resources(stack, region), name, subscription=subscription)
    click.echo(json.dumps(changed.to_operator_view(), indent=2))


def _parse_plan_limit(text: str) -> tuple[str, int | None]:
    """Return the name and the number of NAME=NUMBER; None for no limit."""
    from fermata.domain.workspace_plan import PlanMeter, PlanQuota

    name, _, number = text.partition("=")
    names = [one.value for one in (*PlanMeter, *PlanQuota)]
    if name not in names or not (number == "unlimited" or (number.isdecimal() and len(number) <= 15)):
        text = f"{text!r} is none of NAME=NUMBER. Names: {', '.join(names)}."
        raise click.BadParameter(text, param_hint="--limit")
    return name, None if number == "unlimited" else int(number)
