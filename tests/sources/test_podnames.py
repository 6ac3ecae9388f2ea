from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.errors import BadDataError, UnreachableError
from dpctl.model import PodName
from dpctl.sources import podnames
from dpctl.sources.podnames import parse_pod_log_names, read_pod_names

UID = "4f1d3c0a-9b1e-4c56-8d7a-0123456789ab"


def test_names() -> None:
    assert parse_pod_log_names(
        [f"ml_train-0_{UID}", "kube-system_etcd-w_0123", "a_b", "a_b_c_d", "__", "x"]
    ) == (PodName("0123", "kube-system", "etcd-w"), PodName(UID, "ml", "train-0"))


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / f"ml_train_{UID}").mkdir()
    (tmp_path / "pods.log").write_text("")
    assert read_pod_names(str(tmp_path)) == (PodName(UID, "ml", "train"),)


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="does not exist"):
        read_pod_names(str(tmp_path / "none"))
    monkeypatch.setattr(podnames, "_MOST", 2)
    for name in "abc":
        (tmp_path / name).mkdir()
    with pytest.raises(BadDataError, match="more than 2"):
        read_pod_names(str(tmp_path))


@given(st.lists(st.text(max_size=20)))
def test_any_names(names: list[str]) -> None:
    found = parse_pod_log_names(names)
    assert {f"{p.namespace}_{p.name}_{p.uid}" for p in found} <= set(names)
