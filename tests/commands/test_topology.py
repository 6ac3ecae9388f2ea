"""`dpctl topology` as a person runs it: the lab, a captured node, and what is typed wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dpctl.lab.fixture import Lab
from tests.run import DATA, Result, dpctl, golden

HEALTHY = str(DATA / "captures" / "1-healthy")
GPU = "vendor.example/gpu"


def captured(*arguments: str, stdin: str = "") -> Result:
    return dpctl("topology", "--from", HEALTHY, *arguments, stdin=stdin)


def answers(*arguments: str, stdin: str = "", code: int = 0) -> list[dict[str, Any]]:
    result = captured(*arguments, "-o", "json", stdin=stdin)
    assert result.code == code, result
    found: list[dict[str, Any]] = json.loads(result.out)["items"]
    return found


def test_picture_of_the_lab(lab: Lab) -> None:
    result = dpctl("topology", env=lab.env)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("topologyManagerPolicy:  none   (")
    assert "NUMA node 0" in result.out
    assert "ml/trainer/main" in result.out


def test_picture_where_there_is_ascii_alone() -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = dpctl("topology", "--from", HEALTHY, env=locale)
    assert result.code == 0
    assert result.out.isascii()
    assert "\\u" not in result.out
    assert "+- NUMA node 0 -" in result.out


@pytest.mark.parametrize("form", ["svg", "csv", "name"])
def test_formats(form: str) -> None:
    result = captured("-o", form)
    assert result.code == 0
    golden(f"captures/1-healthy/topology.{form}", result.out.replace(str(DATA), "DATA"))


def test_every_field_of_the_documents_is_there() -> None:
    (row,) = answers()
    assert [node["numaNode"] for node in row["numaNodes"]] == [0, 1]
    assert row["numaNodes"][1]["exclusiveCpus"] == [{"holder": "ml/trainer/main", "cpus": [1]}]
    assert {a["container"]: a["alignment"] for a in row["containers"]} == {
        "jupyter": "Aligned",
        "main": "Aligned",
        "warmup": "Aligned",
    }


# -- fit -------------------------------------------------------------------------------------------


def test_fit_yes() -> None:
    result = captured("--fit", f"{GPU}=1", "--policy", "single-numa-node")
    assert result.code == 0
    golden("captures/1-healthy/fit-yes.txt", result.out.replace(str(DATA), "DATA"))


def test_fit_no() -> None:
    result = captured("--fit", f"{GPU}=2,cpu=1,memory=1Gi", "--policy", "restricted")
    assert result.code == 1
    golden("captures/1-healthy/fit-no.txt", result.out.replace(str(DATA), "DATA"))


def test_fit_documents() -> None:
    (row,) = answers("--fit", f"{GPU}=2", "--policy", "none", code=1)
    assert (row["admitted"], row["reason"]) == (False, "UnexpectedAdmissionError")
    assert row["message"] == (
        f"Allocate failed due to requested number of devices unavailable for {GPU}. "
        "Requested: 2, Available: 1, which is unexpected"
    )
    assert row["policyOrigin"] == "--policy"


def test_several_pods_of_a_manifest() -> None:
    def pod(name: str, count: int) -> dict[str, Any]:
        container = {"name": "main", "resources": {"limits": {GPU: count}}}
        return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}

    items = [pod("small", 1), pod("large", 3)]
    stdin = json.dumps({"kind": "List", "items": items})
    rows = answers("-f", "-", "--policy", "restricted", stdin=stdin, code=1)
    assert {row["pod"]: row["admitted"] for row in rows} == {"small": True, "large": False}
    text = captured("-f", "-", "--policy", "restricted", stdin=stdin).out
    assert text.count("Admitted:") == 2
    assert text.startswith("Pod:  ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--fit", "gpu"), 2, "not NAME=N"),
        (("--fit", f"{GPU}="), 2, "not NAME=N"),
        (("--fit", f"{GPU}=-1"), 2, "-1 is less than 0"),
        (("--fit", "cpu=abc"), 2, "'abc' is no quantity"),
        (("--fit", f"{GPU}=1500m"), 2, f"{GPU} comes in whole numbers"),
        (("--fit", f"{GPU}=1,"), 2, "not NAME=N"),
        (("--fit", f"{GPU}=1", "--policy", "strict"), 2, "not one of none, best-effort"),
        (("--fit", f"{GPU}=1", "--policy", "none", "--scope", "node"), 2, "not one of container"),
        (("--policy", "none"), 2, "are for --fit and -f"),
        (("--fit", f"{GPU}=1", "-f", "x.yaml"), 2, "twice"),
        (("--fit", f"{GPU}=1"), 3, "the topology manager's policy is unknown"),
        (("-f", "/nonexistent.yaml"), 3, "does not exist"),
        (("-w",), 2, "a bundle does not change"),
        (("-o", "png"), 2, "unknown output format"),
    ],
)
def test_what_is_said_when_it_cannot_be(arguments, code, words) -> None:
    result = captured(*arguments)
    assert result.code == code, result
    assert words in result.err
    assert "Traceback" not in result.err


def test_without_a_numa_tree(tmp_path: Any) -> None:
    (tmp_path / "podresources").mkdir()
    (tmp_path / "podresources" / "list.json").write_text("{}")
    result = dpctl("topology", "--from", str(tmp_path))
    assert result.code == 3
    assert "sys/devices/system/node" in result.err


def test_admitted_without_its_devices_is_no_yes(lab: Lab) -> None:
    """The kubelet admits a pod that asks for what no plugin serves, and gives it nothing."""
    result = dpctl("topology", "--fit", "ghost.example/tpu=2", env=lab.env)
    assert result.code == 1
    assert result.out.splitlines()[0].split(": ", 1)[1].strip() == (
        "yes, but WITHOUT ghost.example/tpu"
    )
    assert "WITHOUT these devices" in result.out


def test_a_name_without_a_domain(lab: Lab) -> None:
    result = dpctl("topology", "--fit", "gpu=2", env=lab.env)
    assert (result.code, result.out) == (2, "")
    assert "no resource is called so" in result.err
