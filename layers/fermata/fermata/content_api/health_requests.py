"""Handle requests on the health of a space: what is wrong in its models, and how many change sets wait."""

from fermata.content.change_sets.change_set_backlog import judge_change_set_health
from fermata.content.change_sets.change_set_store import list_change_sets, read_health_thresholds
from fermata.content.content_space import read_space
from fermata.content.files.read_project import HIDDEN_MODELS
from fermata.content.model_store import list_content_models
from fermata.content.validation.schema_health import check_schema
from fermata.content_api.request_parts import locate_space
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext


def show_space_health(context: RequestContext) -> Response:
    """Respond with the health of a space. Built-in models without documents are not judged, as the studio does."""
    resources, space = context.resources, locate_space(context)
    read_space(resources, space)
    models = {
        state.model.id: state.model
        for state in list_content_models(resources, space)
        if state.model.id not in HIDDEN_MODELS and (state.documents or not state.model.built_in)
    }
    waiting = sum(one.status == "open" for one in list_change_sets(resources, space))
    limits = read_health_thresholds(resources, space)
    change_sets = {
        "status": judge_change_set_health(waiting, limits),
        "open": waiting,
        "warnFrom": limits.warning,
        "refuseFrom": limits.blocked,
    }
    return Response(200, {**check_schema(models, models), "changeSets": change_sets})
