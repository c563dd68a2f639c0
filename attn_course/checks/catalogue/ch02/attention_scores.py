"""Exercise 2.3, attention_scores: its probes and its known mistakes."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Generator, Tensor

from attn_course.attention import attention_scores
from attn_course.checks.catalogue.families.gradient import detached
from attn_course.checks.exercise import Exercise, Mistake, Output, Stage, normal, tenths
from attn_course.checks.gradients import gradient_stage
from attn_course.sentences import joined

# -- probes -----------------------------------------------------------------------------------


def draw_pairs(rng: Generator) -> Iterator[tuple]:
    """One sequence of queries, one of keys, of different lengths."""
    yield tenths(rng, 1, 2), tenths(rng, 3, 2)
    yield normal(rng, 4, 3), normal(rng, 2, 3)
    yield normal(rng, 2, 7), normal(rng, 5, 7)


def draw_leading(rng: Generator) -> Iterator[tuple]:
    """One and two leading axes, all sizes different."""
    yield normal(rng, 5, 2, 3), normal(rng, 5, 4, 3)
    yield normal(rng, 2, 3, 4, 6), normal(rng, 2, 3, 5, 6)


def draw_equal_sizes(rng: Generator) -> Iterator[tuple]:
    """Sizes that coincide, so that no wrong axis raises an error."""
    yield normal(rng, 3, 4), normal(rng, 4, 4)
    yield normal(rng, 4, 3), normal(rng, 4, 3)
    yield normal(rng, 4, 4), normal(rng, 4, 4)
    yield normal(rng, 3, 3, 5), normal(rng, 3, 3, 5)
    yield normal(rng, 3, 3, 3), normal(rng, 3, 3, 3)
    yield normal(rng, 3, 3, 3, 3), normal(rng, 3, 3, 3, 3)


def draw_to_train(rng: Generator) -> Iterator[tuple]:
    """Gradients with respect to both arguments."""
    yield tenths(rng, 2, 2), tenths(rng, 3, 2)


# -- a right answer and what goes wrong in it --------------------------------------------------


def scored(query: Tensor, key: Tensor) -> Tensor:
    """The right answer that the mistakes edit."""
    scores = query @ key.mT
    return scores


PRODUCT = "query @ key.mT"
RETURN = "return scores"

KEY_AXES = (
    "The wrong axes of key are exchanged: exchange its last two (position and feature) and leave "
    "all leading ones where they are, however many there are."
)
ALL_SIZES_EQUAL = "Where all sizes are equal nothing tells you so but the numbers."

MISTAKES = (
    Mistake(
        "scaled",
        "The scores are divided by √d. That belongs to chapter 03; here they are the dot "
        "products themselves.",
        {RETURN: "return scores / math.sqrt(query.shape[-1])"},
    ),
    Mistake(
        "mean-over-features",
        "The products of the features are averaged (or the scores divided by d); a dot "
        "product is their sum.",
        {RETURN: "return scores / query.shape[-1]"},
    ),
    Mistake(
        "transposed",
        "Queries and keys are exchanged: rows belong to queries, columns to keys.",
        {PRODUCT: "key @ query.mT"},
    ),
    Mistake(
        "softmax-applied",
        "These are weights: a softmax has been applied. The scores are what goes into it.",
        {RETURN: "return scores.softmax(dim=-1)"},
    ),
    Mistake(
        "exponentials",
        "These are exponentials of the scores; the softmax takes them later.",
        {RETURN: "return scores.exp()"},
    ),
    Mistake(
        "cosine",
        "This is a cosine: both vectors are brought to length 1 first. The length of a vector "
        "counts in a dot product.",
        {PRODUCT: "F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT"},
    ),
    Mistake(
        "query-normalised",
        "This is a cosine: half of one, since the queries are brought to length 1. The length of a "
        "vector counts in a dot product.",
        {PRODUCT: "F.normalize(query, dim=-1) @ key.mT"},
    ),
    Mistake(
        "key-normalised",
        "This is a cosine: half of one, since the keys are brought to length 1. The length of a "
        "vector counts in a dot product.",
        {PRODUCT: "query @ F.normalize(key, dim=-1).mT"},
    ),
    Mistake(
        "distance",
        "This measures how far apart query and key are, with a minus sign, not their dot product.",
        {PRODUCT: "-torch.cdist(query, key)"},
    ),
    Mistake(
        "squared-distance",
        "This is the squared distance of query and key, with a minus sign, not their dot product.",
        {PRODUCT: "-(query[..., :, None, :] - key[..., None, :, :]).square().sum(dim=-1)"},
    ),
    Mistake(
        "absolute",
        "The sign is lost: a key that points away from the query scores below 0.",
        {RETURN: "return scores.abs()"},
    ),
    Mistake(
        "negative-cut-off",
        "Negative scores are set to 0: a key that points away from the query scores below 0.",
        {RETURN: "return scores.relu()"},
    ),
    Mistake(
        "key-not-transposed",
        "The key is multiplied as it stands, so its positions meet the query's features. It "
        "is the features of both that are to be summed over. Where all sizes are equal nothing "
        "tells you so but the numbers.",
        {PRODUCT: "query @ key"},
    ),
    Mistake(
        "sum-over-positions",
        "The sum runs over the positions and leaves pairs of features; it should run over "
        "the features and leave pairs of positions. Where all sizes are equal nothing tells you so "
        "but the numbers.",
        {PRODUCT: "query.mT @ key"},
    ),
    Mistake(
        "key-axes-reversed",
        joined([KEY_AXES, ALL_SIZES_EQUAL]),
        {PRODUCT: "query @ key.permute(*reversed(range(key.ndim)))"},
    ),
    Mistake(
        "first-axes-exchanged",
        joined([KEY_AXES, ALL_SIZES_EQUAL]),
        {PRODUCT: "query @ key.transpose(0, 1)"},
    ),
    Mistake(
        "axes-counted-from-left",
        joined(
            [
                KEY_AXES,
                "Counted from the left they have other numbers when there is no batch, or a head "
                "as well.",
            ]
        ),
        {PRODUCT: "query @ key.transpose(1, 2)"},
    ),
    Mistake(
        "reshaped-not-transposed",
        "The key gets the shape of its transpose, but its numbers stay in their old order: "
        "reshape and view count through, they exchange no axes.",
        {PRODUCT: "query @ key.reshape(*key.shape[:-2], *key.mT.shape[-2:])"},
    ),
    Mistake(
        "three-axes-only",
        "It takes a batch of sequences, three axes, and nothing else: there may be no leading "
        "axis, or several.",
        {PRODUCT: "torch.einsum('bid,bjd->bij', query, key)"},
        also=(
            {PRODUCT: "torch.bmm(query, key.mT)"},
            {PRODUCT: "torch.bmm(query, key.transpose(1, 2))"},
            {PRODUCT: "query @ key.permute(0, 2, 1)"},
        ),
    ),
    Mistake(
        "two-axes-only",
        "One sequence is right, and a batch of them is not: there may be any number of leading "
        "axes.",
        {PRODUCT: "torch.einsum('id,jd->ij', query, key)"},
        also=(
            {PRODUCT: "torch.mm(query, key.T)"},
            {PRODUCT: "query @ key.t()"},
        ),
    ),
    Mistake(
        "four-axes-only",
        "It takes batch and heads, four axes, and nothing else: there may be fewer leading "
        "axes, or none.",
        {PRODUCT: "torch.einsum('bhid,bhjd->bhij', query, key)"},
    ),
    Mistake(
        "every-batch-entry-with-every-other",
        "The queries of each batch entry meet the keys of all batch entries. Leading axes are "
        "walked along together: query and key of one entry.",
        {PRODUCT: "torch.inner(query, key)"},
    ),
    Mistake(
        "elementwise",
        "Query and key are multiplied feature by feature and not summed.",
        {PRODUCT: "query * key"},
    ),
    Mistake(
        "same-position-only",
        "Query i meets key i only. Every query meets every key.",
        {PRODUCT: "(query * key).sum(dim=-1)"},
    ),
    Mistake(
        "query-with-itself",
        "The queries are compared with each other; the keys never enter.",
        {PRODUCT: "query @ query.mT"},
    ),
    Mistake(
        "key-with-itself",
        "The keys are compared with each other; the queries never enter.",
        {PRODUCT: "key @ key.mT"},
    ),
    Mistake(
        "detached",
        "The scores are right, but no gradient passes through them. Do query and key pass "
        "through `.detach()`, `.data`, `.item()`, numpy or `torch.tensor(…)`?",
        detached("scores"),
    ),
)

EXERCISE = Exercise(
    number="2.3",
    reference=attention_scores,
    right=scored,
    outputs=(Output("scores", "b i j"),),
    difficulty=1,
    minutes=10,
    points=2,
    may_use="torch and einops",
    stages=(
        Stage(
            "pairs",
            draw_pairs,
            "Entry (i, j) should be the dot product of query i with key j, and nothing else.",
        ),
        Stage(
            "leading axes",
            draw_leading,
            "Two axes are right, more are not: each batch entry (and head) has its own queries "
            "and keys.",
        ),
        Stage(
            "equal sizes",
            draw_equal_sizes,
            "Here some sizes are equal, so that a wrong axis raises no error.",
        ),
        gradient_stage(draw_to_train, ("query", "key"), {"query": "i d", "key": "j d"}),
    ),
    mistakes=MISTAKES,
    hints=(
        "Write one entry: scores[i, j] = Σ_d query[i, d] · key[j, d]. Which index is summed "
        "over, which two remain?",
        "As an einops pattern the axes of query are `... i d`, those of key `... j d`. What "
        "remains stands after the arrow.",
        "As a matrix product, key needs its last two axes exchanged: `.mT` exchanges just these, "
        "whatever stands before them.",
    ),
)
