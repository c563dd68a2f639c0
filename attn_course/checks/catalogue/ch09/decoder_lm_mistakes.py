"""Exercise 9.2, DecoderLM: its known mistakes."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F
from torch import nn

from attn_course.blocks import LayerNorm
from attn_course.checks.catalogue.ch09.decoder_lm_versions import (
    Right,
    chained,
    copied_once,
    embedding_added_again,
    in_a_list,
    last_dropped,
    made_anew,
    mask_of_the_batch,
    masked_at,
    norm_between,
    not_chained,
    not_tied,
    only_one,
    places_in_every_block,
    post_norm,
    repeated,
    same_numbers,
    sequence_first,
    shifted,
    summed,
    trained_places,
    trained_places_of_its_own,
    version,
    with_bias,
)
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding

MISTAKES = (
    Mistake(
        "in-a-list",
        "The blocks stand in a plain Python list, where nn.Module does not see them: they would be "
        "neither trained nor saved. nn.ModuleList is a list that it sees.",
        version(make_blocks=in_a_list),
    ),
    Mistake(
        "one-block-repeated",
        "It is one block, several times: [block] * n repeats the same object, and so its weights. "
        "Make a new one for each layer.",
        version(make_blocks=repeated),
    ),
    Mistake(
        "one-block",
        "There is one block, whatever num_layers is.",
        version(make_blocks=only_one),
    ),
    Mistake(
        "post-norm-blocks",
        "The model's own blocks are not pre-norm: what they pass on is normalised. In a pre-norm "
        "stream nothing is, until the final norm.",
        version(make_blocks=post_norm),
    ),
    Mistake(
        "not-tied",
        "Head and embedding have a matrix each. They should share one: the same nn.Parameter under "
        "both names.",
        version(make_head=not_tied),
        also=(version(make_head=copied_once), version(make_head=same_numbers)),
    ),
    Mistake(
        "head-bias",
        "The head has a bias. It should have none: its matrix is the embedding's.",
        version(make_head=with_bias),
    ),
    Mistake(
        "no-scale",
        "The embeddings are not multiplied by √d_model.",
        version(scaled=lambda self, x: x),
    ),
    Mistake(
        "scale-divides",
        "The embeddings are divided by √d_model. They should be multiplied by it.",
        version(scaled=lambda self, x: x / sqrt(x.shape[-1])),
    ),
    Mistake(
        "scale-of-d-model",
        "The embeddings are multiplied by d_model. It should be its root.",
        version(scaled=lambda self, x: x * x.shape[-1]),
    ),
    Mistake(
        "positions-scaled",
        "The positions are multiplied by √d_model as well: they are added after the scale.",
        version(
            embed=lambda self, ids: self.scaled(
                self.embedding(ids) + self.places(ids, self.embedding(ids))
            )
        ),
    ),
    Mistake(
        "scale-of-another-width",
        "The embeddings are multiplied by the root of another size. It is that of d_model: the "
        "width of a whole token, not of a head, nor the number of tokens in the vocabulary.",
        version(scaled=lambda self, x: x * sqrt(x.shape[-1] // self.num_heads)),
        also=(
            version(scaled=lambda self, x: x * sqrt(self.embedding.num_embeddings)),
            version(scaled=lambda self, x: x * sqrt(x.shape[1])),
        ),
    ),
    Mistake(
        "learned-positions",
        "The model trains a table of its own beside its parts: are those learned positions? Asked "
        "for are the sinusoidal ones, which are computed; nothing about them is trained.",
        examples=(
            version(make_blocks=trained_places),
            version(make_blocks=trained_places_of_its_own),
        ),
    ),
    Mistake(
        "positions-multiplied",
        "The positions are multiplied with the embeddings. They are added.",
        version(
            embed=lambda self, ids: (
                self.scaled(self.embedding(ids)) * self.places(ids, self.embedding(ids))
            )
        ),
    ),
    Mistake(
        "positions-in-every-block",
        "The positions are added before every block. They are added once, to the embeddings: the "
        "residual stream carries them on.",
        version(through=places_in_every_block),
    ),
    Mistake(
        "no-positions",
        "No positions are added.",
        version(places=lambda self, ids, x: torch.zeros_like(x)),
    ),
    Mistake(
        "positions-by-batch",
        "Each *sequence* gets a position, the same for all of its tokens: the axis of the batch is "
        "taken for that of positions.",
        version(
            places=lambda self, ids, x: sinusoidal_encoding(len(ids), x.shape[-1]).to(x)[:, None]
        ),
    ),
    Mistake(
        "positions-from-one",
        "The positions start at 1. The first is 0.",
        version(
            places=lambda self, ids, x: sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1]).to(x)[1:]
        ),
    ),
    Mistake(
        "one-position",
        "Every token gets the same position: a table of positions is indexed with n where its "
        "first n rows are wanted.",
        version(
            places=lambda self, ids, x: sinusoidal_encoding(ids.shape[1] + 1, x.shape[-1]).to(x)[-1]
        ),
        also=(version(places=lambda self, ids, x: sinusoidal_encoding(1, x.shape[-1]).to(x)),),
    ),
    Mistake(
        "positions-twice",
        "The positions are added twice.",
        version(
            places=lambda self, ids, x: 2 * sinusoidal_encoding(ids.shape[1], x.shape[-1]).to(x)
        ),
    ),
    Mistake(
        "no-mask",
        "The model sees the future, and with it the token that it is to predict. In training the "
        "loss would fall near 0, and what it writes would be nonsense.",
        version(mask=lambda self, n: None),
    ),
    Mistake(
        "mask-in-one-block",
        "Only one of the blocks has the causal mask. What one block hides another one shows.",
        version(through=masked_at(0)),
        also=(version(through=masked_at(-1)),),
    ),
    Mistake(
        "mask-inverted",
        "Each position sees its future and not its past: the mask works the other way round. True "
        "means “may attend”.",
        version(mask=lambda self, n: ~causal_mask(n)),
        also=(version(mask=lambda self, n: causal_mask(n).T),),
    ),
    Mistake(
        "sees-one-ahead",
        "Each position sees one token ahead, which is the very one that it is to predict: the mask "
        "is off by one.",
        version(mask=lambda self, n: torch.ones(n, n, dtype=torch.bool).tril(1)),
    ),
    Mistake(
        "nothing-visible",
        "No token may see anything, not even itself. True means “may attend”.",
        version(mask=lambda self, n: torch.zeros(n, n, dtype=torch.bool)),
    ),
    Mistake(
        "mask-of-the-batch",
        "The mask is made for as many positions as there are sequences. It is (n, n): the sizes "
        "of ids are (b, n).",
        version(through=mask_of_the_batch),
    ),
    Mistake(
        "mask-without-itself",
        "A token may not see itself: the mask should be open on its diagonal.",
        version(mask=lambda self, n: causal_mask(n).tril(-1)),
    ),
    Mistake(
        "sequence-first",
        "Sequences and positions are exchanged on the way into the blocks, which take the batch "
        "first: tokens then see other sequences, and not their own.",
        version(through=sequence_first),
    ),
    Mistake(
        "only-itself",
        "Each token sees itself alone.",
        version(mask=lambda self, n: torch.eye(n, dtype=torch.bool)),
    ),
    Mistake(
        "block-missing",
        "Not all of the blocks are run, or what they return is not passed on.",
        version(through=chained(1)),
        also=(
            version(through=chained(-1)),
            version(through=chained(0)),
            version(through=chained(None, 1)),
        ),
    ),
    Mistake(
        "blocks-not-chained",
        "Every block reads the embeddings. Each should read what the one before gave.",
        version(through=not_chained),
    ),
    Mistake(
        "blocks-reversed",
        "The blocks are run from the last to the first.",
        version(
            through=lambda self, x: [
                x := block(x, self.mask(x.shape[1])) for block in reversed(self.blocks)
            ][-1]
        ),
    ),
    Mistake(
        "residual-again",
        "Each block's input is added to its output. A block has its residuals inside.",
        version(through=summed),
    ),
    Mistake(
        "embedding-added-again",
        "The embeddings are added once more behind the last block. The blocks have residuals "
        "inside, so the stream still carries them.",
        version(through=embedding_added_again),
    ),
    Mistake(
        "norm-after-every-block",
        "The final norm stands after every block. Pre-norm blocks norm what they read; only the "
        "end of the sum needs one more.",
        version(through=norm_between, finish=lambda self, x: self.head(x)),
        also=(version(through=norm_between),),
    ),
    Mistake(
        "no-final-norm",
        "The final norm is missing. What pre-norm blocks return is a sum that nothing has "
        "normalised yet.",
        version(finish=lambda self, x: self.head(x)),
    ),
    Mistake(
        "norm-first",
        "The norm stands before the blocks. It belongs behind them, before the head.",
        version(
            embed=lambda self, ids: self.final_norm(
                self.scaled(self.embedding(ids)) + self.places(ids, self.embedding(ids))
            ),
            finish=lambda self, x: self.head(x),
        ),
    ),
    Mistake(
        "norm-twice",
        "The final norm stands before the blocks as well. Only the end of the stream is normed "
        "with it.",
        version(embed=lambda self, ids: self.final_norm(Right.embed(self, ids))),
    ),
    Mistake(
        "norm-unused",
        "A norm is applied, but not self.final_norm: one that is made in forward, or a bare "
        "F.layer_norm, has no gain and bias that are trained.",
        version(finish=lambda self, x: self.head(F.layer_norm(x, x.shape[-1:]))),
    ),
    Mistake(
        "norm-behind-head",
        "The norm stands behind the head, on the logits. It belongs before it, on the features.",
        version(
            make_norm=lambda self, d_model, vocab_size: LayerNorm(vocab_size),
            finish=lambda self, x: self.final_norm(self.head(x)),
        ),
    ),
    Mistake(
        "no-head",
        "The features come back, not logits: the head is missing.",
        version(finish=lambda self, x: self.final_norm(x)),
    ),
    Mistake(
        "softmax",
        "Probabilities come back. Asked for are logits: the loss takes the softmax itself.",
        version(finish=lambda self, x: self.head(self.final_norm(x)).softmax(dim=-1)),
        also=(version(finish=lambda self, x: self.head(self.final_norm(x)).log_softmax(dim=-1)),),
    ),
    Mistake(
        "head-scaled",
        "The logits are divided or multiplied by √d_model: only what goes *in* is scaled.",
        version(finish=lambda self, x: self.head(self.final_norm(x)) * sqrt(x.shape[-1])),
        also=(version(finish=lambda self, x: self.head(self.final_norm(x)) / sqrt(x.shape[-1])),),
    ),
    Mistake(
        "tokens",
        "The most likely tokens come back. Asked for are logits: a loss cannot be taken of tokens.",
        version(finish=lambda self, x: self.head(self.final_norm(x)).argmax(dim=-1)),
    ),
    Mistake(
        "last-position-only",
        "Only the last position's logits come back. All are needed: training asks for every one.",
        version(finish=lambda self, x: self.head(self.final_norm(x))[:, -1]),
        also=(version(finish=lambda self, x: self.head(self.final_norm(x))[:, -1:]),),
    ),
    Mistake(
        "shifted-inside",
        "The model moves its input to the right. The data is shifted already: logits at a position "
        "are for the token after the one that is read there.",
        version(forward=shifted),
        also=(version(forward=last_dropped),),
    ),
    Mistake(
        "detached",
        "No gradient reaches the blocks or the embedding: what goes into the head is detached.",
        version(finish=lambda self, x: self.head(self.final_norm(x.detach()))),
    ),
    *of_repeated_calls(
        dropping=(version(scaled=lambda self, x: F.dropout(x, 0.1, self.training)),),
        made_anew=(
            version(through=made_anew),
            version(
                finish=lambda self, x: nn.Linear(x.shape[-1], 9).to(x.dtype)(self.final_norm(x))
            ),
        ),
    ),
)
