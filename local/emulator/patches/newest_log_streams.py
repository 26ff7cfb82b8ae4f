"""Patch CloudWatch Logs: keep only the newest log streams of each function.

Unpatched MiniStack makes a log stream for every invocation and keeps them all.
"""

from typing import Any

from ministack.services import cloudwatch_logs, lambda_svc

from local.emulator.patches.registry import Function, patch_function

MAX_LOG_STREAMS = 1000


@patch_function(lambda_svc, "_emit_lambda_logs", "111efbf06968")
def emit_function_logs(original: Function, function: dict[str, Any], *arguments: Any, **keywords: Any) -> None:
    original(function, *arguments, **keywords)
    config = function.get("config") or function
    name = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config.get('FunctionName')}"
    streams = (cloudwatch_logs._log_groups.get(name) or {}).get("streams", {})
    while len(streams) > MAX_LOG_STREAMS:
        streams.pop(next(iter(streams)), None)
