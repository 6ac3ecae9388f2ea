"""Credentials: kubeconfigs good and broken, impersonation, plugins, TLS, rotating certificates."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpctl.env import Place
from dpctl.errors import BadDataError, DeniedError, UnreachableError, UsageError
from dpctl.sources.apiserver import connect
from tests.fakes import api_server as fake
from tests.fakes.kubeconfigs import NODE, NODE_PATH, env_for, headers_of, kubeconfig


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> fake.Authority:
    return fake.Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def server() -> Iterator[fake.Server]:
    with fake.running() as running:
        yield running


def test_impersonation(tmp_path: Path, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE))
    path = kubeconfig(tmp_path / "k", server.url)
    connect(env_for(path, as_user="jane", as_groups=("a", "b"))).get_node("worker-0")
    assert headers_of(server, "Impersonate-User") == ["jane"]
    assert headers_of(server, "Impersonate-Group") == ["a", "b"]


def test_the_kubeconfigs_own_impersonation(tmp_path: Path, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE))
    user = {"token": "t", "as": "weak", "as-groups": ["g"], "as-uid": "7"}
    path = kubeconfig(tmp_path / "k", server.url, user)
    connect(env_for(path)).get_node("worker-0")
    assert headers_of(server, "Impersonate-User") == ["weak"]
    assert headers_of(server, "Impersonate-Group") == ["g"]
    assert headers_of(server, "Impersonate-Uid") == ["7"]
    connect(env_for(path, as_user="other")).get_node("worker-0")
    assert headers_of(server, "Impersonate-User") == ["other"]
    assert headers_of(server, "Impersonate-Group") == []


@pytest.mark.parametrize(
    "settings", [{"as_groups": ("g",)}, {"as_user": "a\r\nX-Evil: 1"}, {"as_user": "\u202eevil"}]
)
def test_impersonation_that_cannot_be_sent(
    tmp_path: Path, server: fake.Server, settings: dict[str, Any]
) -> None:
    path = kubeconfig(tmp_path / "k", server.url)
    with pytest.raises(UsageError) as e:
        connect(env_for(path, **settings))
    assert "--as USER" in (e.value.hint or "")


def test_another_context(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", server.url)
    assert connect(env_for(path, context="elsewhere")).server == "http://127.0.0.1:1"
    with pytest.raises(UsageError, match="no context nowhere") as e:
        connect(env_for(path, context="nowhere"))
    assert e.value.hint == "it has: here, elsewhere"


# --- TLS ---


@pytest.fixture
def secure(authority: fake.Authority) -> Iterator[fake.Server]:
    cert, key = authority.issue("server", "/CN=apiserver", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(authority.ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    with fake.running(context) as running:
        running.answer(NODE_PATH, fake.json_reply(NODE))
        yield running


def test_a_trusted_server(tmp_path: Path, secure: fake.Server, authority: fake.Authority) -> None:
    path = kubeconfig(tmp_path / "k", secure.url, **{"certificate-authority": str(authority.ca)})
    assert connect(env_for(path)).get_node("worker-0").name == "worker-0"
    data = base64.b64encode(authority.ca.read_bytes()).decode()
    path = kubeconfig(tmp_path / "k2", secure.url, **{"certificate-authority-data": data})
    assert connect(env_for(path)).get_node("worker-0").name == "worker-0"


def test_what_a_kubeconfig_holds_is_written_nowhere(
    tmp_path: Path, secure: fake.Server, authority: fake.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that a signal ends would leave it there, and a forked one that ends by itself, too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    cert, key = authority.issue("held", "/O=system:nodes/CN=system:node:held")
    data = {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in (("client-certificate-data", cert), ("client-key-data", key))
    }
    ca = base64.b64encode(authority.ca.read_bytes() + b"\n").decode()
    path = kubeconfig(tmp_path / "k", secure.url, data, **{"certificate-authority-data": ca})
    api = connect(env_for(path))
    assert api.get_node("worker-0").name == "worker-0"
    assert list(folder.iterdir()) == []


def test_an_untrusted_server(tmp_path: Path, secure: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", secure.url)
    with pytest.raises(UnreachableError, match="is not trusted") as e:
        connect(env_for(path)).get_node("worker-0")
    assert "certificate-authority" in (e.value.hint or "")
    assert secure.requests == []


def test_a_server_without_verification_prints_nothing(tmp_path: Path, secure: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", secure.url, **{"insecure-skip-tls-verify": True})
    code = (
        "import sys\n"
        "from dpctl.env import Settings, find_env\n"
        "from dpctl.sources.apiserver import connect\n"
        "connect(find_env(Settings(kubeconfig=sys.argv[1]), {})).get_node('worker-0')\n"
    )
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_no_tls_on_the_other_side(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", server.url.replace("http:", "https:"))
    with pytest.raises(UnreachableError, match="no TLS with"):
        connect(env_for(path)).get_node("worker-0")


def kubelet_kubeconfig(path: Path, server: str, ca: Path, pem: Path) -> str:
    user = {"client-certificate": str(pem), "client-key": str(pem)}
    return kubeconfig(path, server, user, **{"certificate-authority": str(ca)})


def test_a_kubelets_own_kubeconfig_and_its_rotating_certificate(
    tmp_path: Path, secure: fake.Server, authority: fake.Authority
) -> None:
    """`kubelet-client-current.pem` is a link to one file with both certificate and key."""
    seen: list[str] = []

    def reply(handler: fake.Handler) -> None:
        subject = dict(x[0] for x in handler.connection.getpeercert()["subject"])
        seen.append(subject["commonName"])
        if len(seen) == 2:  # expired on an open connection: the server says so
            fake.status(401, "Unauthorized")(handler)
        else:
            fake.json_reply(NODE)(handler)

    secure.answer(NODE_PATH, reply)
    current = tmp_path / "kubelet-client-current.pem"
    for name in ("first", "second"):
        cert, key = authority.issue(name, f"/O=system:nodes/CN=system:node:{name}")
        (tmp_path / f"{name}.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    current.symlink_to("first.pem")
    api = connect(env_for(kubelet_kubeconfig(tmp_path / "k", secure.url, authority.ca, current)))
    api.get_node("worker-0")
    current.unlink()
    current.symlink_to("second.pem")
    api.get_node("worker-0")
    assert seen == ["system:node:first", "system:node:first", "system:node:second"]


def test_a_detected_kubeconfig_names_paths_of_the_host(
    tmp_path: Path, secure: fake.Server, authority: fake.Authority
) -> None:
    cert, key = authority.issue("relocated", "/O=system:nodes/CN=system:node:r")
    pki = tmp_path / "host/var/lib/kubelet/pki"
    pki.mkdir(parents=True)
    (pki / "one.pem").write_bytes(cert.read_bytes() + key.read_bytes())
    (pki / "current.pem").symlink_to("/var/lib/kubelet/pki/one.pem")
    (pki / "ca.crt").write_bytes(authority.ca.read_bytes())
    inside = Path("/var/lib/kubelet/pki")
    conf = tmp_path / "host/etc/kubernetes/kubelet.conf"
    conf.parent.mkdir(parents=True)
    kubelet_kubeconfig(conf, secure.url, inside / "ca.crt", inside / "current.pem")
    env = env_for(None, host_root=str(tmp_path / "host"))
    env = env._replace(kubeconfig=Place("kubeconfig", str(conf), "layout kubelet"))
    assert connect(env).get_node("worker-0").name == "worker-0"
    named = env._replace(kubeconfig=Place("kubeconfig", str(conf), "flag"))
    with pytest.raises(BadDataError, match=r"File does not exist: /var/lib/kubelet/pki/"):
        connect(named)


# --- kubeconfigs ---


def test_no_kubeconfig_says_what_was_tried() -> None:
    env = env_for("x")
    none = Place("kubeconfig", None, "default", ("/a/config", "/etc/b.conf"))
    with pytest.raises(UnreachableError, match=r"tried /a/config, /etc/b\.conf") as e:
        connect(env._replace(kubeconfig=none))
    assert "--kubeconfig" in (e.value.hint or "")


def test_a_kubeconfig_that_is_not_there() -> None:
    with pytest.raises(UnreachableError, match="does not exist"):
        connect(env_for("/nonexistent/kubeconfig"))


@pytest.mark.parametrize("beside", [False, True])
def test_a_kubeconfig_that_is_a_fifo_is_not_waited_for(
    tmp_path: Path, server: fake.Server, beside: bool
) -> None:
    os.mkfifo(tmp_path / "fifo")
    path = str(tmp_path / "fifo")
    if beside:
        path = f"{kubeconfig(tmp_path / 'k', server.url)}:{path}"
    with pytest.raises(BadDataError, match="fifo is a FIFO, not a file"):
        connect(env_for(path))


@pytest.mark.parametrize("name", ["tokenFile", "client-key", "certificate-authority"])
def test_a_named_file_that_is_a_fifo_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    cluster = {name: "fifo"} if name == "certificate-authority" else {}
    user = {} if cluster else {name: "fifo"}
    path = kubeconfig(tmp_path / "k", "https://127.0.0.1:1", user, **cluster)
    with pytest.raises(BadDataError, match=f"{name} {tmp_path}/fifo is a FIFO, not a file"):
        connect(env_for(path))


def test_a_proxy_that_is_no_address(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", server.url, **{"proxy-url": "http://[::1"})
    with pytest.raises(BadDataError, match="proxy") as e:
        connect(env_for(path))
    assert "proxy-url" in (e.value.hint or "")


def test_several_files_are_merged(tmp_path: Path, server: fake.Server) -> None:
    path = kubeconfig(tmp_path / "k", server.url)
    assert connect(env_for(f"{tmp_path}/missing:{path}")).server == server.url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "root:x:0:0:root",
        "a: [",
        "\0",
        "clusters: 5",
        "current-context: x",
        "current-context: [x]\ncontexts: [{name: here, context: {cluster: c}}]",
        "current-context: here\ncontexts: {here: {cluster: c}}",
        "current-context: here\ncontexts: [{name: here, context: [c]}]",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: [x]}]",
        "current-context: here\ncontexts: [{name: here}]",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 7}}]",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'ftp://x'}}]",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority-data: 'abc'}}]",
        "current-context: here\ncontexts: [{name: here, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://x'}}]\nusers: [{name: u, user: 5}]",
        "!!python/object/apply:os.system ['true']",
    ],
)
def test_a_broken_kubeconfig_is_bad_data(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(BadDataError) as e:
        connect(env_for(str(path)))
    assert str(path) in e.value.message
    assert not re.search("Error|'str'|'int'|indices|object at|iterable", e.value.message)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("root:x:0:0:root", "/k is text, not an object"),
        ("clusters: 5", "clusters is a number, not a list"),
        ("contexts: [{name: here, context: [c]}]", "contexts[0].context is a list, not an object"),
        (
            "users: [{name: u, user: {token: {}}}]\ncurrent-context: [7]",
            "current-context is a list",
        ),
    ],
)
def test_a_kubeconfig_of_another_shape_is_told_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(BadDataError) as e:
        connect(env_for(str(path)))
    assert words in e.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="drops its rights, which takes root")
def test_files_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        pem = directory / "current.pem"
        pem.write_text("secret")
        pem.chmod(0o600)
        server = "https://127.0.0.1:1"
        named = kubelet_kubeconfig(directory / "k", server, directory / "k", pem)
        secret = kubeconfig(directory / "secret", server)
        os.chmod(secret, 0o600)
        (directory / "closed").mkdir(mode=0o700)
        hidden = kubeconfig(directory / "closed/k", server)
        for denied, path in ((str(pem), named), (secret, secret), (hidden, hidden)):
            env = env_for(path)
            with as_nobody(), pytest.raises(DeniedError) as e:
                connect(env).get_node("worker-0")
            assert denied in e.value.message
            assert "run as root" in (e.value.hint or "")


class as_nobody:
    def __enter__(self) -> None:
        os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        os.seteuid(0)


PLUGIN = """#!/bin/sh
echo called >> {log}
{body}
"""
CREDENTIAL = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": "from-plugin"},
}


def exec_user(tmp_path: Path, body: str) -> dict[str, Any]:
    program = tmp_path / "plugin.sh"
    program.write_text(PLUGIN.format(log=tmp_path / "log", body=body))
    program.chmod(0o755)
    version = CREDENTIAL["apiVersion"]
    return {"exec": {"apiVersion": version, "command": str(program), "interactiveMode": "Never"}}


def test_a_credential_plugin(tmp_path: Path, server: fake.Server) -> None:
    server.answer(NODE_PATH, fake.json_reply(NODE))
    user = exec_user(tmp_path, f"echo '{json.dumps(CREDENTIAL)}'")
    api = connect(env_for(kubeconfig(tmp_path / "k", server.url, user)))
    api.get_node("worker-0")
    api.get_node("worker-0")
    assert headers_of(server, "Authorization") == ["Bearer from-plugin"]
    assert (tmp_path / "log").read_text() == "called\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [("echo not logged in >&2; exit 1", "not logged in"), ("echo nonsense", "decode")],
)
def test_a_credential_plugin_that_fails_is_quoted(
    tmp_path: Path, server: fake.Server, capfd: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    path = kubeconfig(tmp_path / "k", server.url, exec_user(tmp_path, body))
    with pytest.raises(DeniedError, match=f"credential plugin failed: .*{said}"):
        connect(env_for(path))
    assert capfd.readouterr().err == ""


def test_a_credential_plugin_that_does_not_end(
    tmp_path: Path, server: fake.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpctl.sources.credential_plugin._PLUGIN_TIMEOUT", 0.3)
    path = kubeconfig(tmp_path / "k", server.url, exec_user(tmp_path, "exec sleep 3"))
    with pytest.raises(UnreachableError, match=r"did not come within 0\.3 s") as e:
        connect(env_for(path))
    assert "plugin" in (e.value.hint or "")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_credential_plugin_that_is_given_up_is_ended(
    tmp_path: Path,
    server: fake.Server,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("dpctl.sources.credential_plugin._PLUGIN_TIMEOUT", 1.0)
    pids = tmp_path / "pids"
    body = f"sleep 300 & echo $$ $! >{pids}; wait"
    path = kubeconfig(tmp_path / "k", server.url, exec_user(tmp_path, body))
    with pytest.raises(UnreachableError):
        connect(env_for(path))
    assert [is_running(int(pid)) for pid in pids.read_text().split()] == [False, False]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("stream", [1, 2])
def test_a_credential_plugin_that_prints_without_end(
    tmp_path: Path, server: fake.Server, monkeypatch: pytest.MonkeyPatch, stream: int
) -> None:
    monkeypatch.setattr("dpctl.sources.credential_plugin._PLUGIN_TIMEOUT", 3.0)
    body = f"echo $$ >{tmp_path}/pid; yes >&{stream}"
    path = kubeconfig(tmp_path / "k", server.url, exec_user(tmp_path, body))
    with pytest.raises(DeniedError, match="it printed more than 1 MiB"):
        connect(env_for(path))
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_reading_loads_no_models_and_writes_no_file(tmp_path: Path, server: fake.Server) -> None:
    """Touching a model of the kubernetes package costs 650 ms more."""
    server.answer(NODE_PATH, fake.json_reply(NODE))
    path = kubeconfig(tmp_path / "k", server.url)
    before = os.stat(path).st_mtime_ns
    code = (
        "import sys\n"
        "from dpctl.env import Settings, find_env\n"
        "from dpctl.sources.apiserver import connect\n"
        "assert not {'kubernetes', 'urllib3', 'yaml', 'ssl'} & set(sys.modules)\n"
        "connect(find_env(Settings(kubeconfig=sys.argv[1]), {})).get_node('worker-0')\n"
        "print([m for m in sys.modules if m.startswith('kubernetes.client.models.')\n"
        "       or m.startswith('kubernetes.client.api.')])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, check=True, text=True
    )
    assert run.stdout == "[]\n"
    assert os.stat(path).st_mtime_ns == before
