"""The hostile submissions of `hostile/`, as notebooks with the rows that are expected of them.

A file holds what it tries, `# expect: exercise status|status`, and cells after `# %%` lines.
`# in a container: status|status` where less is noticed, or something else, than in bubblewrap.
What it does not answer is answered honestly, and must be marked right, unless the file says that
it spoils its own kernel. `{project}` stands for the folder of the course that grades.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from attn_course.checks import get
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell

FOLDER = Path(__file__).parent / "hostile"
PROJECT = FOLDER.parents[2]
CHAPTER = "00"

HONEST = {
    "dot_products": "def dot_products(a, b):\n    return a @ b.T\n",
    "cross_entropy": (
        "def cross_entropy(logits, targets):\n"
        "    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)\n"
        "    return -log_probs[torch.arange(len(targets)), targets].mean()\n"
    ),
}


@dataclass(frozen=True)
class Hostile:
    """One hostile submission: the notebook, and the statuses that its exercise may end with.

    spoils: it breaks the kernel that it runs in, to the loss of its own later exercises.
    """

    rebuilt: Rebuilt
    exercise: str
    statuses: tuple[str, ...]
    statuses_in_a_container: tuple[str, ...]
    message: str
    spoils: bool


def read(path: Path) -> Hostile:
    """The case that a file describes."""
    text = path.read_text(encoding="utf-8").replace("{project}", PROJECT.as_posix())
    head, *parts = re.split(r"(?m)^# %% ", text)
    exercise, statuses = re.findall(r"# expect: (\w+) (\S+)", head)[0]
    contained = re.findall(r"# in a container: (\S+)", head) or [statuses]
    message = re.findall(r"# message: (.+)", head)
    own = {exercise: [part.partition("\n") for part in parts]}
    cells = [RebuiltCell("setup", "import torch")]
    for name, honest in (HONEST | {exercise: HONEST.get(exercise, "")}).items():
        task = get(name)
        for title, _, source in own.get(name, [(f"answer {name}", "\n", honest)]):
            if title == "helper":
                cells.append(RebuiltCell("helper", source))
            else:
                cells.append(RebuiltCell("answer", source, name, task.number, task.points))
        cells.append(RebuiltCell("check", "", name, task.number, task.points))
    rebuilt = Rebuilt(path.stem, CHAPTER, tuple(cells))
    return Hostile(
        rebuilt,
        exercise,
        tuple(statuses.split("|")),
        tuple(contained[0].split("|")),
        message[0] if message else "",
        "# spoils" in head,
    )


CASES = sorted(FOLDER.glob("*.py"))
