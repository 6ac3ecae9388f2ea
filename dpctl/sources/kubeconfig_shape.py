"""What is of the wrong type in a kubeconfig, in words: the `kubernetes` package checks no types."""

from __future__ import annotations

import os

from dpctl.errors import DpctlError
from dpctl.sources.files import read_bounded
from dpctl.sources.json_fields import Field
from dpctl.sources.yaml_document import parse_document

# Members of a kubeconfig that are text.
_SHAPE = (
    ("clusters", "cluster", ("server", "certificate-authority", "certificate-authority-data")),
    ("contexts", "context", ("cluster", "user")),
    (
        "users",
        "user",
        (
            *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
            *("token", "tokenFile", "username", "password"),
        ),
    ),
)
_LARGEST = 16 << 20


def misshapen(path: str) -> str | None:
    """What is of the wrong type in these kubeconfigs; None: nothing that is known."""
    try:
        for part in filter(None, path.split(os.pathsep)):
            name = os.path.expanduser(part)
            if os.path.exists(name):
                _check_shape(Field(parse_document(read_bounded(name, _LARGEST), part), part))
    except DpctlError as e:
        return e.message
    return None


def _check_shape(document: Field) -> None:
    document.members()
    root = Field(document.value, "")
    root.at("current-context").text()
    for section, member, texts in _SHAPE:
        for entry in root.at(section).items():
            entry.at("name").text()
            for key in texts:
                entry.at(member, key).text()
    for user in root.at("users").items():
        plugin = user.at("user", "exec")
        plugin.at("command").text()
        plugin.at("args").texts()
        for variable in plugin.at("env").items():
            variable.at("value").text()
