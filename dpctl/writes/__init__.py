"""The edge out: the only code that can change anything outside dpctl's own files.

Whoever audits dpctl reads this folder. What may be changed, and when, is decided in `changes`; here
a request is built and sent, and its bare answer comes back.
"""
