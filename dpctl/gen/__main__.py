"""`python -m dpctl.gen [DIRECTORY]`: write everything below DIRECTORY (default: the checkout)."""

from __future__ import annotations

import sys
from pathlib import Path

from dpctl import __version__
from dpctl.gen import bash, fish, man, tree, words, zsh


def generate() -> dict[str, str]:
    """Path below the checkout to contents."""
    root = tree.command_tree()
    return {
        "completions/dpctl.bash": bash.script(root),
        "completions/_dpctl": zsh.script(root),
        "completions/dpctl.fish": fish.script(root),
        "dpctl/_words.py": words.words_module(root),
        **{f"man/{name}": page for name, page in man.pages(root, __version__).items()},
    }


def main() -> int:
    base = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    files = generate()
    for path, contents in files.items():
        target = base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(contents, encoding="utf-8")
    for page in (base / "man").glob("dpctl*.1"):
        if f"man/{page.name}" not in files:
            page.unlink()  # of a command that is gone
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
