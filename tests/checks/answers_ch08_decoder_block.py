"""Answers to exercise 8.3 that the check has to judge right: correct variants and wrong ones."""

import torch
from torch import nn

from attn_course.blocks import FeedForward, LayerNorm
from attn_course.multihead import MultiHeadAttention


class Parts(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.feed_forward = FeedForward(d_model, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.self_attention = MultiHeadAttention(d_model, num_heads)


class ByHand(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm_1(x + attended)
        looked_up, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm_2(x + looked_up)
        return self.norm_3(x + self.feed_forward(x))


class WithDropout(Parts):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.norm_1(self.dropout(self.self_attention(x, x, x, mask=mask)[0]) + x)
        out, _ = self.cross_attention(query=x, key=memory, value=memory, mask=memory_mask)
        x = self.norm_2(self.dropout(out) + x)
        return self.norm_3(self.dropout(self.feed_forward(x)) + x)


class OwnFeedForward(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))

    forward = ByHand.forward


class PairKept(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.norm_1(x + self.self_attention(x, x, x, mask))
        return x


class OtherNames(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, memory, mask=None, memory_mask=None):
        return x


class OneNorm(Parts):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.norm_3 = self.norm_2

    forward = ByHand.forward


class InPlace(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        x += self.self_attention(x, x, x, mask)[0]
        x = self.norm_1(x)
        x = self.norm_2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm_3(x + self.feed_forward(x))


class KeepsMemory(Parts):
    kept = None

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.kept is None:
            self.kept = memory
        return ByHand.forward(self, x, self.kept, mask, memory_mask)


class NoMasks(Parts):
    def forward(self, x, memory):
        return ByHand.forward(self, x, memory)


class BothMasksOnX(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        both = mask if memory_mask is None else memory_mask if mask is None else mask & memory_mask
        x = self.norm_1(x + self.self_attention(x, x, x, both)[0])
        x = self.norm_2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm_3(x + self.feed_forward(x))


class MadeInForward(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        cross = MultiHeadAttention(x.shape[-1], self.cross_attention.num_heads).to(x.dtype)
        x = self.norm_1(x + self.self_attention(x, x, x, mask)[0])
        x = self.norm_2(x + cross(x, memory, memory, memory_mask)[0])
        return self.norm_3(x + self.feed_forward(x))


class NoModule:
    def __init__(self, d_model, num_heads, d_ff):
        self.norm_1 = nn.LayerNorm(d_model)


class FourthNorm(Parts):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.norm_4 = LayerNorm(d_model)

    def forward(self, x, memory, mask=None, memory_mask=None):
        return ByHand.forward(self, x, self.norm_4(memory), mask, memory_mask)


class Detached(Parts):
    def forward(self, x, memory, mask=None, memory_mask=None):
        with torch.no_grad():
            memory = self.cross_attention(x, memory, memory, memory_mask)[0]
        x = self.norm_1(x + self.self_attention(x, x, x, mask)[0])
        return self.norm_3(self.norm_2(x + memory))


RIGHT = {"DecoderBlock": [ByHand, WithDropout, OwnFeedForward]}


class HalfTheHeads(ByHand):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, 1 if num_heads == 2 else 2)


class AsWideAsTheModel(ByHand):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_model)


WRONG = {
    "DecoderBlock": [
        (PairKept, "pair-added", "TypeError"),
        (OtherNames, None, "self.self_attention should be an nn.Module"),
        (OneNorm, None, "none of them shared"),
        (InPlace, "in-place", "altered in place"),
        (KeepsMemory, None, "Without masks the output differs"),
        (NoMasks, None, "TypeError"),
        (BothMasksOnX, "memory-mask-on-x", "mask of the memory"),
        (MadeInForward, "made-in-forward", "never trained"),
        (NoModule, None, "is no nn.Module"),
        (FourthNorm, None, "six parts"),
        (Detached, None, "Without masks the output differs"),
        (HalfTheHeads, "heads-not-handed-on", "num_heads"),
        (AsWideAsTheModel, "width", "d_ff"),
    ]
}
