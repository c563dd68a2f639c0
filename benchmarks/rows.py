"""The rows of the table: what is compared, and what it has to reach."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.blocks import EncoderBlock
from attn_course.efficient import chunked_attention, sliding_window_attention
from attn_course.generation import generate
from attn_course.models import Config, DecoderLM
from attn_course.multihead import MultiHeadAttention
from benchmarks.measure import Work
from benchmarks.peers import (
    TextbookMultiHead,
    TorchDecoderLM,
    language_loss,
    textbook_attention,
)


@dataclass(frozen=True)
class Row:
    """One comparison; `pair` makes the work of ours and of the peer on a device in a dtype."""

    name: str
    peer: str
    pair: Callable[[torch.device, torch.dtype], tuple[Work, Work]]
    time: float
    memory: float | None = None
    note: str = ""

    @property
    def reach(self) -> str:
        """What the ratios must not exceed, in words."""
        memory = "" if self.memory is None else f", memory ≤ {self.memory:g}"
        return f"time ≤ {self.time:g}{memory}"


def multi_head(n: int, peer: str) -> Callable[[torch.device, torch.dtype], tuple[Work, Work]]:
    """Forward and backward of self-attention, b=8, d_model=256, 8 heads."""

    def pair(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
        ours = MultiHeadAttention(256, 8).to(device, dtype)
        x = torch.randn(8, n, 256, device=device, dtype=dtype, requires_grad=True)
        if peer == "torch":
            theirs = ours.to_torch()
            other = lambda: theirs(x, x, x, need_weights=False)[0]  # noqa: E731
        else:
            book = TextbookMultiHead(256, 8).to(device, dtype)
            other = lambda: book(x)  # noqa: E731
        return (
            lambda: ours(x, x, x, need_weights=False)[0].sum().backward(),
            lambda: other().sum().backward(),
        )

    return pair


def chunked(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
    """Forward without gradients, n=8192, 8 heads of 64."""
    q, k, v = (torch.randn(1, 8, 8192, 64, device=device, dtype=dtype) for _ in range(3))
    return lambda: chunked_attention(q, k, v), lambda: textbook_attention(q, k, v)


def window(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
    """A window of 128 keys at n=8192, 8 heads of 64."""
    q, k, v = (torch.randn(1, 8, 8192, 64, device=device, dtype=dtype) for _ in range(3))
    return (
        lambda: sliding_window_attention(q, k, v, 128),
        lambda: F.scaled_dot_product_attention(q, k, v),
    )


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Work:
    """Zero, forward, backward, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def encoder_layer(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
    """A post-norm layer, d_model=256, 8 heads, d_ff=1024, b=8, n=256, dropout as published."""
    theirs = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True).to(device, dtype)
    ours = EncoderBlock.from_torch(theirs).train()
    x = torch.randn(8, 256, 256, device=device, dtype=dtype)
    return (
        training_step(ours, lambda: ours(x).square().mean()),
        training_step(theirs, lambda: theirs(x).square().mean()),
    )


def language_model(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
    """Four pre-norm layers, d_model=128, n=64, b=12, 65 characters."""
    sizes = Config(d_model=128, num_heads=4, num_layers=4, max_len=64, position="learned")
    ours = DecoderLM(65, sizes).to(device, dtype)
    theirs = TorchDecoderLM(65, 128, 4, 4, 64).to(device, dtype)
    ids = torch.randint(65, (12, 65), device=device)
    return (
        training_step(ours, lambda: language_loss(ours, ids)),
        training_step(theirs, lambda: language_loss(theirs, ids)),
    )


def generation(device: torch.device, dtype: torch.dtype) -> tuple[Work, Work]:
    """256 tokens after a prompt of 64, four layers, d_model=256."""
    model = DecoderLM(65, Config(d_model=256, num_heads=8, num_layers=4, max_len=512))
    model = model.to(device, dtype)
    prompt = torch.zeros(1, 64, dtype=torch.long, device=device)
    return (
        lambda: generate(model, prompt, 256, temperature=0),
        lambda: generate(model, prompt, 256, temperature=0, use_cache=False),
    )


ROWS = (
    Row(
        "MultiHeadAttention forward + backward, b=8 n=256 d_model=256 h=8",
        "nn.MultiheadAttention(need_weights=False)",
        multi_head(256, "torch"),
        time=0.95,
    ),
    Row(
        "MultiHeadAttention forward + backward, b=8 n=1024 d_model=256 h=8",
        "textbook, builds the weights",
        multi_head(1024, "textbook"),
        time=0.5,
        memory=0.5,
    ),
    Row(
        "chunked_attention forward, n=8192, 8 heads of 64",
        "textbook, builds the weights",
        chunked,
        time=0.5,
        memory=0.05,
    ),
    Row(
        "sliding window w=128, n=8192, 8 heads of 64",
        "full fused attention, not causal",
        window,
        time=0.15,
    ),
    Row(
        "encoder layer training step, b=8 n=256 d_model=256",
        "nn.TransformerEncoderLayer",
        encoder_layer,
        time=1.0,
    ),
    Row(
        "DecoderLM training step, 4 layers, d_model=128 n=64 b=12",
        "nn.TransformerEncoder with a causal mask",
        language_model,
        time=1.0,
    ),
    Row(
        "generation of 256 tokens with cache, 4 layers, d_model=256",
        "without cache",
        generation,
        time=0.2,
    ),
)
