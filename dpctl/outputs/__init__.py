"""One file per way of writing rows as text. All pure but `terminal`, which looks at the stream.

`output.py` chooses among them; each is loaded only when its format is asked for.
"""
