"""Archives from strangers: `tarfile` writes them here, and bytes no writer would."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.bundle.tar import Limits, TarReader
from dpctl.errors import BadDataError

LIMITS = Limits(file=1 << 20, total=8 << 20, members=1000)
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def archive(
    *members: tuple[str, bytes] | tarfile.TarInfo, format: int = tarfile.PAX_FORMAT
) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def read(data: bytes, limits: Limits = LIMITS) -> dict[str, tuple[str, bytes]]:
    reader = TarReader(io.BytesIO(data), limits)
    return {
        member.name: (member.kind, reader.read() if member.kind == "file" else b"")
        for member in reader.members()
    }


NAMES = st.lists(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
        lambda part: part not in (".", "..")
    ),
    min_size=1,
    max_size=4,
).map("/".join)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@given(files=st.dictionaries(NAMES, st.binary(max_size=2000), min_size=1, max_size=5))
def test_what_tarfile_writes_is_read(format: int, files: dict[str, bytes]) -> None:
    data = archive(*files.items(), format=format)
    expected = {name: ("file", content) for name, content in files.items()}
    assert read(data) == expected
    assert read(gzip.compress(data, 1)) == expected


@pytest.mark.parametrize("format", FORMATS)
def test_long_names_and_prefixes(format: int) -> None:
    files = {f"{'d' * 60}/{'e' * 60}/{'f' * 90}": b"x", "short": b"y"}
    if format != tarfile.USTAR_FORMAT:
        files["n" * 3000] = b"z"
    assert read(archive(*files.items(), format=format)) == {
        name: ("file", content) for name, content in files.items()
    }


def test_leading_dots_and_double_slashes_are_dropped() -> None:
    assert set(read(archive(("./a//b/./c", b"")))) == {"a/b/c"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "symbolic link"),
        (tarfile.LNKTYPE, "hard link"),
        (tarfile.CHRTYPE, "device"),
        (tarfile.BLKTYPE, "device"),
        (tarfile.FIFOTYPE, "pipe"),
        (tarfile.DIRTYPE, "directory"),
        (b"V", "special file"),
    ],
)
def test_what_is_no_file_is_named_and_the_rest_goes_on(kind: bytes, word: str) -> None:
    found = read(archive(special("odd", kind, "/etc/shadow"), ("good", b"1")))
    assert found["odd"] == (word, b"")
    assert found["good"] == ("file", b"1")


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "a/..", "..", "./../x", "//x"]
)
@pytest.mark.parametrize("format", FORMATS)
def test_no_name_leads_outside(name: str, format: int) -> None:
    with pytest.raises(BadDataError, match="leads outside"):
        read(archive(("good", b""), (name, b"evil"), format=format))


def test_a_member_twice() -> None:
    with pytest.raises(BadDataError, match=r"'api/node\.json' twice"):
        read(archive(("api/node.json", b"1"), ("./api/node.json", b"2")))


def test_ten_gibibytes_of_zeros_are_refused_at_their_header() -> None:
    """A real bomb, 10 MiB packed: neither unpacked nor skipped."""
    info = tarfile.TarInfo("api/node.json")
    info.size = 10 << 30
    packer = zlib.compressobj(1, wbits=31)
    packed = [packer.compress(info.tobuf(tarfile.GNU_FORMAT))]
    chunk = b"\0" * (1 << 20)
    packed += [packer.compress(chunk) for _ in range(64)]  # the rest would only cost the test time
    data = b"".join(packed)
    with pytest.raises(BadDataError, match="unpacks to more than 8388608 bytes"):
        read(data)


def test_a_bomb_behind_the_end_mark() -> None:
    data = gzip.compress(archive(("a", b"1")) + b"\0" * (20 << 20))
    with pytest.raises(BadDataError, match="unpacks to more"):
        read(data)


def test_a_bomb_of_extended_headers() -> None:
    block = tarfile.TarInfo("x")
    block.type = tarfile.XHDTYPE
    block.size = 1 << 30
    with pytest.raises(BadDataError, match="extended header of 1073741824 bytes"):
        read(gzip.compress(block.tobuf(tarfile.USTAR_FORMAT) + b"\0" * (4 << 20)))


def test_a_bomb_of_headers_alone() -> None:
    block = tarfile.TarInfo("././@LongLink")
    block.type = tarfile.GNUTYPE_LONGNAME
    block.size = 4
    one = block.tobuf(tarfile.GNU_FORMAT) + b"abc\0".ljust(512, b"\0")
    with pytest.raises(BadDataError, match="unpacks to more"):
        read(gzip.compress(one * 20_000))


def test_a_bomb_of_empty_gzip_files() -> None:
    empty = gzip.compress(b"")
    good = gzip.compress(archive(("a", b"1")))
    assert read(empty * 3 + good + b"\0" * 600 + empty + b"\0" * 7) == {"a": ("file", b"1")}
    for data in (empty * 10_001, good + empty * 10_001):
        with pytest.raises(BadDataError, match="more than 10000 gzip files"):
            read(data)


def test_a_bomb_of_packed_bytes_that_give_nothing() -> None:
    start = zlib.compressobj(1, wbits=31).flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(BadDataError, match="larger than 9568256 bytes, packed"):
        read(start + b"\0\0\0\xff\xff" * 2_000_000)


def test_what_does_not_compress_fits_when_it_fits_unpacked() -> None:
    data = archive(("a", os.urandom(1 << 20)), ("b", os.urandom(1 << 20)))
    limits = Limits(file=1 << 20, total=len(data), members=2)
    assert set(read(gzip.compress(data, 1), limits)) == {"a", "b"}


def test_too_many_members() -> None:
    files = [(f"f{number}", b"") for number in range(1001)]
    with pytest.raises(BadDataError, match="more than 1000 members"):
        read(archive(*files))


def test_a_file_past_its_own_limit_can_be_passed_over() -> None:
    data = archive(("big", b"x" * (2 << 20)), ("small", b"1"))
    reader = TarReader(io.BytesIO(data), LIMITS)
    members = reader.members()
    assert next(members).name == "big"
    with pytest.raises(BadDataError, match="larger than 1048576 bytes"):
        reader.read()
    assert next(members).name == "small"
    assert reader.read() == b"1"


def test_sparse_files_are_refused() -> None:
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 40)}
    with pytest.raises(BadDataError, match="sparse"):
        read(archive(info))


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: b"",
        lambda d: b"\x1f\x8b",
        lambda d: b"no archive at all" * 100,
        lambda d: b"\0" * 1024,
        lambda d: d[:300],
        lambda d: d[:700],
        lambda d: d[:1024],
        lambda d: d[:1034] + b"\xff" + d[1035:],  # in the second header
        lambda d: gzip.compress(d)[:-20],
        lambda d: gzip.compress(d)[:-8] + b"\0" * 8,  # its checksum
        lambda d: gzip.compress(d)[:40] + b"\xff" * 40,
    ],
)
def test_damage_is_never_taken_for_the_end(damage: Callable[[bytes], bytes]) -> None:
    whole = archive(("a", b"x" * 500), ("b", b"y" * 500), format=tarfile.USTAR_FORMAT)
    assert set(read(whole)) == {"a", "b"}
    with pytest.raises(BadDataError):
        read(damage(whole))


@given(st.binary(max_size=3000))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(BadDataError):
        read(data)


BASE = archive(("a/b", b"x" * 600), special("l", tarfile.SYMTYPE, "t"), ("p" * 200, b"y"))


@given(st.lists(st.tuples(st.integers(0, len(BASE) - 1), st.integers(0, 255)), max_size=6))
def test_a_few_changed_bytes_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    data = bytearray(BASE)
    for place, value in changes:
        data[place] = value
    try:
        found = read(bytes(data))
    except BadDataError:
        return
    assert not any(name.startswith("/") or ".." in name.split("/") for name in found)


def test_the_tar_command_writes_what_is_read(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "in/api").mkdir(parents=True)
    (tmp_path / "in/api/node.json").write_bytes(b"{}")
    (tmp_path / "in/link").symlink_to("/etc/shadow")
    subprocess.run(["tar", "czf", "out.tgz", "in"], cwd=tmp_path, check=True)
    found = read((tmp_path / "out.tgz").read_bytes())
    assert found["in/api/node.json"] == ("file", b"{}")
    assert found["in/link"][0] == "symbolic link"
