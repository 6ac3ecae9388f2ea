"""The edge in: one file per place facts come from. Only reads.

Each pairs a pure `parse_*` with a thin `read_*`, `list_*` or `probe_*`. Joins, tables and tolerance
of failures do not belong here.
"""
