"""What chapter 07 claims: deep stacks at their start, who trains, first weights, and costs."""

from collections.abc import Mapping

from attn_course.blocks import EncoderBlock
from attn_course.experiments.ch07 import (
    StackSettings,
    alike_after,
    at_the_start,
    block_multiply_adds,
    linear_sizes,
    train_stack,
)
from attn_course.models import count_parameters
from benchmarks.claims import Claim

Figures = Mapping[str, float]


def accuracies(ways: Mapping[str, StackSettings], seed: int) -> Figures:
    """The accuracy of each kind of stack after its training."""
    return {name: train_stack(settings, seed=seed).accuracy for name, settings in ways.items()}


def without_residuals(seed: int) -> Figures:
    """How alike the tokens are after six fresh pre-norm blocks."""
    found = {
        name: at_the_start(StackSettings(norm="pre", residual=residual), seed=seed).alike[-1]
        for name, residual in (("with residuals", True), ("without", False))
    }
    return found


def alike_by_depth(seed: int) -> Figures:
    """How alike the tokens are at the end of fresh stacks."""
    return {
        f"{norm}, {depth} blocks": at_the_start(
            StackSettings(norm=norm, num_layers=depth), seed=seed
        ).alike[-1]
        for norm in ("post", "pre")
        for depth in (2, 6, 12, 24)
    }


def gradients_by_depth(seed: int) -> Figures:
    """The first block's gradient, and how it compares with the last one's."""
    found = {}
    for norm in ("post", "pre"):
        for depth in (2, 24):
            start = at_the_start(StackSettings(norm=norm, num_layers=depth), seed=seed)
            found[f"{norm}, {depth} blocks: first"] = start.gradients[0]
            found[f"{norm}, {depth} blocks: first / last"] = (
                start.gradients[0] / start.gradients[-1]
            )
    return found


def who_trains(seed: int) -> Figures:
    """Post- and pre-norm by depth, rate and warm-up; how alike the tokens are afterwards."""
    ways = {
        "post, cold": StackSettings(),
        "post, warm": StackSettings(warmup=100),
        "pre, cold": StackSettings(norm="pre"),
        "post, cold, smaller rate": StackSettings(lr=2e-3, steps=400),
        "post, cold, two blocks": StackSettings(num_layers=2),
    }
    runs = {name: train_stack(settings, seed=seed) for name, settings in ways.items()}
    alike = {
        f"{name}: tokens alike": alike_after(runs[name], ways[name], seed=seed)
        for name in ("post, cold", "post, warm", "pre, cold")
    }
    return {name: run.accuracy for name, run in runs.items()} | alike


def trained_without_residuals(seed: int) -> Figures:
    """Pre-norm blocks whose sublayers replace x."""
    return accuracies(
        {
            f"{depth} blocks": StackSettings(norm="pre", residual=False, num_layers=depth, lr=4e-3)
            for depth in (2, 6)
        },
        seed,
    )


def first_weights(seed: int) -> Figures:
    """Six blocks with matrices that start too small or too large."""
    return accuracies(
        {
            "post, cold, 0.1 × Xavier": StackSettings(start=0.1),
            "pre, cold, 3 × Xavier": StackSettings(norm="pre", start=3.0),
            "post, warm, 3 × Xavier": StackSettings(start=3.0, warmup=100),
        },
        seed,
    )


def matrices(seed: int) -> Figures:
    """The size of features after twelve matrices, without residual and norm."""
    return {
        f"{factor} × Xavier": linear_sizes(factor, 12, seed=seed)[-1] for factor in (0.3, 1.0, 3.0)
    }


def costs(seed: int) -> Figures:
    """A block's parameters and multiply-adds against the formulas."""
    block, products = EncoderBlock(512, 8, 2048), 64 * (12 * 512**2 + 2 * 64 * 512)
    return {
        "parameters / (12 d² + 13 d)": count_parameters(block) / (12 * 512**2 + 13 * 512),
        "multiply-adds / n (12 d² + 2 n d)": block_multiply_adds(512, 64) / products,
        "feed-forward's share": count_parameters(block.feed_forward) / count_parameters(block),
    }


CLAIMS = (
    Claim(
        "Without residuals the tokens are the same token after six fresh blocks.",
        without_residuals,
        lambda f: f["without"] > 0.99 and f["with residuals"] < 0.9,
    ),
    Claim(
        "With depth the tokens grow alike at the start, in post-norm to the same token.",
        alike_by_depth,
        lambda f: (
            f["post, 24 blocks"] > 0.95 > f["pre, 24 blocks"]
            and all(f[f"post, {n} blocks"] > f[f"pre, {n} blocks"] for n in (2, 6, 12, 24))
        ),
    ),
    Claim(
        "Before training no gradient has vanished: in post-norm the first block's may be a tenth.",
        gradients_by_depth,
        lambda f: (
            f["post, 24 blocks: first / last"] > 0.01 and f["pre, 24 blocks: first / last"] > 1
        ),
    ),
    Claim(
        "Post-norm needs a warm-up at this depth and rate; less rate or depth do as well. The "
        "stack that does not train ends with all tokens alike, those that do keep them apart.",
        who_trains,
        lambda f: (
            f["post, cold"] < 0.5
            and f["post, warm"] > 0.95
            and f["pre, cold"] > 0.95
            and f["post, cold, smaller rate"] > 0.95
            and f["post, cold, two blocks"] > 0.95
            and f["post, cold: tokens alike"] > 0.95
            and max(f["post, warm: tokens alike"], f["pre, cold: tokens alike"]) < 0.5
        ),
    ),
    Claim(
        "Without residuals two blocks train and six do not.",
        trained_without_residuals,
        lambda f: f["2 blocks"] > 0.95 and f["6 blocks"] < 0.6,
    ),
    Claim(
        "With norms and residuals a start that is too small does no harm, one too large does.",
        first_weights,
        lambda f: (
            f["post, cold, 0.1 × Xavier"] > 0.95
            and f["post, warm, 3 × Xavier"] < 0.5
            and f["pre, cold, 3 × Xavier"] < 0.85
        ),
    ),
    Claim(
        "Through twelve matrices in a row the features shrink, stay or explode with the factor.",
        matrices,
        lambda f: (
            f["0.3 × Xavier"] < 1e-5 and 0.3 < f["1.0 × Xavier"] < 3 and f["3.0 × Xavier"] > 1e5
        ),
    ),
    Claim(
        "A block has 12 d² + 13 d parameters and 12 d² + 2 n d multiply-adds a token.",
        costs,
        lambda f: (
            f["parameters / (12 d² + 13 d)"] == f["multiply-adds / n (12 d² + 2 n d)"] == 1
            and abs(f["feed-forward's share"] - 2 / 3) < 0.01
        ),
    ),
)
