"""CloudWatch keeps the newest log streams of each function. Stock makes one for every invocation and keeps them all."""

from typing import Any

from ministack.services import cloudwatch_logs, lambda_svc

from local.emulator.upstream import Function, corrects

STREAMS = 1000


@corrects(lambda_svc, "_emit_lambda_logs", "111efbf06968")
def emit(stock: Function, function: dict[str, Any], *arguments: Any, **named: Any) -> None:
    stock(function, *arguments, **named)
    config = function.get("config") or function
    name = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config.get('FunctionName')}"
    streams = (cloudwatch_logs._log_groups.get(name) or {}).get("streams", {})
    while len(streams) > STREAMS:
        streams.pop(next(iter(streams)), None)
