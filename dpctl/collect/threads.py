"""Readings that wait for peers, side by side. Nothing here knows what is read."""

from __future__ import annotations

from collections.abc import Callable


def side_by_side(tasks: list[Callable[[], None]]) -> None:
    """Run all; a defect in one (not a DpctlError) is raised here, not lost in its thread."""
    import threading

    crashed: list[Exception] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception as error:
            crashed.append(error)

    threads = [threading.Thread(target=guarded, args=(t,), daemon=True) for t in tasks[1:]]
    for thread in threads:
        thread.start()
    # Ctrl-C reaches this thread alone: it leaves at once, and the others are daemons.
    tasks[0]()
    for thread in threads:
        thread.join()
    if crashed:
        raise crashed[0]
