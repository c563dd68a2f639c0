"""Attention as functions: the soft look-up, its two ways to score, and its softmax.

Row vectors throughout. i counts queries, j keys, d features; "*b" stands for any leading
axes (batch, heads). Functions that attend return (output, weights).
"""

from math import inf, sqrt

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attn_course.masks import check_mask, check_scores_shape


def embed(ids: Int[Tensor, "*b n"], table: Float[Tensor, "vocab d"]) -> Float[Tensor, "*b n d"]:
    """Replace each token id by its row of the embedding table.

    Raises ValueError for an id outside 0 … vocab − 1.
    """
    outside = ids[(ids < 0) | (ids >= len(table))]
    if len(outside) > 0:
        raise ValueError(f"ids must lie in 0 … {len(table) - 1}, got {outside.tolist()}")
    return table[ids]


def softmax(scores: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """Turn scores into weights that are positive and sum to one along `dim`.

    exp(s_j) / Σ_m exp(s_m), from scores of any size: a shift of all scores changes
    nothing, so the largest is moved to 0 and no exponential overflows.
    """
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


def attention_scores(
    query: Float[Tensor, "*b i d"], key: Float[Tensor, "*b j d"]
) -> Float[Tensor, "*b i j"]:
    """Score how well each key answers each query: their dot product, without a scale."""
    return einsum(query, key, "... i d, ... j d -> ... i j")


def project_qkv(
    x: Float[Tensor, "*b n d_model"],
    W_q: Float[Tensor, "d_model d_k"],
    W_k: Float[Tensor, "d_model d_k"],
    W_v: Float[Tensor, "d_model d_v"],
) -> tuple[Float[Tensor, "*b n d_k"], Float[Tensor, "*b n d_k"], Float[Tensor, "*b n d_v"]]:
    """Return what each token asks (query), what it is found by (key), what it gives (value).

    Row vectors: q = x W_q, with weights stored as (in, out).
    """
    return x @ W_q, x @ W_k, x @ W_v


def lookup(
    query: Float[Tensor, "*b i d_k"],
    key: Float[Tensor, "*b j d_k"],
    value: Float[Tensor, "*b j d_v"],
) -> tuple[Float[Tensor, "*b i d_v"], Float[Tensor, "*b i j"]]:
    """Look the queries up softly: the mean of all values, weighted by how their keys match.

    softmax(q kᵀ) v. There is no scale yet: why the scores want one as d_k grows is what
    `scaled_dot_product_attention` adds. Returns (output, weights).
    """
    scores = einsum(query, key, "... i d, ... j d -> ... i j")
    weights = scores.softmax(dim=-1)
    output = einsum(weights, value, "... i j, ... j d -> ... i d")
    return output, weights


def additive_attention(
    query: Float[Tensor, "*b i d_q"],
    key: Float[Tensor, "*b j d_k"],
    value: Float[Tensor, "*b j d_v"],
    W_q: Float[Tensor, "d_q d_hidden"],
    W_k: Float[Tensor, "d_k d_hidden"],
    w: Float[Tensor, " d_hidden"],
) -> tuple[Float[Tensor, "*b i d_v"], Float[Tensor, "*b i j"]]:
    """Attend with a small network as the score: w · tanh(q W_q + k W_k).

    Bahdanau et al. 2015, section A.1.2, where the query is the decoder's state and keys
    and values are the encoder's. Returns (output, weights).
    """
    asked = rearrange(query @ W_q, "... i d -> ... i 1 d")
    offered = rearrange(key @ W_k, "... j d -> ... 1 j d")
    scores = einsum(torch.tanh(asked + offered), w, "... i j d, d -> ... i j")
    weights = scores.softmax(dim=-1)
    output = einsum(weights, value, "... i j, ... j d -> ... i d")
    return output, weights


def attention_entropy(weights: Float[Tensor, "*b j"]) -> Float[Tensor, "*b"]:
    """Measure how widely attention is spread: −Σ_j p_j log p_j, in nats.

    0 when one key takes all, log n when n keys share alike. A weight of 0 counts for
    nothing (0 · log 0 = 0), in the gradient too.
    """
    # log 1 = 0 in place of log 0 = -inf, whose gradient would be NaN
    logs = weights.masked_fill(weights == 0, 1.0).log()
    return -(weights * logs).sum(dim=-1)


def softmax_gradient(
    scores: Float[Tensor, " n"], index: int, eps: float = 1e-5
) -> Float[Tensor, " n"]:
    """Measure how softmax(scores)[index] answers to a nudge of each of the n scores.

    Entry m is (p(s + ε e_m) − p(s − ε e_m)) / 2ε, with p the weight at `index` and e_m
    the step along score m. Computed and returned in float64: the difference of two nearly
    equal numbers keeps only the digits in which they differ. Raises ValueError unless eps
    is positive.
    """
    if eps <= 0:
        raise ValueError(f"a finite difference needs a step eps > 0, got eps={eps}")
    scores = scores.double()
    nudges = eps * torch.eye(len(scores), dtype=scores.dtype, device=scores.device)
    above = (scores + nudges).softmax(dim=-1)[:, index]  # row m: score m alone was moved
    below = (scores - nudges).softmax(dim=-1)[:, index]
    return (above - below) / (2 * eps)


def softmax_jacobian(weights: Float[Tensor, "*b n"]) -> Float[Tensor, "*b n n"]:
    """Return ∂ softmax(s)_i / ∂ s_j = p_i (δ_ij − p_j) from the weights p = softmax(s).

    diag(p) − p pᵀ: it vanishes when one weight takes all.
    """
    return torch.diag_embed(weights) - einsum(weights, weights, "... i, ... j -> ... i j")


def jacobian_sizes(weights: Float[Tensor, "*b n"]) -> Float[Tensor, "*b"]:
    """Return the Frobenius norm of ∂p/∂s for each row of weights p = softmax(s).

    Its square is Σ_ij p_i² (δ_ij − p_j)² = Σp² − 2 Σp³ + (Σp²)², so the Jacobian itself,
    n² numbers a row, need not be built.
    """
    squares = weights.square().sum(dim=-1)
    cubes = weights.pow(3).sum(dim=-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def scaled_dot_product_attention(
    query: Float[Tensor, "*b i d_k"],
    key: Float[Tensor, "*b j d_k"],
    value: Float[Tensor, "*b j d_v"],
    mask: Bool[Tensor, "*#b #i #j"] | None = None,
    *,
    bias: Float[Tensor, "*#b #i #j"] | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = True,
) -> tuple[Float[Tensor, "*b i d_v"], Float[Tensor, "*b i j"] | None]:
    """Return softmax(q kᵀ / √d_k) v and its weights (Vaswani et al. 2017, equation 1).

    mask: True means "may attend" (as in `F.scaled_dot_product_attention`); exactly (i, j),
        or as many axes as the scores, each of full size or 1. A query that may attend to
        nothing gets zeros, with finite gradients.
    bias: added to the scaled scores, for positions that work there; shaped as a mask.
    dropout_p: the chance that a weight is dropped before the sum, the rest scaled up by
        1 / (1 − dropout_p). The weights are returned as they were before it.
    need_weights: False takes PyTorch's fused kernel, which never builds the weights; in
        their place it returns None.

    Raises ValueError for shapes that do not fit, a mask that is not boolean, a dropout
    outside 0 ≤ p < 1.
    """
    _check_inputs(query, key, value, mask, bias, dropout_p)
    if not need_weights:
        return _fused_attention(query, key, value, mask, bias, dropout_p), None
    d_k = query.shape[-1]
    # divide first: in half precision the dot products of long vectors overflow
    scores = einsum(query / sqrt(d_k), key, "... i d, ... j d -> ... i j")
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)
        # the softmax of a row of -inf is NaN, in its gradient too: open the row, clear it after
        scores = scores.masked_fill(~(mask | empty), -inf)
        weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
    kept = F.dropout(weights, dropout_p) if dropout_p > 0 else weights
    output = einsum(kept, value, "... i j, ... j d -> ... i d")
    return output, weights


def cross_attention(
    x: Float[Tensor, "b i d_model"],
    memory: Float[Tensor, "b j d_memory"],
    W_q: Float[Tensor, "d_model d_k"],
    W_k: Float[Tensor, "d_memory d_k"],
    W_v: Float[Tensor, "d_memory d_v"],
    padding: Bool[Tensor, "b j"] | None = None,
) -> tuple[Float[Tensor, "b i d_v"], Float[Tensor, "b i j"] | None]:
    """Let one sequence look into another: x asks, the memory is found and gives.

    softmax((x W_q) (memory W_k)ᵀ / √d_k) memory W_v, one head without W_o (Vaswani et al.
    2017, section 3.2.3). The two lengths need not agree. Returns (output, weights).

    padding: True where the memory holds a token; other keys are hidden from every query. A
        memory without a token gives zeros.

    Raises ValueError for a padding that is not boolean or not (b, j), as the memory is.
    """
    if padding is None:
        return scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v)
    if padding.shape != memory.shape[:2]:
        raise ValueError(
            f"padding {tuple(padding.shape)} does not fit memory {tuple(memory.shape)}"
        )
    may_attend = rearrange(padding, "b j -> b 1 j")  # the same keys for every query
    return scaled_dot_product_attention(x @ W_q, memory @ W_k, memory @ W_v, may_attend)


def _fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    dropout_p: float,
) -> Tensor:
    additive = None if bias is None else bias.to(query.dtype)
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, additive, dropout_p)
    empty = ~mask.any(dim=-1, keepdim=True)
    # on a GPU looking would wait for it; here it spares a copy of the output
    some_empty = empty.device.type != "cpu" or bool(empty.any())
    if some_empty:
        mask = mask | empty  # the kernels differ in what they make of a row without keys
    if additive is not None:
        mask = additive.masked_fill(~mask, -inf)
    output = F.scaled_dot_product_attention(query, key, value, mask, dropout_p)
    return output.masked_fill(empty, 0.0) if some_empty else output


def check_fit(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise ValueError, with the shapes, unless these can attend: (*b, i, d), (*b, j, d) and
    (*b, j, d_v), all of them floating.
    """
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ValueError(f"attention needs (*b, n, d), got {shapes}")
    if not all(x.is_floating_point() for x in (query, key, value)):
        raise ValueError(f"attention needs floats, got {query.dtype}, {key.dtype}, {value.dtype}")
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        raise ValueError(f"the leading axes differ: {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key differ in d_k: {shapes}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"there must be one value for each key: {shapes}")


def _check_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    dropout_p: float,
) -> None:
    check_fit(query, key, value)
    if not 0 <= dropout_p < 1:
        raise ValueError(f"dropout_p={dropout_p} is not in 0 <= p < 1")
    scores_shape = (*query.shape[:-1], key.shape[-2])
    if mask is not None:
        check_mask(mask, scores_shape)
    if bias is not None:
        check_scores_shape("bias", bias, scores_shape)
