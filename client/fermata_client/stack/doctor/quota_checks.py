"""Compare the quotas of an account with what the stack reserves and uses."""

from collections.abc import Iterator
from typing import Any

from fermata_client.stack.doctor.deployment_plan import DeploymentPlan
from fermata_client.stack.doctor.finding import Finding, describe_aws_error, get_aws_errors
from fermata_client.stack.resources import StackLocation

RESERVATIONS = ("StreamConcurrency", "ToolResultConcurrency")
UNRESERVED_MINIMUM = 100
"""Lambda refuses a reservation that leaves less than this to all other functions."""
USUAL_CONCURRENCY = 1000
ENVIRONMENTS_PER_TURN = 2
"""A turn whose model streams occupies a stream and a round."""
WATCHED_QUOTAS = {
    "states": (
        "StateTransition throttle token refill rate",
        "StartExecution throttle token refill rate",
        "SendTaskSuccess throttle token refill rate",
    ),
    "apigateway": ("Throttle rate",),
}
"""Beginnings of the names of quotas that may be reduced in a new account, by Service Quotas' code of the service."""


def check_concurrency(location: StackLocation, plan: DeploymentPlan) -> Iterator[Finding]:
    """Compare the account's concurrent Lambda executions with what the stack reserves and a turn occupies."""
    try:
        limits = location.create_client("lambda").get_account_settings()["AccountLimit"]
    except get_aws_errors() as error:
        yield Finding("note", "Lambda", f"The concurrency is not known: {describe_aws_error(error)}.")
        return
    total = int(limits["ConcurrentExecutions"])
    reserved = sum(int(float(plan.get_value(name) or 0)) for name in RESERVATIONS)
    if reserved and reserved > total - UNRESERVED_MINIMUM:
        yield _describe_impossible_reservation(total, reserved)
    turns = f"About {total // ENVIRONMENTS_PER_TURN} turns can stream at once"
    if total < USUAL_CONCURRENCY:
        text = (
            f"The account may run {total} functions at once; {USUAL_CONCURRENCY:,} are usual. {turns}; others wait for "
        )
        text += "minutes. Request the quota L-B99A9384 (Concurrent executions)."
        yield Finding("note", "Lambda", text)
    else:
        yield Finding("ok", "Lambda", f"The account may run {total:,} functions at once. {turns}.")
    if not reserved and total >= USUAL_CONCURRENCY:
        yield _describe_possible_reservation(total)


def _describe_impossible_reservation(total: int, reserved: int) -> Finding:
    text = (
        f"{' and '.join(RESERVATIONS)} reserve {reserved} of the account's {total} concurrent executions, and Lambda "
        f"keeps {UNRESERVED_MINIMUM} for other functions. The deployment would be rolled back. Set both to 0, or first "
        "request the quota L-B99A9384 (Concurrent executions)."
    )
    return Finding("problem", "Lambda", text)


def _describe_possible_reservation(total: int) -> Finding:
    text = (
        "Nothing is reserved, so open streams can keep answers of browsers from running. To prevent that, add "
        f"StreamConcurrency={total // 2} and ToolResultConcurrency={total // 10} to parameter_overrides."
    )
    return Finding("note", "Lambda", text)


def check_request_quotas(location: StackLocation) -> Iterator[Finding]:
    """Compare the quotas of Step Functions and API Gateway with what AWS gives an account by default."""
    for service, names in WATCHED_QUOTAS.items():
        try:
            client = location.create_client("service-quotas")
            defaults = _list_values(client, "list_aws_default_service_quotas", service)
            applied = _list_values(client, "list_service_quotas", service)
        except get_aws_errors() as error:
            text = f"The quotas of {service} are not known: {describe_aws_error(error)}. See them in Service Quotas."
            yield Finding("note", "quotas", text)
            continue
        yield from _compare_quotas(service, names, defaults, applied)


def _list_values(client: Any, operation: str, service: str) -> dict[str, float]:
    pages = client.get_paginator(operation).paginate(ServiceCode=service)
    return {quota["QuotaName"]: float(quota["Value"]) for page in pages for quota in page["Quotas"]}


def _compare_quotas(
    service: str, names: tuple[str, ...], defaults: dict[str, float], applied: dict[str, float]
) -> Iterator[Finding]:
    for beginning in names:
        found = [name for name in defaults | applied if name.startswith(beginning)]
        if not found:
            yield Finding("note", "quotas", f"{service} has no quota that is called {beginning!r}.")
        for name in found:
            usual = defaults.get(name, applied.get(name, 0.0))
            value = applied.get(name, usual)
            if value < usual:
                text = f"{service}: {name} is {value:,.0f}; {usual:,.0f} are usual. Request more in Service Quotas."
                yield Finding("note", "quotas", text)
            else:
                yield Finding("ok", "quotas", f"{service}: {name} is {value:,.0f}.")
