"""`python -m attn_course` is the `attn-course` command."""

from attn_course.cli import main

main(prog_name="attn-course")
