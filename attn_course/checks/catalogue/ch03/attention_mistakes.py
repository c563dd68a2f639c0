"""The mistakes that exercises 3.2 and 3.4 know by name."""

import math
from functools import partial

import torch

from attn_course.checks.catalogue.ch03 import attention_versions as wrong
from attn_course.checks.catalogue.ch03.attention_versions import (
    attention,
    filled_with,
    normalised_by,
    returning,
    scaled_by,
    with_mask,
)
from attn_course.checks.exercise import Mistake

_FACTOR = "Look at the factor between the dot product and the softmax: "

SCALE = (
    Mistake("no-scale", f"{_FACTOR}there is none.", scaled_by(lambda q, k, v: 1.0)),
    Mistake(
        "scale-by-d",
        f"{_FACTOR}the scores are divided by d_k, or twice by its root.",
        scaled_by(lambda q, k, v: 1 / q.shape[-1]),
    ),
    Mistake(
        "scale-inverted",
        f"{_FACTOR}the scores are multiplied by √d_k, which makes them larger.",
        scaled_by(lambda q, k, v: math.sqrt(q.shape[-1])),
    ),
    Mistake(
        "scale-by-keys",
        f"{_FACTOR}it follows the number of keys, not the width d_k.",
        scaled_by(lambda q, k, v: 1 / math.sqrt(k.shape[-2])),
    ),
    Mistake(
        "scale-by-queries",
        f"{_FACTOR}it follows the number of queries, not the width d_k.",
        scaled_by(lambda q, k, v: 1 / math.sqrt(q.shape[-2])),
    ),
    Mistake(
        "scale-by-values",
        f"{_FACTOR}it follows the width of the values, not that of query and key.",
        scaled_by(lambda q, k, v: 1 / math.sqrt(v.shape[-1])),
    ),
    Mistake(
        "scale-axis-counted-from-left",
        f"{_FACTOR}its axis is counted from the left, so it is d_k only as long as there are "
        "no leading axes (batch, heads).",
        scaled_by(lambda q, k, v: 1 / math.sqrt(q.shape[1])),
    ),
    Mistake(
        "scale-by-first-axis",
        f"{_FACTOR}it follows the size of a first axis, not that of query's last.",
        scaled_by(lambda q, k, v: 1 / math.sqrt(q.shape[0])),
        also=(scaled_by(lambda q, k, v: 1 / math.sqrt(k.shape[0])),),
    ),
    Mistake(
        "scale-after-softmax",
        "The scale is applied to the weights, after the softmax, so they no longer sum to one.",
        partial(
            attention,
            scale=lambda q, k, v: 1.0,
            after=lambda weights, query: weights / math.sqrt(query.shape[-1]),
        ),
    ),
    Mistake(
        "scale-on-output",
        "The scale is applied to the output. It belongs to the scores: after the softmax it "
        "only makes the result smaller.",
        lambda q, k, v, mask=None: (
            attention(q, k, v, mask, scale=lambda *_: 1.0)[0] / math.sqrt(q.shape[-1]),
            attention(q, k, v, mask, scale=lambda *_: 1.0)[1],
        ),
    ),
    Mistake(
        "fixed-scale",
        "The scores are multiplied by the same number whatever d_k is: "
        "the scale must come from the vectors' own width.",
        examples=(scaled_by(lambda q, k, v: 1 / 8), scaled_by(lambda q, k, v: 0.3)),
    ),
    Mistake(
        "cosine",
        "The vectors are divided by their lengths: a cosine, not a dot product. The scale "
        "depends on d_k alone; how long a query or a key is stays part of the score.",
        wrong.cosine,
    ),
)

SOFTMAX = (
    Mistake(
        "softmax-over-queries",
        "The softmax runs over the queries: for one key the weights sum to one, "
        "but for one query they do not.",
        normalised_by(lambda scores: scores.softmax(-2)),
    ),
    Mistake(
        "softmax-axis-counted-from-left",
        "The axis of the softmax is counted from the left, "
        "so it is another one as soon as there are more leading axes.",
        normalised_by(lambda scores: scores.softmax(1)),
    ),
    Mistake(
        "softmax-axis-for-three-axes",
        "The axis of the softmax is counted from the left: 2 is the keys' axis only where "
        "there is exactly one leading axis.",
        normalised_by(lambda scores: scores.softmax(2)),
    ),
    Mistake(
        "softmax-without-an-axis",
        "The softmax is not told its axis, and chooses the first or the second one by the number "
        "of axes. It should run over the keys, the last axis, always.",
        normalised_by(wrong.without_dim),
    ),
    Mistake(
        "softmax-over-first-axis",
        "The softmax runs over the first axis: without leading axes these are the queries, "
        "with them the sequences of the batch.",
        normalised_by(lambda scores: scores.softmax(0)),
    ),
    Mistake(
        "softmax-over-all-pairs",
        "The softmax runs over all pairs (i, j) of a sequence together; each query has a row "
        "of its own, and each row sums to one.",
        normalised_by(
            lambda scores: scores.flatten(-2).softmax(-1).unflatten(-1, scores.shape[-2:])
        ),
    ),
    Mistake(
        "softmax-twice",
        "The weights go through a second softmax, which makes them nearly equal.",
        normalised_by(lambda scores: scores.softmax(-1).softmax(-1)),
    ),
    Mistake(
        "log-softmax",
        "These are the logarithms of the weights: they are negative and do not sum to one.",
        normalised_by(lambda scores: scores.log_softmax(-1)),
    ),
    Mistake(
        "sigmoid",
        "Each score goes through a sigmoid by itself, so the keys do not compete and a row "
        "does not sum to one.",
        normalised_by(lambda scores: scores.sigmoid()),
    ),
    Mistake(
        "not-normalised",
        "The exponentials are not divided by their sum over the keys.",
        normalised_by(lambda scores: scores.exp()),
    ),
    Mistake(
        "sign-of-the-scores",
        "The better a key matches, the less weight it gets: the scores have the wrong sign.",
        normalised_by(lambda scores: (-scores).softmax(-1)),
    ),
    Mistake(
        "uniform-weights",
        "All keys get the same weight: the scores do not reach the softmax.",
        normalised_by(lambda scores: torch.zeros_like(scores).softmax(-1)),
    ),
    Mistake(
        "hard-choice",
        "All weight goes to the best key: this is a hard choice, not a softmax.",
        wrong.hard_choice,
    ),
    Mistake(
        "unstable-softmax",
        "exp of a large score is infinite, and exp of scores far below zero is 0 for all of "
        "them. The softmax does not change when the same number is taken from all scores of "
        "a row.",
        wrong.unstable,
    ),
    Mistake(
        "largest-of-all-taken-off",
        "The largest score of all is taken off before the exponential. For a row that lies far "
        "below it nothing is left: each row needs its own largest score taken off.",
        partial(wrong.without_largest_of_all, least=0.0),
        also=(partial(wrong.without_largest_of_all, least=1e-30),),
    ),
)

MASK = (
    Mistake(
        "mask-inverted",
        "True means “may attend” here, and the mask is used the other way round.",
        with_mask(lambda mask: ~mask),
    ),
    Mistake(
        "mask-ignored",
        "The mask changes nothing: it is never used, or what it gives is thrown away.",
        lambda q, k, v, mask=None: attention(q, k, v),
    ),
    Mistake(
        "mask-transposed",
        "Rows and columns of the mask are exchanged: mask[i, j] says whether query i may "
        "attend to key j.",
        with_mask(lambda mask: mask.mT),
    ),
    Mistake(
        "mask-first-row-for-all",
        "The first row of the mask decides for all queries; each query has a row of its own.",
        with_mask(lambda mask: mask[..., :1, :]),
    ),
    Mistake(
        "mask-with-an-axis-too-many",
        "The mask is given an axis between queries and keys, or before the queries, that its "
        "shape does not ask for: (i, j) broadcasts over all leading axes as it is.",
        with_mask(lambda mask: mask.unsqueeze(1)),
    ),
    Mistake(
        "mask-read-as-padding",
        "A mask (i, j) is read as padding (b, j) where the sizes allow it. Two axes are always "
        "queries and keys, whatever their sizes.",
        wrong.guessing_padding,
    ),
    Mistake(
        "mask-added",
        "The mask reaches the scores as 0 and 1 (added, or taken off): hidden keys are only 1 "
        "behind.",
        partial(attention, mask_scores=lambda scores, mask: scores + mask),
    ),
    Mistake(
        "mask-times-infinity",
        "Open keys become NaN: 0 times infinity is not 0. Choose between two scores; do not "
        "multiply infinity by a mask.",
        partial(attention, mask_scores=lambda scores, mask: scores + (~mask) * -math.inf),
    ),
    Mistake(
        "mask-as-index",
        "The mask is used as an index into the scores, which fails where they have leading axes "
        "that it has not: (i, j) must broadcast over them.",
        wrong.with_mask_as_index,
    ),
    Mistake(
        "mask-multiplied-after",
        "The mask is multiplied onto the weights after the softmax, "
        "so what is left in a row no longer sums to one.",
        partial(attention, mask_weights=lambda weights, mask: weights * mask),
    ),
    Mistake(
        "mask-filled-with-zero",
        "Hidden scores become about 0, and exp(0) is 1: hidden keys still get weight. "
        "Which number does the exponential turn into 0?",
        filled_with(0.0),
    ),
    Mistake(
        "mask-filled-with-plus-infinity",
        "Hidden scores become plus infinity: the sign is lost.",
        filled_with(math.inf),
    ),
    Mistake(
        "mask-filled-with-a-large-number",
        "Hidden scores become large and positive, so the hidden keys get all the weight: "
        "the sign is lost.",
        filled_with(1e9),
    ),
    Mistake(
        "fill-too-small",
        "Hidden keys get a score that is only somewhat low; beside lower ones it wins.",
        examples=(filled_with(-10.0), filled_with(-100.0), filled_with(-1000.0)),
    ),
    Mistake(
        "always-causal",
        "The future is hidden although no mask was given: attend to everything unless a mask "
        "says otherwise.",
        wrong.always_causal,
    ),
    Mistake(
        "causal-in-place-of-the-mask",
        "The mask that is given is not looked at: in its place a triangle of your own decides.",
        wrong.causal_when_masked,
    ),
    Mistake(
        "empty-row-nan",
        "A query that may attend to nothing gets NaN: a softmax over nothing but minus "
        "infinity is 0/0. It should get zeros.",
        filled_with(-math.inf),
    ),
    Mistake(
        "empty-row-mean",
        "A query that may attend to nothing gets the mean of all values, hidden ones "
        "included: with a finite fill, equal scores share alike. It should get zeros.",
        filled_with(-1e9),
    ),
    Mistake(
        "gradient-nan",
        "The output is clean, but the gradient is NaN: NaN arose inside and was "
        "replaced only at the end. It must not arise.",
        wrong.masked_gradient_nan,
    ),
)

RESULT = (
    Mistake(
        "key-axes-reversed",
        "The wrong axes of key are exchanged: it works for two axes only. Exchange the "
        "last two and leave all leading ones (batch, heads) where they are.",
        lambda q, k, v, mask=None: attention(q, k.transpose(0, 1).mT, v, mask),
        also=(
            lambda q, k, v, mask=None: attention(
                q, k.permute(*reversed(range(k.ndim))).mT, v, mask
            ),
        ),
    ),
    Mistake(
        "key-axes-for-three-axes",
        "The axes of key that are exchanged are counted from the left: 1 and 2 are its last two "
        "only where there is exactly one leading axis.",
        lambda q, k, v, mask=None: attention(q, k.transpose(1, 2).mT, v, mask),
    ),
    Mistake(
        "scores-returned",
        "The second value is the scores that go into the softmax, not the weights.",
        returning(lambda out, w, q, k, v: (out, q @ k.mT / math.sqrt(q.shape[-1]))),
    ),
    Mistake(
        "weights-summed-away",
        "The second value is summed over the keys; it should hold each weight.",
        returning(lambda out, w, q, k, v: (out, w.sum(-1))),
    ),
    Mistake(
        "multiplied-number-by-number",
        "query and key are multiplied number by number. A score is a sum of such products, one "
        "for each pair (i, j): a matrix product.",
        wrong.elementwise,
        also=(partial(wrong.elementwise, values_too=True),),
    ),
    Mistake(
        "dropout",
        "A part of the numbers is dropped. Nothing is to be dropped here.",
        examples=(wrong.dropping,),
    ),
    Mistake(
        "keys-summed",
        "The weighted sum is taken over the keys, not over the values.",
        wrong.keys_for_values,
    ),
    Mistake(
        "result-exchanged",
        "The two results are exchanged: the output comes first, then the weights.",
        returning(lambda out, w, q, k, v: (w, out)),
    ),
    Mistake(
        "detached",
        "No gradient flows back to the inputs: the result is detached (a numpy array, "
        "`.data`, `.detach()`, `.item()` or `no_grad` on the way), so nothing could learn.",
        returning(lambda out, w, q, k, v: (out.detach(), w.detach())),
    ),
    Mistake(
        "weights-detached",
        "The gradient reaches the values only: the weights are detached on the way to the "
        "sum, so queries and keys would never learn.",
        returning(lambda out, w, q, k, v: (w.detach() @ v, w)),
    ),
    Mistake(
        "query-altered",
        "The caller's query is changed in place (`/=` writes into it).",
        wrong.in_place,
    ),
)

MISTAKES = (*SCALE, *SOFTMAX, *MASK, *RESULT)
