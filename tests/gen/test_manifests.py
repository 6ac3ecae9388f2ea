"""The manifests of the manual, of the README and of a refusal are the same."""

from __future__ import annotations

from pathlib import Path

import yaml

from dpctl.gen.manifests import JOB, ROLE, SECTIONS
from dpctl.sources.access import NODE_ROLE, Identity, cluster_role
from dpctl.sources.apiserver import Right
from dpctl.writes.node_status import right

README = (Path(__file__).parents[2] / "README.md").read_text()
MAN = (Path(__file__).parents[2] / "man/dpctl-node.1").read_text()


def test_the_role_is_the_one_that_a_refusal_prints() -> None:
    rights = (Right("get", "nodes"), Right("list", "nodes"), right("x"), Right("list", "pods"))
    account = Identity("system:serviceaccount:kube-system:dpctl")
    assert ROLE.endswith("---\n" + cluster_role(NODE_ROLE, rights, account))


def test_the_readme_has_them() -> None:
    for text in (ROLE, JOB):
        assert f"```yaml\n{text}```" in README


def test_the_manual_has_them() -> None:
    for _, text in SECTIONS["node"]:
        for line in text.splitlines():
            assert line.replace("-", "\\-") in MAN


def test_they_are_yaml_and_belong_together() -> None:
    account, role, binding = yaml.safe_load_all(ROLE)
    job = yaml.safe_load(JOB)
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert job["metadata"]["namespace"] == account["metadata"]["namespace"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == NODE_ROLE
