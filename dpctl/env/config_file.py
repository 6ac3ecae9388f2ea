"""dpctl's own configuration: `/etc/dpctl.toml`, and `~/.config/dpctl/config.toml` which wins.

Flat TOML, keys named like the flags (dashes or underscores). Reading and writing of this file and
nothing else; `tomllib` loads only where a file exists.
"""

from __future__ import annotations

import os

from dpctl.env.reading import read_limited
from dpctl.errors import BadDataError, DeniedError, UnreachableError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LARGEST = 1 << 20

Value = str | float | bool | list[str]

# Key to kind: `path` (a leading `~/` is the home), `text`, `list`, `seconds`, `bytes`, `switch`.
KEYS = {
    "kubelet-root": "path",
    "device-plugin-dir": "path",
    "pod-resources-socket": "path",
    "host-root": "path",
    "from": "path",
    "kubeconfig": "path",
    "context": "text",
    "as": "text",
    "as-group": "list",
    "node": "text",
    "request-timeout": "seconds",
    "max-message-size": "bytes",
    "no-allocatable": "switch",
}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_settings(files: Sequence[str], home: str | None) -> dict[str, tuple[Value, str]]:
    """Key to (value, file it came from), later files over earlier ones; `~/` expanded."""
    merged: dict[str, tuple[Value, str]] = {}
    for file in files:
        for key, value in read_config(file).items():
            if KEYS[key] == "path" and isinstance(value, str) and value.startswith("~/") and home:
                value = f"{home}{value[1:]}"
            merged[key] = (value, file)
    return merged


def read_config(path: str) -> dict[str, Value]:
    """Keys (with dashes) and checked values of one file; a file that is not there has none.

    Seconds are numbers, sizes bytes. Raises BadDataError (the line where TOML is bad, the key
    where a value is), DeniedError.
    """
    try:
        data = read_limited(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError as e:
        raise DeniedError(
            f"may not read {path}", f"Make it readable (chmod a+r {path}), or remove it."
        ) from e
    except OSError as e:
        raise BadDataError(
            f"cannot read {path}: {e.strerror}", "It must be a TOML file of at most 1 MiB."
        ) from e
    return _checked(path, data)


def _checked(path: str, data: bytes) -> dict[str, Value]:
    import tomllib

    try:
        document = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise BadDataError(f"{path}, line {line}: not UTF-8", "TOML files are UTF-8.") from e
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise BadDataError(
            f"{path}: {str(e) or 'nested too deeply'}", f"Correct the file: {_example()}."
        ) from e
    values: dict[str, Value] = {}
    for written, value in document.items():
        key = written.replace("_", "-")
        if key not in KEYS:
            raise BadDataError(f"{path}: unknown key {written!r}", f"Keys: {', '.join(KEYS)}.")
        if key in values:
            raise BadDataError(f"{path}: {key} is given twice", "Keep one of the two spellings.")
        try:
            values[key] = check_value(key, value)
        except ValueError as e:
            raise BadDataError(f"{path}: {written}: {e}", f"Correct the file: {_example()}.") from e
    return values


def check_value(key: str, value: object) -> Value:
    """The value as it is kept. Raises ValueError that says what is expected."""
    kind = KEYS[key]
    if kind in ("path", "text"):
        if isinstance(value, str) and value and "\0" not in value:
            return value
        raise ValueError("expected text in quotes")
    if kind == "list":
        items = value if isinstance(value, list) else [value]
        if all(isinstance(item, str) and item for item in items):
            return list(items)
        raise ValueError("expected texts in brackets")
    if kind == "switch":
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return value == "true"
        raise ValueError("expected true or false")
    return _seconds(value) if kind == "seconds" else _bytes(value)


def _seconds(value: object) -> float:
    number = -1.0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(value)
    elif isinstance(value, str):
        digits = value.rstrip("mhs")
        unit = value[len(digits) :] or "s"
        if unit in _UNITS and digits.replace(".", "", 1).isdigit() and digits.isascii():
            number = float(digits) * _UNITS[unit]
    if 0 < number <= 86400:
        return number
    raise ValueError("expected seconds above 0, such as 5, 2.5 or '500ms'")


def _bytes(value: object) -> int:
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        from dpctl.quantity import count

        number = count(value)
    # gRPC keeps the limit in a signed 32-bit number.
    if number is not None and 0 < number < 1 << 31:
        return number
    raise ValueError("expected bytes below 2 GiB, such as 67108864 or '64Mi'")


def write_config(path: str, key: str, value: str | Sequence[str]) -> None:
    """Set one key, comments and the other lines kept where they can be. Atomic; makes directories.

    Raises UsageError for an unknown key or a wrong value, BadDataError for a file that is bad
    already, DeniedError and UnreachableError where it cannot be written.
    """
    key = known_key(key)
    try:
        checked = check_value(key, value if isinstance(value, str) else list(value))
    except ValueError as e:
        raise UsageError(f"{key}: {e}", f"Example: {_example()}.") from e
    _change(path, key, checked)


def unset_config(path: str, key: str) -> bool:
    """Remove one key; False: it was not there. Errors as for `write_config`."""
    key = known_key(key)
    if key not in read_config(path):
        return False
    _change(path, key, None)
    return True


def known_key(key: str) -> str:
    """The key with dashes. Raises UsageError for one that is none."""
    name = key.replace("_", "-").removeprefix("--")
    if name not in KEYS:
        raise UsageError(f"unknown key {key!r}", f"Keys: {', '.join(KEYS)}.")
    return name


def _change(path: str, key: str, value: Value | None) -> None:
    wanted = read_config(path)
    try:
        text = read_limited(path, _LARGEST).decode("utf-8")
    except FileNotFoundError:
        text = ""
    except OSError as e:
        raise _cannot_write(path, e) from e
    if value is None:
        del wanted[key]
    else:
        wanted[key] = value
    changed = _edit(text, key, value)
    # A value over several lines defeats an edit by lines: then the comments are lost, not the rest.
    if not _means(path, changed, wanted):
        changed = "".join(f"{name} = {_toml(kept)}\n" for name, kept in wanted.items())
    _write(path, changed.encode("utf-8"))


def _edit(text: str, key: str, value: Value | None) -> str:
    line = f"{key} = {_toml(value)}\n" if value is not None else ""
    lines = text.splitlines(keepends=True)
    for position, old in enumerate(lines):
        name, equals, _ = old.partition("=")
        if equals and name.strip().strip("\"'").replace("_", "-") == key:
            lines[position] = line
            return "".join(lines)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join((*lines, line))


def _means(path: str, text: str, wanted: dict[str, Value]) -> bool:
    try:
        return _checked(path, text.encode("utf-8")) == wanted
    except BadDataError:
        return False


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:g}" if value < 1e6 and value % 1 else str(int(value))
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as e:
        raise UsageError("a value that is not UTF-8 cannot be kept", "Use another path.") from e
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in quoted)
    return f'"{escaped}"'


def _write(path: str, data: bytes) -> None:
    import tempfile

    target = os.path.realpath(path)  # a link (dotfiles) stays one
    directory = os.path.dirname(target)
    temporary = None
    try:
        os.makedirs(directory, exist_ok=True)
        try:
            mode = os.stat(target).st_mode & 0o777
        except FileNotFoundError:
            mode = 0o644
        descriptor, temporary = tempfile.mkstemp(prefix=".dpctl-", dir=directory)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, target)
        temporary = None
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as e:
        raise _cannot_write(path, e) from e
    finally:
        if temporary is not None:
            os.unlink(temporary)


def _cannot_write(path: str, error: OSError) -> DeniedError | UnreachableError:
    hint = "Choose another file, or set the environment variable instead."
    if isinstance(error, PermissionError):
        return DeniedError(f"may not write {path}", hint)
    return UnreachableError(f"cannot write {path}: {error.strerror}", hint)


def _example() -> str:
    return 'kubelet-root = "/data/kubelet"'
