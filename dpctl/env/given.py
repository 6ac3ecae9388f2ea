"""What a person said: flags, environment variables, configuration files, in that order.

No detection: whoever asks and gets None looks further.
"""

from __future__ import annotations

import os

from dpctl.env.layouts import config_files, home_of
from dpctl.env.places import Place, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpctl.env.config_file import Value


class Given:
    """The three of them, read once. Raises what `config_file.read_config` raises."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self.settings = settings
        self.environ = environ
        self.config: dict[str, tuple[Value, str]] = {}
        # Mostly there is none: then neither its reader nor tomllib is loaded.
        files = [path for path in config_files(environ) if os.path.lexists(path)]
        if files:
            from dpctl.env.config_file import read_settings

            self.config = read_settings(files, home_of(environ))

    def text(self, name: str, flag: str | None, variable: str | None = None) -> Place | None:
        if flag is not None:
            return Place(name, flag, "flag")
        if variable is not None and (value := self.environ.get(variable)):
            return Place(name, value, f"environment {variable}")
        if name in self.config:
            found, file = self.config[name]
            return Place(name, str(found), f"config {file}")
        return None

    def number(self, name: str, flag: float | None, default: float) -> tuple[float, Place]:
        if flag is not None:
            return flag, Place(name, _number(flag), "flag")
        if name in self.config:
            found, file = self.config[name]
            number = float(str(found))
            return number, Place(name, _number(number), f"config {file}")
        return default, Place(name, _number(default), "default")

    def groups(self) -> tuple[tuple[str, ...], Place]:
        if self.settings.as_groups is not None:
            groups, origin = self.settings.as_groups, "flag"
        elif "as-group" in self.config:
            value, file = self.config["as-group"]
            groups = tuple(value) if isinstance(value, list) else (str(value),)
            origin = f"config {file}"
        else:
            groups, origin = (), "default"
        return groups, Place("as-group", ",".join(groups) or None, origin)

    def no_allocatable(self) -> tuple[bool, Place]:
        if self.settings.no_allocatable:
            value, origin = True, "flag"
        elif "no-allocatable" in self.config:
            value = bool(self.config["no-allocatable"][0])
            origin = f"config {self.config['no-allocatable'][1]}"
        else:
            value, origin = False, "default"
        return value, Place("no-allocatable", str(value).lower(), origin)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1e6 else f"{value:g}"
