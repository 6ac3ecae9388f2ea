//go:build tools

// Package tools names the commands that build.py builds. Written by update.py.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kubelet"
)
