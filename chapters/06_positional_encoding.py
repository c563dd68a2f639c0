# ---
# jupyter:
#   attn_course:
#     title: "Positional encoding"
#     reading_minutes: 55
#     exercise_minutes: 95
# ---

# %% [markdown]
# Attention without a mask reads bags: shuffle the tokens, and the outputs are shuffled alike
# (chapter 04). So order has to be put in, by a **positional encoding**. There are two places for it. It can be added to the
# *vectors* before the first layer, or it can enter the *scores*, where a query meets a key.
#
# Six ways are in use and in this chapter: sinusoids and learned vectors are added to the embeddings;
# RoPE, ALiBi and a relative bias act on the scores; and a causal model can do without any. At the end
# you compare all six on two tasks, after 200 to 800 steps of training, on sequences up to eight times as
# long as those they were trained on. The drawing below the imports shows where each of them enters.
#
# ## What you will be able to do
#
# - Show that a model without positions cannot tell a sentence from its reverse, and say what a causal
#   mask gives away about order.
# - Write the sinusoidal encoding from its formula, add it along the right axis, and find the usual
#   faults in either.
# - Say why a shift by $k$ positions is one rotation, the same for all positions, and write its matrix.
# - Put positions into queries and keys (RoPE) and into scores (ALiBi, relative bias), and say what
#   each of them makes easy and what it makes hard.
# - Judge a claim that an encoding works on longer sequences, or that it is worse than another.
#
# Axes: $b$ counts sequences, $n$ positions, $i$ those that ask, $j$ those that are asked. A position is
# a whole number, and the first one is 0.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("06")

# %% hide="input"
recall("06")

# %%
import torch

from attn_course import drawings
from attn_course.attention import scaled_dot_product_attention
from attn_course.experiments.ch06 import (
    add_by_batch, base_of_a_thousand, biter_runs, doubled_exponent, first_token_share,
    idle_features, longest_wave, spread_at_one_distance, who_bites_task,
)
from attn_course.experiments.ch06_lengths import (
    LATEST, THREE_BACK, LengthSettings, length_table,
)
from attn_course.experiments.ch06_views import shift_view
from attn_course.explorers import PositionExplorer
from attn_course.masks import causal_mask
from attn_course.multihead import MultiHeadAttention, merge_heads, split_heads
from attn_course.plots import head_maps, heat_map, line_plot
from attn_course.positions import (
    LearnedPositions, RotaryPositions, add_positions, alibi_bias, alibi_slopes, apply_rope, relative_shift,
    sinusoidal_encoding,
)
from attn_course.self_attention import is_permutation_equivariant

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% hide="input"
drawings.positions()

# %% [markdown]
# ## Who bites whom?
#
# **“Anna bites Ben.” Who bites?** The answer is the first name, so this is a question of order and of
# nothing else. A source makes sentences of two of twenty names. The model: one block without a mask,
# the mean over the three tokens, a linear layer with a class for each name. It is trained on most of the
# 380 sentences and tested on the fifth that is held out. That a sentence is held out does not mean that
# its reverse is.

# %%
task = who_bites_task()
batch = task.train_batch(0, 3)
for ids, biter in zip(batch.inputs.tolist(), batch.targets[:, 0].tolist()):
    print(f"name {ids[0]} bites name {ids[2]}   (ids {ids}; class of the biter: {biter})")

# %% [markdown] prediction="bag-on-held-out"
# A model without positions gets “Anna bites Ben”, which it has not seen. It must name one of the two.
# How often is it right on such held-out sentences?
#
# - Nearly always
# - About half of the time: it can only guess between two
# - Less than a quarter of the time

# %%
runs = {position: biter_runs(position) for position in ("none", "sinusoidal", "learned")}

# %% tags=["nbval-ignore-output"]
for position, of_seeds in runs.items():
    found = "  ".join(f"{run.found:4.0%}" for run in of_seeds)
    same = "  ".join(f"{run.same:4.0%}" for run in of_seeds)
    print(f"{position:10}: right in three runs {found};  same answer to the reverse {same}")
mean = sum(run.found for run in runs["none"]) / 3
reveal("bag-on-held-out", 0 if mean > 0.75 else 1 if mean > 0.25 else 2)

# %% [markdown]
# **What was seen.** Without positions the two sentences get one answer, always. They have to: the
# three vectors are the same, in another order, and the mean forgets the order.
#
# **Why worse than guessing?** If “Anna bites Ben” is held out, its reverse “Ben bites Anna” was trained on
# in about four of five cases. If the model has learnt it, its answer for the bag {Anna, Ben, bites} is
# Ben, and it gives the same answer to the other sentence. With positions, of either kind, it is right
# nearly always, and answers the reverse differently.

# %% [markdown] question="bag-limit"
# A model without positions and without a mask, with many layers and a mean at its end, reads each of
# 380 sentences “a bites b” together with its reverse. How many of them can it answer at most?
#
# - [ ] All, if it is large enough
#   Each layer is equivariant, and so is the whole. The mean then is the same for both orders,
#   whatever the size.
# - [ ] One in twenty, a guess
#   It does see which two names occur; only their order is lost.
# - [x] One half: one of each pair
#   Both orders get one answer. It is right for one of them.
# - [ ] None
#   For one order of each bag its answer may be right.

# %% [markdown]
# ## What a causal mask gives away
#
# **Does a language model need positions at all?** Under a causal mask the first token sees one token,
# the second two, the third three. That is a kind of clock. Let all scores be equal, and let the first
# token have the value 1 and all others 0. Each position then reads the mean of the values that it sees.

# %% [markdown] prediction="fifth-token"
# What does the fifth token (position 4) read?
#
# number: 0 … 1, within 0.02

# %%
share = first_token_share(8)
print("position:", "  ".join(f"{i:5}" for i in range(8)))
print("read:    ", "  ".join(f"{value:5.3f}" for value in share.tolist()))
ticks = -first_token_share(32).diff()
print(f"difference between positions 0 and 1: {ticks[0]:.3f}, between 30 and 31: {ticks[30]:.3f}")
reveal("fifth-token", share[4].item())

# %% [markdown]
# **What was seen.** Position $i$ (from 0) sees a single 1 among $i + 1$ values, so it reads
#
# $$\frac{1}{i+1}\cdot 1 + \frac{i}{i+1}\cdot 0 = \frac{1}{i+1}.$$
#
# That is another number for each position, so a layer after this one can know where it stands. The mask
# has let order in. But look at the differences: between positions 0 and 1 there lies one half, between
# 30 and 31 one thousandth. A clock whose ticks grow fainter.
#
# In the comparison at the end of this chapter, “none” means a causal model without positions.

# %% [markdown] question="causal-order"
# Four models of several layers each. Which one is blind to the order of the tokens before the last one?
#
# - [x] One without positions and without a mask
#   It is equivariant: shuffle what it reads, and each output goes with its token, unchanged.
# - [ ] One without positions, under a causal mask
#   A single layer would be: its last token sees all the others as a bag. From the second layer on it
#   reads tokens that have seen different numbers of others.
# - [ ] One with learned positions that have not been trained
#   Random rows differ from each other, so the order shows. What it means is not learnt yet.
# - [ ] One with positions, but only in its first layer
#   What is added to the vectors stays in them, through all layers.

# %% [markdown]
# ## Sinusoids: the position as many clocks
#
# **What should be added to a vector to say “position 17”?** The number 17 itself grows without end, and
# soon there is little else in the sum. A number scaled to 0 … 1 means something else at each length.
# The **sinusoidal encoding** of Vaswani et al. is a row of clock hands. Pair $i$ of the features holds
#
# $$PE_{pos,\,2i} = \sin\!\left(\frac{pos}{10000^{2i/d_\text{model}}}\right) \qquad
# PE_{pos,\,2i+1} = \cos\!\left(\frac{pos}{10000^{2i/d_\text{model}}}\right)$$
#
# The pair is a hand on a circle, at an angle that grows with the position. The first one turns by one
# radian a position, each following one more slowly. Fast hands tell neighbours apart, slow ones tell
# near from far, and no number ever leaves $-1 … 1$.
#
# **On paper.** $d_\text{model} = 4$, so there are two pairs, $i = 0$ and $i = 1$. The divisors are
# $10000^{0/4} = 1$ and $10000^{2/4} = 100$. Fill the row of position 2, with
# $\sin 2 = 0.909$, $\cos 2 = -0.416$, $\sin 0.02 = 0.02$, $\cos 0.02 = 1.000$:
#
# | position | $\sin(pos/1)$ | $\cos(pos/1)$ | $\sin(pos/100)$ | $\cos(pos/100)$ |
# |---|---|---|---|---|
# | 0 | 0 | 1 | 0 | 1 |
# | 1 | 0.841 | 0.540 | 0.010 | 1.000 |
# | 2 | | | | |

# %%
for position, row in enumerate(sinusoidal_encoding(3, 4).tolist()):
    print(position, "  ".join(f"{feature:6.3f}" for feature in row))

# %%
heat_map(
    sinusoidal_encoding(32, 64), limits=(-1, 1), title="32 positions, 64 features",
    row_axis="position", column_axis="feature", value="value",
    alt="Rows are positions, columns features. The first columns alternate quickly from row to row; "
    "the further right, the longer the waves; the last columns hardly change over 32 positions.",
)

# %% [markdown]
# **What was seen.** Waves, each pair longer than the one before. How long is the longest, and how many
# features does it leave idle on sequences of a common length?

# %% [markdown] prediction="idle-features"
# d_model = 64, positions 0 … 99. How many of the 64 features vary by less than 0.1 over all of them?
#
# number: 0 … 64, within 6

# %%
idle = idle_features(sinusoidal_encoding, n=100, d_model=64)
wave = longest_wave(sinusoidal_encoding(2, 64))
print(f"the longest wave has about {wave:,.0f} positions")
print(f"{idle} of 64 features vary by less than 0.1 over 100 positions")
reveal("idle-features", idle)

# %% [markdown]
# The slow clocks turn visibly only over lengths that a short text never reaches. In short texts these
# features are nearly constant.

# %% [markdown] question="sinusoid-pairs"
# Two neighbouring positions, 500 and 501, have to be told apart. Which features of their encodings
# differ most?
#
# - [ ] The last ones, since the positions are large
#   The slow waves change by less than a thousandth from one position to the next.
# - [x] The first pairs
#   They turn by up to one radian at each position, wherever it is.
# - [ ] All alike
#   That would be one clock. The rates differ by a factor of nearly 10000.
# - [ ] None: the encoding repeats itself after 2π positions
#   The first pair does, nearly. The others stand elsewhere then, so no row comes twice.

# %% [markdown]
# {{exercise: sinusoidal_encoding}}

# %% [markdown]
# ## Along which axis?
#
# **Why add, and not concatenate?** Say the next layer multiplies by a matrix. If the position is appended
# as further features, that matrix has rows of its own for it. If it is added, word and position share the
# rows:
#
# $$[x,\ PE]\begin{pmatrix}W_1\\ W_2\end{pmatrix} = x W_1 + PE\,W_2 \qquad\qquad (x + PE)\,W = x W + PE\,W$$
#
# So adding is concatenating with $W_1 = W_2$. It saves width: $d_\text{model}$ stays as it is in all layers.
# What it gives up is that the two can be told apart without effort. The model has to learn embeddings
# that leave some room beside the positions, and with many features there is room.
#
# **x is (b, n, d_model), the table (max_len, d_model). Which rows go where?** Every sequence begins at
# position 0, so every one gets the same rows, the first $n$. Axes meet from the right: `table[:n]`,
# $(n, d_\text{model})$, meets $(b, n, d_\text{model})$ as it is.
#
# The line below is right for code whose `x` is $(n, b, d_\text{model})$. Here it stands in code that puts
# the batch first.

# %% [markdown] prediction="batch-axis"
# `x + table[:x.shape[0], None]`, with x (b, n, d_model), in a batch of eight sequences. What happens?
#
# - An error about shapes
# - Nothing wrong: the rows are broadcast
# - No error, and the positions within a sequence are all the same

# %%
x, table = torch.randn(8, 5, 16), sinusoidal_encoding(64, 16)
wrong, right = add_by_batch(x, table), add_positions(x, table)
for name, added in (("by batch", wrong - x), ("by position", right - x)):
    within, between = (added[:, 0] - added[:, 1]).abs().max(), (added[0] - added[1]).abs().max()
    print(f"{name:11}: the first two rows of a sequence differ by {within:.2f}, "
          f"those of two sequences by {between:.2f}")
reveal("batch-axis", 2 if (wrong - x).diff(dim=1).abs().max() < 0.01 else 1)

# %% [markdown]
# **What was seen.** No error. The model reads bags, and who names the biter from a bag was seen above: the
# training loss can fall all the same. What finds the fault is the test of chapter 04. A layer that gets its positions is *not* equivariant:

# %%
layers = {"by batch": lambda x: add_by_batch(x, table), "by position": lambda x: add_positions(x, table)}
for name, layer in layers.items():
    print(f"{name:11}: equivariant: {is_permutation_equivariant(layer, x)}")

# %% [markdown]
# **Where does a token stand that is decoded alone?** A model that writes reads one token at a time, and
# knows the others from before (chapter 10). The new one is not at position 0. So whoever adds
# positions must be told how many came before: the *offset*.

# %%
whole = add_positions(x, table)
alone = add_positions(x[:, 4:], table, offset=4)  # the fifth token, by itself
print(f"largest difference from the whole sequence: {(alone - whole[:, 4:]).abs().max():.3f}")

# %% [markdown]
# Two habits of the field, so that you recognise them. The embeddings are often multiplied by
# $\sqrt{d_\text{model}}$ before the sum. Section 3.4 of the paper does it and gives no reason; perhaps
# because embeddings that start small would be hard to read beside the sinusoids. And dropout, which sets a
# random part of the features to zero in training, is applied to the sum.

# %% [markdown] question="positions-axis"
# x has the shape (20, 20, 64): twenty sequences of twenty tokens. You suspect that the positions are
# added along the wrong axis. What do you look at?
#
# - [x] Whether equal sequences in one batch get equal outputs
#   If rows go by sequence, the two get different ones. With the right axis they are equal.
# - [ ] Whether an error is raised where the rows do not fit
#   Both axes have the size 20. Nothing is raised.
# - [ ] Whether the loss falls: a model of bags learns nothing
#   It can fall for a model of bags as well.
# - [ ] Whether the sum has the shape of x, (20, 20, 64)
#   It is (20, 20, 64) either way.

# %% [markdown]
# {{exercise: add_positions}}

# %% [markdown]
# ## A shift is a rotation
#
# **Why sines and cosines, of all things?** “We hypothesized it would allow the model to easily learn to
# attend by relative positions”, says the paper, because $PE_{pos+k}$ is a linear function of $PE_{pos}$.
# Look at one pair, with the angle $a$ at position $pos$ and $b$ more after $k$ positions:
#
# $$\sin(a + b) = \sin a\,\cos b + \cos a\,\sin b \qquad \cos(a + b) = \cos a\,\cos b - \sin a\,\sin b$$
#
# As a row vector times a matrix, which is a rotation:
#
# $$(\sin a,\ \cos a)\begin{pmatrix}\cos b & -\sin b\\ \sin b & \cos b\end{pmatrix}
# = (\sin(a+b),\ \cos(a+b)) \qquad b = \frac{k}{10000^{2i/d_\text{model}}}$$
#
# There is no $pos$ in the matrix. The same one moves every position on by $k$. Choose a pair and a shift:
# the angle between the hands does not care where they start.

# %%
shift_view()

# %%
encoding = sinusoidal_encoding(200, 64)
for k in (1, 10, 100):
    moved = encoding[:100] @ relative_shift(k, 64)  # all 100 positions by one matrix
    far = (moved - encoding[k : k + 100]).abs().max()
    print(f"shift by {k:3}: largest difference {far:.3f}")

# %% [markdown]
# {{exercise: relative_shift}}

# %% [markdown]
# It follows that the dot product of two encodings depends on their distance alone: turning both by the
# same angle changes nothing. As a table of all pairs, that means equal numbers along each diagonal.
# But attention does not compare encodings. It compares $PE\,W_q$ with $PE\,W_k$.

# %% [markdown] prediction="spread-after-projection"
# Measure how far scores at one distance differ, divided by how far all scores differ: 0 if the
# distance decides alone, 1 if it says nothing. For encodings without projections it is 0. How large is it
# with random W_q and W_k, at 64 features?
#
# number: 0 … 1, within 0.15

# %%
torch.manual_seed(0)
for width in (16, 256, 64):  # 64 last: it is used below
    encoding, W_q, W_k = sinusoidal_encoding(48, width), *torch.randn(2, width, width) / width**0.5
    scores = {"encodings": encoding @ encoding.mT, "projected": (encoding @ W_q) @ (encoding @ W_k).mT}
    spread = {name: spread_at_one_distance(table) for name, table in scores.items()}
    print(f"{width:3} features:", "  ".join(f"{name} {found:.1f}" for name, found in spread.items()))
reveal("spread-after-projection", spread["projected"])

# %%
head_maps(
    torch.stack([table / table.abs().max() for table in scores.values()]), limits=(-1, 1),
    titles=list(scores), value="score, of the largest",
    alt="Left: a table with equal values along each diagonal, largest on the main one. Right: the same "
    "encodings after random projections; blotches, and no diagonals.",
)

# %% [markdown]
# **What was seen.** The property holds for the encoding and is lost at the first projection. A model
# *can* learn projections that keep it (those that turn with the rotations, or leave single pairs
# alone). Nothing makes it do so. The hypothesis of the paper is about what is possible.

# %% [markdown] question="shift-matrix"
# Somebody claims: “sinusoidal encodings make attention depend on relative positions only.” What is
# right?
#
# - [ ] It is true, since a shift is a rotation, the same for all positions
#   The rotation moves encodings. Scores are made from their projections, mixed with the words.
# - [ ] It is false, since the matrix of a shift depends on the position
#   It depends on the shift alone; that part is true.
# - [ ] It is true as soon as d_model is large, for errors then average out
#   With random projections the spread was nearly as large at 256 features as at 16.
# - [x] It holds for the encodings; after W_q and W_k nothing ensures it
#   You have just measured both. The model may learn it, and has no need to.

# %% [markdown]
# ## RoPE: turn what is compared
#
# **Why not put the rotation where the comparison is?** **Rotary position embedding** (RoPE) adds nothing. After
# the projections, each query and each key is turned, pair by pair, by an angle that grows with its
# position:
#
# $$(x_{2i},\ x_{2i+1}) \to (x_{2i}\cos\theta - x_{2i+1}\sin\theta,\ \ x_{2i}\sin\theta + x_{2i+1}\cos\theta)
# \qquad \theta = pos \cdot 10000^{-2i/d}$$
#
# $d$ is the width of one head. Each head turns its own pairs.
#
# **On paper.** $d = 2$, query and key both $(1, 0)$. The query at position 5 becomes
# $(\cos 5, \sin 5)$, the key at position 3 $(\cos 3, \sin 3)$. Their product is
# $\cos 5\cos 3 + \sin 5\sin 3 = \cos(5 - 3) = -0.42$. What is it at positions 105 and 103?

# %% [markdown] prediction="rope-shifted"
# A random query and key with 16 features. Their score at positions (7, 3) is s. What is it at
# (107, 103), and at (3, 7)?
#
# - s in both cases: the distance is 4
# - s at (107, 103), another number at (3, 7)
# - Another number in both cases

# %%
torch.manual_seed(0)
query, key = torch.randn(2, 1, 16)

def score(i, j):
    return (apply_rope(query, torch.tensor([i])) * apply_rope(key, torch.tensor([j]))).sum().item()

for i, j in ((7, 3), (107, 103), (3, 7)):
    print(f"query at {i:3}, key at {j:3}: {score(i, j):6.2f}")
same, mirrored = abs(score(7, 3) - score(107, 103)) < 1e-3, abs(score(7, 3) - score(3, 7)) < 1e-3
reveal("rope-shifted", 0 if same and mirrored else 1 if same else 2)

# %% [markdown]
# **What was seen.** Only the difference counts, and its sign: four words before is not four words
# after. And this time no projection comes in between:

# %%
at = torch.arange(48)
token = torch.randn(64)  # one word at all 48 positions, so that nothing but the position differs
q, k = (apply_rope((token @ W).expand(48, 64), at) for W in (W_q, W_k))
print(f"RoPE after random W_q and W_k: spread at one distance {spread_at_one_distance(q @ k.mT):.1f}")

# %% [markdown]
# Four things to know about it.
#
# - **Values are not turned.** They are what is carried; where they come from is decided by the scores.
# - **Lengths are kept**, since it is a rotation. A minus sign lost, and they are not: the first thing to
#   test.
# - **Two layouts are in use.** Here features $2i$ and $2i + 1$ are a pair. Others pair $i$ with
#   $i + d/2$. It is the same up to the order of the features, so neither is better. But weights trained
#   with one layout and run with the other give other scores, without an error.
# - **Angles need float32**, whatever the dtype of the model. Look what becomes of a position in
#   bfloat16:

# %%
for position in (17, 301, 4001, 4005):
    rounded = torch.tensor(position).bfloat16().item()
    print(f"position {position:4} in bfloat16: {rounded:.0f}, off by {rounded - position:+.0f} radians")

# %%
order = torch.cat([torch.arange(0, 16, 2), torch.arange(1, 16, 2)])  # even features, then odd ones
x, positions = torch.randn(6, 16), torch.arange(6)
one, two = x[:, order].chunk(2, dim=-1)  # what the other layout pairs
angles = positions[:, None] * 10000.0 ** (-torch.arange(0, 16, 2) / 16)
halves = [one * angles.cos() - two * angles.sin(), one * angles.sin() + two * angles.cos()]
apart = (torch.cat(halves, dim=-1) - apply_rope(x, positions)[:, order]).abs().max()
print(f"the other layout, on features in the other order: largest difference {apart:.3f}")

# %% [markdown]
# Inside multi-head attention the rotation stands after the split into heads and before the scores:

# %%
torch.manual_seed(0)
layer, x, at = MultiHeadAttention(64, 4, position=RotaryPositions()), torch.randn(2, 10, 64), torch.arange(10)
q, k, v = (split_heads(W(x), 4) for W in (layer.W_q, layer.W_k, layer.W_v))  # (b, h, n, d)
q, k = apply_rope(q, at), apply_rope(k, at)
heads, _ = scaled_dot_product_attention(q, k, v, causal_mask(10))
apart = (layer.W_o(merge_heads(heads)) - layer(x, x, x, causal_mask(10))[0]).abs().max()
print(f"largest difference from the course's own layer: {apart:.3f}")

# %% [markdown] question="rope-values"
# What would go wrong if the values were turned as well?
#
# - [ ] The weights would be wrong: they would be turned twice
#   They are made from queries and keys before any value comes in.
# - [ ] Their lengths would change, and with them the output's size
#   Rotations keep lengths.
# - [x] What is read would depend on where a word stands
#   It should depend on the word. The sum would mix hands that are turned by different angles, and W_o
#   could not turn them back.
# - [ ] An error would be raised
#   The shapes fit. Nothing tells.

# %% [markdown]
# {{exercise: apply_rope}}

# %% [markdown]
# ## ALiBi and a relative bias: a number for each distance
#
# **What is the least that one can do?** Leave the vectors alone, and add to each score a number that
# depends on the distance. **ALiBi**, “attention with linear biases”, has nothing to learn:
#
# $$\text{score}_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} - m_h\,|i - j|$$
#
# The slope $m_h$ differs by head. With $h$ heads, $h$ a power of two, they are
# $2^{-8/h}, 2^{-16/h}, …, 2^{-8}$, so that some heads look near and some look far.

# %%
for num_heads in (8, 4, 6):
    slopes = ", ".join(f"1/{1 / slope:.4g}" for slope in alibi_slopes(num_heads).tolist())
    print(f"{num_heads} heads: {slopes}")

# %% [markdown]
# Six is no power of two. The published rule then takes the slopes of four, and after them every second
# one of eight.
#
# **On paper.** Slope ½, all dot products equal, many keys to look back at. The exponentials are
# $1, e^{-1/2}, e^{-1}, e^{-3/2}, …$, each 0.607 times the one before, and they sum to
# $1/(1 - 0.607) = 2.54$.

# %% [markdown] prediction="alibi-own-weight"
# Which weight does the query's own position get?
#
# number: 0 … 1, within 0.05

# %%
bias = alibi_bias(8, 64, 64).masked_fill(~causal_mask(64), -torch.inf)
weights = bias.softmax(dim=-1)  # (h, i, j): all dot products are 0
print("own position, last row, by head:", ", ".join(f"{w:.2f}" for w in weights[:, -1, -1].tolist()))
reveal("alibi-own-weight", weights[0, -1, -1].item())

# %%
head_maps(
    weights[[0, 7], :12, :12], titles=["slope 1/2", "slope 1/256"],
    alt="The first and the last of the eight heads, the first 12 positions. In the first, weights lie close "
    "to the diagonal; in the last, each row is nearly even.",
)

# %% [markdown]
# **What was seen.** Recency is built in, before any training. With dot products that say nothing about
# position, a head's weights fall from each key to the one before it, and no such head can prefer the third
# to the second. (That is about the bias in one layer. What several layers make of it, you will measure.)
#
# A **relative bias** is the same with learned numbers: one for each head and each distance
# $j - i$ from $-k$ to $k$; all that is further away shares the last number. It can prefer the third. Beyond
# $k$ it cannot tell distances apart. In this chapter $k$ is 16.
#
# ## Learned vectors, and where they end
#
# The plainest way: a table with a trained vector for each position, added like the sinusoids. BERT and
# GPT-2 do it. Position 32 of a table of 32 does not exist:

# %%
learned = LearnedPositions(32, 64)
print("numbers to learn:", sum(p.numel() for p in learned.parameters()))
try:
    learned(33)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# A larger table does not help: a row that was never trained is random. The comparison below shows what
# that does.

# %% [markdown]
# ## Four kinds in one view
#
# Choose a kind of position, then move the word that is marked: its row, what it is most alike to, and
# its attention follow. Queries and keys are the words' vectors themselves here, nothing is trained. Look
# for three things. With RoPE and ALiBi, move all you like: does anything but the distances count? With
# learned positions, move the word past the last row. And the two words “the”: without positions they
# get the same weight; which kinds tell them apart?

# %%
PositionExplorer()

# %% [markdown] question="alibi-three-back"
# A task: at each position, name the symbol that stood three places before. All symbols occur equally
# often. Why is this hard for a single layer with ALiBi?
#
# - [x] Its weights only fall with the distance, and so do not stop at three
#   The key to be found is known by its distance alone. No slope puts the third above the second. A
#   second layer reads tokens that have already gathered something, so it is another matter.
# - [ ] Three is too far away: by then the bias has taken all weight
#   With the smallest slope, weights reach back over hundreds of positions.
# - [ ] It has too few parameters to tell so many distances apart
#   RoPE has as few, namely none, and its scores can rise again with the distance.
# - [ ] The causal mask hides the key that would have to be found
#   The past is open.

# %% [markdown]
# {{exercise: alibi_bias}}

# %% [markdown]
# ## Six kinds, two tasks, and time
#
# **Which one is best?** Two tasks, both under a causal mask, both with eight answers, so that guessing
# gives one eighth.
#
# - **Latest write.** Tokens write a value under one of four keys, or read a key: what was written there
#   last?
# - **Three back.** At each position: which symbol stood three places before?
#
# A model of two blocks with four heads is trained on sequences of 32, and tested on lengths of 32, 64, 128
# and 256: once, twice, four and eight times the trained length. Only the last 16 positions are judged, so
# that from 64 on all of them lie where training never was. Six kinds of position, the same data, learning
# rate and number of steps for all, one run of each. The learned table has rows for all 256 positions, of
# which training reaches 32.
#
# **And for how long?** What is slow to learn looks, too early, like what cannot be learnt. So each run is
# tested after every 200 steps, and two kinds are compared only where more steps do not change their order.
# Make your predictions first; the two cells train six small models each, and a bar shows how long it takes.

# %% [markdown] prediction="latest-at-8"
# Latest write, 400 steps, tested at eight times the trained length. Which has the highest accuracy?
#
# - none
# - sinusoidal
# - learned
# - rope
# - alibi
# - relative

# %% [markdown] prediction="rope-at-2"
# RoPE’s scores depend on the distance alone. How does it do on latest write at twice the trained length,
# after 400 steps?
#
# - Nearly as well as at the trained length: it loses less than a tenth of its accuracy
# - Clearly worse: it loses more than a third of its accuracy
# - Something between

# %%
latest = length_table(LATEST, settings=LengthSettings(steps=400))

# %%
def print_table(table, stages):
    """Accuracies of the first run at each length, at these stages (0: after the first 200 steps)."""
    print(" " * 10, "".join(f"after {200 * (stage + 1)} steps".ljust(24) for stage in stages))
    print(" " * 10, ("  1×   2×   4×   8×" + " " * 6) * len(stages))
    for position, runs in table.items():
        rows = (" ".join(f"{a:.2f}" for a in runs[0, stage].tolist()) for stage in stages)
        print(f"{position:10}", "     ".join(rows))


# %% tags=["nbval-ignore-output"]
print_table(latest, (0, 1))
end = {position: runs[0, -1] for position, runs in latest.items()}
lost = 1 - (end["rope"][1] / end["rope"][0]).item()
reveal("latest-at-8", max(end, key=lambda position: end[position][-1].item()))
reveal("rope-at-2", 1 if lost > 1 / 3 else 0 if lost < 0.1 else 2)

# %%
line_plot(
    [32, 64, 128, 256], end, x_label="length", y_label="accuracy", log_x=True, y_limits=(0, 1.05),
    title="Latest write, trained at 32, 400 steps",
    alt="At 32 all lie near 1. At twice the length sinusoidal, learned and RoPE have fallen below one "
    "half, none to about 0.8, relative to 0.9; ALiBi stays level near 1 up to 256.",
)

# %% [markdown]
# **What was seen.** At the trained length all six end near 1, “none” with them: it has the clock of the mask.
# Beyond it ALiBi keeps its accuracy at every length, the relative bias falls slowly, “none” faster, and the
# other three at once: they lose more than half at twice the length. RoPE falls with them, although its
# scores depend on distances alone. Distances beyond 32 are as new to it as positions beyond 32 are to the
# sinusoids. The order of the first two is the same after 200 steps and after 400.
#
# Is ALiBi the winner then? This task has recency in it: recent writes cover older ones. And ALiBi is made
# of recency. Now the other task.

# %% [markdown] prediction="three-back-turns"
# Three back, at four times the trained length. Is the kind that is best after 200 steps still the best
# after 800?
#
# - Yes
# - No, another one has overtaken it

# %% [markdown] prediction="three-back-at-2"
# After 800 steps, at twice the trained length: how many of the six are above 0.7?
#
# number: 0 … 6, within 0.5

# %%
three = length_table(THREE_BACK)

# %% tags=["nbval-ignore-output"]
print_table(three, (0, 1, 3))
at_4 = {position: runs[0, :, 2].tolist() for position, runs in three.items()}
first, last = (max(at_4, key=lambda position: at_4[position][stage]) for stage in (0, -1))
reveal("three-back-turns", 0 if first == last else 1)
reveal("three-back-at-2", sum(runs[0, -1, 1].item() > 0.7 for runs in three.values()))

# %%
line_plot(
    [200, 400, 600, 800], at_4, x_label="steps of training", y_label="accuracy", y_limits=(0, 1.3),
    title="Three back, trained at 32, tested at 128",
    alt="Relative is level at about 0.75. ALiBi starts at 0.4, is a little below relative after 400 steps, "
    "and above it from 600 on. The other four stay below 0.25.",
)

# %% [markdown]
# **What was seen.** Stop after 200 steps, and ALiBi is the one that “cannot do it”: about 0.4 at the trained
# length, where four others are at 1. With more steps it learns the task: 0.7 after 400, 0.9 after 800. A
# single layer's bias cannot prefer the third key, but here are two layers, and what one cannot do, two can.
# “None” gains next to nothing in the same time.
#
# *The order turns with training, and not at every length.* At four times the length the relative bias leads
# after 200 and after 400 steps, and ALiBi after 600 and 800. At eight times the length they begin level and
# ALiBi is ahead from 400 steps on. At the trained length and at twice that, the relative bias stays ahead throughout.
# The other kinds that learn the task, sinusoidal, learned and RoPE, are near guessing from twice the length
# on, and more steps do not change that.
#
# Why does the relative bias fall? More training does not help it either. Perhaps because all distances
# from 16 on share one number: the longer the sequence, the more keys have it, while ALiBi's bias goes on
# falling.
#
# **How is RoPE made to read longer texts?** With $s$ times the trained length, slow the angles down, so that
# they stay where training was. **Position interpolation** divides every position by $s$. **NTK-aware
# scaling** raises the base instead, to $\text{base} \cdot s^{d/(d-2)}$: then the slowest pair turns $s$ times more
# slowly and the first pair as before, so that neighbours stay apart. **YaRN** treats fast and slow pairs
# differently and rescales the scores. Usually some training on longer texts follows. The slowest pair
# of 16 features, at the last position of each length:

# %%
def slowest_angle(position, base, d=16):
    return position * base ** -((d - 2) / d)


print(f"trained, position 31:         {slowest_angle(31, 10000):.4f} radians")
print(f"8 times as far, position 248: {slowest_angle(248, 10000):.4f} radians")
print(f"with the larger base:         {slowest_angle(248, 10000 * 8 ** (16 / 14)):.4f} radians")

# %% [markdown]
# **So there is no winner here.** There are questions to ask of a comparison. On which task? At which length?
# Had the order settled, or would more training have changed it? Longer training, in five times the time,
# is `length_table(THREE_BACK, settings=LengthSettings(steps=4000))`.

# %% [markdown] question="longer-than-trained"
# A model with RoPE was trained on 2 000 tokens. It runs on 16 000 without an error. What do you know?
#
# - [ ] That it works there: its scores depend on distances alone
#   Distances beyond 2 000 were never trained. Here, at twice the length, they cost most of the accuracy.
# - [ ] That it does not work there: no such distance was trained
#   It may, on some tasks; or be made to, by training a little on longer texts.
# - [x] Nothing yet: it has to be measured at positions beyond 2 000
#   Running is not working. And an average over all 16 000 positions would hide it among the first 2 000.
# - [ ] That its positions are in float32
#   Nothing is said about that; half precision raises no error either.

# %% [markdown]
# ## Find the bug
#
# Four faulty lines. What is wrong with each, and *how would you notice*?
#
# ```python
# A   exponents = 2 * torch.arange(0, d_model, 2) / d_model
# B   rates = 1000 ** (-torch.arange(0, d_model, 2) / d_model)
# C   x = x + table[:x.shape[0], None]                              # x (b, n, d_model)
# D   table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()   # d_model = 9
# ```
#
# A: `arange(0, d_model, 2)` is $2i$ already. B: a zero is missing. C you know. D: with nine features there
# are five sines and four cosines, and five do not fit where four belong. That one at least raises an
# error. A and B? Train the model of the comparison with them, on three back, for 200 steps.

# %% [markdown] prediction="faulty-training"
# Accuracy on three back, at the trained length. How do A and B compare with the right encoding? (“Less”:
# by more than 0.05.)
#
# - Both less
# - Only A less
# - Only B less
# - Neither

# %%
encodings = {"right": sinusoidal_encoding, "A": doubled_exponent, "B": base_of_a_thousand}
short, reached = LengthSettings(steps=200), {}
for name, encode in encodings.items():
    found = length_table(THREE_BACK, positions=["sinusoidal"], settings=short, encode=encode)
    reached[name] = found["sinusoidal"][0, -1, 0].item()
    print(f"{name:5}: {reached[name]:.2f}")
less = tuple(reached["right"] - reached[name] > 0.05 for name in ("A", "B"))
reveal("faulty-training", [(True, True), (True, False), (False, True), (False, False)].index(less))

# %% [markdown]
# **What was seen.** The accuracy does not tell. Perhaps a few clocks are enough to tell 32 positions
# apart. But weights trained with one of them cannot be run with another formula. What tells at once is a
# look at the numbers:

# %%
for name, encode in encodings.items():
    print(f"{name:5}: longest wave {longest_wave(encode(2, 64)):12,.0f} positions, {idle_features(encode):2} "
          "of 64 features idle over 100")
try:
    table = torch.zeros(4, 9)
    table[:, 1::2] = torch.zeros(4, 5).cos()  # D
except RuntimeError:
    print("D    : RuntimeError")

# %% [markdown] question="encoding-test"
# Which single test would have caught both A and B?
#
# - [ ] The squares of each pair sum to 1, at all positions
#   They do. Both features of a pair have the same wrong rate.
# - [x] Row 50 of a table of width 16, against the formula
#   At a distant position, with many pairs, a wrong rate shows. With a single pair all three agree.
# - [ ] Row 0 is 0, 1, 0, 1, …, as the formula says
#   It is, for every base and every exponent: the sine of 0 is 0.
# - [ ] On three back it does as well as the right encoding
#   You have just seen both do as well.

# %% [markdown]
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | rows taken by the batch axis | silent: the model reads bags; the test of equivariance finds it |
# | index doubled, other base | silent on short sequences; compare a distant row |
# | base and exponent exchanged | NaN from the first pair on |
# | sine and cosine of a pair at different rates | squares of a pair do not sum to 1 |
# | odd width | an error, or a feature too many or too few |
# | a fixed offset of 0 in decoding | good in training; in writing, each token is told that it is the first |
# | a slice `table[offset:n]` | short as soon as there is an offset |
# | RoPE: angles for one layout, rotation in the other | lengths are not kept |
# | RoPE: another layout than the weights were trained with | silent; from position 1 on the scores are others |
# | RoPE: even features overwritten before the odd ones are made | lengths are not kept |
# | RoPE: angles in half precision | distant positions fall together |
# | RoPE on the values | silent: with even weights the output is no longer the mean |
# | ALiBi: sign reversed | distant keys are favoured |
# | ALiBi: built over the queries alone | an error as soon as there are fewer queries than keys |
# | ALiBi: the simple formula for six or twelve heads | silent, until weights are exchanged |
#
# And one that is not a mistake: a bias that is off by a constant in each row gives the same weights. A softmax does
# not see it.
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): section 3.5.
# - Gehring et al., “Convolutional Sequence to Sequence Learning”, 2017 (arXiv 1705.03122): learned
#   positions.
# - Shaw, Uszkoreit and Vaswani, “Self-Attention with Relative Position Representations”, 2018
#   (arXiv 1803.02155), and Raffel et al., “Exploring the Limits of Transfer Learning with a Unified
#   Text-to-Text Transformer”, 2020 (arXiv 1910.10683): relative positions, clipped, and as a bias.
# - Su et al., “RoFormer: Enhanced Transformer with Rotary Position Embedding”, 2021
#   (arXiv 2104.09864).
# - Press, Smith and Lewis, “Train Short, Test Long: Attention with Linear Biases Enables Input Length
#   Extrapolation”, 2022 (arXiv 2108.12409).
# - Haviv et al., “Transformer Language Models without Positional Encodings Still Learn Positional
#   Information”, 2022 (arXiv 2203.16634).
# - Kazemnejad et al., “The Impact of Positional Encoding on Length Generalization in Transformers”,
#   2023 (arXiv 2305.19466): a comparison of this kind at a larger scale.
# - Chen et al., “Extending Context Window of Large Language Models via Positional Interpolation”, 2023
#   (arXiv 2306.15595), and Peng et al., “YaRN: Efficient Context Window Extension of Large Language
#   Models”, 2023 (arXiv 2309.00071): RoPE on longer texts.

# %% [markdown] part="exercises"
# Five exercises. You write the sinusoidal encoding from its formula (6.1), fix the function that adds it
# (6.2), build the matrix that shifts an encoding by k positions (6.3), rotate queries and keys (6.4), and
# compute ALiBi’s bias (6.5).
#
# Positions are counted from 0. No answer may change its inputs.

# %% part="exercises"
import torch
from einops import einsum

# %% [markdown] exercise="sinusoidal_encoding"
# `sinusoidal_encoding(n, d_model)` gives the positions 0 … n − 1 as vectors:
#
# $$PE_{pos,\,2i} = \sin\!\left(\frac{pos}{10000^{2i/d_\text{model}}}\right) \qquad
# PE_{pos,\,2i+1} = \cos\!\left(\frac{pos}{10000^{2i/d_\text{model}}}\right)$$
#
# - `n`, `d_model`: whole numbers, at least 1.
# - Returns a float tensor (n, d_model). Position 0 comes first. Sine and cosine of a pair are neighbours,
#   as in the formula.
# - An odd d_model ends in a sine. The exponent is $2i/d_\text{model}$ with d_model as it is given.
#
# ```python
# sinusoidal_encoding(2, 2)  # [[0, 1], [0.8415, 0.5403]]
# sinusoidal_encoding(2, 3)  # [[0, 1, 0], [0.8415, 0.5403, 0.0022]]
# ```

# %% exercise="sinusoidal_encoding" source="attn_course.positions"

# %% [markdown] exercise="add_positions"
# The function below is meant to add to each position of x its row of a table. It runs, and with a batch of
# one token it is even right. **Find its faults and fix them.**
#
# - `x`: float tensor (\*b, n, d_model), with any number of leading axes. It must not be changed.
# - `table`: float tensor (max_len, d_model), a row for each position. It may be a trained one, so the
#   gradient has to reach it.
# - `offset`: a whole number, 0 or more: how many positions came before x. The first position of x is
#   `offset`.
# - Returns a new tensor of the shape of x. Every sequence gets the same rows. Nothing else is scaled: no
#   $\sqrt{d_\text{model}}$ here.
# - If a position has no row in the table: raise a `ValueError` with the numbers in its message.
#
# ```python
# table = torch.tensor([[0.1], [0.2], [0.3], [0.4]])
# add_positions(torch.zeros(2, 3, 1), table)            # [0.1, 0.2, 0.3] for both sequences
# add_positions(torch.zeros(2, 1, 1), table, offset=2)  # [0.3] for both
# add_positions(torch.zeros(2, 3, 1), table, offset=2)  # ValueError: position 4 has no row
# ```
#
# Before you run the check, guess: which of the three lines would you suspect, and what would you call it
# with to be sure?

# %% exercise="add_positions"
def add_positions(x, table, offset=0):
    """Return x (*b, n, d_model) with the rows offset … offset + n − 1 of the table added."""
    ### BEGIN SOLUTION
    n, max_len = x.shape[-2], len(table)
    if offset + n > max_len:
        raise ValueError(f"{n} positions from {offset} on, but the table has {max_len} rows")
    return x + table[offset : offset + n]
    ### STUB
    # rows = table[offset : len(x)]
    # x += rows[:, None]
    # return x
    ### END SOLUTION


# %% [markdown] exercise="relative_shift"
# `relative_shift(shift, d_model)` is the matrix $M$ that moves every sinusoidal encoding on by `shift`
# positions: with the encoding as a row vector to its left,
#
# $$PE_{pos}\,M = PE_{pos + \text{shift}} \qquad \text{for every } pos.$$
#
# - `shift`: a whole number. A negative one leads back; 0 changes nothing.
# - `d_model`: a whole number, the width of the encoding of exercise 6.1: sine and cosine of a pair are
#   neighbours, the base is 10000.
# - Returns a float tensor (d_model, d_model). Each pair has a block (2, 2) on the diagonal, a rotation; all
#   else is 0.
# - An odd d_model: raise a `ValueError` that names it. A sine without its cosine cannot be moved on.
#
# ```python
# sinusoidal_encoding(9, 4)[3] @ relative_shift(5, 4)  # sinusoidal_encoding(9, 4)[8]
# relative_shift(0, 2)                                 # [[1, 0], [0, 1]]
# ```

# %% exercise="relative_shift" source="attn_course.positions"

# %% [markdown] exercise="apply_rope"
# `apply_rope(x, positions, base=10000.0)` turns each pair of features by an angle that grows with its
# position:
#
# $$(x_{2i},\ x_{2i+1}) \to (x_{2i}\cos\theta - x_{2i+1}\sin\theta,\ \ x_{2i}\sin\theta + x_{2i+1}\cos\theta)
# \qquad \theta = pos \cdot \text{base}^{-2i/d}$$
#
# - `x`: float tensor (\*b, n, d), with any number of leading axes (batch, heads). It must not be changed.
# - `positions`: integer tensor (n), the position of each row of x. They may begin anywhere, leap, and
#   repeat.
# - Returns a tensor of the shape and dtype of x. Neighbours are a pair: features $2i$ and $2i + 1$.
# - An odd d: raise a `ValueError` that names it.
# - Whatever the dtype of x, make the angles in float32 at least. The check looks at distant positions in
#   half precision, too.
#
# ```python
# x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
# apply_rope(x, torch.tensor([0, 1]))  # [[1, 0], [0.5403, 0.8415]]
# ```

# %% exercise="apply_rope" source="attn_course.positions"

# %% [markdown] exercise="alibi_bias"
# `alibi_bias(num_heads, n_query, n_key)` is what ALiBi adds to the scores: $-m_h\,|i - j|$.
#
# - `num_heads`, `n_query`, `n_key`: whole numbers, at least 1.
# - Returns a float tensor (h, i, j). $i$ and $j$ are positions, and with fewer queries than keys the queries
#   are the *last* ones: the last query stands at the last key. Keys ahead of a query count by their
#   distance, too: the bias is no mask.
# - Slopes: for h heads, h a power of two, $2^{-8/h}, 2^{-16/h}, …, 2^{-8}$. For other counts: all slopes of
#   the next lower power of two $p$, and behind them the first, third, fifth, … of those of $2p$, as many as
#   are missing.
# - More queries than keys: raise a `ValueError` with both numbers.
#
# ```python
# alibi_bias(2, 2, 2)  # [[[0, -1/16], [-1/16, 0]], [[0, -1/256], [-1/256, 0]]]
# alibi_bias(2, 1, 2)  # [[[-1/16, 0]], [[-1/256, 0]]]
# # slopes for three heads: 1/16, 1/256 (of two), and 1/4 (of four, the first)
# ```

# %% exercise="alibi_bias"
def alibi_bias(num_heads, n_query, n_key):
    """Return −slope · |i − j| for each head (h, i, j), the queries being the last positions."""
    ### BEGIN SOLUTION
    if n_query > n_key:
        raise ValueError(f"{n_query} queries cannot be the last of {n_key} positions")
    p = 2 ** (num_heads.bit_length() - 1)  # the next lower power of two
    of_p, of_2p = (2.0 ** (-8 * torch.arange(1, count + 1) / count) for count in (p, 2 * p))
    slopes = torch.cat([of_p, of_2p[::2]])[:num_heads]
    key_position = torch.arange(n_key)
    query_position = key_position[n_key - n_query :]
    distance = (query_position[:, None] - key_position).abs()
    return -einsum(slopes, distance.to(slopes.dtype), "h, i j -> h i j")
    ### END SOLUTION
