"""`python -m dpctl.lab.plugin`: one of the lab's plugins, its PluginSpec as JSON on stdin."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from dpctl.lab import process
from dpctl.lab.api_errors import Json
from dpctl.lab.runner import Runner
from dpctl.lab.spec import plugin_from_json


def main() -> None:
    document = process.first_line()
    spec = plugin_from_json(document["spec"])
    process.set_command(spec.command)
    runner = Runner(spec, Path(document["directory"]), process.tell)

    def command(op: str, arguments: Json) -> Any:
        if op != "exit":
            return runner.command(op, arguments)
        runner.stop()
        threading.Timer(0.02, process.leave, (0,)).start()
        return None

    threading.Thread(target=process.or_leave, args=(runner.run,), daemon=True).start()
    process.serve(command)


if __name__ == "__main__":
    main()
