"""A plugin's answer as text, each thing that it asks for against the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpctl.inventory.rows import AskedCdi, AskedDevice, AskedMount, PluginAnswer
from dpctl.outputs.describe import Part


def answer_entries(
    answer: PluginAnswer | None, cdi: Sequence[AskedCdi]
) -> list[tuple[str, object]]:
    """Entries of a description; without an answer the CDI names alone."""
    entries: list[tuple[str, object]] = []
    if answer is not None:
        if answer.envs:
            entries.append(("Environment", Part.of(answer.envs)))
        entries += _checked("Device nodes", (_device_node(d) for d in answer.device_nodes))
        entries += _checked("Mounts", (_mount(m) for m in answer.mounts))
        if answer.annotations:
            entries.append(("Annotations", Part.of(answer.annotations)))
    entries += _checked("CDI devices", (_cdi(c) for c in cdi))
    if answer is not None:
        clashes = ((f"{c.what} {c.key}: {c.problem}", c.advice) for c in answer.clashes)
        entries += _checked("Clashes", clashes)
    return entries


def _checked(title: str, lines: Iterable[tuple[str, str | None]]) -> list[tuple[str, object]]:
    """Each thing with how it is, and below what is wrong with it what to do."""
    texts = [
        text
        for line, advice in lines
        for text in ((line, f"  to do: {advice}") if advice else (line,))
    ]
    return [(title, tuple(texts))] if texts else []


def _device_node(asked: AskedDevice) -> tuple[str, str | None]:
    well = f"ok, {asked.kind} {asked.number or ''}".rstrip()
    if asked.kind == "directory":
        well = "ok, a directory: every device below it"
    what = f"{asked.host_path} at {asked.container_path} ({asked.permissions})"
    return f"{what}: {_verdict(asked.exists, asked.problem, well)}", asked.advice


def _mount(asked: AskedMount) -> tuple[str, str | None]:
    mode = "ro" if asked.read_only else "rw"
    what = f"{asked.host_path} at {asked.container_path} ({mode})"
    return f"{what}: {_verdict(asked.exists, asked.problem, f'ok, {asked.kind}')}", asked.advice


def _cdi(asked: AskedCdi) -> tuple[str, str | None]:
    what = asked.name if asked.annotation is None else f"{asked.name} (by annotation)"
    well = f"ok, resolved by {asked.file}"
    return f"{what}: {_verdict(asked.resolved, asked.problem, well)}", asked.advice


def _verdict(seen: bool | None, problem: str | None, well: str) -> str:
    return problem or (well if seen else "not checked")
