"""`dpctl plugin`: one plugin's socket, by hand."""

from __future__ import annotations

from dpctl.commands._plugin_allocate import allocate
from dpctl.commands._plugin_devices import devices
from dpctl.commands._plugin_options import options
from dpctl.commands._plugin_prefer import prefer
from dpctl.commands._plugin_serve import serve
from dpctl.commands._plugin_wait import wait

HELP = """
Speak to one plugin's socket by hand. (`dpctl plugins` lists all of them.)

SOCKET is the name of a socket in device-plugins, the resource that it serves, or a path with /
or ./ in front.
"""
INSTEAD = "`dpctl plugins` lists the sockets, `dpctl plugins prune` removes dead ones"

SUBCOMMANDS = {
    "options": options,
    "devices": devices,
    "prefer": prefer,
    "allocate": allocate,
    "wait": wait,
    "serve": serve,
}
