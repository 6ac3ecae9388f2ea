"""The kubelet's state files as rows: what they say, whether a kubelet starts with them, and where
they differ from what the kubelet says now. Pure.

`contents`: one row per entry. `verify`: the kubelet's own rules, by file in `cpu`, `memory` and
`others`, for the kubelet that `reader` describes. `diff`: file against live. `rows`: their types.
"""
