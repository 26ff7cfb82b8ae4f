"""Write docs/scale.md from the arithmetic of `scaling_limits.py`: `make docs`."""

import textwrap
from collections.abc import Iterator, Sequence

from bench import aws_prices
from bench.aws_quotas import NEW_ACCOUNT_CONCURRENCY, QUOTAS, Quota
from bench.background_scale import describe_content_outbox, describe_image_function, describe_usage_reports
from bench.scaling_limits import (
    CELL_TURNS,
    INSTANCES,
    LEVELS,
    PROCESSORS_PER_INSTANCE,
    READERS_PER_INSTANCE,
    STREAMS_PER_ENVIRONMENT,
    ReaderPrices,
    TurnRates,
    compute_reader_prices,
    find_new_account_limit,
    list_exceeded,
    read_turn_rates,
)
from bench.turn_cost import FunctionMemory, TurnShape
from fermata.turns.webhooks.delivery_slots import DELIVERIES_AT_ONCE
from fermata.turns.webhooks.outbox import OUTBOX_SHARDS
from local import template
from local.processes import ROOT

RECEIVER_SECONDS = 0.1
"""How long a receiver of webhooks is assumed to take."""
KEY_WRITE_UNITS = 1000
"""Write units that one key takes a second."""
KEY_READ_UNITS = 3000
CONTENT_WRITES = 3
"""Items in the transaction of a change to one document without unique values."""
UNITS_OF_TRANSACTED_WRITE = 2
TABLE_WRITE_UNITS = next(quota.value for quota in QUOTAS if quota.key == "write_units")
CONCURRENCY = next(quota.value for quota in QUOTAS if quota.key == "concurrency")
CHANGES_OF_SPACE = KEY_WRITE_UNITS // (CONTENT_WRITES * UNITS_OF_TRANSACTED_WRITE)
"""Changes a second that a space takes, while it is one partition."""
MARK_WRITES_PER_EVENT = 2
"""An event that waits for webhooks is marked in the index `open`, and the mark is removed."""
SCALE_PAGE_PATH = ROOT / "docs" / "scale.md"

PRICES = (
    ("Lambda, arm64, GB-second", aws_prices.LAMBDA_GB_SECOND, "https://aws.amazon.com/lambda/pricing/"),
    (
        "Step Functions, transition",
        aws_prices.STEP_FUNCTIONS_TRANSITION,
        "https://aws.amazon.com/step-functions/pricing/",
    ),
    ("DynamoDB, write unit", aws_prices.DYNAMODB_WRITE_UNIT, "https://aws.amazon.com/dynamodb/pricing/on-demand/"),
    ("DynamoDB, read unit", aws_prices.DYNAMODB_READ_UNIT, "https://aws.amazon.com/dynamodb/pricing/on-demand/"),
    ("API Gateway, request", aws_prices.REST_API_REQUEST, "https://aws.amazon.com/api-gateway/pricing/"),
    ("S3, PUT", aws_prices.S3_PUT, "https://aws.amazon.com/s3/pricing/"),
    ("EC2 m7g.xlarge, hour", aws_prices.M7G_XLARGE_HOUR, "https://aws.amazon.com/lambda/pricing/"),
)
"""USD in us-east-1."""

INTRODUCTION = """\
# Scale

What AWS limits first as more turns run at once, and what such a service costs. `make docs` writes this page with
`python -m bench.scale_page`: the amounts of a turn are those of the last `make bench` ([numbers.md](numbers.md)), the
quotas and prices are in `bench/aws_quotas.py` and `bench/aws_prices.py`. It is arithmetic with the defaults that AWS
documents; no such load was tried on AWS. An account may have other quotas: `fermata doctor` says which ones yours
has.
"""

ASSUMPTIONS = """\
A turn is the reference turn of [numbers.md](numbers.md): four rounds, six browser tools, forty seconds of text. Turns
start evenly. All DynamoDB units are counted as if they met one table, and all uploads one prefix, so these limits
come later in fact. A turn that waits for a person and has no reader takes no function, only an open execution.
"""

RAMP = """\
Two limits are about how fast, not how many. Lambda adds 1,000 environments of a function in 10 seconds, so 10,000
streams need at least 100 seconds to open. A new on-demand table takes 4,000 write and 12,000 read units a second, and
twice its former peak after that: before a launch, warm it (`WarmThroughput`).
"""

CELLS = """\
A cell is this stack in an account and Region of its own, with its own quotas, tables, workflow, key and bucket. A
routing table names the cell of each tenant, and the tenant is the whole of what is routed: conversations, ledger,
budgets and credentials are keyed by tenant, so no request needs two cells.

| what | where |
|---|---|
| functions, API, workflow, tables, bucket, key, alarms, dashboard | in each cell |
| routing table: tenant → cell, version | one small global table, read by the edge and cached for a minute |
| domain, sign-in | shared; a token names the tenant, as it does today |
| price catalogue | in each cell, from the same source |
| sums over all tenants | read from each cell, added outside of them |

- **A new tenant** goes to the cell with the fewest turns.
- **A move**: stop new turns of the tenant (429), wait until none is open, copy its rows and blobs, change the routing
  table, and delete the old rows after a week.
- **A tenant larger than a cell** needs several tenants' names, one for each group of its users. Budgets are then by
  group.
- **A deployment** goes to one cell first, then to the others. A cell that fails takes its own tenants only.

Nothing in this repository routes yet: a stack is one cell, and knows of no other.
"""

INSTANCE_NOTES = """\
`make instances-template` writes a template whose stream function runs on managed instances
([0264](decisions/0264-streams-on-managed-instances.md)). They run several requests in one process: the Lambda Web
Adapter passes them on side by side, and the stream function is one asyncio application. They have no price by
duration, and are there whether anybody reads or not. They need at least 2 GB for a process, a VPC with subnets in
several zones and routes to AWS, and a published version. They are added by load, not by request: if streams more than
double within five minutes, some are throttled. Neither the adapter's streaming on these instances nor the number of
readers that one serves was tried.
"""


def render_scale_page() -> str:
    rates = read_turn_rates()
    resources = template.load_template()["Resources"]
    readers = compute_reader_prices(FunctionMemory.from_template(template.load_template()))
    parts = (
        INTRODUCTION,
        "## What breaks first\n",
        *_format_table(
            ("concurrent turns", "starts a second", "infrastructure an hour", "breaks"), _list_levels(rates)
        ),
        "",
        ASSUMPTIONS,
        RAMP,
        "## Quotas\n",
        _describe_turn(rates),
        *_format_table(
            ("quota", "default", "smaller Regions", "concurrent turns", "there", "remedy", "source"),
            _list_quotas(rates),
        ),
        "",
        _describe_own_throttle(rates),
        "## Webhooks\n",
        _describe_webhooks(rates),
        "## The content store\n",
        _describe_content(),
        _wrap(describe_content_outbox(resources, CHANGES_OF_SPACE)),
        _wrap(describe_image_function(CONCURRENCY)),
        "## Billing\n",
        _wrap(describe_usage_reports(resources, RECEIVER_SECONDS)),
        "## Cells\n",
        _describe_cells(rates),
        CELLS,
        "## Streams on managed instances\n",
        _describe_instances(rates, readers),
        INSTANCE_NOTES,
        "## Prices\n",
        *_format_table(("what", "USD", "source"), ((name, f"{price:f}", link) for name, price, link in PRICES)),
    )
    return "\n".join(parts) + "\n"


def _format_table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _list_levels(rates: TurnRates) -> Iterator[tuple[str, ...]]:
    for level in LEVELS:
        exceeded = list_exceeded(rates, level)
        breaks = "; ".join(f"{quota.name} ({factor:,.1f} ×)" for quota, factor in exceeded) or "nothing"
        if level > find_new_account_limit(rates) and not exceeded:
            breaks += f", except in a new account, which may run {NEW_ACCOUNT_CONCURRENCY} functions at once"
        starts = f"{level * rates.starts / rates.seconds:,.1f}"
        yield f"{level:,}", starts, f"${rates.compute_cost_per_hour(level):,.2f}", breaks


def _describe_turn(rates: TurnRates) -> str:
    return _wrap(
        f"A turn takes {rates.seconds:g} s, {rates.concurrency:.2f} functions at once on average, "
        f"{rates.transitions:g} transitions, {rates.answers:g} SendTaskSuccess, {rates.heartbeats:g} heartbeats, "
        f"{rates.write_units:g} write and {rates.read_units:g} read units, {rates.api_requests:g} API requests and "
        f"{rates.uploads:g} uploads. Smallest limit first:"
    )


def _list_quotas(rates: TurnRates) -> Iterator[tuple[str, ...]]:
    def limit(quota: Quota) -> int:
        return rates.compute_limit(quota, quota.value)

    for quota in sorted(QUOTAS, key=limit):
        unit = " a second" if quota.is_rate else ""
        smaller = rates.compute_limit(quota, quota.smaller_value)
        limits = f"{limit(quota):,}", f"{smaller:,}"
        values = f"{quota.value:,}{unit}", f"{quota.smaller_value:,}{unit}"
        yield quota.name, *values, *limits, quota.remedy, f"[AWS]({quota.source})"


def _describe_own_throttle(rates: TurnRates) -> str:
    rate = template.load_template()["Parameters"]["RequestRate"]["Default"]
    return _wrap(
        f"The stack's own throttle of the API, `RequestRate` ({rate:,} a second), is met at "
        f"{int(rate * rates.seconds / rates.api_requests):,} concurrent turns. Raise it with the account's quotas."
    )


def _describe_webhooks(rates: TurnRates) -> str:
    function = template.load_template()["Resources"]["DeliverWebhooksFunction"]
    at_once = function["Properties"]["Events"]["Queue"]["Properties"]["ScalingConfig"]["MaximumConcurrency"]
    events = TurnShape().tools + 1

    def compute_turns(deliveries: int) -> int:
        return int(deliveries / RECEIVER_SECONDS * rates.seconds / events)

    marks = OUTBOX_SHARDS * KEY_WRITE_UNITS / MARK_WRITES_PER_EVENT
    return _wrap(
        f"A webhook that hears of everything gets {events} events of a turn. The stack makes {at_once} calls at once, "
        f"{DELIVERIES_AT_ONCE} of them for one tenant. With receivers that answer within {RECEIVER_SECONDS:g} s, that "
        f"is enough for {compute_turns(at_once):,} concurrent turns, and {compute_turns(DELIVERIES_AT_ONCE):,} of one "
        f"tenant; what is more waits in the queue. Raise `MaximumConcurrency` of the function's queue in the template, "
        f"within the account's concurrency. The marks of events that wait are {OUTBOX_SHARDS} keys of the index "
        f"`open`, which take {marks:,.0f} events a second: {int(marks * rates.seconds / events):,} concurrent turns."
    )


def _describe_content() -> str:
    units = CONTENT_WRITES * UNITS_OF_TRANSACTED_WRITE
    return _wrap(
        f"A change of a small document writes {CONTENT_WRITES} items in one transaction, each at "
        f"{UNITS_OF_TRANSACTED_WRITE} units: its version, its head, and the row of its model, which counts it. A space "
        f"is one partition key. While it is one partition it takes {KEY_WRITE_UNITS:,} write units a second, which are "
        f"{CHANGES_OF_SPACE:,} changes, fewer of documents above 1 KB; under lasting load DynamoDB may split "
        f"it. The row of a model is never split: {KEY_WRITE_UNITS // UNITS_OF_TRANSACTED_WRITE:,} changes a second of "
        f"one model are the most. Readers take half a unit for 4 KB of {KEY_READ_UNITS:,} units a second. Spaces do "
        f"not slow each other down, up to the write units of a table: "
        f"{TABLE_WRITE_UNITS // units:,} changes a second. What waits is refused with 503, and rings "
        f"`ThrottledContentAlarm`."
    )


def _describe_cells(rates: TurnRates) -> str:
    largest = LEVELS[-1]
    count = -(-largest // CELL_TURNS)
    raised = ", ".join(
        f"{quota.name} to {factor:.1f} × its default" for quota, factor in list_exceeded(rates, CELL_TURNS)
    )
    return _wrap(
        f"{largest:,} concurrent turns are {count} cells of {CELL_TURNS:,}. A cell that fails takes "
        f"{100 / count:g} % of them. A full cell needs these quotas raised: {raised}."
    )


def _describe_instances(rates: TurnRates, readers: ReaderPrices) -> str:
    return _wrap(
        f"An open stream costs ${readers.function:.5f} an hour as a function. {INSTANCES} instances of type m7g.xlarge "
        f"cost ${readers.instances:.3f} an hour, as much as {readers.break_even} streams. With {READERS_PER_INSTANCE} "
        f"streams on each (assumed; its {PROCESSORS_PER_INSTANCE} processes take at most "
        f"{PROCESSORS_PER_INSTANCE * STREAMS_PER_ENVIRONMENT}), a stream costs {readers.share:.2f} of that. The "
        f"functions that a turn occupies fall from {rates.concurrency:.2f} to {rates.concurrency - 1:.2f}."
    )


def _wrap(text: str) -> str:
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    SCALE_PAGE_PATH.write_text(render_scale_page())
