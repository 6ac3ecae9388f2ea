"""Who dpctl is at which API server: kubeconfig files and service accounts, resolved by the
`kubernetes` package.

Only its configuration loader and connection pool are used: touching one of its API classes or
models costs 650 ms more (measured: 290 against 940 for a whole run). Requests and the meaning of
answers belong to `connection` and `apiserver`.
"""

from __future__ import annotations

import binascii
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpctl.env import Env
from dpctl.env.reading import CONSTRUCTOR_ERRORS, resolve_inside
from dpctl.errors import BadDataError, DeniedError, UnreachableError, UsageError
from dpctl.sources.credential_plugin import Processes, in_time, quiet_root_log
from dpctl.sources.files import kind_in_words
from dpctl.text import shorten

# Origin of `Env.kubeconfig` for a pod's service account.
_IN_CLUSTER = "in-cluster"
# Of a cluster and a user: paths that a kubeconfig names.
_PATHS = (
    ("clusters", "cluster", ("certificate-authority",)),
    ("users", "user", ("client-certificate", "client-key", "tokenFile")),
)
_DESCRIPTORS = "/proc/self/fd"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A server and how to speak to it. Loaded once; a new one is loaded when they wear out."""

    server: str
    """`https://192.0.2.1:6443`, without a trailing slash."""
    where: str
    """For messages: `kubeconfig /root/.kube/config (default)`."""
    pool: Any
    """urllib3 PoolManager or ProxyManager with the certificates set."""
    configuration: Any
    """kubernetes.client.Configuration: renews tokens that run out."""
    impersonate: tuple[tuple[str, str], ...]
    """Impersonation headers, in order."""
    files: tuple[str, ...]
    """Certificate and key files that every new connection reads."""

    def authorization(self) -> str | None:
        """The value of the Authorization header, renewed where it has run out."""

        def key() -> str | None:
            found: str | None = self.configuration.get_api_key_with_prefix("BearerToken")
            return found

        if self.configuration.refresh_api_key_hook is None:
            value = key()  # nothing runs out, and a thread for every request costs milliseconds
        else:
            with quiet_root_log():
                value = in_time(key, self.where)
        return value.strip() if value else None


def load_credentials(env: Env, *, connections: int | None = None) -> Credentials:
    """Reads the kubeconfig (or service account) that `env` names; no network, save what a
    credential plugin does. `connections`: so many are kept open for use by threads.

    Raises UnreachableError when there is none, DeniedError when it may not be read or a plugin
    fails, BadDataError when it is broken, UsageError for a context that it lacks.
    """
    import urllib3
    from kubernetes.client import ApiClient, Configuration

    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    configuration = Configuration()
    place = env.kubeconfig
    fields: Mapping[str, Any] = {}
    if place.value is not None:
        where = f"kubeconfig {place.value} ({place.origin})"
        fields = _load_kubeconfig(env, place.value, where, configuration)
    elif place.origin == _IN_CLUSTER:
        where = "the pod's service account"
        _load_in_cluster(configuration)
    else:
        tried = f" (tried {', '.join(place.tried)})" if place.tried else ""
        raise UnreachableError(
            f"no kubeconfig was found{tried}",
            "name one with --kubeconfig, or set KUBECONFIG; on a node, root can use the kubelet's:"
            " --kubeconfig /etc/kubernetes/kubelet.conf",
        )
    impersonate = tuple(_impersonation(env, fields))
    server = str(configuration.host).rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise BadDataError(f"{where}: {shorten(server, 100)} is not the address of a server")
    configuration.retries = False
    if connections is not None:
        configuration.connection_pool_maxsize = connections
    try:
        pool = ApiClient(configuration=configuration).rest_client.pool_manager
    except CONSTRUCTOR_ERRORS as e:  # urllib3's for an address are ValueErrors
        raise BadDataError(
            f"{where}: its server cannot be spoken to through a proxy like that:"
            f" {shorten(str(e), 200)}",
            "check proxy-url in the kubeconfig, or HTTPS_PROXY",
        ) from e
    files = [configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file]
    return Credentials(
        server=server,
        where=where,
        pool=pool,
        configuration=configuration,
        impersonate=impersonate,
        files=tuple(path for path in files if path),
    )


def _load_in_cluster(configuration: Any) -> None:
    from kubernetes import config

    load: Any = config.load_incluster_config  # untyped
    try:
        load(client_configuration=configuration)
    except config.ConfigException as e:
        raise UnreachableError(
            f"the pod's service account cannot be used: {e}",
            "check that the pod has automountServiceAccountToken: true, or name a --kubeconfig",
        ) from e
    except OSError as e:
        raise DeniedError(
            f"the pod's service account token cannot be read: {e.strerror}",
            "check the user that the container runs as, or name a --kubeconfig",
        ) from e


def _load_kubeconfig(env: Env, path: str, where: str, configuration: Any) -> Mapping[str, Any]:
    """Fills `configuration`; returns the fields of the user in force."""
    import yaml
    from kubernetes.config import ConfigException, exec_provider, kube_config

    library: Any = kube_config  # untyped
    if hasattr(os, "memfd_create") and os.path.isdir(_DESCRIPTORS):  # Linux, with /proc
        library._create_temp_file_with_content = _in_memory
    # It runs plugins with no bound on what they print, and cannot end them.
    runner: Any = exec_provider
    runner.subprocess = Processes
    heard: list[str] = []
    try:
        with quiet_root_log(heard):
            _check_readable(path, where)
            merged = library.KubeConfigMerger(path).config
            if merged is None:
                raise BadDataError(f"{where} is not there", "check --kubeconfig and KUBECONFIG")
            _relocate(env, merged)
            context = _context(env, merged, where)
            # Never written back (`config_persister`): reading must not change the person's files.
            loader = library.KubeConfigLoader(merged, active_context=context, config_base_path=None)
            user = _user_fields(merged, loader.current_context)
            _check_named_files(merged, loader.current_context, where)
            in_time(lambda: loader.load_and_set(configuration), where)
    except ConfigException as e:
        said = _misshapen(path) or str(e)
        raise BadDataError(
            f"{where}: {shorten(said, 300)}", "try the same with kubectl --kubeconfig"
        ) from e
    except OSError as e:
        raise _unreadable(str(e.filename or path), e, where) from e
    except yaml.YAMLError as e:
        raise BadDataError(
            f"{where} is not YAML: {shorten(' '.join(str(e).split()), 200)}",
            "try the same with kubectl --kubeconfig",
        ) from e
    except (RecursionError, *CONSTRUCTOR_ERRORS) as e:
        # The loader walks the document without checking types, and says what Python says.
        said = _misshapen(path) or "something in it is of another type than it has to be"
        if isinstance(e, binascii.Error):
            said = "a certificate or key in it is not base64"
        raise BadDataError(
            f"{where} is not a usable kubeconfig: {shorten(said, 300)}",
            "try the same with kubectl --kubeconfig",
        ) from e
    nothing = "BearerToken" not in configuration.api_key and not configuration.cert_file
    if nothing and "exec" in user:
        said = shorten("; ".join(heard), 400) or "it gave neither token nor certificate"
        raise DeniedError(
            f"{where}: its credential plugin failed: {said}",
            "run the plugin by hand (users[].user.exec in the kubeconfig), or log in again",
        )
    return user


def _misshapen(path: str) -> str | None:
    from dpctl.sources.kubeconfig_shape import misshapen  # needed for a broken file alone

    return misshapen(path)


def _context(env: Env, merged: Any, where: str) -> str | None:
    """The context asked for, checked; None is the file's own."""
    context = env.context.value
    if context is None:
        return None
    entries = merged.value.get("contexts") or []
    names = [entry.value.get("name") for entry in entries]
    if context not in names:
        known = shorten(", ".join(str(name) for name in names), 300) or "none"
        raise UsageError(f"{where} has no context {context}", f"it has: {known}")
    return context


def _user_fields(merged: Any, context: Mapping[str, Any]) -> Mapping[str, Any]:
    return _fields(merged, context, "users", "user")[0]


def _fields(
    merged: Any, context: Mapping[str, Any], section: str, member: str
) -> tuple[Mapping[str, Any], str]:
    """What the context's cluster or user says, and the directory its paths start from."""
    name = context["context"].get(member)
    for entry in merged.value.get(section) or []:
        if entry.value.get("name") == name:
            fields = entry.value.get(member)
            base = os.path.abspath(os.path.dirname(entry.path or ""))
            return (fields if isinstance(fields, dict) else {}), base
    return {}, ""


def _check_named_files(merged: Any, context: Mapping[str, Any], where: str) -> None:
    """The library opens what is there, and would wait for a FIFO's writer."""
    for section, member, keys in _PATHS:
        fields, base = _fields(merged, context, section, member)
        for key in keys:
            if isinstance(fields.get(key), str) and fields[key]:
                path = os.path.join(base, fields[key])
                try:
                    mode = os.stat(path).st_mode
                except OSError:
                    continue  # the library tells, if it needs the file at all
                if not stat.S_ISREG(mode):
                    raise _no_file(f"{where}: {key} {path}", mode)


_written: dict[bytes, str] = {}


def _in_memory(content: str | bytes, *_: object, **__: object) -> str:
    """A path for certificates and keys that a kubeconfig holds itself. The library's own temporary
    files stay behind where no hook runs at the end: after a signal, and in a forked process."""
    data = content.encode() if isinstance(content, str) else content
    if data not in _written:
        with open(os.memfd_create("kubeconfig"), "wb", closefd=False) as file:
            file.write(data)
            _written[data] = f"{_DESCRIPTORS}/{file.fileno()}"
    return _written[data]


def _relocate(env: Env, merged: Any) -> None:
    """A file found by detection names paths as its owner sees them: of the host, or of a kubelet
    with mounts of its own."""
    root = _root_of(env)
    if root == "/":
        return
    for section, member, keys in _PATHS:
        for entry in merged.value.get(section) or []:
            fields = entry.value.get(member) or {}
            for key in keys:
                if isinstance(fields.get(key), str) and fields[key].startswith("/"):
                    fields[key] = resolve_inside(root, fields[key])


def _root_of(env: Env) -> str:
    place = env.kubeconfig
    kind, _, name = place.origin.partition(" ")
    if kind == "kubelet":
        own = f"{env.proc.value}/{name}/root"
        if (place.value or "").startswith(f"{own}/"):
            return own
    elif kind != "layout":
        return "/"
    return env.host_root.value or "/"


def _impersonation(env: Env, user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """--as and --as-group, else the kubeconfig's own `as`, which the library does not read."""
    name: object = env.as_user
    groups: list[object] = list(env.as_groups)
    uid: object = None
    if name is None and groups:
        raise UsageError("--as-group needs --as", "name a user as well: --as USER --as-group GROUP")
    hint = "name user and groups in printable ASCII: --as USER --as-group GROUP"
    if name is None:
        hint = "check `as`, `as-groups` and `as-uid` of the kubeconfig's user, or give --as"
        name, uid = user.get("as"), user.get("as-uid")
        groups = list(user.get("as-groups") or [])
    pairs = [("Impersonate-User", name)] if name else []
    pairs += [("Impersonate-Group", group) for group in groups]
    pairs += [("Impersonate-Uid", uid)] if uid else []
    for header, value in pairs:
        text = str(value)
        if not text.isprintable() or not text.isascii():
            raise UsageError(
                f"{header}: {shorten(text, 60)} has characters that no header takes", hint
            )
        yield header, text


def _check_readable(path: str, where: str) -> None:
    """KUBECONFIG may name several files; those that are missing are passed over, as by kubectl."""
    denied: OSError | None = None
    found = False
    for part in path.split(os.pathsep):
        if not part:
            continue
        try:
            mode = os.stat(os.path.expanduser(part)).st_mode
        except FileNotFoundError:
            continue
        except OSError as e:
            denied = denied or e
            continue
        if not stat.S_ISREG(mode):
            raise _no_file(f"{where}: {part}", mode)
        found = True
    if found:
        return
    if denied is not None:
        raise _unreadable(str(denied.filename), denied, where)
    raise UnreachableError(
        f"{where} does not exist", "check --kubeconfig and KUBECONFIG, or `dpctl env`"
    )


def _no_file(what: str, mode: int) -> BadDataError:
    return BadDataError(
        f"{what} is {kind_in_words(mode)}, not a file",
        "name a regular file: dpctl does not wait for a writer",
    )


def _unreadable(path: str, error: OSError, where: str) -> DeniedError | BadDataError:
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        return DeniedError(
            f"{where}: {path} may not be read: {reason}",
            "run as root, or name a kubeconfig of your own with --kubeconfig",
        )
    return BadDataError(f"{where}: {path} cannot be read: {reason}", f"check ls -l {path}")
