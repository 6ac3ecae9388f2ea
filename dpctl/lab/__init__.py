"""A whole small node without Kubernetes: an emulated kubelet, sample plugins, a Node and Pod API.

What belongs here: what behaves as the real parts of a node do (every rule with its source), and
what starts and ends them. Not here: anything that reads a node for a person; the commands see the
lab through the same sockets, files and API as a real node.

Processes: `supervisor` (the API server, the scheduler, the others' parent), `kubelet`, and one
`plugin` per sample plugin. Each ends when its parent's pipe closes, so nothing is left behind.
"""
