"""The topology manager's arithmetic, pure: would the kubelet admit a pod, and does what a container
holds lie on one NUMA node.

`hints` and `merge` are the topology manager's own, `devices`, `cpus` and `memory` what its three
providers do, `admission` asks them in the kubelet's order, `words` says why not. `alignment` judges
what is held already. Nothing here knows where the numbers came from (`inventory` joins them).
Kubelet code of 1.34 to 1.37 was compared (kubelet-facts §6.1, §6.2, §9).
"""
