"""Known-wrong versions of exercise 8.6, Seq2Seq."""

from __future__ import annotations

import torch

from attn_course.checks.catalogue.ch08.seq2seq_versions import (
    block_made_anew,
    both_on_target,
    causal_memory,
    causal_source,
    decode_with,
    decoder_not_chained,
    divided,
    dropping,
    encode_with,
    encoders_twice,
    from_the_top,
    further_norm,
    head_made_anew,
    ignored,
    in_lists,
    inverted,
    masks_exchanged,
    memory_written_into,
    memory_zeroed,
    no_scale,
    not_chained,
    not_lifted,
    on_queries,
    one_head,
    one_position,
    only_one,
    pre_norm,
    pre_norm_decoder,
    repeated,
    scaled_fully,
    scaled_with_places,
    shifted_again,
    side_by_side,
    version,
    where_it_fits,
    zero_hidden,
)
from attn_course.checks.exercise import Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask
from attn_course.positions import sinusoidal_encoding

LIFT = "combine_masks(padding=padding) makes (b, 1, 1, j) of it."

MISTAKES = (
    Mistake(
        "in-a-list",
        "The blocks stand in a plain Python list, where nn.Module does not see them: they would be "
        "neither trained nor saved. nn.ModuleList is a list that it sees.",
        version(make_blocks=in_lists),
    ),
    Mistake(
        "one-block-repeated",
        "It is one block, several times: [block] * n repeats the same object, and so its weights. "
        "Make a new one for each layer.",
        version(make_blocks=repeated),
    ),
    Mistake(
        "one-block",
        "There is one block on each side, whatever num_layers is.",
        version(make_blocks=only_one),
    ),
    Mistake(
        "heads-not-handed-on",
        "The blocks are made with another number of heads than num_heads. What is learnt is as "
        "large for any number of them, so that nothing else would tell.",
        version(make_blocks=one_head),
    ),
    Mistake(
        "encoder-blocks-twice",
        "The decoder is made of encoder blocks: they have no attention to the memory.",
        version(make_blocks=encoders_twice),
    ),
    Mistake(
        "further-norm",
        "There is a further norm. Post-norm blocks give what is normalised; asked for are the "
        "blocks, two tables and the head.",
        version(make_blocks=further_norm),
    ),
    Mistake(
        "pre-norm-blocks",
        "The model's own blocks are not post-norm: what leaves a stack of post-norm blocks has "
        "mean 0 and variance 1 in each token, as long as gain and bias are new.",
        version(make_blocks=pre_norm),
        also=(version(make_blocks=pre_norm_decoder),),
    ),
    Mistake(
        "no-scale",
        "The embeddings are not multiplied by √d_model.",
        version(embed=no_scale),
    ),
    Mistake(
        "scale-divides",
        "The embeddings are divided by √d_model. They should be multiplied by it.",
        version(embed=divided),
    ),
    Mistake(
        "scale-of-d-model",
        "The embeddings are multiplied by d_model. It should be its root.",
        version(embed=scaled_fully),
    ),
    Mistake(
        "positions-scaled",
        "The positions are multiplied by √d_model as well: they are added after the scale.",
        version(embed=scaled_with_places),
    ),
    Mistake(
        "no-positions",
        "No positions are added: source and target are bags of tokens.",
        version(places=lambda self, ids, x: torch.zeros_like(x)),
    ),
    Mistake(
        "one-position",
        "Every token gets the same position: a table of positions is indexed with n where its "
        "first n rows are wanted.",
        version(places=one_position),
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
        "source-reads-target-table",
        "The source is embedded with the table of the target.",
        version(encode=encode_with("target_embedding")),
    ),
    Mistake(
        "encoder-not-run",
        "The encoder's blocks are not run: the memory is the embeddings.",
        version(encode=encode_with(last=0)),
    ),
    Mistake(
        "encoder-block-missing",
        "Not all of the encoder's blocks are run.",
        version(encode=encode_with(last=1)),
        also=(version(encode=encode_with(last=-1)),),
    ),
    Mistake(
        "blocks-not-chained",
        "Every block reads the embeddings, of the encoder or of the decoder. Each should read what "
        "the one before gave.",
        version(encode=not_chained),
        also=(version(decode=decoder_not_chained),),
    ),
    Mistake(
        "causal-source",
        "The encoder hides its future. The source is complete: every token may see both sides.",
        version(encode=causal_source),
    ),
    Mistake(
        "source-padding-ignored",
        "Padding in the source is attended to in the encoder.",
        version(source_mask=ignored),
        also=(version(source_mask=ignored, memory_mask=ignored),),
    ),
    Mistake(
        "padding-inverted",
        "The padding works the other way round: True means a token.",
        version(source_mask=inverted, memory_mask=inverted),
        also=(version(source_mask=inverted), version(memory_mask=inverted)),
    ),
    Mistake(
        "padding-not-lifted",
        "The padding (b, j) is handed to a block as it is, and is taken for a mask (i, j). " + LIFT,
        version(source_mask=not_lifted, memory_mask=not_lifted),
        also=(version(source_mask=not_lifted), version(memory_mask=not_lifted)),
    ),
    Mistake(
        "padding-on-the-queries",
        "The padding lies along the axis of the queries: real tokens still read padding. " + LIFT,
        version(source_mask=on_queries, memory_mask=on_queries),
        also=(version(source_mask=on_queries), version(memory_mask=on_queries)),
    ),
    Mistake(
        "target-reads-source-table",
        "The target is embedded with the table of the source.",
        version(decode=decode_with("source_embedding")),
    ),
    Mistake(
        "no-causal-mask",
        "The decoder sees its own future, and with it the token that it is to predict.",
        version(target_mask=ignored),
    ),
    Mistake(
        "causal-inverted",
        "The decoder sees its future, and not its past: the mask works the other way round.",
        version(target_mask=lambda self, n: ~causal_mask(n)),
        also=(version(target_mask=lambda self, n: causal_mask(n).T),),
    ),
    Mistake(
        "causal-without-itself",
        "A target token may not see itself: the mask should be open on its diagonal.",
        version(target_mask=lambda self, n: causal_mask(n).tril(-1)),
    ),
    Mistake(
        "memory-padding-ignored",
        "Padding in the memory is attended to in the decoder.",
        version(memory_mask=ignored),
    ),
    Mistake(
        "causal-memory",
        "Part of the memory is hidden as if it lay in the future. The source is complete before "
        "the first token is written: only its padding is hidden. At equal lengths nothing tells.",
        version(decode=causal_memory(from_the_top)),
        also=(
            version(decode=causal_memory(where_it_fits)),
            version(decode=causal_memory(lambda n, n_memory: causal_mask(n), padded=False)),
        ),
    ),
    Mistake(
        "memory-zeroed",
        "The padded tokens of the memory are set to zeros, and then attended to: a key of zeros "
        "has a score like others. They are hidden by a mask.",
        version(decode=memory_zeroed),
    ),
    Mistake(
        "in-place",
        "The caller's memory is changed in place. It is read again for the next token.",
        version(decode=memory_written_into),
    ),
    Mistake(
        "masks-exchanged",
        "The two masks of the decoder are exchanged: the causal one is for its own attention, the "
        "padding for the memory.",
        version(decode=masks_exchanged),
    ),
    Mistake(
        "zero-hidden",
        "The token 0 is taken for padding in the target, and hidden. 0 may be the start token, "
        "which all others read; for the target there is the causal mask alone.",
        version(decode=zero_hidden),
    ),
    Mistake(
        "padding-on-target",
        "The padding of the *source* hides tokens of the target. It is for the memory alone.",
        version(decode=both_on_target),
    ),
    Mistake(
        "shifted-again",
        "The target is moved to the right. What comes in is what the decoder reads, with the start "
        "token already in front.",
        version(decode=decode_with(prepare=shifted_again)),
        also=(
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    shifted_again(target), self.encode(source, padding), padding
                )
            ),
        ),
    ),
    Mistake(
        "memory-not-read",
        "The decoder's blocks get x in the place of the memory: the source is never read.",
        version(decode=decode_with(read=lambda x, memory: x)),
    ),
    Mistake(
        "decoder-block-missing",
        "Not all of the decoder's blocks are run.",
        version(decode=decode_with(last=1)),
        also=(version(decode=decode_with(last=-1)), version(decode=decode_with(last=0))),
    ),
    Mistake(
        "no-head",
        "The features come back, not logits: the head is missing.",
        version(decode=decode_with(finish=lambda self, x: x)),
    ),
    Mistake(
        "softmax",
        "Probabilities come back. Asked for are logits: the loss takes the softmax itself.",
        version(decode=decode_with(finish=lambda self, x: self.head(x).softmax(dim=-1))),
        also=(
            version(decode=decode_with(finish=lambda self, x: self.head(x).log_softmax(dim=-1))),
        ),
    ),
    Mistake(
        "last-position-only",
        "Only the last position's logits come back. All are needed: training asks for every one.",
        version(decode=decode_with(finish=lambda self, x: self.head(x)[:, -1])),
        also=(version(decode=decode_with(finish=lambda self, x: self.head(x)[:, -1:])),),
    ),
    Mistake(
        "side-by-side",
        "Each decoder block reads the encoder block of its own height. All of them read the "
        "memory, what the *last* encoder block gave: forward is decode after encode.",
        version(forward=side_by_side),
    ),
    Mistake(
        "target-encoded",
        "forward encodes the target, or decodes the source.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                source, self.encode(target, padding), padding
            )
        ),
        also=(
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(target), None
                )
            ),
        ),
    ),
    Mistake(
        "forward-drops-padding",
        "forward does not hand the padding to both encode and decode.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                target, self.encode(source)
            )
        ),
        also=(
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(source, padding)
                )
            ),
            version(
                forward=lambda self, source, target, padding=None: self.decode(
                    target, self.encode(source), padding
                )
            ),
        ),
    ),
    Mistake(
        "memory-detached",
        "No gradient reaches the encoder: the memory is detached on its way to the decoder.",
        version(
            forward=lambda self, source, target, padding=None: self.decode(
                target, self.encode(source, padding).detach(), padding
            )
        ),
    ),
    *of_repeated_calls(
        dropping=(version(embed=dropping),),
        made_anew=(version(encode=block_made_anew), version(decode=head_made_anew)),
    ),
)
