"""Sandbox: where a student's code runs, what it sees there, and how its end is noticed.

`available` says which sandboxes there are on this machine and is quick to import; `sandbox`
starts one, with the student edition of the course (`edition`) and a `kernel` in it.
"""
