"""What the commands of `dpctl plugin` share: from the SOCKET that was typed to a socket to speak
to, and the questions before a call that takes or changes something.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dpctl import streams
from dpctl.errors import UsageError
from dpctl.model import Snapshot, Source
from dpctl.options import CLUSTER, OUTPUT, PLACES, READING, Common

if TYPE_CHECKING:
    from dpctl.env import Env
    from dpctl.inventory.targets import Target

GROUPS = (OUTPUT, PLACES, CLUSTER, READING)
DOCUMENTS = ("json", "yaml", "jsonpath", "custom-columns")
_WANT = frozenset(
    {
        Source.DIRECTORY,
        Source.PLUGINS,
        Source.REGISTRY,
        Source.SOCKETS,
        Source.CHECKPOINT,
        Source.POD_NAMES,
    }
)

Socket = Annotated[
    str,
    typer.Argument(
        metavar="SOCKET",
        help="The plugin: its socket's name, its resource, or a path (with / or ./ in front).",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]


class Asked(NamedTuple):
    """A plugin that is to be spoken to, and what was seen before."""

    env: Env
    snap: Snapshot
    target: Target

    @property
    def how(self) -> dict[str, Any]:
        """Arguments of every call."""
        return {
            "follow": self.target.follow,
            "timeout": self.env.request_timeout,
            "max_message_size": self.env.max_message_size,
        }

    @property
    def name(self) -> str:
        """For messages: the socket, and what it serves."""
        from dpctl.text import shorten

        target = self.target
        if target.resource is None:
            return target.path
        mark = "~" if target.inferred else ""
        return f"{target.path} ({mark}{shorten(target.resource, 100)})"


def check_resource(name: str, hint: str = "an extended resource, such as nvidia.com/gpu") -> None:
    """Raises UsageError for what no kubelet lets a plugin register."""
    from dpctl import names
    from dpctl.text import shorten

    if not names.is_extended(name):
        raise UsageError(f"{shorten(name, 80)} is no name that a plugin can register", hint)


def find(common: Common, text: str, more: Collection[Source] = ()) -> Asked:
    """The socket that SOCKET means. `more`: sources that the command needs besides.

    Raises UsageError, UnreachableError, DeniedError.
    """
    from dpctl.commands.plugins import ask_the_kubelet, look_closer
    from dpctl.env import find_env
    from dpctl.inventory.targets import is_path, target_by_name, target_by_path

    if not text:
        raise UsageError("the name of the plugin is empty", "`dpctl plugins` lists what there is")
    env = find_env(common.settings)
    if not env.live:
        raise UsageError(
            "nobody answers in a bundle: a plugin can only be asked live",
            "leave out --from, and run on the node",
        )
    want = {*_WANT, *more}
    if is_path(text):
        from dpctl.collect import collect
        from dpctl.sources.directory import socket_entry

        entry = socket_entry(text)
        snap = ask_the_kubelet(env, collect(env, want, again=True))
        _tell(common, snap)
        return Asked(env, snap, target_by_path(snap, text, entry))
    from dpctl.commands._reading import look

    snap = look(common, env, want, (Source.DIRECTORY,), more=look_closer)
    return Asked(env, snap, target_by_name(snap, text))


def _tell(common: Common, snap: Snapshot) -> None:
    if common.verbose:
        from dpctl.commands._reading import how_it_went

        for row in snap.sources:
            streams.note(how_it_went(row))


def may_listen(asked: Asked, yes: bool, *, for_long: bool) -> bool:
    """Whether ListAndWatch may be opened: at once only where the kubelet is surely not connected,
    else after its price has been said and agreed to. `for_long`: it stays open, so that the kubelet
    may connect meanwhile. Raises UsageError: nobody to ask."""
    from dpctl.commands._confirm import confirm

    target = asked.target
    if target.connected is False:
        if for_long:
            streams.note(
                "the kubelet is not connected to this plugin; once it is, it may miss updates as "
                "long as dpctl listens"
            )
        return True
    streams.warn(price(target), _price_hint(target))
    return confirm(f"Open ListAndWatch on {asked.name}?", yes, only_show=None)


def price(target: Target) -> str:
    """What listening to a plugin may cost, in plain words."""
    if target.connected:
        who = "the kubelet is connected to this plugin"
    else:
        who = (
            f"it cannot be told whether the kubelet is connected to this plugin ({target.evidence})"
        )
    return (
        f"{who}. Many plugins hand each update to only one of those that listen: while dpctl "
        "listens, and for the first update after it has left, the kubelet may miss that a device "
        "fell ill, came back, appeared or vanished. It then offers a broken device, or withholds a "
        "good one, until the plugin happens to send again"
    )


def _price_hint(target: Target) -> str:
    known = f"`dpctl devices {target.resource}`" if target.resource else "`dpctl devices`"
    return f"{known} shows what the kubelet knows, and takes nothing from it"
