"""The primer's three functions: many dot products, the loss, one step of training."""

import torch.nn.functional as F
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim import Optimizer


def dot_products(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return the dot product of every row of `a` with every row of `b`.

    Entry (n, m) is Σ_d a[n, d] · b[m, d]: the matrix product a bᵀ is nothing but
    many dot products, one for each pair of rows.
    """
    return einsum(a, b, "n d, m d -> n m")


def cross_entropy(
    logits: Float[Tensor, "n classes"], targets: Int[Tensor, " n"]
) -> Float[Tensor, ""]:
    """Return the mean negative log-probability of the targets, in nats.

    `logits` are unnormalised scores, `targets` the number of the right class of each row.
    The softmax is taken as logit − log Σ exp(logits), which no size of logits overflows.
    Raises ValueError unless there is one target for each row; a target that is no class
    is an error too.
    """
    if len(targets) != len(logits):
        raise ValueError(f"{len(logits)} rows of logits but {len(targets)} targets")
    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
    target_log_probs = log_probs.gather(dim=-1, index=targets[:, None])
    return -target_log_probs.mean()


def training_step(
    model: nn.Module, optimizer: Optimizer, inputs: Tensor, targets: Int[Tensor, " n"]
) -> float:
    """Take one step of gradient descent and return the loss from before it.

    `model(inputs)` gives logits (n, classes); the loss is the cross-entropy in nats.
    """
    optimizer.zero_grad()  # backward() adds to the gradients that are already there
    loss = F.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()
