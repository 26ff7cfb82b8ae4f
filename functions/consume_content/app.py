"""Tell the consumers of content what has changed, from the stream of its table."""

from functools import partial
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.content.content_consumers import prepare_content_consumers, tell_content_consumers
from fermata.content.documents.settle_commit import finish_commit
from fermata.content.outbox import consume_content_changes


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Report the first change that a consumer has not taken, so that Lambda retries only from there on."""
    observability.reset_log_keys()
    resources = get_resources()
    apply, finish = partial(tell_content_consumers, resources), partial(finish_commit, resources)
    prepare = partial(prepare_content_consumers, resources)
    return dict(consume_content_changes(event["Records"], apply, finish, prepare))


prepare_function("dynamodb", "s3", "kms")
