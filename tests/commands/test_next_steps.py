"""What is said when the answer alone would send an operator the wrong way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpctl.lab.fixture import Lab
from tests.run import dpctl

GPU = "vendor.example/gpu"


def test_nothing_unhealthy_is_no_good_news_of_a_plugin_that_is_gone(
    new_lab: Callable[..., Lab],
) -> None:
    lab = new_lab(scenario="sample")
    before = dpctl("devices", GPU, "--unhealthy", env=lab.env)
    assert (before.code, before.out.count("Unhealthy"), before.err) == (0, 2, "")
    lab.plugin("gpu").kill()
    lab.wait_settled()
    after = dpctl("devices", GPU, "--unhealthy", env=lab.env)
    assert (after.code, after.out) == (0, "")
    assert after.err == (
        f"note: the health of {GPU}'s devices is not known: the kubelet is connected to no plugin"
        f" of it\nhint: dpctl resources {GPU} -o wide\nNo resources found\n"
    )
    assert "not known" not in dpctl("devices", "--unhealthy", "net.*", env=lab.env).err
    assert "not known" not in dpctl("devices", GPU, env=lab.env).err


@pytest.mark.parametrize(
    ("pod", "hint"),
    [
        ("greedy", "the kubelet rejected it: dpctl pods --failed batch/greedy"),
        ("batch/nightly", "it is over; what it may hold still: dpctl devices --held-by"),
        ("nix", "dpctl pods lists what there is"),
    ],
)
def test_a_pod_that_holds_nothing(lab: Lab, pod: str, hint: str) -> None:
    found = dpctl("pods", pod, env=lab.env)
    assert (found.code, found.out) == (1, "")
    assert f'no pod "{pod}" here\nhint: {hint}' in found.err


def test_the_hint_of_a_difference_is_followed_once(lab: Lab) -> None:
    hint = "hint: -o wide says what each means"
    assert hint in dpctl("state", "diff", env=lab.env).err
    wide = dpctl("state", "diff", "-o", "wide", env=lab.env)
    assert (wide.code, "hint:" in wide.err) == (1, False)
