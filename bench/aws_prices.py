"""List prices of AWS in us-east-1 in USD, November 2026, without the free tier."""

from decimal import Decimal

LAMBDA_GB_SECOND = Decimal("0.0000133334")
"""Arm64."""
LAMBDA_INVOCATION = Decimal("0.0000002")
STEP_FUNCTIONS_TRANSITION = Decimal("0.000025")
DYNAMODB_WRITE_UNIT = Decimal("0.000000625")
DYNAMODB_READ_UNIT = Decimal("0.000000125")
DYNAMODB_GB_MONTH = Decimal("0.45")
"""Storage 0.25 and point-in-time recovery 0.20."""
S3_PUT = Decimal("0.000005")
S3_GET = Decimal("0.0000004")
REST_API_REQUEST = Decimal("0.0000035")
EGRESS_GB = Decimal("0.09")
LOG_GB = Decimal("0.50")
XRAY_TRACE = Decimal("0.000005")
XRAY_SAMPLED_SHARE = Decimal("0.05")
"""Share of the requests that X-Ray samples beyond the first one of each second."""
M7G_XLARGE_HOUR = Decimal("0.1632")
"""An EC2 instance with four arm64 processors and 16 GB."""
MANAGED_INSTANCE_FEE = Decimal("0.15")
"""What Lambda adds to the price of an instance that it manages."""
