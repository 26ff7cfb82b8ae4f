#!/bin/sh
# Start the ASGI application. The Lambda Web Adapter runs this script and forwards every request. The server listens on
# loopback only, so that the adapter's request context headers can be trusted.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/opt/python:$LAMBDA_RUNTIME_DIR"
exec python3 -m uvicorn app:app --host 127.0.0.1 --port "${AWS_LWA_PORT:-8080}" \
    --no-access-log --no-server-header --log-level warning
