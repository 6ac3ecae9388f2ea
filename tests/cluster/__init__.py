"""A real node for tests: etcd, API server, scheduler, containerd and kubelets of several minors.

`build` makes the binaries, `images` the two container images, `plane` runs the control plane,
`node` a kubelet with its container runtime; `slots` sees to it that nothing stays behind.
"""
