"""What the API server is asked for one node. Nothing about the machine itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpctl.collect.fields import API, named
from dpctl.collect.whose import is_guessed
from dpctl.env import Place
from dpctl.errors import DpctlError
from dpctl.model import Source

if TYPE_CHECKING:
    from dpctl.collect.live import Live


def ask_api(part: Live, place: Place) -> None:
    """Fills what `part` wants of it. `place`: the Node's name (None where it is not known), and
    where that came from."""
    from dpctl.sources.apiserver import NotFoundError, connect

    wanted = [source for source in Source if source in API & part.want]
    try:
        api = connect(part.env)
    except DpctlError as error:
        for source in wanted:
            part.fail(source, part.env.kubeconfig.value or "API server", error)
        return
    where, keep, name, origin = api.server, part.keep, place.value, place.origin
    node = pods = classes = None
    if keep is not None:
        node, pods, classes = keep.keep_node, keep.keep_pods, keep.keep_device_classes
    failure: DpctlError | None = None
    if Source.NODE in wanted:
        failure = part.read(
            Source.NODE,
            "node",
            where,
            lambda: api.get_node(named(name), origin=origin, keep=node),
        )
    if Source.PODS in wanted:
        if failure is not None and (isinstance(failure, NotFoundError) or is_guessed(place)):
            # Of a Node that is not there the list is empty, which is no evidence that pods are gone
            part.fail(Source.PODS, where, failure)
        else:
            part.read(Source.PODS, "pods", where, lambda: api.list_pods(named(name), keep=pods))
    if Source.UNSCHEDULED in wanted:
        part.read(Source.UNSCHEDULED, "unscheduled", where, api.list_unscheduled_pods)
    if Source.DEVICE_CLASSES in wanted:
        part.read(
            Source.DEVICE_CLASSES,
            "device_classes",
            where,
            lambda: api.list_device_classes(keep=classes),
        )
