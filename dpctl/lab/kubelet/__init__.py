"""The emulated kubelet: registration, device manager, allocation, PodResources, node status.

One process (`python -m dpctl.lab.kubelet`). What belongs here: the kubelet's own behaviour, each
rule with its section of kubelet-facts (what differs between minors: `behaviour`). What does not:
the API server, plugins, and anything for people.
"""
