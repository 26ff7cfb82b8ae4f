"""CloudWatch keeps the newest log streams of each function. Stock makes one for every invocation and keeps them all."""

from typing import Any

from ministack.services import cloudwatch_logs, lambda_svc

from local.emulator.patches.registry import Function, patch_function

MAX_LOG_STREAMS = 1000


@patch_function(lambda_svc, "_emit_lambda_logs", "111efbf06968")
def emit_function_logs(stock: Function, function: dict[str, Any], *arguments: Any, **named: Any) -> None:
    stock(function, *arguments, **named)
    config = function.get("config") or function
    name = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config.get('FunctionName')}"
    streams = (cloudwatch_logs._log_groups.get(name) or {}).get("streams", {})
    while len(streams) > MAX_LOG_STREAMS:
        streams.pop(next(iter(streams)), None)
