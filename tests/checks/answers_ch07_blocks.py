"""Answers to exercises 7.3 and 7.4 that the checks have to judge right, and wrong ones."""

import torch
from torch import nn

from attn_course.blocks import EncoderBlock, FeedForward, LayerNorm
from attn_course.multihead import MultiHeadAttention


class Parts(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm_2, self.norm_1 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attention = MultiHeadAttention(d_model, num_heads)


class Post(Parts):
    def forward(self, x, mask=None):
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm_1(x + attended)
        return self.norm_2(x + self.feed_forward(x))


class PostWithDropout(Parts):
    def __init__(self, d_model, num_heads, d_ff, dropout_p=0.0):
        super().__init__(d_model, num_heads, d_ff)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x, mask=None):
        attended = self.self_attention(query=x, key=x, value=x, mask=mask)[0]
        x = self.norm_1(self.dropout(attended) + x)
        return self.norm_2(self.dropout(self.feed_forward(x)) + x)


class PostWithOwnFeedForward(Post):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)


class Pre(Parts):
    def forward(self, x, mask=None):
        y = self.norm_1(x)
        x = x + self.self_attention(y, y, y, mask)[0]
        return x + self.feed_forward(self.norm_2(x))


class PreInOneLine(Parts):
    def sublayer(self, x, mask):
        return self.self_attention(x, x, x, mask)[0]

    def forward(self, x, mask=None):
        x = self.sublayer(self.norm_1(x), mask).add(x)
        out = self.feed_forward(self.norm_2(x))
        out += x
        return out


class PairKept(Parts):
    def forward(self, x, mask=None):
        x = self.norm_1(x + self.self_attention(x, x, x, mask))
        return self.norm_2(x + self.feed_forward(x))


class OtherNames(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, mask=None):
        return x


class OneNorm(Post):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.norm_2 = self.norm_1


class InPlace(Parts):
    def forward(self, x, mask=None):
        x += self.self_attention(x, x, x, mask)[0]
        x = self.norm_1(x)
        return self.norm_2(x + self.feed_forward(x))


class PreInPlace(Parts):
    def forward(self, x, mask=None):
        y = self.norm_1(x)
        x += self.self_attention(y, y, y, mask)[0]
        return x + self.feed_forward(self.norm_2(x))


class NoMask(Parts):
    def forward(self, x):
        return Post.forward(self, x)


class MadeInForward(Parts):
    def forward(self, x, mask=None):
        norm = nn.LayerNorm(x.shape[-1]).to(x.dtype)
        x = norm(x + self.self_attention(x, x, x, mask)[0])
        return self.norm_2(x + self.feed_forward(x))


class NoModule:
    def __init__(self, d_model, num_heads, d_ff):
        self.norm_1 = nn.LayerNorm(d_model)


class DropsTenPercent(PostWithDropout):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff, dropout_p=0.1)


class PartsInAList(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norms = [nn.LayerNorm(d_model), nn.LayerNorm(d_model)]
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x, mask=None):
        x = self.norms[0](x + self.self_attention(x, x, x, mask)[0])
        return self.norms[1](x + self.feed_forward(x))


class Overwritten(Parts):
    def forward(self, x, mask=None):
        x = self.norm_1(x)
        x = x + self.self_attention(x, x, x, mask)[0]
        x = self.norm_2(x)
        return x + self.feed_forward(x)


class HalfWay(Parts):
    def forward(self, x, mask=None):
        x = x + self.self_attention(*[self.norm_1(x)] * 3, mask)[0]
        return self.norm_2(x + self.feed_forward(x))


class PairWithoutResidual(Parts):
    """Two faults: the shape of what comes back is told first."""

    def forward(self, x, mask=None):
        x, weights = self.self_attention(x, x, x, mask)
        return self.norm_2(self.feed_forward(self.norm_1(x))), weights


class WithoutReturn(Parts):
    def forward(self, x, mask=None):
        x + self.self_attention(x, x, x, mask)[0]


class Halved(Parts):
    def forward(self, x, mask=None):
        y = self.norm_1(x)
        x = x + 0.5 * self.self_attention(y, y, y, mask)[0]
        return x + 0.5 * self.feed_forward(self.norm_2(x))


class UnderNoGrad(Parts):
    @torch.no_grad()
    def forward(self, x, mask=None):
        return Pre.forward(self, x, mask)


RIGHT = {
    "EncoderBlock": [Post, PostWithDropout, PostWithOwnFeedForward],
    "PreNormBlock": [Pre, PreInOneLine],
}


class FourHeads(Post):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads * 2 if d_model % (num_heads * 2) == 0 else 1, d_ff)


class AsWideAsTheModel(Post):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_model)


class PyTorchsAttention(Post):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.self_attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)


class IntoACopy(Parts):
    def forward(self, x, mask=None):
        x = x.clone()
        x += self.self_attention(x, x, x, mask)[0]
        x = self.norm_1(x)
        return self.norm_2(x + self.feed_forward(x))


class RawValues(Parts):
    def forward(self, x, mask=None):
        y = self.norm_1(x)
        x = x + self.self_attention(y, y, x, mask)[0]
        return x + self.feed_forward(self.norm_2(x))


WRONG = {
    "EncoderBlock": [
        (PairKept, "pair-added", "TypeError"),
        (OtherNames, None, "self.self_attention should be an nn.Module"),
        (OneNorm, "shared-norm", "both places"),
        (InPlace, None, "altered in place"),
        (NoMask, None, "TypeError"),
        (MadeInForward, None, "Without a mask the output differs"),
        (NoModule, None, "is no nn.Module"),
        (DropsTenPercent, "drops", "dropped"),
        (PartsInAList, None, "self.norm_1 should be an nn.Module"),
        (Pre, "pre-norm", "before the sublayer"),
        (HalfWay, "pre-norm", "norm(x + sublayer(x))"),
        (WithoutReturn, None, "return"),
        (PairWithoutResidual, None, "one tensor should come back, not 2 values"),
        (FourHeads, "heads-not-handed-on", "num_heads"),
        (AsWideAsTheModel, "width", "d_ff"),
        (PyTorchsAttention, "library-attention", "nn.MultiheadAttention"),
        (IntoACopy, "in-place-copy", "x = x +"),
    ],
    "PreNormBlock": [
        (Post, "post-norm", "after the sum"),
        (EncoderBlock, "post-norm", "after the sum"),
        (PreInPlace, None, "altered in place"),
        (Overwritten, "residual-of-the-normalised", "overwritten"),
        (HalfWay, "post-norm", "x + sublayer(norm(x))"),
        (PairKept, "pair-added", "TypeError"),
        (Halved, None, "Without a mask the output differs"),
        (UnderNoGrad, "no-gradient", "no_grad"),
        (RawValues, "queries-only", "only some"),
    ],
}
