"""The dashboard: a poller posts Snapshots, pages show the rows that the commands print.

`frame`: lines of a screen. `facts`, `pages`: what one reading shows. `grid`, `reader`, `plan`: a
table, a text, a change on the screen. `prompt`: what is typed. `dashboard`: all of it, and what
each key does; `bars`: the lines around. These are pure: lines out, nothing read, written or drawn,
and they need no textual. `poller` reads in a thread, `app` is the terminal (the one file that
imports textual), `shot` an SVG.

No source is read here and nothing is decided: the command hands in what reads and what changes.
"""
