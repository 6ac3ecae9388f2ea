"""The line that is typed: a command, a filter, a confirmation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpctl.tui.frame import Line, Span

_LONGEST = 300


class Prompt:
    """Text is only ever added and taken at its end, as on a command line that one hardly edits."""

    def __init__(
        self,
        mark: str,
        *,
        last: str = "",
        words: Sequence[str] = (),
        typed: Callable[[str], None] | None = None,
        entered: Callable[[str], None] | None = None,
        left: Callable[[], None] | None = None,
    ) -> None:
        """`last`: what Up brings back. `words`: what Tab completes. `typed` hears every change,
        `entered` the line on Enter, `left` Esc."""
        self.mark = mark
        self.text = ""
        self._last = last
        self._words = words
        self._typed = typed
        self._entered = entered
        self._left = left

    def press(self, key: str, character: str | None) -> bool:
        """True: the prompt is done with."""
        if key == "enter":
            if self._entered is not None:
                self._entered(self.text)
            return True
        if key == "escape" or (key == "backspace" and not self.text):
            if self._left is not None:
                self._left()
            return True
        before = self.text
        if key == "backspace":
            self.text = self.text[:-1]
        elif key == "ctrl+u":
            self.text = ""
        elif key == "ctrl+w":
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif key == "up":
            self.text = self._last or self.text
        elif key == "tab":
            self.text = self._completed()
        elif character is not None and character.isprintable():
            self.add(character)
            return False
        if self.text != before and self._typed is not None:
            self._typed(self.text)
        return False

    def add(self, text: str) -> None:
        """What was typed or pasted, without what a line cannot hold."""
        self.text = (self.text + "".join(c for c in text if c.isprintable()))[:_LONGEST]
        if self._typed is not None:
            self._typed(self.text)

    def line(self, room: int) -> Line:
        """The end of the text stays in sight."""
        most = max(room - len(self.mark) - 2, 8)
        shown = self.text[-most:]
        return (Span(f" {self.mark}", "accent"), Span(shown, "strong"), Span("▏", "accent"))

    def _completed(self) -> str:
        begun = [word for word in self._words if word.startswith(self.text)]
        return begun[0] if begun else self.text
