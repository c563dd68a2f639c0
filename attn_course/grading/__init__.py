"""Grading: collect, rebuild, run in a sandbox, judge outside it, report. `attn-course grade`."""
