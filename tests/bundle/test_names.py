"""Names and addresses in texts: what is replaced, and what must not be."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpctl.bundle.names import Names


def known() -> Names:
    names = Names()
    names.keep(["gpu-0", "GPU-5a1e0f2b-1111"])
    names.add("node", ["worker-0", "worker-0.corp.example"])
    names.add("pod", ["trainer", "etcd-worker-0", "gpu-0", "a.b"])
    names.add("namespace", ["ml", "memory"])
    names.add_values(["hunter2-and-more", "1", "GPU-5a1e0f2b-1111", "two words, or: three"])
    return names


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("ml/trainer", "namespace-2/pod-4"),
        ("ml_trainer_uid", "namespace-2_pod-4_uid"),
        ("trainer-gpu-x", "pod-4-gpu-x"),
        ("xtrainer trainers trainer2", "xtrainer trainers trainer2"),
        ("etcd-worker-0", "pod-2"),
        ("kubelet on worker-0: yes", "kubelet on node-1: yes"),
        ("worker-0.corp.example", "node-2"),
        ("worker-01 worker-0-x", "worker-01 node-1-x"),
        ("memory of memory", "memory of memory"),  # a word of the formats
        ("to 10.1.2.3:6443, 10.1.2.3", "to address-1:6443, address-1"),
        ("fd00::7 and [fd00::7]:443", "address-1 and [address-1]:443"),
        ("127.0.0.1 0.0.0.0 ::1 ::", "127.0.0.1 0.0.0.0 ::1 ::"),
        ("0000:3b:00.2", "0000:3b:00.2"),  # PCI
        ("12:30:45 a::b v1.2.3 1.2.3.4.5", "12:30:45 address-1 v1.2.3 1.2.3.4.5"),
        ("GPU-5a1e::0", "GPU-5a1e::0"),
        ("hunter2-and-more", "value-2"),
        ("", ""),
    ],
)
def test_text(text: str, becomes: str) -> None:
    assert known().text(text) == becomes


def test_free_text_has_values_of_more_than_a_word() -> None:
    assert known().free("got two words, or: three!") == "got value-3!"


def test_devices_keep_their_names() -> None:
    """A pod may be called like a device; a device like a node or an address is hidden."""
    names = known()
    assert names.device("gpu-0") == "gpu-0"
    assert names.device("trainer") == "trainer"
    assert names.device("cam-worker-0") == "cam-node-1"
    assert names.device("http-10.0.0.9") == "http-address-1"


def test_a_name_is_the_same_everywhere_and_its_own() -> None:
    names = known()
    assert names.word("pod", "trainer") == names.text("trainer")
    words = [names.word("pod", text) for text in ("trainer", "etcd-worker-0", "gpu-0", "new")]
    assert len(set(words)) == 4
    assert names.word("pod", "") == ""


@given(st.text(max_size=60))
def test_any_text_passes(text: str) -> None:
    names = known()
    once = names.text(text)
    assert names.text(once) == once
    names.free(text), names.device(text)


WORDS = st.from_regex(r"[a-z][a-z0-9]{5,8}(-[a-z0-9]{1,4}){0,3}", fullmatch=True)


@given(WORDS, st.sampled_from(["{}", "a/{}", "{}:x", "x_{}_y", '"{}"', "{}-7", "q-{}.r"]))
def test_no_name_survives(name: str, form: str) -> None:
    names = Names()
    names.add("pod", [name])
    assert names.text(form.format(name)) == form.format("pod-1")


@pytest.mark.parametrize("text", [":" * 2000 + "g", "1:" * 1000 + "g", "::" + "1." * 1000 + "g"])
def test_what_is_nearly_an_address_takes_no_minutes(text: str) -> None:
    begun = time.process_time()
    assert Names().text(text) == text
    assert time.process_time() - begun < 1


def test_an_address_in_a_sentence() -> None:
    names = Names()
    for text in ("::2.g", "2001:db8::1.", "[2001:db8::1]:80", "::ffff:10.0.0.5", "fe80::1%eth0"):
        assert "address-" in names.text(text), text
    for text in ("g::2", "a:b", "2001:db8::1:g"):
        assert names.text(text) == text
