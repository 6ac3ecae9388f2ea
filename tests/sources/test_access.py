"""Who am I and what may I: against the lab's API server, and servers that do not tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from dpctl.errors import DeniedError
from dpctl.lab.fixture import Lab
from dpctl.sources import access
from dpctl.sources.access import Identity, MissingRightsError, cluster_role, preflight, who_am_i
from dpctl.sources.apiserver import Api, Right, connect
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import env_for, kubeconfig

RIGHTS = (
    Right("get", "nodes"),
    Right("list", "nodes"),
    Right("patch", "nodes/status"),
    Right("list", "pods"),
)
STATUS = (Right("patch", "nodes/status"),)


@pytest.fixture
def as_user(lab: Lab) -> Callable[..., Api]:
    return lambda name, **more: connect(
        env_for(lab.env["KUBECONFIG"], context=f"lab-{name}" if name else "lab", **more)
    )


def test_who_am_i(as_user: Callable[..., Api]) -> None:
    assert who_am_i(as_user("")).user == "admin"
    node = who_am_i(as_user("node"))
    assert (node.user, node.node) == ("system:node:lab-0", "lab-0")
    assert who_am_i(as_user("", as_user="jane", as_groups=("ops",)))[:1] == ("jane",)


def test_a_name_like_a_nodes_is_none_without_the_group() -> None:
    assert Identity("system:node:lab-0", ("system:authenticated",)).node is None


def test_admin_may_everything(as_user: Callable[..., Api]) -> None:
    assert preflight(as_user(""), RIGHTS, role="r").user == "admin"


def test_a_node_may_change_itself_only(as_user: Callable[..., Api]) -> None:
    api = as_user("node")
    assert preflight(api, STATUS, role="r", node="lab-0").node == "lab-0"
    # The review alone says yes for every Node.
    assert access.may(api, Right("patch", "nodes/status", name="lab-1"))
    with pytest.raises(DeniedError, match="of Node lab-0, which may change that Node only, not l"):
        preflight(api, STATUS, role="r", node="lab-1")
    with pytest.raises(DeniedError, match="and many are meant"):
        preflight(api, STATUS, role="r")


@pytest.mark.parametrize("user", ["viewer", "nobody"])
def test_the_manifest_gives_what_is_missing(as_user: Callable[..., Api], user: str) -> None:
    with pytest.raises(MissingRightsError, match=f"{user} may not") as e:
        preflight(as_user(user), RIGHTS, role="dpctl-x")
    assert ("list pods" in e.value.message) == (user == "nobody")
    assert "patch nodes/status" in e.value.message
    role, binding = yaml.safe_load_all("\n".join(e.value.lines))
    assert [(r["resources"], r["verbs"]) for r in role["rules"]] == [
        (["nodes"], ["get", "list"]),
        (["nodes/status"], ["patch"]),
        (["pods"], ["list"]),
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "dpctl-x"
    assert binding["subjects"][0]["name"] == user


def test_impersonation_counts(as_user: Callable[..., Api]) -> None:
    with pytest.raises(MissingRightsError, match="jane may not"):
        preflight(as_user("", as_user="jane"), STATUS, role="r", node="lab-0")
    with pytest.raises(DeniedError, match="cannot impersonate"):
        preflight(as_user("viewer", as_user="jane"), STATUS, role="r", node="lab-0")


def test_a_service_account_is_bound_as_one() -> None:
    user = Identity("system:serviceaccount:ops:dpctl")
    _, binding = yaml.safe_load_all(cluster_role("r", RIGHTS, user))
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "ops", "name": "dpctl"}]


@pytest.mark.parametrize("name", ['a"b: c', "x\n- kind: Group", "jané", "{}"])
def test_names_cannot_break_the_manifest(name: str) -> None:
    _, binding = yaml.safe_load_all(cluster_role("r", RIGHTS, Identity(name)))
    assert [subject["name"] for subject in binding["subjects"]] == [name]


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


def test_a_server_too_old_to_tell_who_decides_by_the_access_review(
    tmp_path: Path, server: fake.Server
) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    server.answer(path, fake.json_reply({"status": {"allowed": True}}, 201))
    api = connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)))
    assert preflight(api, STATUS, role="r", node="lab-0") == Identity(None)
    server.answer(path, fake.json_reply({"status": {"allowed": False}}, 201))
    with pytest.raises(MissingRightsError, match="this user may not patch nodes/status"):
        preflight(api, STATUS, role="r", node="lab-0")


def test_where_nobody_may_ask_the_change_itself_tells(tmp_path: Path, server: fake.Server) -> None:
    for path in (
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "/apis/authentication.k8s.io/v1beta1/selfsubjectreviews",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    ):
        server.answer(path, fake.status(403, "User cannot create resource"))
    api = connect(env_for(kubeconfig(tmp_path / "kubeconfig", server.url)))
    assert preflight(api, STATUS, role="r", node="lab-0") == Identity(None)
