"""The known mistakes of exercise 0.2, cross_entropy."""

from __future__ import annotations

import torch
from torch import Tensor

from attn_course.checks.exercise import Mistake


def in_three_steps(logits: Tensor, targets: Tensor) -> Tensor:
    """A right answer: log-probabilities, that of each row's target, and minus their mean."""
    log_probs = logits.log_softmax(dim=-1)
    chosen = log_probs[torch.arange(len(targets)), targets]
    return -chosen.mean()


FIRST = "log_probs ="
LOG_PROBS = "logits.log_softmax(dim=-1)"
INDEX = "[torch.arange(len(targets)), targets]"
LOSS = "-chosen.mean()"
ONE_HOT = "F.one_hot(targets, logits.shape[-1])"
YES_OR_NO = f"F.binary_cross_entropy_with_logits(logits, {ONE_HOT}.to(logits), reduction='none')"

BASE_TEN = "The logarithm has base 10; the loss is asked for in nats, base e."
LOGITS_CLAMPED = (
    "Logits beyond some limit are cut to it, so different logits get the same probability. The "
    "softmax does not change when the same number is taken from all logits of a row: no limit "
    "is needed."
)

MISTAKES = (
    Mistake(
        "sign-lost",
        "The minus sign is missing: this is the mean log-probability, which is never "
        "positive. Descending on it would make the right class less likely.",
        {"-chosen": "chosen"},
    ),
    Mistake(
        "sum-not-mean",
        "The losses of the rows are added up, not averaged: the loss grows with the batch.",
        {".mean()": ".sum()"},
    ),
    Mistake(
        "not-averaged",
        "One loss for each row comes back; their mean is asked for.",
        {".mean()": ""},
    ),
    Mistake(
        "always-zero",
        "The loss is 0 whatever the logits are. Does the loop add anything to the total? Is "
        "something taken from itself, or is the softmax taken over an axis of size 1?",
        {LOSS: "0 * logits.sum()"},
        also=({LOSS: "torch.zeros(())"},),
    ),
    Mistake(
        "axis-kept",
        "The number is right but keeps an axis of size 1; a loss has no axes.",
        {".mean()": ".mean()[None]"},
    ),
    Mistake(
        "mean-over-classes-too",
        "The sum is divided by rows times classes. The zeros of the wrong classes are no "
        "observations: divide by the number of rows.",
        {".mean()": ".mean() / logits.shape[1]"},
    ),
    Mistake(
        "divided-by-classes",
        "The sum is divided by the number of classes, not by the number of rows.",
        {".mean()": ".sum() / logits.shape[1]"},
    ),
    Mistake(
        "log-forgotten",
        "The probabilities of the targets are averaged without a logarithm.",
        {"log_softmax": "softmax"},
    ),
    Mistake(
        "log-of-mean",
        "The probabilities are averaged first and the logarithm is taken of the mean; "
        "the mean of the logarithms is another number.",
        {"log_softmax": "softmax", ".mean()": ".mean().log()"},
    ),
    Mistake(
        "shift-not-undone",
        "The largest logit is taken from those in the sum but not from the target's own, so "
        "the loss is too small by it. Take it from both, or give it back after the "
        "logarithm.",
        {
            FIRST: f"shifted = logits - logits.max(dim=-1, keepdim=True).values\n    {FIRST}",
            LOG_PROBS: "logits - shifted.logsumexp(dim=-1, keepdim=True)",
        },
    ),
    Mistake(
        "softmax-forgotten",
        "The logits are taken for log-probabilities: nothing makes the classes of a row "
        "compete. Where is the softmax?",
        {LOG_PROBS: "logits"},
    ),
    Mistake(
        "log-of-logits",
        "The logarithm is taken of the logits, which may be negative; it belongs on "
        "the probabilities that the softmax makes of them.",
        {LOG_PROBS: "logits.log()"},
    ),
    Mistake(
        "exp-forgotten",
        "The logits are divided by their sum: the softmax divides their exponentials.",
        {LOG_PROBS: "(logits / logits.sum(dim=-1, keepdim=True)).log()"},
    ),
    Mistake(
        "softmax-twice",
        "The softmax is taken twice: log_softmax (like every ready-made cross-entropy) "
        "wants logits, and gets probabilities.",
        {"logits.log": "logits.softmax(dim=-1).log"},
    ),
    Mistake(
        "sigmoid-for-softmax",
        "Each logit gets a probability of its own (a sigmoid); the classes of a row should "
        "share a probability of 1.",
        {LOG_PROBS: "F.logsigmoid(logits)"},
    ),
    Mistake(
        "softmax-over-rows",
        "The softmax runs over the rows: for one class the probabilities sum to one, but "
        "for one row they do not.",
        {"dim=-1": "dim=0"},
    ),
    Mistake(
        "sums-misaligned",
        "The sum over the classes has lost its axis, so the sum of row k meets column k. "
        "With keepdim=True it stays a column, (n, 1), and fits its own row.",
        {LOG_PROBS: "logits - logits.logsumexp(dim=-1)"},
    ),
    Mistake(
        "softmax-over-all",
        "One softmax runs over the whole table; each row needs its own sum.",
        {LOG_PROBS: "logits - logits.flatten().logsumexp(dim=0)"},
    ),
    Mistake("base-ten", BASE_TEN, {".mean()": ".mean() / math.log(10)"}),
    Mistake(
        "base-two",
        "The logarithm has base 2 (bits); the loss is asked for in nats, base e.",
        {".mean()": ".mean() / math.log(2)"},
    ),
    Mistake(
        "divided-by-fixed-number",
        "The sum is divided by a fixed number.",
        examples=tuple({".mean()": f".sum() / {count}"} for count in (4, 32, 100)),
    ),
    Mistake(
        "every-target-in-every-row",
        "Each row is read at the targets of all rows: indexing with `[:, targets]` gives "
        "(n, n). Row k should be read at target k only.",
        {INDEX: "[:, targets]"},
    ),
    Mistake(
        "index-exchanged",
        "Rows and classes are exchanged in the index: the first axis counts the rows.",
        {INDEX: "[targets, torch.arange(len(targets))]"},
    ),
    Mistake(
        "class-off-by-one",
        "The class before the target is read: classes count from 0, as indices do.",
        {", targets]": ", targets - 1]"},
    ),
    Mistake(
        "all-classes-averaged",
        "The targets make no difference: −log p is averaged over all classes.",
        {"-chosen": "-log_probs"},
    ),
    Mistake(
        "entropy",
        "The targets make no difference: this is the entropy of the predictions.",
        {"-chosen": "-(log_probs.exp() * log_probs).sum(dim=-1)"},
    ),
    Mistake(
        "best-class",
        "The targets make no difference: the likeliest class is taken for the right one.",
        {"-chosen": "-log_probs.max(dim=-1).values"},
    ),
    Mistake(
        "first-row-only",
        "Only the first row counts: does a `return` stand inside the loop?",
        {".mean()": "[0]"},
    ),
    Mistake(
        "last-row-only",
        "Only the last row counts: does the loop overwrite instead of adding up?",
        {".mean()": "[-1]"},
    ),
    Mistake(
        "accuracy",
        "This is the share of rows whose largest logit is the target: accuracy, no loss.",
        {LOSS: "(logits.argmax(dim=-1) == targets).to(logits.dtype).mean()"},
    ),
    Mistake("perplexity", "This is exp of the loss, the perplexity.", {LOSS: f"({LOSS}).exp()"}),
    Mistake(
        "squared-error",
        "This is the squared difference of probabilities and one-hot targets.",
        {LOSS: f"(logits.softmax(dim=-1) - {ONE_HOT}).square().mean()"},
    ),
    Mistake(
        "binary-cross-entropy",
        "−log(1 − p) of the wrong classes is added. The softmax has seen to them already: "
        "only the target's term counts.",
        {
            FIRST: f"probs, right = logits.softmax(dim=-1), {ONE_HOT}\n    {FIRST}",
            LOSS: "-(right * probs.log() + (1 - right) * (1 - probs).log()).sum(dim=-1).mean()",
        },
    ),
    Mistake(
        "yes-or-no-for-each-class",
        "Each class gets a yes-or-no loss of its own (a sigmoid and a binary cross-entropy). "
        "The classes of a row share a probability of 1: one softmax, and the target's term "
        "alone.",
        {LOSS: f"{YES_OR_NO}.mean()"},
        also=({LOSS: f"{YES_OR_NO}.sum(dim=-1).mean()"},),
    ),
    Mistake(
        "one-hot-of-those-present",
        "The one-hot vectors are only as long as the largest target that occurs, so they do "
        "not fit as soon as the last class is not there. How many classes are there in all?",
        {f"log_probs{INDEX}": "(F.one_hot(targets) * log_probs).sum(dim=-1)"},
    ),
    Mistake(
        "sum-detached",
        "The numbers are right, but the sum of the exponentials is cut off from the "
        "gradient, so nothing pushes the wrong classes down.",
        {LOG_PROBS: "logits - logits.logsumexp(dim=-1, keepdim=True).detach()"},
    ),
    Mistake(
        "detached",
        "The numbers are right, but the loss is cut off from the logits, so nothing can "
        "learn from it: keep tensors all the way (no item, tolist, numpy, detach, "
        "torch.tensor(…)).",
        {"logits.log": "logits.detach().log"},
    ),
    Mistake(
        "number-returned",
        "A plain number comes back, cut off from the logits, so nothing can learn from it: "
        "return the tensor.",
        {".mean()": ".mean().item()"},
    ),
    Mistake(
        "overflow",
        "exp of a logit of 1000 is infinite, and what is computed from it is lost. The "
        "softmax does not change when the same number is taken from all logits of a row.",
        {LOG_PROBS: "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()"},
        also=({LOG_PROBS: "logits - logits.exp().sum(dim=-1, keepdim=True).log()"},),
    ),
    Mistake(
        "log-of-zero",
        "A probability below the smallest float32 number became 0, and its logarithm is "
        "infinite. Simplify log(exp(x) / Σ exp) on paper: no probability is needed.",
        {"log_softmax(dim=-1)": "softmax(dim=-1).log()"},
    ),
    Mistake(
        "one-maximum-for-all",
        "The largest logit of the whole table is subtracted everywhere, so the exponentials "
        "of a row far below it are all 0: each row needs its own largest logit.",
        {
            FIRST: f"shifted = logits - logits.max()\n    {FIRST}",
            LOG_PROBS: "shifted - shifted.exp().sum(dim=-1, keepdim=True).log()",
        },
    ),
    Mistake(
        "constant-in-log",
        "A constant is added under the logarithm, which caps the loss.",
        examples=tuple(
            {LOG_PROBS: f"(logits.softmax(dim=-1) + {constant}).log()"}
            for constant in (1e-8, 1e-9, 1e-12, 1e-20)
        ),
    ),
    Mistake(
        "logits-clamped",
        LOGITS_CLAMPED,
        examples=tuple(
            {"logits.log": f"logits.clamp(-{limit}, {limit}).log"} for limit in (50, 80, 20)
        ),
    ),
    Mistake(
        "loss-cut-off",
        "One row's loss is cut off at a limit.",
        examples=tuple({".mean()": f".clamp(min=-{limit}).mean()"} for limit in (100, 200)),
    ),
    Mistake(
        "logits-altered",
        "The caller's logits are changed in place (`-=` writes into them).",
        {FIRST: f"logits -= logits.max(dim=-1, keepdim=True).values\n    {FIRST}"},
    ),
)
