"""Bring test nodes up by hand: `python tests/cluster/up.py --help`.

Only makes `hand` runnable as a file, with the package it belongs to.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    runpy.run_module("cluster.hand", run_name="__main__", alter_sys=True)
