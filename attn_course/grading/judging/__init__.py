"""Judging: one rebuilt notebook is run under nbval in a sandbox, and judged outside it.

`execute` starts a process for it (`child`), in which pytest runs nbval with our `plugin`; the
`session` runs the cells in a sandbox and has each answer judged (`assess`).
"""
