"""Make boto3 clients that talk to the local cloud and to nothing else, with the access key of this run."""

import functools
from typing import Any

import boto3
from botocore.config import Config

from local.request_signature import REGION, RunCredentials, get_run_credentials


def credentials_environment() -> dict[str, str]:
    """Return the environment variables from which other AWS clients take the key."""
    credentials = get_run_credentials()
    return {
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
        "AWS_DEFAULT_REGION": REGION,
    }


@functools.cache
def get_session() -> Any:
    """Get the session of all clients. Sharing it makes botocore read each service description once."""
    return make_session(get_run_credentials())


def make_session(credentials: RunCredentials) -> Any:
    return boto3.session.Session(
        aws_access_key_id=credentials.access_key_id,
        aws_secret_access_key=credentials.secret_access_key,
        region_name=REGION,
    )


@functools.cache
def get_client(service: str, endpoint: str) -> Any:
    """Get the client of a service, cached because making one costs more than most calls."""
    return make_client(get_session(), service, endpoint)


def make_client(session: Any, service: str, endpoint: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=64, proxies={}, read_timeout=120)
    return session.client(service, endpoint_url=endpoint, config=config)
