from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpctl.errors import BadDataError, DeniedError, DpctlError, UnreachableError
from dpctl.sources.checkpoint import checkpoint_path, read_checkpoint
from tests.fakes.grpc_sockets import as_nobody, short_directory

VECTORS = Path(__file__).parent.parent / "data" / "vectors"


def test_reads_the_file_with_its_time(tmp_path):
    path = tmp_path / "kubelet_internal_checkpoint"
    assert checkpoint_path(str(tmp_path)) == str(path)
    path.write_bytes((VECTORS / "dev-one-pod.json").read_bytes())
    os.utime(path, (1000.25, 2000.25))
    checkpoint = read_checkpoint(str(tmp_path))
    assert checkpoint.verified
    assert checkpoint.modified == 2000.25


def test_a_directory_without_it(tmp_path):
    with pytest.raises(UnreachableError, match="does not exist") as caught:
        read_checkpoint(str(tmp_path))
    assert caught.value.hint


def test_a_kubelet_that_never_had_a_plugin(tmp_path):
    (tmp_path / "kubelet.sock").touch()
    found = read_checkpoint(str(tmp_path))
    assert (found.absent, found.registered, found.allocations) == (True, {}, ())
    assert found.verified
    with pytest.raises(UnreachableError):
        read_checkpoint(str(tmp_path / "missing"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\0" * (1 << 20), b"[" * (64 << 20), b"x" * ((64 << 20) + 1)]
)
def test_bad_files_name_the_path(tmp_path, data):
    path = tmp_path / "kubelet_internal_checkpoint"
    path.write_bytes(data)
    with pytest.raises(BadDataError) as caught:
        read_checkpoint(str(tmp_path))
    assert str(path) in caught.value.message


def test_refused_to_others_than_root():
    with short_directory() as directory:
        path = directory / "kubelet_internal_checkpoint"
        path.write_bytes((VECTORS / "dev-one-pod.json").read_bytes())
        path.chmod(0o600)

        def read() -> str:
            try:
                read_checkpoint(str(directory))
            except DpctlError as e:
                return f"{type(e).__name__} {e.message}"
            return "was read"

        words = as_nobody(read)
        assert words.startswith(DeniedError.__name__)
        assert "-rw-------, owner 0:0" in words
