"""Known mistakes of exercise 8.6, Seq2Seq."""

from __future__ import annotations

from math import sqrt

from torch import Tensor, nn

from attn_course.blocks import DecoderBlock, EncoderBlock
from attn_course.checks.edits import Edits
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask, combine_masks
from attn_course.positions import sinusoidal_encoding
from attn_course.sentences import joined


class Translator(nn.Module):
    """A right answer: the skeleton of the task, filled in."""

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        sizes = d_model, num_heads, d_ff
        self.encoder_blocks = nn.ModuleList(EncoderBlock(*sizes) for _ in range(num_layers))
        self.decoder_blocks = nn.ModuleList(DecoderBlock(*sizes) for _ in range(num_layers))
        self.head = nn.Linear(d_model, target_vocab)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Scale the embeddings and add positions."""
        x = table(ids) * sqrt(table.embedding_dim)
        places = sinusoidal_encoding(ids.shape[1], x.shape[-1])
        return x + places.to(x)

    def encode(self, source: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return the memory."""
        x = self.embed(self.source_embedding, source)
        visible = combine_masks(padding=padding)
        for block in self.encoder_blocks:
            x = block(x, visible)
        return x

    def decode(self, target: Tensor, memory: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return the logits of a target."""
        x = self.embed(self.target_embedding, target)
        mask = causal_mask(target.shape[1])
        memory_mask = combine_masks(padding=padding)
        for block in self.decoder_blocks:
            x = block(x, memory, mask, memory_mask)
        return self.head(x)

    def forward(self, source: Tensor, target: Tensor, padding: Tensor | None = None) -> Tensor:
        """Encode and decode."""
        return self.decode(target, self.encode(source, padding), padding)


class SideBySide(Translator):
    """Each decoder block reads the encoder block of its own height."""

    def forward(self, source: Tensor, target: Tensor, padding: Tensor | None = None) -> Tensor:
        """Encode and decode at once."""
        memory = self.embed(self.source_embedding, source)
        x = self.embed(self.target_embedding, target)
        mask, visible = causal_mask(target.shape[1]), combine_masks(padding=padding)
        for encoder, decoder in zip(self.encoder_blocks, self.decoder_blocks, strict=True):
            memory = encoder(memory, visible)
            x = decoder(x, memory, mask, visible)
        return self.head(x)


# -- pieces of the right answer, and what often stands in their place -------------------------

ENCODERS_MADE = "EncoderBlock(*sizes) for _ in range(num_layers)"
DECODERS_MADE = "DecoderBlock(*sizes) for _ in range(num_layers)"
ENCODERS = f"nn.ModuleList({ENCODERS_MADE})"
DECODERS = f"nn.ModuleList({DECODERS_MADE})"

PLACES = "sinusoidal_encoding(ids.shape[1], x.shape[-1])"
EMBEDDED = "x + places.to(x)"
OF_SOURCE = "self.embed(self.source_embedding, source)"
OF_TARGET = "self.embed(self.target_embedding, target)"

FOR_SOURCE = "visible = combine_masks(padding=padding)"
FOR_MEMORY = "memory_mask = combine_masks(padding=padding)"
CAUSAL = "causal_mask(target.shape[1])"
FROM_THE_TOP = "torch.ones(target.shape[1], memory.shape[1]).tril().bool()"
WHERE_IT_FITS = "mask if target.shape[1] == memory.shape[1] else None"
ZEROED = "memory if padding is None else memory * padding[..., None]"

BOTH = "self.decode(target, self.encode(source, padding), padding)"
SHIFTED = "torch.cat([0 * target[:, :1], target[:, :-1]], dim=1)"


def padding_as(mask: str) -> tuple[Edits, Edits, Edits]:
    """Another mask of the padding: for source and memory, for one of them, for the other."""
    source, memory = {FOR_SOURCE: f"visible = {mask}"}, {FOR_MEMORY: f"memory_mask = {mask}"}
    return source | memory, source, memory


INVERTED = padding_as("None if padding is None else combine_masks(padding=~padding)")
NOT_LIFTED = padding_as("padding")
ON_QUERIES = padding_as("None if padding is None else padding[:, None, :, None]")

LIFT = "combine_masks(padding=padding) makes (b, 1, 1, j) of it."

MISTAKES = (
    Mistake(
        "in-a-list",
        "The blocks stand in a plain Python list, where nn.Module does not see them: they would be "
        "neither trained nor saved. nn.ModuleList is a list that it sees.",
        {ENCODERS: f"[{ENCODERS_MADE}]", DECODERS: f"[{DECODERS_MADE}]"},
    ),
    Mistake(
        "one-block-repeated",
        "It is one block, several times: [block] * n repeats the same object, and so its weights. "
        "Make a new one for each layer.",
        {
            ENCODERS: "nn.ModuleList([EncoderBlock(*sizes)] * num_layers)",
            DECODERS: "nn.ModuleList([DecoderBlock(*sizes)] * num_layers)",
        },
    ),
    Mistake(
        "one-block",
        "There is one block on each side, whatever num_layers is.",
        {
            ENCODERS: "nn.ModuleList([EncoderBlock(*sizes)])",
            DECODERS: "nn.ModuleList([DecoderBlock(*sizes)])",
        },
    ),
    Mistake(
        "heads-not-handed-on",
        "The blocks are made with another number of heads than num_heads. What is learnt is as "
        "large for any number of them, so that nothing else would tell.",
        {"sizes = d_model, num_heads": "sizes = d_model, 1"},
    ),
    Mistake(
        "encoder-blocks-twice",
        "The decoder is made of encoder blocks: they have no attention to the memory.",
        {"DecoderBlock(": "EncoderBlock("},
    ),
    Mistake(
        "further-norm",
        "There is a further norm. Post-norm blocks give what is normalised; asked for are the "
        "blocks, two tables and the head.",
        {"self.head = ": "self.norm = nn.LayerNorm(d_model)\n        self.head = "},
    ),
    Mistake(
        "pre-norm-blocks",
        "The model's own blocks are not post-norm: what leaves a stack of post-norm blocks has "
        "mean 0 and variance 1 in each token, as long as gain and bias are new.",
        {"EncoderBlock(*sizes": "EncoderBlock(*sizes, norm='pre'"},
        also=({"DecoderBlock(*sizes": "DecoderBlock(*sizes, norm='pre'"},),
    ),
    Mistake(
        "no-scale",
        "The embeddings are not multiplied by √d_model.",
        {" * sqrt(table.embedding_dim)": ""},
    ),
    Mistake(
        "scale-divides",
        "The embeddings are divided by √d_model. They should be multiplied by it.",
        {"* sqrt": "/ sqrt"},
    ),
    Mistake(
        "scale-of-d-model",
        "The embeddings are multiplied by d_model. It should be its root.",
        {"sqrt(table.embedding_dim)": "table.embedding_dim"},
    ),
    Mistake(
        "positions-scaled",
        "The positions are multiplied by √d_model as well: they are added after the scale.",
        {
            " * sqrt(table.embedding_dim)": "",
            EMBEDDED: f"({EMBEDDED}) * sqrt(table.embedding_dim)",
        },
    ),
    Mistake(
        "no-positions",
        "No positions are added: source and target are bags of tokens.",
        {EMBEDDED: "x"},
    ),
    Mistake(
        "one-position",
        "Every token gets the same position: a table of positions is indexed with n where its "
        "first n rows are wanted.",
        {PLACES: "sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1])[ids.shape[1]]"},
    ),
    Mistake(
        "positions-by-batch",
        "Each *sequence* gets a position, the same for all of its tokens: the axis of the batch is "
        "taken for that of positions.",
        {PLACES: "sinusoidal_encoding(len(ids), x.shape[-1])[:, None]"},
    ),
    Mistake(
        "positions-from-one",
        "The positions start at 1. The first is 0.",
        {PLACES: "sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1])[1:]"},
    ),
    Mistake(
        "source-reads-target-table",
        "The source is embedded with the table of the target.",
        {"self.source_embedding, source": "self.target_embedding, source"},
    ),
    Mistake(
        "encoder-not-run",
        "The encoder's blocks are not run: the memory is the embeddings.",
        {"in self.encoder_blocks": "in self.encoder_blocks[:0]"},
    ),
    Mistake(
        "encoder-block-missing",
        "Not all of the encoder's blocks are run.",
        {"in self.encoder_blocks": "in self.encoder_blocks[:1]"},
        also=({"in self.encoder_blocks": "in self.encoder_blocks[:-1]"},),
    ),
    Mistake(
        "blocks-not-chained",
        "Every block reads the embeddings, of the encoder or of the decoder. Each should read what "
        "the one before gave.",
        {OF_SOURCE: f"embedded = {OF_SOURCE}", "block(x, visible": "block(embedded, visible"},
        also=({OF_TARGET: f"embedded = {OF_TARGET}", "block(x, memory": "block(embedded, memory"},),
    ),
    Mistake(
        "causal-source",
        "The encoder hides its future. The source is complete: every token may see both sides.",
        {FOR_SOURCE: "visible = combine_masks(causal_mask(source.shape[1]), padding=padding)"},
    ),
    Mistake(
        "source-padding-ignored",
        "Padding in the source is attended to in the encoder.",
        {FOR_SOURCE: "visible = None"},
        also=(padding_as("None")[0],),
    ),
    Mistake(
        "padding-inverted",
        "The padding works the other way round: True means a token.",
        INVERTED[0],
        also=INVERTED[1:],
    ),
    Mistake(
        "padding-not-lifted",
        joined(
            [
                "The padding (b, j) is handed to a block as it is, and is taken for a mask (i, j).",
                LIFT,
            ]
        ),
        NOT_LIFTED[0],
        also=NOT_LIFTED[1:],
    ),
    Mistake(
        "padding-on-the-queries",
        joined(
            [
                "The padding lies along the axis of the queries: real tokens still read padding.",
                LIFT,
            ]
        ),
        ON_QUERIES[0],
        also=ON_QUERIES[1:],
    ),
    Mistake(
        "target-reads-source-table",
        "The target is embedded with the table of the source.",
        {"self.target_embedding, target": "self.source_embedding, target"},
    ),
    Mistake(
        "no-causal-mask",
        "The decoder sees its own future, and with it the token that it is to predict.",
        {CAUSAL: "None"},
    ),
    Mistake(
        "causal-inverted",
        "The decoder sees its future, and not its past: the mask works the other way round.",
        {CAUSAL: f"~{CAUSAL}"},
        also=({CAUSAL: f"{CAUSAL}.T"},),
    ),
    Mistake(
        "causal-without-itself",
        "A target token may not see itself: the mask should be open on its diagonal.",
        {CAUSAL: f"{CAUSAL}.tril(-1)"},
    ),
    Mistake(
        "memory-padding-ignored",
        "Padding in the memory is attended to in the decoder.",
        {FOR_MEMORY: "memory_mask = None"},
    ),
    Mistake(
        "causal-memory",
        "Part of the memory is hidden as if it lay in the future. The source is complete before "
        "the first token is written: only its padding is hidden. At equal lengths nothing tells.",
        {FOR_MEMORY: f"memory_mask = combine_masks({FROM_THE_TOP}, padding=padding)"},
        also=(
            {FOR_MEMORY: f"memory_mask = combine_masks({WHERE_IT_FITS}, padding=padding)"},
            {FOR_MEMORY: "memory_mask = mask"},
        ),
    ),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has a score like others. They are hidden by a mask.",
        {FOR_MEMORY: "memory_mask = None", "block(x, memory": f"block(x, {ZEROED}"},
    ),
    Mistake(
        "in-place",
        "The caller's memory is changed in place. It is read again for the next token.",
        {
            FOR_MEMORY: "if padding is not None:\n"
            f"            memory *= padding[..., None]\n        {FOR_MEMORY}"
        },
    ),
    Mistake(
        "masks-exchanged",
        "The two masks of the decoder are exchanged: the causal one is for its own attention, the "
        "padding for the memory.",
        {"mask, memory_mask)": "memory_mask, mask)"},
    ),
    Mistake(
        "zero-hidden",
        "The token 0 is taken for padding in the target, and hidden. 0 may be the start token, "
        "which all others read; for the target there is the causal mask alone.",
        {CAUSAL: f"combine_masks({CAUSAL}, padding=target != 0)"},
    ),
    Mistake(
        "padding-on-target",
        "The padding of the *source* hides tokens of the target. It is for the memory alone.",
        {CAUSAL: f"combine_masks({CAUSAL}, padding=padding)"},
    ),
    Mistake(
        "shifted-again",
        "The target is moved to the right. What comes in is what the decoder reads, with the start "
        "token already in front.",
        {"embedding, target": f"embedding, {SHIFTED}"},
        also=({"decode(target": f"decode({SHIFTED}"},),
    ),
    Mistake(
        "memory-not-read",
        "The decoder's blocks get x in the place of the memory: the source is never read.",
        {"block(x, memory": "block(x, x"},
    ),
    Mistake(
        "decoder-block-missing",
        "Not all of the decoder's blocks are run.",
        {"in self.decoder_blocks": "in self.decoder_blocks[:1]"},
        also=(
            {"in self.decoder_blocks": "in self.decoder_blocks[:-1]"},
            {"in self.decoder_blocks": "in self.decoder_blocks[:0]"},
        ),
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
        "last-position-only",
        "Only the last position's logits come back. All are needed: training asks for every one.",
        {"self.head(x)": "self.head(x)[:, -1]"},
        also=({"self.head(x)": "self.head(x)[:, -1:]"},),
    ),
    Mistake(
        "side-by-side",
        "Each decoder block reads the encoder block of its own height. All of them read the "
        "memory, what the *last* encoder block gave: forward is decode after encode.",
        SideBySide,
    ),
    Mistake(
        "target-encoded",
        "forward encodes the target, or decodes the source.",
        {BOTH: "self.decode(source, self.encode(target, padding), padding)"},
        also=({BOTH: "self.decode(target, self.encode(target), None)"},),
    ),
    Mistake(
        "forward-drops-padding",
        "forward does not hand the padding to both encode and decode.",
        {BOTH: "self.decode(target, self.encode(source))"},
        also=(
            {BOTH: "self.decode(target, self.encode(source, padding))"},
            {BOTH: "self.decode(target, self.encode(source), padding)"},
        ),
    ),
    Mistake(
        "memory-detached",
        "No gradient reaches the encoder: the memory is detached on its way to the decoder.",
        {"self.encode(source, padding)": "self.encode(source, padding).detach()"},
    ),
    *of_repeated_calls(
        dropping=({EMBEDDED: f"F.dropout({EMBEDDED}, 0.1, self.training)"},),
        made_anew=(
            {"x = block(x, visible)": "x = EncoderBlock(x.shape[-1], 2, 7).to(x)(x, visible)"},
            {"self.head(x)": "nn.Linear(x.shape[-1], 7).to(x)(x)"},
        ),
    ),
)
