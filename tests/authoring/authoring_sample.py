"""A chapter in miniature, in a checkout of its own: what the builder's tests build."""

from dataclasses import dataclass
from pathlib import Path

import attn_course
from attn_course import checks
from attn_course.authoring.layout import Course
from attn_course.checks.exercise import Exercise
from attn_course.checks.report import Report

STEM = "03_scaled_dot_product"

CHAPTER = '''\
# ---
# jupyter:
#   attn_course:
#     reading_minutes: 35
#     exercise_minutes: 60
# ---

# %% [markdown]
# The scores grow with $\\sqrt{d_k}$.
#
# ## Saturation

# %% part="both"
import matplotlib.pyplot as plt
import torch
from IPython.display import HTML
from ipywidgets import IntSlider

# %% [markdown] prediction="largest-weight"
# How large is the largest of two equal weights?
#
# number: 0 … 1, within 0.1

# %%
weights = torch.zeros(2).softmax(dim=-1)
print(f"largest weight {weights.max():.2f}")

# %%
reveal("largest-weight", float(weights.max()))

# %%
figure, axes = plt.subplots(figsize=(2, 1))
axes.bar(range(2), weights)
plt.show()

# %%
IntSlider(value=3, description="d_k")

# %% hide="input"
HTML("<p>two weights</p>")

# %% tags=["nbval-ignore-output"]
import time

time.time()

# %% [markdown]
# {{exercise: scaled_dot_product_attention}}

# %% [markdown] question="scale-purpose"
# What does dividing by √d_k keep constant as d_k grows?
#
# - [x] The variance of the scores
#   Each score is a sum of d_k terms.
# - [ ] The variance of the values
#   The values are not touched
#   before the weights are there.

# %% part="exercises"
probe = torch.eye(3)

# %% [markdown] exercise="scaled_dot_product_attention"
# Write equation 1.

# %% exercise="scaled_dot_product_attention"
from math import inf, sqrt

from attn_course.masks import causal_mask


def scaled_dot_product_attention(query, key, value, mask=None):
    """Return softmax(q kᵀ / √d_k) v and its weights."""
    ### BEGIN SOLUTION
    scores = query @ key.mT / sqrt(query.shape[-1])
    ### END SOLUTION
    if mask is not None:
        scores = scores.masked_fill(~mask, -inf)
    weights = scores.softmax(dim=-1)  # BLANK: from scores to weights
    weights = weights.nan_to_num()
    return weights @ value, weights

# %% part="exercises"
print(scaled_dot_product_attention(probe, probe, probe, causal_mask(3))[1].shape)
'''


@dataclass(frozen=True)
class Chosen:
    """The package's catalogue, cut down to the exercises that a test is about."""

    names: tuple[str, ...] = ("scaled_dot_product_attention",)

    def exercises(self) -> list[str]:
        return list(self.names)

    def get(self, name: str) -> Exercise:
        return checks.get(name)

    def check(self, answer: object, exercise: str) -> Report:
        return checks.check(answer, exercise)


def edit(course: Course, before: str, after: str) -> None:
    """Change the sample's source."""
    path = course.root / "chapters" / f"{STEM}.py"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def make_course(root: Path, text: str = CHAPTER, address: str = "") -> Course:
    """A checkout in `root` with the sample as its only chapter, and the package linked into it."""
    (root / "chapters").mkdir()
    (root / "chapters" / f"{STEM}.py").write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text(
        f'[project]\nname = "attn-course"\n[project.urls]\nRepository = "{address}"\n'
    )
    package = root / "attn_course"
    package.mkdir()
    for entry in Path(attn_course.__file__).parent.iterdir():
        if entry.name not in ("data", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    return Course(root)
