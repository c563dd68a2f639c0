"""Exercise 9.4, mask_tokens: its known mistakes."""

from __future__ import annotations

import torch

from attn_course.checks.catalogue.ch09.mask_versions import (
    all_places,
    always_the_same,
    chance,
    deciding,
    each,
    exchanged,
    fixed_number,
    fixed_total,
    floats,
    in_place,
    in_spans,
    never_a_zero,
    never_the_same,
    one_for_all,
    one_number,
    overwriting,
    two_draws,
    unchosen_too,
    unseeded,
    version,
    whole_columns,
    whole_rows,
    with_mask_token,
)
from attn_course.checks.exercise import Mistake
from attn_course.tasks.base import IGNORE

MISTAKES = (
    Mistake(
        "exchanged",
        "Inputs and targets come back in the other order.",
        exchanged,
    ),
    Mistake(
        "every-target",
        "Every token has a target, those that can still be read too: the model is praised for "
        "copying. Where nothing was chosen the target is −100, which the loss leaves out.",
        version(targets=lambda ids, inputs, chosen: ids.clone()),
    ),
    Mistake(
        "filled-with-zero",
        "The targets are 0 where nothing was chosen. 0 is a token like others, and the model would "
        "be taught to write it; −100 is what the loss leaves out.",
        version(filler=0),
    ),
    Mistake(
        "filled-with-minus-one",
        "The targets are −1 where nothing was chosen. −100 is what the loss leaves out.",
        version(filler=-1),
    ),
    Mistake(
        "targets-inverted",
        "The targets stand at the places that were *not* chosen, and are missing where they were.",
        version(targets=lambda ids, inputs, chosen: ids.masked_fill(chosen, IGNORE)),
    ),
    Mistake(
        "unchosen-hidden",
        "Tokens are hidden that were not chosen: nobody asks for them, and the rest gets harder to "
        "read. What becomes of a token matters only where it was chosen.",
        examples=(unchosen_too,),
    ),
    Mistake(
        "all-hidden",
        "Every token is chosen, whatever p is.",
        all_places,
    ),
    Mistake(
        "p-inverted",
        "Tokens are chosen with probability 1 − p: p is the share to hide.",
        version(choose=lambda ids, p, generator: chance(ids, generator) >= p),
    ),
    Mistake(
        "targets-of-another-draw",
        "Inputs and targets come from two different draws: places are hidden that nobody asks for. "
        "Draw once, and keep what was chosen.",
        two_draws,
    ),
    Mistake(
        "targets-after-masking",
        "The targets are taken from the inputs after hiding, so the mask token is what the model "
        "would learn to write. The targets are the tokens as they were.",
        version(targets=lambda ids, inputs, chosen: inputs.masked_fill(~chosen, IGNORE)),
        also=(
            version(
                targets=lambda ids, inputs, chosen: ids.copy_(inputs).masked_fill(~chosen, IGNORE)
            ),
        ),
    ),
    Mistake(
        "kept-not-asked",
        "Only changed tokens have a target. Those that were chosen and stay are asked for as well: "
        "that is why they are chosen at all.",
        version(targets=lambda ids, inputs, chosen: ids.masked_fill(inputs == ids, IGNORE)),
    ),
    Mistake(
        "only-masked-asked",
        "Only where the mask token stands is a target. All that were chosen are asked for, the "
        "replaced and the kept ones too.",
        version(
            targets=lambda ids, inputs, chosen: ids.masked_fill(
                (inputs != inputs.max()) | ~chosen, IGNORE
            )
        ),
    ),
    Mistake(
        "p-fixed",
        "The share of chosen tokens is 15 %, whatever p is.",
        version(choose=lambda ids, p, generator: each(ids, 0.15 if p else 0.0, generator)),
    ),
    Mistake(
        "one-number",
        "What becomes of a chosen token is decided by the very number that has chosen it. Below p "
        "it is below 0.8 as well, so the mask token is nearly all there is. Draw a second one.",
        one_number,
    ),
    Mistake(
        "zero-never-chosen",
        "The token 0 is never chosen. Whatever stands there is chosen with probability p: nothing "
        "here is padding.",
        version(choose=never_a_zero),
    ),
    Mistake(
        "mask-token-fixed",
        "What is put in for most of the chosen is not the mask token that is given.",
        with_mask_token(lambda vocab_size: vocab_size),
        also=(with_mask_token(lambda vocab_size: 103), with_mask_token(lambda vocab_size: 0)),
    ),
    Mistake(
        "decided-together",
        "One number decides what becomes of many tokens, of a whole sequence or of the whole "
        "batch. Each chosen token needs a number of its own.",
        deciding(lambda ids, generator: torch.rand(len(ids), 1, generator=generator)),
        also=(
            deciding(lambda ids, generator: torch.rand(1, generator=generator)),
            deciding(lambda ids, generator: torch.rand(ids.shape[1], generator=generator)),
        ),
    ),
    Mistake(
        "random-over-mask",
        "Random tokens fall on places that have become the mask token already: two independent "
        "draws decide on the two. Each chosen token has one fate: mask token, random, or as it "
        "was.",
        overwriting(0.1),
        also=(overwriting(0.5),),
    ),
    Mistake(
        "random-never-the-same",
        "The random token is never the one that stood there. Each of 0 … vocab_size − 1 is as "
        "likely, and so by chance it is the same once in vocab_size.",
        never_the_same,
    ),
    Mistake(
        "always-masked",
        "All the chosen become the mask token. 10 % should become a random token, and 10 % stay.",
        version(masked=1.0, drawn=0.0),
    ),
    Mistake(
        "none-kept",
        "None of the chosen stays as it is: 20 % become random tokens. It should be 10 % each.",
        version(drawn=0.2),
    ),
    Mistake(
        "none-drawn",
        "None of the chosen becomes a random token. 10 % should.",
        version(drawn=0.0),
    ),
    Mistake(
        "one-drawn-less-kept",
        "Of the 20 % that are not hidden only a tenth is drawn or kept, as if 10 % were a share of "
        "the rest: 10 % of all the chosen, which is half of the rest.",
        version(drawn=0.18),
        also=(version(drawn=0.02),),
    ),
    Mistake(
        "shares-exchanged",
        "The shares are exchanged: 80 % become the mask token, 10 % a random one, and 10 % stay.",
        version(masked=0.1, drawn=0.8),
        also=(version(masked=0.1, drawn=0.1),),
    ),
    Mistake(
        "never-masked",
        "No token becomes the mask token.",
        version(masked=0.0, drawn=1.0),
        also=(version(masked=0.0, drawn=0.0),),
    ),
    Mistake(
        "same-random-token",
        "One random token is drawn and put in everywhere. Each place draws its own.",
        version(replacement=one_for_all),
    ),
    Mistake(
        "one-too-far",
        "Random tokens reach up to vocab_size, which is none: the last is vocab_size − 1. "
        "torch.randint leaves its upper end out already.",
        version(high=1),
    ),
    Mistake(
        "last-never-drawn",
        "The last token, vocab_size − 1, is never drawn: torch.randint leaves its upper end out "
        "already.",
        version(high=-1),
    ),
    Mistake(
        "first-never-drawn",
        "The token 0 is never drawn. It is a token like others: random tokens are 0 … vocab_size − "
        "1.",
        version(low=1),
    ),
    Mistake(
        "floats",
        "The inputs or targets come back as floats. Tokens are integers: an embedding looks up "
        "nothing else.",
        floats,
    ),
    Mistake(
        "whole-positions",
        "In every sequence of the batch the same positions are chosen. Each token is chosen for "
        "itself: one number each, (b, n).",
        version(choose=whole_columns),
    ),
    Mistake(
        "whole-sequences",
        "Sequences are chosen with all their tokens. Each token is chosen for itself.",
        version(choose=whole_rows),
    ),
    Mistake(
        "spans",
        "Neighbours are chosen together more often than by chance: whole spans. Each token is "
        "chosen for itself.",
        examples=(version(choose=in_spans),),
    ),
    Mistake(
        "fixed-total",
        "Every batch has the same number of chosen tokens. Each token is chosen independently, so "
        "the number is left to chance.",
        version(choose=fixed_total),
    ),
    Mistake(
        "fixed-number",
        "Every sequence has the same number of chosen tokens. Each token is chosen independently, "
        "so the number is left to chance.",
        version(choose=fixed_number),
    ),
    Mistake(
        "own-seed",
        "The same places are chosen in every call: there is a seed inside. A model would never be "
        "asked for the others.",
        version(choose=always_the_same),
    ),
    Mistake(
        "generator-ignored",
        "The chance does not come from the generator: with the same seed the results differ.",
        unseeded,
    ),
    Mistake(
        "in-place",
        "The ids themselves are altered, and the targets need them; so does whoever hides the same "
        "text anew in the next epoch.",
        in_place,
    ),
)
