# ---
# jupyter:
#   attn_course:
#     title: "Self-attention"
#     reading_minutes: 50
#     exercise_minutes: 100
# ---

# %% [markdown]
# So far a query came from one place and the keys from another: a decoder asked an encoder, a symbol
# asked a list of pairs. That is **cross-attention**. In **self-attention** queries, keys and values all come
# from one sequence. Every token asks all tokens of its own sentence, itself among them.
#
# ## What you will be able to do
#
# - Write self-attention as a module, and say which of its numbers are learnt.
# - Say how many steps lie between two positions, here and in a recurrent network, and what that does
#   to a gradient.
# - Prove in three lines that self-attention does not know the order of its tokens, and test any
#   layer for it.
# - Say why predicting the next token needs a causal mask, and find a leak: by its loss, and by a
#   test of your own that looks at outputs only.
# - Mask padding, combine masks, and say which axis each of them belongs to.
#
# Axes: $b$ counts sequences, $n$ their tokens. Where a token is meant that asks, its position is
# $i$; where one is meant that is asked, $j$. In self-attention both run over the same $n$ positions.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("04")

# %% hide="input"
recall("04")

# %%
import torch
import torch.nn.functional as F

from attn_course import drawings
from attn_course.attention import scaled_dot_product_attention
from attn_course.experiments.ch04 import (
    FEATURES, FLOOR, LOAN, RIVER, as_layer, hand_set_attention, hand_set_tokens,
    loss_by_position, may_follow, neighbours_within, next_token_runs, path_length, two_way_task,
)
from attn_course.experiments.ch04_views import bank_view
from attn_course.explorers import MaskExplorer
from attn_course.masks import causal_mask, combine_masks, padding_mask
from attn_course.plots import heat_map, line_plot
from attn_course.recurrent import RNNCell, gradient_by_distance
from attn_course.self_attention import SelfAttention, is_permutation_equivariant, leaks_future

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## One sequence, three roles
#
# **Two sentences share a word. Do they share its vector?**
#
# > The bank approved the loan.
# >
# > The bank is near the river.
#
# In the embedding table “bank” has one row (chapter 02), so in both sentences it starts as the same
# vector. What it means is said by its neighbours. Self-attention lets it ask them:
#
# $$Q = X W_q \qquad K = X W_k \qquad V = X W_v \qquad
# \mathrm{SelfAttention}(X) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# $X$ is $(n, d_\text{model})$, one row for each token. The three weights are
# $(d_\text{model}, d_k)$, and they are all that is learnt. The attention itself is the function of
# chapter 03, unchanged. What a layer attends to in another sequence is cross-attention: then $K$ and $V$ are
# made from the other sequence, and nothing else changes (chapter 08).
#
# To see it work, set everything **by hand**. Three features for each word: does it speak of money,
# does it speak of water, and does it *ask* which of the two is meant?

# %%
tokens, x = hand_set_tokens(LOAN)  # x (n, 3)
print("          ", FEATURES)
for token, vector in zip(tokens, x.tolist()):
    print(f"{token:10} {vector}")
print("“river”, in the other sentence:", hand_set_tokens(RIVER)[1][5].tolist())

# %% [markdown]
# “bank” speaks of both a little, and asks. The weights, by hand as well: keys and values are the
# first two features. The query of a token that asks is $\sqrt 2\,(1, 1)$, so that after the division
# by $\sqrt{d_k} = \sqrt 2$ each score is the sum of money and water in the key.
#
# **On paper.** The row of “bank” in the first sentence. Fill the last column, with
# $20.1 + 7.4 + 2.7 + 3 \cdot 1 = 33.2$.
#
# | key | money, water | score | $e^{\text{score}}$ | weight |
# |---|---|---|---|---|
# | the (twice), “.” | (0, 0) | 0 | 1 each | |
# | bank | (1, 1) | 2 | 7.4 | |
# | approved | (1, 0) | 1 | 2.7 | |
# | loan | (3, 0) | 3 | 20.1 | |
#
# The output of “bank” is the weighted mean of the values, which here are the same two numbers. How
# much money, how much water comes out?

# %% [markdown] prediction="bank-river"
# In the second sentence there is no “loan” and no “approved”, but a “river” (0, 3). How much money
# will be in the output of “bank” there? (It starts with money 1, water 1.)
#
# number: 0 … 3, within 0.2

# %%
attention = hand_set_attention()
for sentence in (LOAN, RIVER):
    tokens, x = hand_set_tokens(sentence)
    output, weights = attention(x)  # (n, 2), (n, n)
    money, water = output[1].tolist()
    print(f"{sentence:30} bank: money {money:.2f}, water {water:.2f}")
reveal("bank-river", money)

# %%
heat_map(
    weights, row_labels=tokens, column_labels=tokens, title=RIVER.rstrip("."),
    alt="The row of “bank” has most of its weight on “river” and some on itself. All other rows are "
    "even: these tokens ask for nothing.",
)

# %% [markdown]
# **What was seen.** One vector went in twice, two vectors came out. The row of “bank” differs between
# the sentences because the keys beside it differ. All the other rows are even: their queries are
# zeros, all their scores are 0, and what they get is the mean of everything.
#
# The view has a third sentence, with both: “The bank near the river approved the loan.” Before you
# choose it, say where the point will go. Then turn up how strongly “bank” asks.

# %%
bank_view()

# %% [markdown]
# With both words in reach, the point lands between the two. “river” stands nearer to “bank” than “loan”
# does, and it makes no difference: nothing here knows what near is. Keep that in mind for two sections.
#
# **What this shows, and what not.** It shows that one layer *can* give a word the meaning that its
# sentence asks for. It does not show that training finds such weights: these were made up, three
# features with names, by somebody who knew the answer. Trained features have no names. In chapter 12
# you put the same two sentences to a model with trained weights, and see what its “bank” does.

# %% [markdown] question="self-attention-parameters"
# A self-attention layer with d_model = 64 and d_k = 16 is applied to a sentence of 10 tokens, then to
# one of 1 000. How many weights does it have in each case?
#
# - [x] 3 072 in both
#   W_q, W_k and W_v have 64 · 16 numbers each. Scores and weights of attention are computed anew for
#   each sentence; they are not learnt.
# - [ ] 3 072, and 307 200
#   The same projections are used for every token. No weight belongs to a position.
# - [ ] 100 more, and 1 000 000 more
#   That is the size of the scores, n · n. They are a result, not weights that are learnt.
# - [ ] 1 024 in both
#   That is one of the three. Queries, keys and values each have their own.

# %% [markdown] question="bank-differs"
# After one layer of self-attention, the vectors of “bank” differ between the two sentences. Where does
# the difference come from?
#
# - [ ] From the embedding table, where it is looked up
#   It has one row for “bank”, whatever stands beside it.
# - [ ] From its query, which differs between the two
#   q = x W_q is made from the vector of “bank” alone, so it is the same in both sentences.
# - [x] From the keys and values of the other tokens
#   The same question is put to other neighbours, so both the weights and what they weigh are
#   different.
# - [ ] From its position, the second in the sentence
#   It is the second token in both. And this layer does not know positions at all.

# %% [markdown]
# **A module of your own.** The exercise asks for a class. In PyTorch what is learnt and what is done with it
# live together in an `nn.Module`: `__init__` makes the parts, `forward` uses them, and calling the object
# calls `forward`.

# %%
class Twice(torch.nn.Module):
    """One linear map, applied twice."""
    def __init__(self, d):
        super().__init__()  # first of all: it sets up the register of parts
        self.W = torch.nn.Linear(d, d, bias=False)
    def forward(self, x):
        return self.W(self.W(x))


layer = Twice(3)
print(layer(torch.ones(2, 3)).shape, [(name, tuple(W.shape)) for name, W in layer.named_parameters()])

# %% [markdown]
# Parts that are given to `self` in `__init__` are found by `named_parameters()`, and so by an optimiser.
#
# {{exercise: SelfAttention}}

# %% [markdown]
# ## How far is it from here to there?
#
# **Position 0 has what the last position needs. How many steps must it pass through?** In a recurrent
# network the news goes by way of every state in between. Count the steps for a few layers: say which
# position reads from which in one step, and repeat the step until the first has reached the last.

# %% [markdown] prediction="path-of-a-convolution"
# A convolution of width 5 reads two neighbours to each side. 64 positions: how many such layers until
# the first position can have an effect at the last?
#
# number: 1 … 63, within 1

# %%
def shortest(n):
    """How many steps from the first of n positions to the last, for three ways to read."""
    one_before = neighbours_within(n, 1).tril()  # a recurrent step: the state before, and itself
    everyone = torch.ones(n, n, dtype=torch.bool)  # self-attention
    return [path_length(r, n - 1, 0) for r in (one_before, neighbours_within(n, 2), everyone)]


for n in (8, 64, 256):
    print("n = {:3}: recurrent {:3}, convolution of width 5 {:3}, self-attention {}".format(
        n, *shortest(n)))
reveal("path-of-a-convolution", shortest(64)[1])

# %% [markdown]
# **Does a short path matter?** A gradient takes the same path backwards. In chapter 01 you saw it fade
# with every recurrent step. Measure it here as you did there: how strongly the last output depends on
# the input $k$ positions before it. Nothing is trained yet; three random starts of each.

# %%
faded = {"recurrent network": [], "self-attention": []}
for seed in range(3):
    torch.manual_seed(seed)
    inputs = torch.randn(32, 64, 16)  # (b, n, d_model)
    layers = RNNCell(16, 32).run, as_layer(SelfAttention(16, 32))
    for name, layer in zip(faded, layers):
        faded[name].append(gradient_by_distance(layer, inputs))

# %% tags=["nbval-ignore-output"]
for name, runs in faded.items():
    shares = "  ".join(f"{float(run[63] / run[1]):.1e}" for run in runs)
    print(f"{name:17}: gradient at distance 63, divided by that at distance 1, in three runs: {shares}")

# %%
line_plot(
    range(64), {name: torch.stack(runs).clamp(min=1e-24) for name, runs in faded.items()}, log_y=True,
    x_label="distance k", y_label="gradient of the last output", title="One step, or k of them",
    alt="The recurrent network's line falls steadily over many orders of magnitude. That of "
    "self-attention is level, with a higher value at distance 0.",
)

# %% [markdown]
# **What was seen.** In the recurrent network less than $10^{-18}$ of the gradient is left after 62 further
# steps; in self-attention at least three quarters, in all three runs. Only the token itself stands out,
# since it also makes the query. Note where the level lies: an even share of one whole among 64 keys is
# small, though it does not become smaller with distance.
#
# **What it costs.** To be one step from everybody, everybody must be compared with everybody: $n^2$
# scores. A recurrent network makes $n$ steps, one after the other. Chapter 10 is about that bill.

# %% [markdown] question="path-length"
# A recurrent network and one layer of self-attention read 1 000 tokens. What does “path length 1”
# say about self-attention?
#
# - [ ] It needs one multiplication for each of the tokens
#   It needs 1 000 · 1 000 scores. They are independent of each other, so they can be made at once.
# - [ ] It reads only one token, and passes it on to the next
#   It reads all. The length counts the steps between two positions, not how many there are.
# - [x] One step lies between any two, for gradients as well
#   The score of the pair connects them directly, so there is one step over which a gradient could fade.
# - [ ] It will learn dependencies that are 1 000 tokens long
#   The path is open; whether training uses it is another question. You have only measured what is
#   possible at the start.

# %% [markdown]
# ## Does self-attention know the order?
#
# **“dog bites man”, and “man bites dog”.** The same three vectors, in another order. The weights are
# random this time.

# %% [markdown] prediction="dog-in-both"
# One layer of self-attention, no mask. Compare the output of “dog” in “dog bites man” with the output
# of “dog” in “man bites dog”.
#
# - They differ: in one the dog comes first, in the other last.
# - They are equal, but for rounding.
# - It depends on the weights.

# %%
torch.manual_seed(0)
dog, bites, man = torch.randn(3, 8)  # d_model = 8
equal = []
for _ in range(3):
    layer = as_layer(SelfAttention(8, 8))  # new weights; the output alone, (n, d_k)
    one, other = layer(torch.stack([dog, bites, man])), layer(torch.stack([man, bites, dog]))
    apart = (one - other.flip(0)).abs().amax(dim=1)  # word by word
    print("largest difference:", "  ".join(f"{w} {a:.3f}" for w, a in zip(("dog", "bites", "man"), apart)))
    equal.append(bool(apart[0] < 1e-5))
reveal("dog-in-both", 1 if all(equal) else 2 if any(equal) else 0)

# %% [markdown]
# **What was seen.** Each word comes out as the same vector. To this layer the two sentences are the
# same *bag* of three words. That holds for every order of every sentence, and takes three lines to
# prove. Let $P$ be a permutation matrix: $PX$ are the rows of $X$ in another order, and
# $P^\top P = I$.
#
# 1. Each row is projected by itself: $(PX)W = P(XW)$. So $Q, K, V$ become $PQ, PK, PV$.
# 2. The scores become $PQ\,(PK)^\top = P\,(QK^\top)\,P^\top$. The softmax works within each row, and
#    the order within a row does not matter to it, so the weights $A$ become $P A P^\top$.
# 3. The output becomes $P A P^\top\, P V = P\,(A V)$.
#
# In words: shuffle the tokens, and the outputs are shuffled alike. This is called **permutation
# equivariance**, $f(PX) = P f(X)$. Do not confuse it with *invariance*, $f(PX) = f(X)$, which a mean
# over all tokens has. The outputs do move: each stays with its token.
#
# A test follows from the definition. Two ways to the same place: shuffle and then apply the layer, or
# apply the layer and then shuffle.

# %%
torch.manual_seed(0)
x = torch.randn(1, 6, 8)  # (b, n, d_model)
attention = SelfAttention(8, 8)
layers = {
    "self-attention": as_layer(attention),
    "under a causal mask": as_layer(attention, causal_mask(6)),
    "a number added to the first token": lambda x: as_layer(attention)(x + torch.eye(6)[0, :, None]),
    "tanh of each number": torch.tanh,
    "recurrent network": RNNCell(8, 8).run,
}
for name, layer in layers.items():
    print(f"{name:34} equivariant: {is_permutation_equivariant(layer, x)}")

# %% [markdown]
# **What follows.**
#
# - Whatever needs order must be told the order. Chapter 06 adds it to the vectors. Until then what you
#   build reads bags.
# - No weight belongs to a position, so a layer runs on any length, also on one it has never seen.
# - A mask that treats positions differently brings order in. Look at the second line of the output:
#   under a causal mask a token sees those before it, and who is before is a matter of order.
# - It is a test of your code. Heads that are cut along the wrong axes (chapter 05) can keep every shape.
#   They do not pass this.

# %% [markdown] question="equivariance-consequence"
# Behind one layer of self-attention, without positions or a mask, you take the mean over all tokens and
# a linear layer, to say who bites whom. What can be learnt?
#
# - [ ] Everything, with enough data
#   For both sentences the linear layer gets the same vector. No weights can give two answers to it.
# - [ ] Everything, if d_model is large enough
#   The width does not come into the proof.
# - [x] Which two names occur, but not which of them bites
#   Shuffled tokens give shuffled outputs, and their mean is the same for both sentences.
# - [ ] Something, with a second layer
#   A second layer is equivariant too, and so is one after the other.

# %% [markdown]
# {{exercise: is_permutation_equivariant}}

# %% [markdown]
# ## Predicting the next token
#
# **Where does a model get its exercises from?** From any text: cover what follows, predict the next
# token, uncover it. A sequence of $n + 1$ tokens holds $n$ such exercises, one for each prefix. Reading the
# prefixes one by one takes $n$ calls. Self-attention makes all predictions in one call, the output at
# position $t$ predicting token $t + 1$. On one condition: output $t$ must not have seen token $t + 1$.
# It stands right there in the input, one place further on.
#
# A **causal mask** sees to that. Position $i$ may attend to $j \le i$: to itself and the past.
#
# | $i \backslash j$ | the | dog | bites | man |
# |---|---|---|---|---|
# | the | ✓ | | | |
# | dog | ✓ | ✓ | | |
# | bites | ✓ | ✓ | ✓ | |
# | man | ✓ | ✓ | ✓ | ✓ |
#
# As a boolean tensor it is true on and below the diagonal. With it, one call says what $n$ calls on
# the prefixes would:

# %%
torch.manual_seed(0)
x, attention = torch.randn(1, 6, 8), SelfAttention(8, 8)
at_once, _ = attention(x, causal_mask(6))
one_by_one = torch.stack([attention(x[:, :t])[0][:, -1] for t in range(1, 7)], dim=1)
print(causal_mask(4).int())
print(f"largest difference: {(at_once - one_by_one).abs().max():.5f}")

# %% [markdown]
# {{exercise: causal_mask}}

# %% [markdown]
# **And if the mask is forgotten?** The honest way to find out needs a text of which it is known how well
# it *can* be predicted. So make one. There are eight symbols, in a ring. After each comes the next one,
# or the third after it; a coin decides.

# %%
task = two_way_task(12)  # inputs (b, 12), targets (b, 12): the same, one place on
print("a sequence:", task.train_batch(0, 1).inputs[0].tolist())
print("after 0 may follow:", may_follow()[0].nonzero().flatten().tolist())
print(f"loss of whoever knows the rule: log 2 = {FLOOR:.2f}; of whoever guesses: log 8 = "
      f"{torch.tensor(8.0).log():.2f}")

# %% [markdown]
# Nobody who knows only the past can foresee the coin. So $\log 2$ is a floor: no model without a leak gets
# below it on average.
#
# The model: each symbol is a vector, and so is each place (so that attention can find its neighbours;
# chapter 06 says more), then one layer of self-attention whose output is added to the tokens, and a
# linear layer to eight logits. Three versions, each trained from three seeds and then tested on
# sequences that training never draws:
#
# - with the causal mask,
# - with no mask,
# - with a mask that is off by one: each position sees one token ahead.

# %% [markdown] prediction="loss-without-mask"
# Without a mask: where will the loss on held-out sequences end?
#
# - Near log 8 (1.5 to 2.5): it learns nothing.
# - Near log 2 (half of it to 1.5), as with the mask.
# - Below half of log 2.
# - Above 2.5: low in training, high on held-out sequences.

# %%
masks = {
    "causal": causal_mask,
    "no mask": lambda n: None,
    "off by one": lambda n: torch.ones(n, n, dtype=torch.bool).tril(1),
}
runs = {name: next_token_runs(rule, name=name) for name, rule in masks.items()}

# %% tags=["nbval-ignore-output"]
for name, of_rule in runs.items():
    print(f"{name:10}: held-out loss in three runs", "  ".join(f"{run.loss:.2f}" for run in of_rule))
mean = sum(run.loss for run in runs["no mask"]) / 3
reveal("loss-without-mask", 3 if mean > 2.5 else 0 if mean > 1.5 else 1 if mean > FLOOR / 2 else 2)

# %% [markdown]
# **What was seen.** With the causal mask the loss ends at $\log 2 = 0.69$. The two leaky models get to less
# than a tenth of that. Holding sequences back does not warn of it, for in those the answer stands in the
# input just the same. Here the floor tells. **A loss that is too good is an error message.**
#
# Look closer: where do the leaky models still pay?

# %%
test = task.test_set(500, pick_device())
by_position = {
    name: torch.stack([loss_by_position(run.model, test) for run in of_rule])
    for name, of_rule in runs.items()
}
line_plot(
    range(1, 13), {"log 2": [FLOOR] * 12, **by_position}, x_label="position", y_label="held-out loss",
    y_limits=(0, 1.4), title="The last position has nobody to copy from",
    alt="With the causal mask the loss is level at log 2. The lines of both leaky models lie on each other "
    "near 0, and at the last position they jump to log 2.",
)

# %% [markdown]
# At the last position. There is no token behind it to read the answer from, so it must predict, and
# its loss is about $\log 2$, the floor, as for the model with the mask.
#
# **What is such a model good for?** When it writes, there never is a token ahead. Let each model
# write: it draws a symbol from its prediction, reads it back, draws the next.

# %% [markdown] prediction="leaky-writing"
# The share of steps that the source could have made (25 % by chance): what will the models without a
# mask reach when they write?
#
# - More than 95 % in all three runs
# - Less than 95 % in all three runs
# - More than 95 % in some runs, and less in others

# %%
legal = [run.legal > 0.95 for run in runs["no mask"]]
reveal("leaky-writing", 0 if all(legal) else 2 if any(legal) else 1)

# %% tags=["nbval-ignore-output"]
for name, of_rule in runs.items():
    print(f"{name:10}: legal steps in three runs", "  ".join(f"{run.legal:4.0%}" for run in of_rule))

# %% [markdown]
# **What was seen.** The model with the worst loss writes best. The other two make more legal steps than the
# 25 % of chance, so they know something of the rule; how much differs from seed to seed.
#
# **A floor is rarely known.** For real text nobody can say how well it can be predicted. Then a leak is
# found by a test that asks for causality itself: *change what comes later, and nothing earlier may
# move*.

# %%
x = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(0))  # (b, n, d_model)
x = x.to(pick_device())
for name, of_rule in runs.items():
    print(f"{name:10} leaks: {leaks_future(of_rule[0].model.layer, x)}")
print("normalised over time leaks:", leaks_future(lambda x: x - x.mean(dim=1, keepdim=True), x))

# %% [markdown]
# The last line has no attention in it at all. The future gets in through anything that mixes positions:
# a mean over time, a normalisation over the wrong axes, a convolution that looks to both sides. A test
# that looks at outputs needs to know none of these causes.

# %% [markdown] question="suspicious-loss"
# A language model's loss drops to 0.05 within an hour, in training and on held-out text alike. What do
# you do first?
#
# - [ ] Look for overfitting, and take a smaller model for once
#   Then the held-out loss would be high. It is low.
# - [x] Change a later token and see whether an earlier output moves
#   Text cannot be predicted so well. The likeliest cause is that the answer stands in the input, and
#   held-out text has the same leak.
# - [ ] Lower the learning rate, since the loss falls too fast
#   Nothing here speaks of steps that are too large.
# - [ ] Make the model larger, since it learns so well already
#   It is too good already.

# %% [markdown] question="causal-diagonal"
# A causal mask is built without its diagonal, so that a token sees only those before it. The target at
# position t is token t + 1. What is wrong with that?
#
# - [ ] The future leaks into each of the positions
#   Less is seen than might be, not more.
# - [x] Nothing leaks, but a token does not see itself
#   The token itself belongs to the past of its prediction. And a row without any key must be caught.
# - [ ] Nothing: it is the usual way to build the mask
#   The usual mask contains the diagonal.
# - [ ] The weights of no row sum to one any more
#   In every row but the first they do.

# %% [markdown]
# {{exercise: leaks_future}}

# %% [markdown]
# ## Padding: sequences of unequal length
#
# **A batch is a tensor, and sentences are not equally long. What stands in the gaps?** Any token, by
# agreement id 0, and nobody may attend to it. A **padding mask** says which keys are tokens, $(b, j)$:

# %%
lengths = torch.tensor([4, 2])
padding = padding_mask(lengths, 4)  # (b, j)
print(padding.int())

# %% [markdown]
# Masks lie side by side like this, in a sequence of six with two places of padding:

# %% hide="input"
drawings.masks()

# %% [markdown]
# How is it combined with the causal mask? Scores are $(b, h, i, j)$ where there are several heads
# (chapter 05). The causal mask is the same for each sequence and head: $(1, 1, i, j)$. Padding is about keys,
# the same for each query: $(b, 1, 1, j)$. **And** joins the two, to $(b, 1, i, j)$:

# %%
both = combine_masks(causal_mask(4), padding=padding)
print(tuple(both.shape))
print(both[1, 0].int())  # of the second sequence, with two tokens

# %% [markdown]
# The rows of its two padded positions have keys: padding hides keys, not queries. What comes out there
# is of no use, and the loss leaves it out (chapter 08). Hiding these rows too would only make empty
# ones.
#
# **Does it hold?** Poison the padding: put a million into it, and see who notices.

# %%
torch.manual_seed(0)
x, attention = torch.randn(2, 4, 8), SelfAttention(8, 8)
poisoned = x.clone()
poisoned[1, 2:] = 1e6
for name, mask in (("no mask", None), ("padding mask", padding[:, None])):  # (b, 1, j)
    moved = (attention(poisoned, mask)[0] - attention(x, mask)[0])[1, :2].abs().max()
    print(f"{name:12}: the tokens of the second sequence move by {moved:.3g}")

# %% [markdown] prediction="padding-as-it-is"
# A batch of 4 sequences with 4 tokens. The padding mask (b, j) is passed to the attention as it is, with
# no further axes. What happens?
#
# - An error tells that its shape does not fit.
# - It works: (b, j) is recognised.
# - It is taken for a mask of queries and keys, and nothing tells.

# %%
for b in (2, 4):
    padding = padding_mask(torch.arange(1, b + 1), 4)  # (b, 4)
    x = torch.randn(b, 4, 8)
    try:
        wrong = attention(x, padding)[1]
        right = attention(x, padding[:, None])[1]
        print(f"b = {b}: no error; the weights are wrong by up to {(wrong - right).abs().max():.2f}")
    except ValueError as error:
        print(f"b = {b}:", str(error).split(":")[0])
reveal("padding-as-it-is", 1 if torch.allclose(wrong, right) else 2)

# %% [markdown]
# **What was seen.** With two sequences there is an error. With as many sequences as tokens, the shape is
# that of a mask $(i, j)$, and it is taken for one. That is why nothing in this course guesses what a
# mask means: two axes are $(i, j)$, always, and padding goes through `combine_masks`, by its name.
#
# **The row with nothing to see.** Some pad in front, so that all sequences end together. Under a causal
# mask the first position then sees itself alone, and it is padding.

# %%
in_front = torch.tensor([[False, False, True, True]])  # (b, j): two places of padding, two tokens
mask = combine_masks(causal_mask(4), padding=in_front)[:, 0]  # (b, i, j)
x = torch.randn(1, 4, 8, requires_grad=True)
output, weights = attention(x, mask)
output.square().sum().backward()
print("weights:", [[round(w, 2) for w in row] for row in weights[0].tolist()])
print("NaN in the output:", int(output.isnan().sum()), "  in the gradient:", int(x.grad.isnan().sum()))

# %% [markdown]
# So empty rows occur in ordinary use. The convention of chapter 03 holds: zeros, and finite gradients.

# %% [markdown] question="padding-axis"
# The padding mask is lifted to (b, 1, j, 1) by mistake. What does it do there?
#
# - [ ] It hides padded keys, as the right mask does
#   The last axis of the scores is that of the keys. This mask has size 1 there: it hides a whole row
#   or nothing of it.
# - [x] It hides padded queries; padding is still read
#   The third axis is that of the queries. Those that matter have an open row, padding in it.
# - [ ] It raises an error, as the shape does not fit
#   It broadcasts: where i = j, as in self-attention, nothing tells.
# - [ ] It hides the other sequences of the batch
#   Sequences do not see each other, with or without a mask.

# %% [markdown]
# {{exercise: padding_mask}}
#
# {{exercise: combine_masks}}

# %% [markdown]
# ## Fewer queries than keys
#
# **A model writes one token after another. Must it compute everything again for each?** No. Only the new
# token needs a query; the keys and values of the past can be kept, which is called a **cache** (chapter
# 10). So there are fewer queries than keys, and the queries are the *last* positions. The causal mask is then a rectangle, aligned at its bottom right:

# %%
print(causal_mask(2, 5).int())
print("one new token:", causal_mask(1, 5).int().tolist())

# %% [markdown]
# The last row sees everything: the last query stands at the last key. PyTorch's fused attention has a
# switch, `is_causal=True`, that makes the mask for you. It has to choose where the queries stand, and
# so does the view below. Read row by row who sees whom, under both alignments.

# %%
MaskExplorer(n_query=2, n_key=5)

# %% [markdown] prediction="is-causal"
# Two queries, five keys. Does `is_causal=True` give the same as `causal_mask(2, 5)`?
#
# - Yes: the two masks are the same, whatever the sizes.
# - No: under the switch the first query sees one key only.
# - No: under the switch both queries see all five keys.

# %%
torch.manual_seed(0)
query, key, value = torch.randn(1, 5, 8), torch.randn(1, 5, 8), torch.randn(1, 5, 8)
full, _ = scaled_dot_product_attention(query, key, value, causal_mask(5))
last_two, _ = scaled_dot_product_attention(query[:, 3:], key, value, causal_mask(2, 5))
switch = F.scaled_dot_product_attention(query[:, 3:], key, value, is_causal=True)
for name, rows in (("bottom right", last_two), ("is_causal", switch)):
    print(f"{name:12}: largest difference from the full run {(rows - full[:, 3:]).abs().max():.3f}")
as_offered = causal_mask(2, 5), torch.ones(2, 5, dtype=torch.bool).tril(), None
outputs = [scaled_dot_product_attention(query[:, 3:], key, value, mask)[0] for mask in as_offered]
reveal("is-causal", [torch.allclose(switch, output, atol=1e-5) for output in outputs].index(True))

# %% [markdown]
# **What was seen.** The switch aligns at the top left. With as many queries as keys both are the same,
# so a test on square masks cannot tell; the fault shows as soon as there are fewer queries than keys. More
# queries than keys make no sense if the queries are the last positions; `causal_mask` refuses them with a `ValueError`.
#
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | no causal mask, or off by one | a loss below what is possible, held-out too; poor writing |
# | the mask the other way round | each token sees the future alone; the last row is empty |
# | the diagonal left out | an empty first row: NaN, or zeros |
# | padding (b, j) passed as (i, j) | an error, but none when batch and length are equal |
# | padding at the axis of the queries | silent: poison the padding, and real tokens move |
# | padded queries hidden as well | empty rows, and nothing gained |
# | “or” in place of “and” between masks | padding opens the future |
# | alignment at the top left | right for square masks; wrong with fewer queries than keys |
# | keys made from `W_q` (a copied line) | the scores are symmetric: no error, no NaN |
# | no positions | shuffled input gives shuffled output: order cannot be learnt |
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): section 4 compares path
#   lengths.
# - Lin et al., “A Structured Self-Attentive Sentence Embedding”, 2017 (arXiv 1703.03130), and Cheng,
#   Dong and Lapata, “Long Short-Term Memory-Networks for Machine Reading”, 2016 (arXiv 1601.06733):
#   attention within one sequence, before the Transformer.
# - Lee et al., “Set Transformer”, 2019 (arXiv 1810.00825): equivariance not as a lack but as the aim.
# - Zaheer et al., “Deep Sets”, 2017 (arXiv 1703.06114): what equivariant functions look like.
# - Haviv et al., “Transformer Language Models without Positional Encodings Still Learn Positional
#   Information”, 2022 (arXiv 2203.16634): what a causal mask gives away about order.

# %% [markdown] part="exercises"
# Six exercises. You write self-attention as a module (4.1), the causal mask (4.3), the mask for padding
# (4.5) and a function that combines masks (4.6). In the other two you write *tests*: does a layer know the
# order of its tokens (4.2), does it let the future leak into the past (4.4)? Each test is judged on some
# thirty layers, right and wrong ones, of which it sees nothing but their outputs.
#
# Every mask is a boolean tensor in which **True means “may attend”**. No answer may change its inputs.

# %% part="exercises"
from functools import reduce

import torch
from einops import rearrange

# %% [markdown] exercise="SelfAttention"
# `SelfAttention(d_model, d_k)` is one head of self-attention, an `nn.Module`:
#
# $$\mathrm{softmax}\!\left(\frac{(X W_q)(X W_k)^\top}{\sqrt{d_k}}\right) X W_v$$
#
# - It has three parts, `self.W_q`, `self.W_k` and `self.W_v`, each `nn.Linear(d_model, d_k, bias=False)`.
#   There is no $W_o$ yet. The check copies its own weights into them, by these names, so the order in
#   which you make them does not matter.
# - `forward(x, mask=None)`: `x` is a float tensor (\*b, n, d_model), with any number of leading axes.
#   `mask` is None or boolean, (n, n) or with as many axes as the scores (\*b, n, n), each of full size
#   or 1.
# - Returns the pair `(output, weights)`: (\*b, n, d_k) and (\*b, n, n).
# - A query that may attend to nothing gets zeros, as output and as weights. All three weights must
#   be reached by the gradient.
#
# The attention itself you have written in chapter 03; the import gives you the course's, and your own
# serves as well.
#
# ```python
# layer = SelfAttention(3, 2)
# output, weights = layer(torch.randn(5, 4, 3))  # (5, 4, 2) and (5, 4, 4)
# ```

# %% exercise="SelfAttention" source="attn_course.self_attention"

# %% [markdown] exercise="is_permutation_equivariant"
# `is_permutation_equivariant(layer, x)` says whether a layer treats its tokens without regard to their
# order: $f(PX) = P f(X)$ for every permutation $P$ of the positions.
#
# - `layer`: to be called as `layer(x)`. It maps (b, n, d) to (b, n, d), for any b and n, and drops
#   nothing at random. You cannot look inside.
# - `x`: float64 tensor (b, n, d), random tokens that all differ.
# - Returns a bool.
#
# Rounding differs when sums are taken in another order; in float64 it stays near $10^{-15}$. What a layer
# truly does shows in the third decimal. A layer may treat only one of its positions differently, or only
# one sequence of the batch, or one feature. And a single permutation may be a lucky one: it may leave
# alone the very position that matters.
#
# ```python
# x = torch.randn(2, 5, 3, dtype=torch.float64)
# is_permutation_equivariant(torch.tanh, x)                   # True: each number by itself
# is_permutation_equivariant(lambda x: x.cumsum(dim=1), x)    # False: depends on who came before
# ```

# %% exercise="is_permutation_equivariant"
def is_permutation_equivariant(layer, x):
    """Return whether shuffling the positions of x (b, n, d) shuffles layer(x) alike."""
    ### BEGIN SOLUTION
    output = layer(x)
    for _ in range(10):  # a single one may leave alone the very position that matters
        order = torch.randperm(x.shape[1])
        if not torch.allclose(layer(x[:, order]), output[:, order]):
            return False
    return True
    ### END SOLUTION


# %% [markdown] exercise="causal_mask"
# `causal_mask(n_query, n_key=None)` lets each position attend to itself and to what came before it.
#
# - `n_query`, `n_key`: whole numbers. Without `n_key` there are as many keys as queries.
# - Returns a boolean tensor of exactly (i, j) = (n_query, n_key). True: query $i$ may attend to key $j$.
# - With fewer queries than keys the queries are the *last* positions: the mask is aligned at its bottom
#   right, and the last row is all True.
# - More queries than keys: raise a `ValueError` with both numbers in its message.
#
# ```python
# causal_mask(3)     # [[True, False, False], [True, True, False], [True, True, True]]
# causal_mask(2, 3)  # [[True, True, False], [True, True, True]]
# causal_mask(3, 2)  # ValueError
# ```

# %% exercise="causal_mask"
def causal_mask(n_query, n_key=None):
    """Return the mask (n_query, n_key) under which each position sees itself and the past."""
    ### BEGIN SOLUTION
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError(f"a causal mask needs n_query <= n_key, got {n_query} and {n_key}")
    # the first query stands at key n_key - n_query
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(diagonal=n_key - n_query)
    ### END SOLUTION


# %% [markdown] exercise="leaks_future"
# `leaks_future(layer, x)` says whether an output at some position depends on a token at a *later* one.
#
# - `layer`: to be called as `layer(x)`. It maps (b, n, d) to (b, n, d), for any b and n, is
#   differentiable, and drops nothing at random. You cannot look inside.
# - `x`: float64 tensor (b, n, d), random tokens that all differ.
# - Returns a bool: True if it leaks.
#
# That an output depends on its own token, or on the past, is no leak. Rounding stays near $10^{-15}$; a
# leak shows in the third decimal. It may come from one token ahead or from further away, and show at one
# position only, in one sequence, in one feature. Some layers normalise their tokens before, or what
# comes out: think of what that hides.
#
# ```python
# x = torch.randn(2, 5, 3, dtype=torch.float64)
# leaks_future(lambda x: x.cumsum(dim=1), x)                   # False
# leaks_future(lambda x: x - x.mean(dim=1, keepdim=True), x)   # True: the mean knows the future
# ```

# %% exercise="leaks_future"
def leaks_future(layer, x):
    """Return whether layer(x) at some position depends on x (b, n, d) at a later one."""
    ### BEGIN SOLUTION
    output = layer(x)
    other = torch.randn_like(x)
    for cut in range(1, x.shape[1]):
        changed = torch.cat([x[:, :cut], other[:, cut:]], dim=1)  # the future alone is replaced
        if not torch.allclose(layer(changed)[:, :cut], output[:, :cut]):
            return True
    return False
    ### END SOLUTION


# %% [markdown] exercise="padding_mask"
# `padding_mask(lengths, n_key)` tells tokens from padding, in a batch in which the tokens come first.
#
# - `lengths`: integer tensor (b,), the number of tokens in each sequence. It may be 0.
# - `n_key`: the width of the batch. It may be more than the longest sequence has.
# - Returns a boolean tensor of exactly (b, j) = (b, n_key). True: a token, which may be attended to.
# - A length below 0 or above `n_key`: raise a `ValueError` with the numbers in its message.
#
# ```python
# padding_mask(torch.tensor([1, 3]), 3)  # [[True, False, False], [True, True, True]]
# padding_mask(torch.tensor([1, 4]), 3)  # ValueError
# ```

# %% exercise="padding_mask"
def padding_mask(lengths, n_key):
    """Return the mask (b, n_key) that is True at the first `lengths[b]` keys of sequence b."""
    ### BEGIN SOLUTION
    outside = (lengths < 0) | (lengths > n_key)
    if outside.any():
        raise ValueError(f"lengths must lie in 0 … {n_key}, got {lengths[outside].tolist()}")
    return torch.arange(n_key, device=lengths.device) < rearrange(lengths, "b -> b 1")
    ### END SOLUTION


# %% [markdown] exercise="combine_masks"
# `combine_masks(*masks, padding=None)` joins masks: open is what every one of them opens.
#
# - `masks`: any number of them, each None, or boolean of two axes, (i, j), or of four, (b, h, i, j) with
#   sizes 1 where it is the same for all. Two axes become (1, 1, i, j); four stay as they are. Two axes
#   always mean (i, j), whatever the sizes: nothing is guessed.
# - `padding`: None, or boolean (b, j). It hides keys, so it becomes (b, 1, 1, j). It hides no queries.
# - Returns a boolean mask of four axes, of size 1 wherever all that went in is of size 1 there; or None,
#   if nothing but None is given: None allows everything.
#
# ```python
# combine_masks(causal_mask(2))                                    # (1, 1, 2, 2)
# combine_masks(padding=torch.tensor([[True, False]]))             # [[[[True, False]]]]
# combine_masks(causal_mask(2), padding=torch.tensor([[True, False]]))
#                                                                  # [[[[True, False], [True, False]]]]
# combine_masks(None)                                              # None
# ```

# %% exercise="combine_masks"
def combine_masks(*masks, padding=None):
    """Return the mask (b, h, i, j), up to sizes of 1, that is True where all of them are."""
    ### BEGIN SOLUTION
    given = [mask for mask in masks if mask is not None]
    lifted = [rearrange(m, "i j -> 1 1 i j") if m.ndim == 2 else m for m in given]
    if padding is not None:
        lifted.append(rearrange(padding, "b j -> b 1 1 j"))
    return reduce(torch.logical_and, lifted) if lifted else None
    ### END SOLUTION
