"""The three families: encoder, decoder-only language model, encoder and decoder.

ids are (b, n) token numbers; logits are unnormalised scores over the vocabulary or the
classes. How tokens are drawn from logits stands in `generation`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Literal, get_args

import torch
from einops import reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attn_course.blocks import Activation, DecoderBlock, EncoderBlock, LayerNorm, Order
from attn_course.efficient import KVCache
from attn_course.masks import causal_mask, combine_masks
from attn_course.multihead import projection
from attn_course.positions import (
    AlibiPositions,
    LearnedPositions,
    PositionHook,
    RelativePositions,
    RotaryPositions,
    sinusoidal_encoding,
)

Position = Literal["none", "sinusoidal", "learned", "rope", "alibi", "relative"]


@dataclass(frozen=True)
class Config:
    """The sizes of a stack of blocks.

    Attributes:
        d_model, num_heads, num_layers, d_ff: as in Vaswani et al. 2017, table 3; d_ff is
            4 · d_model if it is None.
        max_len: the longest sequence; only learned positions and caches are bound by it.
        position: "sinusoidal" and "learned" are added to the embedding; "rope", "alibi" and
            "relative" act inside self-attention; "none" leaves order out.
        norm: "post" as in the paper, or "pre", which needs no warm-up at small depth.
        max_distance: how far "relative" tells distances apart.
    """

    d_model: int = 128
    num_heads: int = 4
    num_layers: int = 4
    d_ff: int | None = None
    max_len: int = 1024
    position: Position = "sinusoidal"
    norm: Order = "pre"
    norm_layer: Callable[[int], nn.Module] = LayerNorm
    activation: Activation = "gelu"
    dropout_p: float = 0.0
    bias: bool = True
    num_kv_heads: int | None = None
    max_distance: int = 16

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown position and for sizes below 1."""
        if self.position not in get_args(Position):
            raise ValueError(f"position={self.position!r} is none of {get_args(Position)}")
        for name in ("d_model", "num_heads", "num_layers", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def block(self, kind: type[Any]) -> Any:
        """Make one encoder or decoder block of these sizes."""
        return kind(
            self.d_model,
            self.num_heads,
            4 * self.d_model if self.d_ff is None else self.d_ff,
            norm=self.norm,
            norm_layer=self.norm_layer,
            activation=self.activation,
            dropout_p=self.dropout_p,
            bias=self.bias,
            num_kv_heads=self.num_kv_heads,
            position=self._hook(),
        )

    def final_norm(self) -> nn.Module:
        """After pre-norm blocks nothing has normalised the sum yet; after post-norm all is done."""
        return self.norm_layer(self.d_model) if self.norm == "pre" else nn.Identity()

    def _hook(self) -> PositionHook | None:
        hooks: dict[str, Callable[[], PositionHook]] = {
            "rope": RotaryPositions,
            "alibi": partial(AlibiPositions, self.num_heads),
            "relative": partial(RelativePositions, self.num_heads, self.max_distance),
        }
        return hooks[self.position]() if self.position in hooks else None


class TokenEmbedding(nn.Module):
    """Embeddings times √d_model, plus positions where these are added (section 3.4 and 3.5).

    Rows are drawn with variance 1 / d_model, so that √d_model gives features of variance 1,
    the size of the sinusoids beside them; and the same matrix, used as the output
    projection, gives logits of variance 1 from normalised features.
    """

    sines: Tensor | None

    def __init__(self, vocab_size: int, config: Config) -> None:
        """Make the table, and that of the positions that are added, if any are."""
        super().__init__()
        self.table = nn.Embedding(vocab_size, config.d_model)
        nn.init.normal_(self.table.weight, std=1 / sqrt(config.d_model))
        self.scale = sqrt(config.d_model)
        sizes, position = (config.max_len, config.d_model), config.position
        self.learned = LearnedPositions(*sizes) if position == "learned" else None
        sines = sinusoidal_encoding(*sizes) if position == "sinusoidal" else None
        self.register_buffer("sines", sines, persistent=False)
        self.dropout = nn.Dropout(config.dropout_p)

    def forward(self, ids: Int[Tensor, "b n"], offset: int = 0) -> Float[Tensor, "b n d_model"]:
        """Embed ids that stand at positions offset … offset + n − 1."""
        x = self.table(ids) * self.scale
        n = ids.shape[1]
        if self.learned is not None:
            x = x + self.learned(n, offset)
        elif self.sines is not None:
            x = x + self._sinusoids(self.sines, offset + n)[offset:]
        return self.dropout(x)

    @staticmethod
    def _sinusoids(known: Tensor, n: int) -> Tensor:
        """The first n rows, longer than `max_len` too: sinusoids have no end."""
        return known[:n] if n <= len(known) else sinusoidal_encoding(n, known.shape[1]).to(known)


class EncoderStack(nn.Module):
    """Token embedding and encoder blocks: each token informed by all that the mask allows."""

    def __init__(self, vocab_size: int, config: Config) -> None:
        """Make the embedding, the blocks and the norm at the end."""
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, config)
        self.blocks = nn.ModuleList(config.block(EncoderBlock) for _ in range(config.num_layers))
        self.final_norm = config.final_norm()

    def forward(
        self,
        ids: Int[Tensor, "b n"],
        mask: Bool[Tensor, "..."] | None = None,
        caches: Sequence[KVCache] | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """Return the features of every position."""
        x = self.embedding(ids, offset=caches[0].length if caches else 0)
        for layer, block in enumerate(self.blocks):
            x = block(x, mask, cache=caches[layer] if caches else None)
        return self.final_norm(x)


class Encoder(nn.Module):
    """Encoder-only, as BERT (Devlin et al. 2019): every token sees both sides.

    Without `num_classes` it gives logits over the vocabulary for each position (to fill
    masked tokens); with it, logits over the classes for each sequence, from the mean of the
    features that are no padding.
    """

    def __init__(
        self, vocab_size: int, config: Config | None = None, *, num_classes: int | None = None
    ) -> None:
        """Make the stack and its head."""
        super().__init__()
        config = config or Config()
        self.stack = EncoderStack(vocab_size, config)
        self.num_classes = num_classes
        self.head = projection(config.d_model, num_classes or vocab_size)

    def forward(
        self, ids: Int[Tensor, "b n"], padding: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "..."]:
        """Return logits (b, n, vocab) or (b, classes); `padding` is True for real tokens."""
        x = self.stack(ids, combine_masks(padding=padding))
        if self.num_classes is None:
            return self.head(x)
        if padding is None:
            return self.head(reduce(x, "b n d -> b d", "mean"))
        real = padding[..., None].to(x.dtype)
        return self.head((x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1))


class DecoderLM(nn.Module):
    """Decoder-only, as GPT (Radford et al. 2018): each token sees itself and what came before.

    The logits at position t are for the token at t + 1.
    """

    def __init__(self, vocab_size: int, config: Config | None = None, *, tied: bool = True) -> None:
        """Make the stack; `tied`: the embedding's table is the output projection too.

        Press and Wolf 2017, and section 3.4 of Vaswani et al. 2017.
        """
        super().__init__()
        self.config = config or Config()
        self.stack = EncoderStack(vocab_size, self.config)
        self.head = projection(self.config.d_model, vocab_size, bias=False)
        if tied:
            self.head.weight = self.stack.embedding.table.weight

    def forward(
        self, ids: Int[Tensor, "b n"], caches: Sequence[KVCache] | None = None
    ) -> Float[Tensor, "b n vocab"]:
        """Return logits for the token after each position.

        caches: one a layer, from `new_caches`; ids then continue what they hold.
        """
        n = ids.shape[1]
        past = caches[0].length if caches else 0
        return self.head(self.stack(ids, _causal(n, past, ids.device), caches))

    def new_caches(self, max_len: int | None = None) -> list[KVCache]:
        """Return an empty cache for each layer."""
        length = self.config.max_len if max_len is None else max_len
        return [KVCache(length) for _ in range(self.config.num_layers)]


class Seq2Seq(nn.Module):
    """Encoder and decoder (Vaswani et al. 2017, figure 1)."""

    def __init__(self, source_vocab: int, target_vocab: int, config: Config | None = None) -> None:
        """Make both stacks from one config; the two vocabularies have tables of their own."""
        super().__init__()
        self.config = config = config or Config()
        self.encoder = EncoderStack(source_vocab, config)
        self.embedding = TokenEmbedding(target_vocab, config)
        self.blocks = nn.ModuleList(config.block(DecoderBlock) for _ in range(config.num_layers))
        self.final_norm = config.final_norm()
        self.head = projection(config.d_model, target_vocab)

    def forward(
        self,
        source: Int[Tensor, "b n_source"],
        target: Int[Tensor, "b n"],
        padding: Bool[Tensor, "b n_source"] | None = None,
    ) -> Float[Tensor, "b n vocab"]:
        """Return logits for the token after each of `target`, which begins with a start token.

        padding: True where the source is no padding.
        """
        return self.decode(target, self.encode(source, padding), padding)

    def encode(
        self, source: Int[Tensor, "b n_source"], padding: Bool[Tensor, "b n_source"] | None = None
    ) -> Float[Tensor, "b n_source d_model"]:
        """Return the memory that the decoder looks back at."""
        return self.encoder(source, combine_masks(padding=padding))

    def decode(
        self,
        target: Int[Tensor, "b n"],
        memory: Float[Tensor, "b n_source d_model"],
        padding: Bool[Tensor, "b n_source"] | None = None,
        caches: Sequence[KVCache] | None = None,
    ) -> Float[Tensor, "b n vocab"]:
        """Return logits for the token after each of `target`, given the memory.

        caches: one a layer, from `new_caches`; `target` then continues what they hold.
        """
        n, past = target.shape[1], caches[0].length if caches else 0
        x = self.embedding(target, offset=past)
        mask = _causal(n, past, target.device)
        memory_mask = combine_masks(padding=padding)
        for layer, block in enumerate(self.blocks):
            cache = caches[layer] if caches else None
            x = block(x, memory, mask, memory_mask, cache=cache)
        return self.head(self.final_norm(x))

    def new_caches(self, max_len: int) -> list[KVCache]:
        """Return an empty cache for each decoder layer."""
        return [KVCache(max_len) for _ in range(self.config.num_layers)]


def _causal(n: int, past: int, device: torch.device) -> Bool[Tensor, "i j"] | None:
    """The causal mask of n positions after `past` others; a single one, the last, sees all."""
    return None if n == 1 else causal_mask(n, past + n, device=device)


def count_parameters(model: nn.Module) -> int:
    """The number of trainable numbers, a shared one counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
