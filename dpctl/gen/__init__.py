"""Writes what is derived from the command tree: completions, manual pages, `_words.py`.

`python -m dpctl.gen [DIRECTORY]` writes; a test regenerates and compares, so nothing here may
depend on the day, the machine or a terminal. `tree.py` reads the parsers, the others only text.
"""
