"""One file per top-level command, 40 to 150 lines: its options, what to collect, which rows.

How a command is written (`version.py` is the smallest one, `config.py` has subcommands):

    from dpctl.options import OUTPUT, READS, Common, declare

    @declare(*READS, examples='''
        # Everything a GPU plugin advertises here
        dpctl resources 'nvidia.com/*'
    ''')
    def command(
        common: Common,
        names: Annotated[list[str] | None, typer.Argument(metavar="[RESOURCE]...")] = None,
        stale: Annotated[bool, typer.Option("--stale", help="…")] = False,
    ) -> int | None:
        '''One line: the question it answers.

        More, for --help and the manual page.
        '''

* The module `dpctl/commands/<name>.py` has `command`, the command itself, or `SUBCOMMANDS`, a
  mapping of name to function made by `declare`, or both: then a first word that is a subcommand's
  name is the subcommand (`dpctl pods prune`).
* `common` comes first. Groups of shared options are asked for in `declare`; `common.settings` goes
  to `env.find_env`, `common.output` to `output.write`.
* The returned number is the exit code (None: 0). Everything else that goes wrong is raised as a
  `DpctlError`; `cli.py` prints it. A command never exits itself; what it says beside its output
  (a source that is missing, `-v`) goes through `streams.warn` and `streams.note`.
* Metavars tell TAB what to offer: RESOURCE, DEVICE, POD, NAMESPACE, NODE, ENDPOINT (values from
  `dpctl __complete`), FILE, DIR, BUNDLE (paths), FORMAT, WHEN, SHELL, STATE (fixed words).
* One line in `cli.py`'s `COMMANDS` makes the command known; then `make gen`.

Heavy rooms and libraries are imported inside the functions: `dpctl <command> --help` loads this
module, and nothing else that is slow.
"""
