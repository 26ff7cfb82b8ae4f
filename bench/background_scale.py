"""Describe for docs/scale.md what limits the work behind content: its outbox, its images, and reports of usage."""

from typing import Any

from bench.aws_latencies import TYPICAL_LATENCY_MS
from fermata.domain.workspace_plan import PlanMeter
from fermata.webhooks.send_event import WEBHOOK_TIMEOUT_SECONDS

BATCH_SECONDS = 1.0
"""How long a batch of changes takes that asks a model for vectors once (decision 0522). Assumed."""
IMAGE_SECONDS = 2.0
"""How long an image of twelve megapixels takes with the memory of the function."""
WORKSPACE_CALLS = ("Query", "Query", "GetItem", "TransactWriteItems")
"""DynamoDB calls, one after another, for a workspace that has used something since the last reports."""
MESSAGE_MS = 10
"""How long it takes to queue a report. Assumed."""


def describe_content_outbox(resources: dict[str, Any], changes_of_space: int) -> str:
    """Return what a consumer of changes may take before the stream falls behind.

    Args:
        resources: Of the template.
        changes_of_space: How many changes a second a space takes.
    """
    stream = resources["ConsumeContentFunction"]["Properties"]["Events"]["Versions"]["Properties"]
    size, hours = stream["BatchSize"], stream["MaximumRecordAgeInSeconds"] // 3600
    return (
        f"The stream of the content table is its outbox. Lambda reads each shard with one function at once, {size} "
        f"changes at most, and a space is in one shard. So the index and the webhooks of a space follow with {size} "
        f"changes for each batch: {size / BATCH_SECONDS:g} a second where a batch takes {BATCH_SECONDS:g} s (assumed, "
        f"with a model that makes vectors). To follow the {changes_of_space} changes a second that a space takes, a "
        f"batch may last {1000 * size / changes_of_space:.0f} ms. What comes faster waits in the stream, {hours} hours "
        f"at most; what is older goes to `ContentDeadLetters`, from where it is told again. `ParallelizationFactor` in "
        f"the template reads the spaces of a shard side by side; the changes of one space stay in their order."
    )


def describe_image_function(concurrency: int) -> str:
    """Return how many images are drawn anew at once.

    Args:
        concurrency: How many functions of the account run at once.
    """
    return (
        f"An image of twelve megapixels takes a whole processor for {IMAGE_SECONDS:g} s. The function of images has no "
        f"share of its own of the account's {concurrency:,} functions: with all of them it would draw "
        f"{concurrency / IMAGE_SECONDS:,.0f} images a second, and each that it uses is missing for turns. What keeps "
        f"it from that are the uploads a day of users and workspaces. An asset is a document: its space takes as many "
        f"a second as it takes changes."
    )


def describe_usage_reports(resources: dict[str, Any], receiver_seconds: float) -> str:
    """Return how many workspaces an hour's reports of usage are made and sent for.

    Args:
        resources: Of the template.
        receiver_seconds: How long the billing system takes to answer.
    """
    calls = resources["DeliverWebhooksFunction"]["Properties"]["Events"]["Queue"]["Properties"]["ScalingConfig"]
    at_once, meters = calls["MaximumConcurrency"], len(PlanMeter)
    milliseconds = sum(TYPICAL_LATENCY_MS[f"dynamodb.{call}"] for call in WORKSPACE_CALLS) + meters * MESSAGE_MS
    seconds = resources["PurgeFunction"]["Properties"]["Timeout"]
    workspaces = int(seconds * 1000 / milliseconds)
    return (
        f"Once an hour, before the purge and in its function, workspaces are looked at one after another for what they "
        f"have used: about {milliseconds:g} ms for one that has used all {meters} meters. {seconds} s are enough for "
        f"{workspaces:,} such workspaces; then nothing is left of that hour's run for the purge, and the next run goes "
        f"on with the workspace that was next. Reports are sent by the function of webhooks, {at_once} at once with "
        f"its other calls: those of {workspaces:,} workspaces take "
        f"{workspaces * meters * receiver_seconds / at_once / 60:.0f} minutes with a billing system that answers "
        f"within {receiver_seconds:g} s. Reports hold no slots as the calls of tenants do. A billing system that does "
        f"not answer for {WEBHOOK_TIMEOUT_SECONDS:g} s keeps all {at_once} calls busy while reports are due, and "
        f"webhooks wait: put a queue of your own in front of one that is slow."
    )
