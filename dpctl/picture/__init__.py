"""The NUMA picture: as text (`boxes`), as SVG (`svg`), and the answer to `--fit` (`answer`).

Pure: rows in, text out, every text from outside escaped. What a row means is the inventory's; who
prints is `output`.
"""
