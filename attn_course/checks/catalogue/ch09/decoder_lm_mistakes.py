"""Exercise 9.2, DecoderLM: its known mistakes."""

from __future__ import annotations

from math import sqrt

from torch import Tensor, nn

from attn_course.blocks import EncoderBlock, LayerNorm
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding


class Right(nn.Module):
    """The model as a learner may write it; each mistake is an edit of this."""

    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, d_ff: int, num_layers: int
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, d_ff, norm="pre") for _ in range(num_layers)
        )
        self.final_norm = LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits for the token after each position."""
        n, d_model = ids.shape[1], self.embedding.embedding_dim
        x = self.embedding(ids) * sqrt(d_model)
        places = sinusoidal_encoding(n, d_model).to(x)
        x = x + places
        mask = causal_mask(n)
        for block in self.blocks:
            x = block(x, mask)
        x = self.final_norm(x)
        return self.head(x)


BLOCK = 'EncoderBlock(d_model, num_heads, d_ff, norm="pre")'
HEAD, TIED = "self.head = nn.Linear", "self.head.weight = self.embedding.weight"
PLACES = "sinusoidal_encoding(n, d_model).to(x)"

MISTAKES = (
    Mistake(
        "in-a-list",
        "The blocks stand in a plain Python list, where nn.Module does not see them: they would be "
        "neither trained nor saved. nn.ModuleList is a list that it sees.",
        {"nn.ModuleList(": "list("},
    ),
    Mistake(
        "one-block-repeated",
        "It is one block, several times: [block] * n repeats the same object, and so its weights. "
        "Make a new one for each layer.",
        {f"{BLOCK} for _ in range(num_layers)": f"[{BLOCK}] * num_layers"},
    ),
    Mistake(
        "one-block",
        "There is one block, whatever num_layers is.",
        {"range(num_layers)": "range(1)"},
    ),
    Mistake(
        "post-norm-blocks",
        "The model's own blocks are not pre-norm: what they pass on is normalised. In a pre-norm "
        "stream nothing is, until the final norm.",
        {', norm="pre"': ""},
    ),
    Mistake(
        "not-tied",
        "Head and embedding have a matrix each. They should share one: the same nn.Parameter under "
        "both names.",
        {TIED: ""},
        also=(
            {TIED: "self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())"},
            {TIED: "self.head.weight.data = self.embedding.weight.data"},
        ),
    ),
    Mistake(
        "head-bias",
        "The head has a bias. It should have none: its matrix is the embedding's.",
        {", bias=False": ""},
    ),
    Mistake(
        "no-scale",
        "The embeddings are not multiplied by √d_model.",
        {" * sqrt(d_model)": ""},
    ),
    Mistake(
        "scale-divides",
        "The embeddings are divided by √d_model. They should be multiplied by it.",
        {"* sqrt(d_model)": "/ sqrt(d_model)"},
    ),
    Mistake(
        "scale-of-d-model",
        "The embeddings are multiplied by d_model. It should be its root.",
        {"sqrt(d_model)": "d_model"},
    ),
    Mistake(
        "positions-scaled",
        "The positions are multiplied by √d_model as well: they are added after the scale.",
        {"+ places": "+ places * sqrt(d_model)"},
    ),
    Mistake(
        "scale-of-another-width",
        "The embeddings are multiplied by the root of another size. It is that of d_model: the "
        "width of a whole token, not of a head, nor the number of tokens in the vocabulary.",
        {
            "super().__init__()": "super().__init__()\n        self.num_heads = num_heads",
            "sqrt(d_model)": "sqrt(d_model // self.num_heads)",
        },
        also=(
            {"sqrt(d_model)": "sqrt(self.embedding.num_embeddings)"},
            {"sqrt(d_model)": "sqrt(n)"},
        ),
    ),
    Mistake(
        "learned-positions",
        "The model trains a table of its own beside its parts: are those learned positions? Asked "
        "for are the sinusoidal ones, which are computed; nothing about them is trained.",
        examples=(
            {HEAD: f"self.positions = nn.Embedding(64, d_model)\n        {HEAD}"},
            {HEAD: f"self.positions = nn.Parameter(torch.zeros(1, 32, d_model))\n        {HEAD}"},
        ),
    ),
    Mistake(
        "positions-multiplied",
        "The positions are multiplied with the embeddings. They are added.",
        {"x + places": "x * places"},
    ),
    Mistake(
        "positions-in-every-block",
        "The positions are added before every block. They are added once, to the embeddings: the "
        "residual stream carries them on.",
        {"x = x + places": "", "block(x, mask)": "block(x + places, mask)"},
    ),
    Mistake(
        "no-positions",
        "No positions are added.",
        {" + places": ""},
    ),
    Mistake(
        "positions-by-batch",
        "Each *sequence* gets a position, the same for all of its tokens: the axis of the batch is "
        "taken for that of positions.",
        {PLACES: "sinusoidal_encoding(len(ids), d_model).to(x)[:, None]"},
    ),
    Mistake(
        "positions-from-one",
        "The positions start at 1. The first is 0.",
        {PLACES: "sinusoidal_encoding(n + 1, d_model).to(x)[1:]"},
    ),
    Mistake(
        "one-position",
        "Every token gets the same position: a table of positions is indexed with n where its "
        "first n rows are wanted.",
        {PLACES: "sinusoidal_encoding(n + 1, d_model).to(x)[n]"},
        also=({PLACES: "sinusoidal_encoding(1, d_model).to(x)"},),
    ),
    Mistake(
        "positions-twice",
        "The positions are added twice.",
        {"+ places": "+ 2 * places"},
    ),
    Mistake(
        "no-mask",
        "The model sees the future, and with it the token that it is to predict. In training the "
        "loss would fall near 0, and what it writes would be nonsense.",
        {"causal_mask(n)": "None"},
    ),
    Mistake(
        "mask-in-one-block",
        "Only one of the blocks has the causal mask. What one block hides another one shows.",
        {"block(x, mask)": "block(x, mask if block is self.blocks[0] else None)"},
        also=({"block(x, mask)": "block(x, mask if block is self.blocks[-1] else None)"},),
    ),
    Mistake(
        "mask-inverted",
        "Each position sees its future and not its past: the mask works the other way round. True "
        "means “may attend”.",
        {"causal_mask(n)": "~causal_mask(n)"},
        also=({"causal_mask(n)": "causal_mask(n).T"},),
    ),
    Mistake(
        "sees-one-ahead",
        "Each position sees one token ahead, which is the very one that it is to predict: the mask "
        "is off by one.",
        {"causal_mask(n)": "torch.ones(n, n, dtype=torch.bool).tril(1)"},
    ),
    Mistake(
        "nothing-visible",
        "No token may see anything, not even itself. True means “may attend”.",
        {"causal_mask(n)": "torch.zeros(n, n, dtype=torch.bool)"},
    ),
    Mistake(
        "mask-of-the-batch",
        "The mask is made for as many positions as there are sequences. It is (n, n): the sizes "
        "of ids are (b, n).",
        {"causal_mask(n)": "causal_mask(len(ids))"},
    ),
    Mistake(
        "mask-without-itself",
        "A token may not see itself: the mask should be open on its diagonal.",
        {"causal_mask(n)": "causal_mask(n).tril(-1)"},
    ),
    Mistake(
        "sequence-first",
        "Sequences and positions are exchanged on the way into the blocks, which take the batch "
        "first: tokens then see other sequences, and not their own.",
        {
            "causal_mask(n)": "causal_mask(len(ids))",
            "in self.blocks:": "in self.blocks:\n            x = x.transpose(0, 1)",
            "x = block(x, mask)": "x = block(x, mask).transpose(0, 1)",
        },
    ),
    Mistake(
        "only-itself",
        "Each token sees itself alone.",
        {"causal_mask(n)": "torch.eye(n, dtype=torch.bool)"},
    ),
    Mistake(
        "block-missing",
        "Not all of the blocks are run, or what they return is not passed on.",
        {"in self.blocks": "in self.blocks[:1]"},
        also=(
            {"in self.blocks": "in self.blocks[:-1]"},
            {"in self.blocks": "in self.blocks[:0]"},
            {"in self.blocks": "in self.blocks[1:]"},
        ),
    ),
    Mistake(
        "blocks-not-chained",
        "Every block reads the embeddings. Each should read what the one before gave.",
        {"x = block(x, mask)": "last = block(x, mask)", "final_norm(x)": "final_norm(last)"},
    ),
    Mistake(
        "blocks-reversed",
        "The blocks are run from the last to the first.",
        {"in self.blocks": "in reversed(self.blocks)"},
    ),
    Mistake(
        "residual-again",
        "Each block's input is added to its output. A block has its residuals inside.",
        {"x = block(x, mask)": "x = x + block(x, mask)"},
    ),
    Mistake(
        "embedding-added-again",
        "The embeddings are added once more behind the last block. The blocks have residuals "
        "inside, so the stream still carries them.",
        {"x = x + places": "x = start = x + places", "final_norm(x)": "final_norm(start + x)"},
    ),
    Mistake(
        "norm-after-every-block",
        "The final norm stands after every block. Pre-norm blocks norm what they read; only the "
        "end of the sum needs one more.",
        {"block(x, mask)": "self.final_norm(block(x, mask))", "x = self.final_norm(x)": ""},
        also=({"block(x, mask)": "self.final_norm(block(x, mask))"},),
    ),
    Mistake(
        "no-final-norm",
        "The final norm is missing. What pre-norm blocks return is a sum that nothing has "
        "normalised yet.",
        {"x = self.final_norm(x)": ""},
    ),
    Mistake(
        "norm-first",
        "The norm stands before the blocks. It belongs behind them, before the head.",
        {"x + places": "self.final_norm(x + places)", "x = self.final_norm(x)": ""},
    ),
    Mistake(
        "norm-twice",
        "The final norm stands before the blocks as well. Only the end of the stream is normed "
        "with it.",
        {"x + places": "self.final_norm(x + places)"},
    ),
    Mistake(
        "norm-unused",
        "A norm is applied, but not self.final_norm: one that is made in forward, or a bare "
        "F.layer_norm, has no gain and bias that are trained.",
        {"self.final_norm(x)": "F.layer_norm(x, x.shape[-1:])"},
    ),
    Mistake(
        "norm-behind-head",
        "The norm stands behind the head, on the logits. It belongs before it, on the features.",
        {
            "LayerNorm(d_model)": "LayerNorm(vocab_size)",
            "self.final_norm(x)": "self.head(x)",
            "return self.head(x)": "return self.final_norm(x)",
        },
    ),
    Mistake(
        "no-head",
        "The features come back, not logits: the head is missing.",
        {"self.head(x)": "x"},
    ),
    Mistake(
        "softmax",
        "Probabilities come back. Asked for are logits: the loss takes the softmax itself.",
        {"self.head(x)": "self.head(x).softmax(dim=-1)"},
        also=({"self.head(x)": "self.head(x).log_softmax(dim=-1)"},),
    ),
    Mistake(
        "head-scaled",
        "The logits are divided or multiplied by √d_model: only what goes *in* is scaled.",
        {"self.head(x)": "self.head(x) * sqrt(d_model)"},
        also=({"self.head(x)": "self.head(x) / sqrt(d_model)"},),
    ),
    Mistake(
        "tokens",
        "The most likely tokens come back. Asked for are logits: a loss cannot be taken of tokens.",
        {"self.head(x)": "self.head(x).argmax(dim=-1)"},
    ),
    Mistake(
        "last-position-only",
        "Only the last position's logits come back. All are needed: training asks for every one.",
        {"self.head(x)": "self.head(x)[:, -1]"},
        also=({"self.head(x)": "self.head(x)[:, -1:]"},),
    ),
    Mistake(
        "shifted-inside",
        "The model moves its input to the right. The data is shifted already: logits at a position "
        "are for the token after the one that is read there.",
        {"self.embedding(ids)": "self.embedding(F.pad(ids[:, :-1], (1, 0)))"},
        also=({"self.head(x)": "self.head(x)[:, :-1]"},),
    ),
    Mistake(
        "detached",
        "No gradient reaches the blocks or the embedding: what goes into the head is detached.",
        {"self.final_norm(x)": "self.final_norm(x.detach())"},
    ),
    *of_repeated_calls(
        dropping=(
            {" * sqrt(d_model)": "", "x + places": "F.dropout(x, 0.1, self.training) + places"},
        ),
        made_anew=(
            {"block(x, mask)": 'EncoderBlock(d_model, 2, 7, norm="pre").to(x)(x, mask)'},
            {"self.head(x)": "nn.Linear(d_model, 9).to(x)(x)"},
        ),
    ),
)
