"""Clears a slot when the process that uses it has ended, however it ended.

Started by `slots` with the reading end of a pipe as standard input. The runner never writes to
it: the end of the input is the end of the runner. After an orderly end there is nothing to do.
"""

from __future__ import annotations

import sys

from . import slots


def main() -> None:
    """Wait for the end of the input, then clear the slot named on the command line."""
    sys.stdin.buffer.read()
    number = int(sys.argv[1])
    if (slots.BASE / str(number)).exists():
        slots.clear(number)


if __name__ == "__main__":
    main()
