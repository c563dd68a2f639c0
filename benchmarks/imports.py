"""What importing the course costs, each in a fresh process."""

import subprocess
import sys
import time
from statistics import median


def import_ratio(ours: str, peer: str, rounds: int) -> float:
    """The median ratio of paired fresh processes that run one import statement each."""

    def once(statement: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        return time.perf_counter() - start

    once(ours)
    return median(once(ours) / once(peer) for _ in range(rounds))


def rows(rounds: int) -> list[dict]:
    """`import attn_course` alone, and with the names that a notebook begins with."""
    statements = {
        "import attn_course": "import attn_course",
        "from attn_course import check, and attention": (
            "from attn_course import check; "
            "from attn_course.attention import scaled_dot_product_attention"
        ),
    }
    found = []
    for name, statement in statements.items():
        ratio = import_ratio(statement, "import torch", rounds)
        found.append(
            {
                "row": name,
                "peer": "import torch",
                "time_ratio": round(ratio, 3),
                "memory_ratio": None,
                "reach": "time ≤ 1.15",
                "reached": ratio <= 1.15,
            }
        )
    return found
