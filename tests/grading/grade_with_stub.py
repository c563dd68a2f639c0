"""One run of the grader with a stub in place of the kernel, as a process that can be killed.

python grade_with_stub.py SUBMISSIONS OUT LOG [SECONDS] [LARGEST_FILE]: every submission that
runs is a line in LOG when it begins, and takes SECONDS.
"""

import resource
import signal
import sys
import time
from pathlib import Path

from attn_course.grading import state
from attn_course.grading.run import Request, grade
from attn_course.grading.state import StorageError
from grading.notebooks import course, stub


def main(submissions: str, out: str, log: str, seconds: str = "0", largest: str = "") -> int:
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), resource.RLIM_INFINITY))

    state.package_digest = lambda: "settled"  # a test compares runs, whatever is edited meanwhile

    def executor(rebuilt, settings):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{rebuilt.student} {rebuilt.chapter}\n")
        time.sleep(float(seconds))
        return stub(rebuilt, settings)

    try:
        grade(Request(Path(submissions), Path(out), jobs=2, seed=7), executor, course=course())
    except (StorageError, OSError) as error:
        print(error)
        return 3
    return 0


if __name__ == "__main__":
    # what a shell starts in the background ignores Ctrl-C, and so does what that starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(*sys.argv[1:]))
