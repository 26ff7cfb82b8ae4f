"""Create the clients of a stack's resources where the stack is. Needs the service's own package."""

from dataclasses import dataclass
from typing import Any

from fermata.aws.resources import CLIENT_CONFIG, S3_CONFIG, Resources
from fermata_client.stack.resources import StackLocation


@dataclass(frozen=True)
class LocatedResources(Resources):
    """Resources whose clients call the stack at `location`."""

    location: StackLocation

    def _client(self, service: Any) -> Any:
        return self.location.create_client(service, S3_CONFIG if service == "s3" else CLIENT_CONFIG)
