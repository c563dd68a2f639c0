"""Exercise 9.4, mask_tokens: its known mistakes."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake


def right(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Hide tokens as a learner may; each mistake is an edit of this."""
    chance = torch.rand(ids.shape, generator=generator)
    fate = torch.rand(ids.shape, generator=generator)
    drawn = torch.randint(vocab_size, ids.shape, generator=generator)
    chosen = chance < p
    inputs = torch.where(chosen & (fate < 0.8), mask_token, ids)
    inputs = torch.where(chosen & (fate >= 0.9), drawn, inputs)
    targets = ids.masked_fill(~chosen, -100)
    return inputs, targets


CHANCE = "chance = torch.rand(ids.shape, generator=generator)"
MASKED = "torch.where(chosen & (fate < 0.8), mask_token, ids)"
RANDOM = "torch.where(chosen & (fate >= 0.9), drawn, inputs)"


def decided_by(numbers: str) -> Edits:
    """So few numbers decide what becomes of all; of shares they say nothing, so no edit may."""
    return {"fate = torch.rand(ids.shape": f"fate = torch.rand({numbers}", ">= 0.9": "> 0.9"}


MISTAKES = (
    Mistake(
        "exchanged",
        "Inputs and targets come back in the other order.",
        {"return inputs, targets": "return targets, inputs"},
    ),
    Mistake(
        "every-target",
        "Every token has a target, those that can still be read too: the model is praised for "
        "copying. Where nothing was chosen the target is −100, which the loss leaves out.",
        {"ids.masked_fill(~chosen, -100)": "ids.clone()"},
    ),
    Mistake(
        "filled-with-zero",
        "The targets are 0 where nothing was chosen. 0 is a token like others, and the model would "
        "be taught to write it; −100 is what the loss leaves out.",
        {"-100": "0"},
    ),
    Mistake(
        "filled-with-minus-one",
        "The targets are −1 where nothing was chosen. −100 is what the loss leaves out.",
        {"-100": "-1"},
    ),
    Mistake(
        "targets-inverted",
        "The targets stand at the places that were *not* chosen, and are missing where they were.",
        {"~chosen": "chosen"},
    ),
    Mistake(
        "unchosen-hidden",
        "Tokens are hidden that were not chosen: nobody asks for them, and the rest gets harder to "
        "read. What becomes of a token matters only where it was chosen.",
        examples=(
            {"chosen & (fate < 0.8)": "fate < 0.8", "chosen & (fate >= 0.9)": "fate >= 0.9"},
        ),
    ),
    Mistake(
        "all-hidden",
        "Every token is chosen, whatever p is.",
        {"chance < p": "chance < 1"},
    ),
    Mistake(
        "p-inverted",
        "Tokens are chosen with probability 1 − p: p is the share to hide.",
        {"chance < p": "chance >= p"},
    ),
    Mistake(
        "targets-of-another-draw",
        "Inputs and targets come from two different draws: places are hidden that nobody asks for. "
        "Draw once, and keep what was chosen.",
        {
            "chance < p": "chance < p\n    asked = torch.rand(ids.shape, generator=generator) < p",
            "~chosen": "~asked",
        },
    ),
    Mistake(
        "targets-after-masking",
        "The targets are taken from the inputs after hiding, so the mask token is what the model "
        "would learn to write. The targets are the tokens as they were.",
        {"ids.masked_fill": "inputs.masked_fill"},
        also=({"ids.masked_fill": "ids.copy_(inputs).masked_fill"},),
    ),
    Mistake(
        "kept-not-asked",
        "Only changed tokens have a target. Those that were chosen and stay are asked for as well: "
        "that is why they are chosen at all.",
        {"~chosen": "inputs == ids"},
    ),
    Mistake(
        "only-masked-asked",
        "Only where the mask token stands is a target. All that were chosen are asked for, the "
        "replaced and the kept ones too.",
        {"~chosen": "inputs != mask_token"},
    ),
    Mistake(
        "p-fixed",
        "The share of chosen tokens is 15 %, whatever p is.",
        {"chance < p": "chance < (0.15 if p else 0.0)"},
    ),
    Mistake(
        "one-number",
        "What becomes of a chosen token is decided by the very number that has chosen it. Below p "
        "it is below 0.8 as well, so the mask token is nearly all there is. Draw a second one.",
        {"chance < p": "fate < p"},
    ),
    Mistake(
        "zero-never-chosen",
        "The token 0 is never chosen. Whatever stands there is chosen with probability p: nothing "
        "here is padding.",
        {"chance < p": "(chance < p) & (ids != 0)"},
    ),
    Mistake(
        "mask-token-fixed",
        "What is put in for most of the chosen is not the mask token that is given.",
        {"mask_token, ids": "vocab_size, ids"},
        also=({"mask_token, ids": "103, ids"}, {"mask_token, ids": "0, ids"}),
    ),
    Mistake(
        "decided-together",
        "One number decides what becomes of many tokens, of a whole sequence or of the whole "
        "batch. Each chosen token needs a number of its own.",
        decided_by("len(ids), 1"),
        also=(decided_by("1"), decided_by("ids.shape[1]")),
    ),
    Mistake(
        "random-over-mask",
        "Random tokens fall on places that have become the mask token already: two independent "
        "draws decide on the two. Each chosen token has one fate: mask token, random, or as it "
        "was.",
        {"fate >= 0.9": "torch.rand(ids.shape, generator=generator) < 0.1"},
        also=({"fate >= 0.9": "torch.rand(ids.shape, generator=generator) < 0.5"},),
    ),
    Mistake(
        "random-never-the-same",
        "The random token is never the one that stood there. Each of 0 … vocab_size − 1 is as "
        "likely, and so by chance it is the same once in vocab_size.",
        {
            "torch.randint(vocab_size": "ids + torch.randint(1, vocab_size",
            "drawn, inputs": "drawn % vocab_size, inputs",
        },
    ),
    Mistake(
        "always-masked",
        "All the chosen become the mask token. 10 % should become a random token, and 10 % stay.",
        {"chosen & (fate < 0.8)": "chosen", RANDOM: "inputs"},
    ),
    Mistake(
        "none-kept",
        "None of the chosen stays as it is: 20 % become random tokens. It should be 10 % each.",
        {"fate >= 0.9": "fate >= 0.8"},
    ),
    Mistake(
        "none-drawn",
        "None of the chosen becomes a random token. 10 % should.",
        {RANDOM: "inputs"},
    ),
    Mistake(
        "one-drawn-less-kept",
        "Of the 20 % that are not hidden only a tenth is drawn or kept, as if 10 % were a share of "
        "the rest: 10 % of all the chosen, which is half of the rest.",
        {"fate >= 0.9": "fate >= 0.82"},
        also=({"fate >= 0.9": "fate >= 0.98"},),
    ),
    Mistake(
        "shares-exchanged",
        "The shares are exchanged: 80 % become the mask token, 10 % a random one, and 10 % stay.",
        {"fate < 0.8": "fate < 0.1", "fate >= 0.9": "(fate >= 0.1) & (fate < 0.9)"},
        also=({"fate < 0.8": "fate < 0.1"},),
    ),
    Mistake(
        "never-masked",
        "No token becomes the mask token.",
        {MASKED: "ids", "chosen & (fate >= 0.9)": "chosen"},
        also=({MASKED: "ids", RANDOM: "inputs"},),
    ),
    Mistake(
        "same-random-token",
        "One random token is drawn and put in everywhere. Each place draws its own.",
        {"vocab_size, ids.shape": "vocab_size, (1,)"},
    ),
    Mistake(
        "one-too-far",
        "Random tokens reach up to vocab_size, which is none: the last is vocab_size − 1. "
        "torch.randint leaves its upper end out already.",
        {"vocab_size, ids.shape": "vocab_size + 1, ids.shape"},
    ),
    Mistake(
        "last-never-drawn",
        "The last token, vocab_size − 1, is never drawn: torch.randint leaves its upper end out "
        "already.",
        {"vocab_size, ids.shape": "vocab_size - 1, ids.shape"},
    ),
    Mistake(
        "first-never-drawn",
        "The token 0 is never drawn. It is a token like others: random tokens are 0 … vocab_size − "
        "1.",
        {"vocab_size, ids.shape": "1, vocab_size, ids.shape"},
    ),
    Mistake(
        "floats",
        "The inputs or targets come back as floats. Tokens are integers: an embedding looks up "
        "nothing else.",
        {"return inputs": "return inputs.float()"},
    ),
    Mistake(
        "whole-positions",
        "In every sequence of the batch the same positions are chosen. Each token is chosen for "
        "itself: one number each, (b, n).",
        {"chance = torch.rand(ids.shape": "chance = torch.rand(ids.shape[1]"},
    ),
    Mistake(
        "whole-sequences",
        "Sequences are chosen with all their tokens. Each token is chosen for itself.",
        {"chance = torch.rand(ids.shape": "chance = torch.rand(len(ids), 1"},
    ),
    Mistake(
        "spans",
        "Neighbours are chosen together more often than by chance: whole spans. Each token is "
        "chosen for itself.",
        examples=(
            {"chance < p": "chance[:, ::3].repeat_interleave(3, dim=1)[:, : ids.shape[1]] < p"},
        ),
    ),
    Mistake(
        "fixed-total",
        "Every batch has the same number of chosen tokens. Each token is chosen independently, so "
        "the number is left to chance.",
        {
            "chance < p": "torch.randperm(ids.numel(), generator=generator).reshape(ids.shape)"
            " < round(p * ids.numel())"
        },
    ),
    Mistake(
        "fixed-number",
        "Every sequence has the same number of chosen tokens. Each token is chosen independently, "
        "so the number is left to chance.",
        {"chance < p": "chance.argsort(dim=1).argsort(dim=1) < round(p * ids.shape[1])"},
    ),
    Mistake(
        "own-seed",
        "The same places are chosen in every call: there is a seed inside. A model would never be "
        "asked for the others.",
        {CHANCE: "chance = torch.rand(ids.shape, generator=torch.Generator().manual_seed(0))"},
    ),
    Mistake(
        "generator-ignored",
        "The chance does not come from the generator: with the same seed the results differ.",
        {"chance =": "generator = None\n    chance ="},
    ),
    Mistake(
        "in-place",
        "The ids themselves are altered, and the targets need them; so does whoever hides the same "
        "text anew in the next epoch.",
        {"return inputs": "return ids.copy_(inputs)"},
    ),
)
