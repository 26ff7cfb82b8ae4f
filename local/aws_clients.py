"""Make boto3 clients that talk to the local cloud and to nothing else."""

import functools
from typing import Any

import boto3
from botocore.config import Config

REGION = "us-east-1"
ACCOUNT_ID = "000000000000"
CREDENTIALS_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCOUNT_ID,
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION,
}


@functools.cache
def get_session() -> Any:
    """Get the session of all clients. Sharing it makes botocore read each service description once."""
    return boto3.session.Session(
        aws_access_key_id=CREDENTIALS_ENVIRONMENT["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS_ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
    )


@functools.cache
def get_client(service: str, endpoint: str) -> Any:
    """Get the client of a service, cached because making one costs more than most calls."""
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=64, proxies={}, read_timeout=120)
    return get_session().client(service, endpoint_url=endpoint, config=config)
