"""List prices of us-east-1 in USD, November 2026, without the free tier."""

from decimal import Decimal

GB_SECOND = Decimal("0.0000133334")
"""Lambda on arm64."""
INVOCATION = Decimal("0.0000002")
TRANSITION = Decimal("0.000025")
WRITE_UNIT = Decimal("0.000000625")
READ_UNIT = Decimal("0.000000125")
TABLE_GB_MONTH = Decimal("0.45")
"""Storage 0.25 and point-in-time recovery 0.20."""
S3_PUT = Decimal("0.000005")
S3_GET = Decimal("0.0000004")
REST_REQUEST = Decimal("0.0000035")
EGRESS_GB = Decimal("0.09")
LOG_GB = Decimal("0.50")
TRACE = Decimal("0.000005")
TRACED_SHARE = Decimal("0.05")
"""What X-Ray samples beyond the first request of each second."""
