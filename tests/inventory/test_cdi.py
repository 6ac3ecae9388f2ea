"""Which CDI specification answers for a name, by the rules of the CDI library."""

from __future__ import annotations

from dpctl.inventory.cdi import CdiDevices
from dpctl.inventory.rows import AskedCdi
from dpctl.model import CdiDevice, CdiSpec, HostPath

KIND = "vendor.example/gpu"


def spec(path: str, priority: int, *names: str, nodes: tuple[str, ...] = ()) -> CdiSpec:
    return CdiSpec(path, priority, KIND, "0.6.0", tuple(CdiDevice(n, ()) for n in names), nodes)


def one(name: str, *specs: CdiSpec, paths: dict[str, HostPath] | None = None) -> AskedCdi:
    (found,) = CdiDevices(specs, paths).asked([name])
    return found


def test_resolved() -> None:
    found = one(f"{KIND}=a", spec("/etc/cdi/x.json", 0, "b", "a"))
    assert found == AskedCdi(f"{KIND}=a", None, True, "/etc/cdi/x.json", None, None)


def test_the_later_directory_wins() -> None:
    specs = spec("/etc/cdi/x.json", 0, "a"), spec("/var/run/cdi/x.json", 1, "a")
    assert one(f"{KIND}=a", *specs).file == "/var/run/cdi/x.json"


def test_two_files_of_one_directory_are_nobodys() -> None:
    specs = [spec("/etc/cdi/x.json", 0, "a", "b"), spec("/etc/cdi/y.json", 0, "a")]
    found = one(f"{KIND}=a", *specs)
    assert (found.resolved, found.file) == (False, None)
    assert "/etc/cdi/x.json and /etc/cdi/y.json both" in (found.problem or "")
    assert one(f"{KIND}=b", *specs).resolved
    later = one(f"{KIND}=a", *specs, spec("/var/run/cdi/x.json", 1, "a"))
    assert later.resolved is False, "the library deletes the name, whoever has it later"


def test_unresolved_says_what_there_is() -> None:
    found = one(f"{KIND}=GPU-e78e", spec("/var/run/cdi/x.json", 1, "all", "10", "9"))
    assert found.resolved is False
    assert f"({KIND} has 9, 10, all)" in (found.problem or "")
    many = one(f"{KIND}=x", spec("/etc/cdi/x.json", 0, *(f"d{i}" for i in range(20))))
    assert "d7 and 12 more)" in (many.problem or "")


def test_unresolved_beside_a_broken_file() -> None:
    broken = CdiSpec("/etc/cdi/y.json", 0, error="line 3: no")
    found = one(f"{KIND}=a", broken)
    assert "/etc/cdi/y.json is not usable: line 3: no" in (found.problem or "")
    assert "mend that file" in (found.advice or "")
    assert one(f"{KIND}=a", broken, spec("/etc/cdi/x.json", 0, "a")).problem is None


def test_no_name() -> None:
    for name in ("", "gpu", "gpu=a", "vendor.example/gpu", f"{KIND}=", f"{KIND}=a b", "9/x=y"):
        found = one(name, spec("/etc/cdi/x.json", 0, "a"))
        assert "no CDI name" in (found.problem or ""), name


def test_a_device_node_that_is_gone() -> None:
    found = one(
        f"{KIND}=a",
        spec("/etc/cdi/x.json", 0, "a", nodes=("/dev/ctl",)),
        paths={"/dev/ctl": HostPath(None)},
    )
    assert (found.resolved, found.file) == (True, "/etc/cdi/x.json")
    assert "/dev/ctl is MISSING" in (found.problem or "")


def test_nobody_looked() -> None:
    (found,) = CdiDevices(None, None).asked([f"{KIND}=a"])
    assert (found.resolved, found.problem) == (None, None)


def test_annotations_ask_too() -> None:
    known = CdiDevices([spec("/etc/cdi/x.json", 0, "a", "b")], None)
    found = known.asked(
        [f"{KIND}=a"],
        {"cdi.k8s.io/vendor_x": f"{KIND}=a,{KIND}=b", "other": f"{KIND}=c"},
    )
    assert [(c.name, c.annotation) for c in found] == [
        (f"{KIND}=a", None),
        (f"{KIND}=b", "cdi.k8s.io/vendor_x"),
    ]
