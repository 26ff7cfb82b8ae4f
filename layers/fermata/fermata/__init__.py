"""Fermata: the agent backend for visual editors. docs/architecture.md describes the packages."""

import gc
import os

__version__ = "0.1.0"


def is_initialised_by_lambda() -> bool:
    """Return whether this process is a Lambda function."""
    return "AWS_LAMBDA_INITIALIZATION_TYPE" in os.environ


if is_initialised_by_lambda():
    gc.disable()  # while a function is imported, a collection finds no garbage (decision 0284)
