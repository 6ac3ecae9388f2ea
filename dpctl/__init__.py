"""dpctl: what `crictl` is for containers, for the devices of a Kubernetes node."""

__version__ = "0.1.0"
