from __future__ import annotations

import os

import pytest

from dpctl.errors import BadDataError, DeniedError, DpctlError, ExitCode, UnreachableError
from dpctl.sources.files import file_error, open_inert, read_bounded, read_with_stat, size_in_words
from tests.fakes.grpc_sockets import as_nobody, short_directory


def test_reads_up_to_the_limit_and_not_beyond(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 3_000_000)
    data, found = read_with_stat(str(path), 3_000_000)
    assert len(data) == found.st_size == 3_000_000
    with pytest.raises(BadDataError, match=r"larger than 2\.861 MiB"):
        read_bounded(str(path), 2_999_999)


def test_files_of_proc_have_no_size_and_are_read_all_the_same():
    assert b"Linux" in read_bounded("/proc/version", 4096)


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadDataError, match="is a FIFO, not a file"):
        read_bounded(str(tmp_path / "fifo"), 10)
    with pytest.raises(BadDataError, match="is a directory, not a file"):
        read_bounded(str(tmp_path), 10)
    with pytest.raises(BadDataError, match="is a device, not a file"):
        read_bounded("/dev/zero", 10)


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names given to `os.open` without O_PATH."""
    seen: list[str] = []
    real = os.open

    def spy(path, flags, *args, **kwargs):
        if not flags & os.O_PATH:
            seen.append(path)
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", spy)
    return seen


@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_file_is_not_opened(tmp_path, monkeypatch, follow):
    os.mkfifo(tmp_path / "fifo")
    seen = opened(monkeypatch)
    for path in (str(tmp_path / "fifo"), "/dev/null"):
        fd = open_inert(path, follow=follow)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.read(fd, 1)
        os.close(fd)
    assert seen == []


@pytest.mark.parametrize("descriptors", ["/proc/self/fd", "/nonexistent/fd"])
def test_files_and_directories_are_opened_also_without_proc(tmp_path, monkeypatch, descriptors):
    monkeypatch.setattr("dpctl.sources.files._DESCRIPTORS", descriptors)
    (tmp_path / "f").write_text("x")
    (tmp_path / "link").symlink_to("f")
    assert read_bounded(str(tmp_path / "link"), 1) == b"x"
    fd = open_inert(str(tmp_path))
    assert sorted(os.listdir(fd)) == ["f", "link"]
    with pytest.raises(OSError, match="symbolic links"):
        open_inert("link", dir_fd=fd, follow=False)
    os.close(fd)


@pytest.mark.parametrize(
    ("path", "words", "hint"),
    [
        ("/no/such/place", "/no/such/place does not exist", "nothing of the path is there"),
        ("/usr/no/such", "/usr/no/such does not exist", "/usr is there"),
        ("/proc/version/x", "a part of it is not a directory", None),
        ("/" + "x" * 300, "is too long", None),
        ("a\0b", "cannot be a path", None),
    ],
)
def test_missing_files(path, words, hint):
    with pytest.raises(UnreachableError) as caught:
        read_bounded(path, 10)
    assert words in caught.value.message
    if hint:
        assert hint in (caught.value.hint or "")


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(UnreachableError, match="in a circle"):
        read_bounded(str(tmp_path / "a"), 10)


def test_a_refusal_says_who_may_and_what_is_missing():
    with short_directory() as directory:
        closed = directory / "closed"
        closed.mkdir(mode=0o700)
        (closed / "f").write_text("x")
        (directory / "f").write_text("x")
        (directory / "f").chmod(0o600)

        def read(path: str) -> str:
            try:
                read_bounded(path, 10)
            except DpctlError as e:
                return f"{type(e).__name__} {e.code} {e.message} | {e.hint}"
            return "was read"

        words = as_nobody(lambda: read(str(directory / "f")))
        assert words.startswith(f"{DeniedError.__name__} {ExitCode.DENIED} ")
        assert "-rw-------, owner 0:0" in words
        assert "runs as uid 65534: run it as root" in words
        assert "`r` permission" in words
        words = as_nobody(lambda: read(str(closed / "f")))
        assert f"({closed}: drwx------, owner 0:0" in words
        assert "`x` permission" in words


def test_root_that_is_refused_is_told_of_selinux(tmp_path):
    path = tmp_path / "f"
    path.write_text("")
    error = file_error(PermissionError(13, "Permission denied"), str(path))
    assert "spc_t" in (error.hint or "")


def test_sizes():
    assert [size_in_words(n) for n in (12, 4 << 20, 1 << 30)] == ["12 bytes", "4 MiB", "1 GiB"]
