"""The Kubernetes manifests of the manual page of `dpctl node`; README.md has the same, by a test.

The rules are those that `sources.access` prints to a user who lacks them, by a test as well.
"""

from __future__ import annotations

ROLE = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: dpctl
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: dpctl-node-changes
rules:
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get", "list"]
- apiGroups: [""]
  resources: ["nodes/status"]
  verbs: ["patch"]
- apiGroups: [""]
  resources: ["pods"]
  verbs: ["list"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: dpctl-node-changes
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: dpctl-node-changes
subjects:
- kind: ServiceAccount
  namespace: "kube-system"
  name: "dpctl"
"""

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: dpctl-decommission
  namespace: kube-system
spec:
  backoffLimit: 3
  template:
    spec:
      serviceAccountName: dpctl
      restartPolicy: OnFailure    # a container that was killed goes on by its journal
      containers:
      - name: dpctl
        image: YOUR-REGISTRY/dpctl:0.1.0
        command: ["dpctl", "node", "remove", "old.example/retired", "--assume-gone"]
        args: ["--all-nodes", "--yes", "-o", "json", "--resume", "/state/journal"]
        env:
        - {name: XDG_STATE_HOME, value: /state}
        volumeMounts:
        - {name: state, mountPath: /state}
      volumes:
      - name: state
        emptyDir: {}              # a claim keeps the undo files longer than the pod
"""

SECTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "node": (
        (
            "What it takes to change Nodes: a node's own credentials change that node alone (root"
            " on the node needs no other); everybody else needs this ClusterRole. Here it is bound"
            " to a service account; a refusal prints it bound to the user who was refused.",
            ROLE,
        ),
        (
            "A Job that removes a retired plugin's name from every Node, five minutes after its"
            " DaemonSet was deleted. It fails, and says why in its log, if a pod still requests the"
            " name or somebody writes it again.",
            JOB,
        ),
    )
}
"""Command to (what it is for, the manifest) of its page."""
