"""Opening a bundle: what is refused as a whole, what for one file, and that no link is followed."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest

from dpctl.bundle.files import LAYOUT_HINT, BundleFiles, open_bundle
from dpctl.errors import BadDataError, DeniedError, ExitCode, UnreachableError

LIMIT = 1 << 20


def opened(path: Path) -> BundleFiles:
    return open_bundle(str(path), max_file_size=LIMIT)


def packed(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    directory = tmp_path / "b"
    (directory / "api").mkdir(parents=True)
    (directory / "api/node.json").write_bytes(b"node")
    (directory / "plugins/a.sock").mkdir(parents=True)
    (directory / "plugins/a.sock/options.json").write_bytes(b"{}")
    return directory


def test_a_directory_and_its_archive_read_the_same(tmp_path: Path, bundle: Path) -> None:
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as tar:
        for name in ("api", "plugins"):
            tar.add(bundle / name, name)
    with tarfile.open(tmp_path / "under.tar", "w") as tar:
        tar.add(bundle, "worker-0")
    for files in (opened(bundle), opened(tmp_path / "b.tgz"), opened(tmp_path / "under.tar")):
        assert files.read("api/node.json") == b"node"
        assert files.read("api/pods.json") is None
        (entry,) = files.entries("plugins")
        assert (entry.name, entry.kind) == ("plugins/a.sock/options.json", "file")
        assert files.entries("kubelet") == ()
    under = opened(tmp_path / "under.tar").where("api/node.json")
    assert under == f"{tmp_path}/under.tar:worker-0/api/node.json"
    assert opened(bundle).where("api/node.json") == f"{bundle}/api/node.json"


def test_no_such_bundle(tmp_path: Path) -> None:
    for path in ("nowhere", "b\0ad", "x" * 5000):
        with pytest.raises(UnreachableError, match="there is no bundle") as e:
            open_bundle(f"{tmp_path}/{path}", max_file_size=LIMIT)
        assert e.value.code == ExitCode.UNREACHABLE


def test_files_without_their_folders_are_no_bundle(tmp_path: Path) -> None:
    for name in ("node.json", "pods.json", "kubelet_internal_checkpoint", "list.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(BadDataError, match="holds no file of a bundle") as e:
        opened(tmp_path)
    assert e.value.hint == LAYOUT_HINT
    assert "api/node.json" in LAYOUT_HINT
    packed(tmp_path / "x.tgz", ("node.json", b"{}"))
    with pytest.raises(BadDataError, match="holds no file of a bundle") as e:
        opened(tmp_path / "x.tgz")
    assert e.value.hint == LAYOUT_HINT
    assert e.value.code == ExitCode.BAD_DATA


def test_neither_directory_nor_archive(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadDataError, match="is not usable: it is no tar archive"):
        opened(tmp_path / "text")
    with pytest.raises(BadDataError, match="neither a directory nor an archive"):
        opened(tmp_path / "pipe")


def test_links_in_a_directory_are_not_followed(tmp_path: Path, bundle: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "ls.txt").write_text("secret")
    (bundle / "api/pods.json").symlink_to(secret / "ls.txt")
    (bundle / "device-plugins").symlink_to(secret)
    (bundle / "kubelet").symlink_to(secret)
    (bundle / "plugins/b.sock").symlink_to(secret)
    files = opened(bundle)
    for name in ("api/pods.json", "device-plugins/ls.txt"):
        with pytest.raises(BadDataError, match="is a link"):
            files.read(name)
    with pytest.raises(BadDataError, match="is a link"):
        files.entries("kubelet")
    assert [(e.name, e.kind) for e in files.entries("plugins")] == [
        ("plugins/a.sock/options.json", "file"),
        ("plugins/b.sock", "symbolic link"),
    ]
    assert files.read("api/node.json") == b"node"


def test_what_is_no_regular_file_neither_blocks_nor_is_read(bundle: Path) -> None:
    os.mkfifo(bundle / "api/pods.json")
    (bundle / "meta.json").mkdir()
    files = opened(bundle)
    for name in ("api/pods.json", "meta.json"):
        with pytest.raises(BadDataError, match="is not a regular file"):
            files.read(name)


def test_a_file_where_a_folder_belongs(bundle: Path) -> None:
    (bundle / "podresources").write_text("")
    (bundle / "kubelet").write_text("")
    files = opened(bundle)
    with pytest.raises(BadDataError, match="no directory"):
        files.read("podresources/list.json")
    with pytest.raises(BadDataError, match="is not a directory"):
        files.entries("kubelet")


def test_a_file_past_the_limit(tmp_path: Path, bundle: Path) -> None:
    (bundle / "api/pods.json").write_bytes(b"x" * (LIMIT + 1))
    packed(tmp_path / "b.tgz", ("api/pods.json", b"x" * (LIMIT + 1)), ("api/node.json", b"node"))
    for files in (opened(bundle), opened(tmp_path / "b.tgz")):
        with pytest.raises(BadDataError, match="larger than 1048576 bytes") as e:
            files.read("api/pods.json")
        assert "--max-message-size" in (e.value.hint or "")
        assert files.read("api/node.json") == b"node"


def test_a_tree_without_a_bottom(bundle: Path) -> None:
    (bundle / ("kubelet" + "/d" * 20)).mkdir(parents=True)
    with pytest.raises(BadDataError, match="too much"):
        opened(bundle).entries("kubelet")


def test_directories_are_counted(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpctl.bundle.files._MOST_DIRECTORIES", 5)
    for number in range(4):
        (bundle / f"plugins/d{number}").mkdir()
    assert len(opened(bundle).entries("plugins")) == 1
    (bundle / "plugins/d1/e").mkdir()
    with pytest.raises(BadDataError, match="too much"):
        opened(bundle).entries("plugins")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "device"),
    ],
)
def test_links_and_devices_in_an_archive(tmp_path: Path, kind: bytes, word: str) -> None:
    info = tarfile.TarInfo("api/pods.json")
    info.type, info.linkname = kind, "/etc/shadow"
    other = tarfile.TarInfo("unrelated")
    other.type, other.linkname = kind, "/etc/shadow"
    files = opened(packed(tmp_path / "b.tgz", info, other, ("api/node.json", b"node")))
    with pytest.raises(BadDataError, match=f"it is a {word}") as e:
        files.read("api/pods.json")
    assert "api/pods.json" in e.value.message
    assert files.read("api/node.json") == b"node"


@pytest.mark.parametrize("name", ["../api/node.json", "/api/node.json", "api/../../x"])
def test_an_archive_that_leads_outside_is_refused_whole(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "b.tgz", ("api/node.json", b"node"), (name, b"evil"))
    with pytest.raises(BadDataError, match="leads outside"):
        opened(path)


def test_names_twice_are_refused_whole(tmp_path: Path) -> None:
    path = packed(tmp_path / "b.tgz", ("api/node.json", b"1"), ("api/node.json", b"2"))
    with pytest.raises(BadDataError, match="twice"):
        opened(path)


def test_several_bundles_in_one_archive(tmp_path: Path) -> None:
    path = packed(tmp_path / "b.tgz", ("a/meta.json", b"{}"), ("b/meta.json", b"{}"))
    with pytest.raises(BadDataError, match="holds 2 bundles: a, b"):
        opened(path)


def test_a_truncated_archive(tmp_path: Path) -> None:
    path = packed(tmp_path / "b.tgz", ("api/node.json", os.urandom(5000)))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(BadDataError, match="is not usable"):
        opened(path)


def test_unknown_members_cost_nothing_and_do_no_harm(tmp_path: Path) -> None:
    members = [("logs/kubelet.log", b"x" * (3 << 20)), ("api/node.json", b"node")]
    assert opened(packed(tmp_path / "b.tgz", *members)).read("api/node.json") == b"node"


@pytest.mark.skipif(os.geteuid() != 0, reason="drops its rights, which takes root")
def test_what_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        (top / "b/api").mkdir(parents=True)
        (top / "b/api/node.json").write_text("{}")
        (top / "b/api/node.json").chmod(0o600)
        (top / "closed").mkdir(mode=0o700)
        archive = packed(top / "b.tgz", ("api/node.json", b"{}"))
        archive.chmod(0o600)
        os.seteuid(65534)
        try:
            files = opened(top / "b")
            with pytest.raises(DeniedError, match=r"node\.json may not be read"):
                files.read("api/node.json")
            for path in (top / "closed", archive):
                with pytest.raises(DeniedError) as e:
                    opened(path)
                assert e.value.code == ExitCode.DENIED
        finally:
            os.seteuid(0)
