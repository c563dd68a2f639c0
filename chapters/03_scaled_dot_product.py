# ---
# jupyter:
#   attn_course:
#     title: "Scaled dot-product attention"
#     reading_minutes: 50
#     exercise_minutes: 85
# ---

# %% [markdown]
# The look-up of chapter 02 scores a query against a key by their dot product. The attention of
# Transformers does one thing more: it divides every score by $\sqrt{d_k}$ before the softmax.
#
# Dividing by a constant looks like a detail. The paper that introduced it gives a reason: “We
# suspect that for large values of $d_k$, the dot products grow large in magnitude, pushing the
# softmax function into regions where it has extremely small gradients” (Vaswani et al. 2017,
# section 3.2.1). A suspicion can be tested. This chapter measures what the division does, and what
# it does not do.
#
# ## What you will be able to do
#
# - Say how large a dot product is, from $d_k$ alone, and derive it.
# - Tell a saturated softmax by its largest weight, by its entropy and by its gradient.
# - Write scaled dot-product attention with a mask, down to the query that may attend to nothing.
# - Say what the scale does for training, with runs of your own that show it.
# - Keep attention finite: large scores, half precision, empty rows.
#
# Axes are named as before: $i$ counts queries, $j$ keys, $d$ features. A query and a key have $d_k$
# features, a value $d_v$.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("03")

# %% hide="input"
recall("03")

# %%
from math import inf, sqrt

import torch
import torch.nn.functional as F

from attn_course.attention import (
    attention_entropy, attention_scores, jacobian_sizes, lookup, scaled_dot_product_attention,
    softmax_jacobian,
)
from attn_course.experiments.ch03 import (
    LookUpSettings, fresh_lookup, lookup_accuracies, loss_gradients, query_gradient_sizes,
    random_vectors, train_lookup,
)
from attn_course.experiments.ch03_views import WIDTHS
from attn_course.explorers import AttentionStepper, MaskExplorer, ScalingExplorer
from attn_course.plots import head_maps, line_plot

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## How large is a dot product?
#
# **A query and a key have $d_k$ numbers each. How large is their product?** Before training the
# vectors are random, so ask what is typical. Let every entry of $q$ and $k$ be drawn independently,
# with mean 0 and variance 1. (The **variance** is the mean squared distance from the mean; its root
# is the **standard deviation**, the size of a typical distance.) The score
#
# $$s = q \cdot k = \sum_{d=1}^{d_k} q_d\, k_d$$
#
# is then random too. Its mean is 0, because every term has mean 0. How far from 0 does it typically
# lie?

# %% [markdown] prediction="score-deviation-64"
# With d_k = 64: what is the standard deviation of q·k, the size of a typical score?
#
# number: 0 … 64, within 2

# %% [markdown]
# **By hand, on numbers small enough for paper.** Let every entry be +1 or −1. Then every term
# $q_d k_d$ is +1 or −1 as well, and a score is a sum of $d_k$ signs.
#
# | $d_k$ | possible scores, all equally likely | mean | variance (mean of the squares) |
# |---|---|---|---|
# | 1 | 1, −1 | 0 | (1 + 1) / 2 = 1 |
# | 2 | 2, 0, 0, −2 | 0 | |
# | 3 | 3, 1, 1, 1, −1, −1, −1, −3 | 0 | |
#
# Fill the empty fields. Which rule do you see? The next cell checks it for one row more.

# %%
for d_k in (1, 2, 3, 4):
    signs = torch.tensor([-1.0, 1.0])
    terms = torch.cartesian_prod(*[signs] * d_k).reshape(-1, d_k)  # every choice of signs, a row
    scores = terms.sum(dim=-1)
    print(f"d_k = {d_k}: {len(scores):2} scores, variance {scores.square().mean():.0f}")

# %% [markdown]
# Now for vectors as a layer may have them: normal numbers, 65 536 pairs for each width.

# %%
variance = []
for d_k in WIDTHS:
    query, key = random_vectors(d_k, sets=256)  # (256, 16, d_k) each
    variance.append(attention_scores(query, key).var().item())  # of (256, 16, 16) scores
ratios = [v / d_k for v, d_k in zip(variance, WIDTHS)]
print("variance / d_k, from d_k = 1 to 1024:", [round(ratio, 2) for ratio in ratios])
reveal("score-deviation-64", sqrt(variance[WIDTHS.index(64)]))

# %%
line_plot(
    WIDTHS, {"q·k": variance, "q·k / √d_k": ratios}, log_x=True, log_y=True, x_label="d_k",
    y_label="variance of the score", title="The variance of a dot product is d_k",
    alt="The variance of the plain dot product is a straight line from 1 to 1024; divided by the "
    "root of d_k it stays at 1.",
)

# %% [markdown]
# **What was seen.** The variance is $d_k$ within 2 %, over three orders of magnitude.
#
# **Why.** Take one term. Since $q_d$ and $k_d$ are independent with mean 0 and variance 1,
#
# $$\mathrm{E}[q_d k_d] = \mathrm{E}[q_d]\,\mathrm{E}[k_d] = 0 \qquad
# \mathrm{Var}[q_d k_d] = \mathrm{E}[q_d^2]\,\mathrm{E}[k_d^2] = 1.$$
#
# Variances of independent terms add up, and there are $d_k$ of them:
#
# $$\mathrm{Var}[q \cdot k] = d_k \qquad \text{standard deviation } \sqrt{d_k} \qquad
# \mathrm{Var}\!\left[\frac{q \cdot k}{\sqrt{d_k}}\right] = \frac{d_k}{(\sqrt{d_k})^2} = 1.$$
#
# So the division is chosen to make one thing independent of the width: the variance of the scores.
#
# **What the derivation takes for granted.** Three things: mean 0, variance 1, independence. Take
# them away one by one.

# %%
x, y = random_vectors(64, n=64)  # (64, 64, 64) each
rng = torch.Generator().manual_seed(0)
W_q, W_k = (torch.empty(64, 64).uniform_(-1 / 8, 1 / 8, generator=rng) for _ in range(2))
pairs = {
    "as derived": (x, y), "a shared mean of 0.5": (x + 0.5, y + 0.5),
    "entries of variance 4": (2 * x, 2 * y), "weights of nn.Linear": (x @ W_q, y @ W_k),
    "the key is the query": (x, x),
}
for name, (query, key) in pairs.items():
    score = (query * key).sum(dim=-1) / sqrt(64)  # each query with one key, scaled
    print(f"{name:22} mean {round(score.mean().item())}   standard deviation {score.std():.1f}")

# %% [markdown]
# Only the first row has mean 0 and deviation 1. The weights of the fourth are drawn as `nn.Linear`
# draws its own, between $-1/\sqrt{64}$ and $1/\sqrt{64}$. That is a third of the variance that
# would keep the entries at variance 1, and so the scores start smaller. A key that equals its query
# scores about $\sqrt{d_k}$ even after the division. The rule is about independent vectors, at the
# start. Training makes queries depend on keys: that is its purpose.

# %% [markdown] question="scale-purpose"
# What does dividing by √d_k keep constant as d_k grows?
#
# - [x] The variance of the scores
#   A score is a sum of d_k terms with variance 1 each, and (√d_k)² = d_k cancels their number.
# - [ ] The variance of the output
#   The output is a weighted mean of values. It changes with how many values share the weight, but
#   √d_k is not made for it.
# - [ ] The length of the queries
#   Nothing is normalised. A query twice as long still has scores twice as large.
# - [ ] The largest score
#   The largest of many scores also depends on how many keys there are. Their variance does not.

# %% [markdown] question="variance-with-large-entries"
# The entries of query and key have variance 4 in place of 1, and d_k = 100. By what would you have
# to divide the scores to give them variance 1?
#
# - [ ] 10
#   √d_k is right for entries of variance 1 only. Each term has variance 4 · 4 here.
# - [ ] 20
#   That would be right if only one of the two had variance 4: 4 · 100 = 20².
# - [x] 40
#   Each term has variance 16, a hundred of them 1600, and the root of 1600 is 40.
# - [ ] 1600
#   That is the variance. To divide a variance by 1600, divide the numbers by its root.

# %% [markdown]
# ## What do large scores do to the softmax?
#
# **Scores with a standard deviation of 8: does that matter?** A softmax looks at differences. Take
# two keys, and a calculator:
#
# | scores | $e^{s_1}$ | $e^{s_2}$ | larger weight |
# |---|---|---|---|
# | (1, 0) | 2.72 | 1 | 2.72 / 3.72 = 0.73 |
# | (8, 0) | 2981 | 1 | |
#
# Fill the empty field. The first pair differs by one standard deviation at $d_k = 1$, the second at
# $d_k = 64$. Nothing about the second pair of vectors is more decided. Their sum only has more
# terms.

# %% [markdown] prediction="largest-weight-64"
# One query, 16 random keys, d_k = 64, no scale. How large is the largest of the 16 weights, on
# average?
#
# number: 0 … 1, within 0.1

# %%
largest = {"no scale": [], "scaled by 1/√d_k": []}
for d_k in WIDTHS:
    query, key = random_vectors(d_k)
    scores = attention_scores(query, key)  # (64, 16, 16): 1024 queries, 16 keys each
    for name, scale in zip(largest, (1, 1 / sqrt(d_k))):
        largest[name].append((scale * scores).softmax(dim=-1).amax(dim=-1).mean().item())
for d_k, plain, scaled in list(zip(WIDTHS, *largest.values()))[::2]:
    print(f"d_k = {d_k:4}: largest weight {plain:.2f} without the scale, {scaled:.2f} with it")
reveal("largest-weight-64", largest["no scale"][WIDTHS.index(64)])

# %%
line_plot(
    WIDTHS, largest, log_x=True, x_label="d_k", y_label="mean largest weight of 16",
    y_limits=(0, 1.05), title="Without the scale one key takes nearly all",
    alt="Without the scale the largest weight climbs towards 1 as the width grows; with it, it "
    "hardly moves.",
)

# %% [markdown]
# **What was seen.** Without the scale, one key takes 0.93 of the weight at $d_k = 256$, on average,
# before anything was learnt; which key, is chance. With the scale the largest weight is 0.25 from
# $d_k = 16$ on, whatever the width. A softmax that gives nearly everything to one key is called
# **saturated**.
#
# Move the slider. The vectors stay the same; a larger $d_k$ uses more of their entries. The button
# draws others: the means above hide how much single draws differ. The bars are the weights of the
# first query alone. The three curves are about all 16 queries: the spread, which you measured, and
# entropy and gradient, which come next.

# %%
ScalingExplorer(d_k=64)

# %% [markdown]
# **One number for the whole row.** The largest weight does not say what the others do. The
# **entropy** does: how widely a row $p$ of weights is spread,
#
# $$H(p) = -\sum_j p_j \log p_j,$$
#
# with the natural logarithm, in **nats**. By hand: for $p = (\tfrac12, \tfrac14, \tfrac14)$ it is
# $\tfrac12 \log 2 + \tfrac14 \log 4 + \tfrac14 \log 4 = 1.5 \log 2 \approx 1.04$. A single key that
# takes all gives 0, and $n$ keys that share alike give $\log n$, the most there can be. In between,
# $e^H$ reads as the number of keys that share.

# %%
query, key = random_vectors(64)
scores = attention_scores(query, key)
for name, scale in (("no scale", 1), ("scaled", 1 / 8)):
    entropy = attention_entropy((scale * scores).softmax(dim=-1)).mean()  # over 1024 queries
    print(f"{name:8}: mean entropy {entropy:.1f} nats, as if {entropy.exp():.1f} of 16 keys shared")

# %% [markdown]
# Is a saturated row bad? As an answer, no: a look-up that has found its key may give it everything,
# and further down you will see one that does. As a *start* it is a different matter: learning moves
# along the gradient, and the section after the next measures what is left of it.
#
# {{exercise: attention_entropy}}

# %% [markdown]
# ## The whole function
#
# With the division the look-up is complete (Vaswani et al. 2017, equation 1):
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V
# \qquad Q: (i, d_k) \quad K: (j, d_k) \quad V: (j, d_v)$$
#
# The softmax runs over $j$. The output is $(i, d_v)$, and the weights $(i, j)$.
#
# **By hand.** One query, three keys, $d_k = 4$, so that $\sqrt{d_k} = 2$. Fill the empty columns.
#
# | key | $k_j$ | $v_j$ | $q \cdot k_j$ | divided by 2 | $e^{\ldots}$ | weight |
# |---|---|---|---|---|---|---|
# | 1 | (1, 1, 1, 1) | (1, 0) | | | | |
# | 2 | (1, −1, 1, −1) | (0, 1) | | | | |
# | 3 | (−1, −1, −1, −1) | (0, 9) | | | | |
#
# The query is $q = (1, 1, 1, 1)$; $e^2 \approx 7.39$ and $e^{-2} \approx 0.14$.

# %%
query = torch.ones(1, 4)  # (i, d_k)
key = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [-1, -1, -1, -1]])  # (j, d_k)
value = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 9.0]])  # (j, d_v)
for name, attend in (("no scale", lookup), ("scaled", scaled_dot_product_attention)):
    output, weights = attend(query, key, value)
    print(f"{name:8}: weights", [round(w, 3) for w in weights[0].tolist()], end=", ")
    print("output", [round(o, 2) for o in output[0].tolist()])

# %% [markdown]
# Now every number of it, one at a time. These are the same query, keys and values. Press the right
# arrow key for the next number; with “Predict” on, the view asks you for it first. Each number can
# be changed: what happens to the weights when key 3 becomes (1, 1, 1, 0)?

# %%
AttentionStepper(query, key, value, tokens=["key 1", "key 2", "key 3"], query_tokens=["query"])

# %% [markdown]
# **Hiding keys.** Often a query may not look everywhere: not at padding, not at the future (chapter
# 04). A **mask** says where it may: a boolean tensor $(i, j)$ in which, throughout this course,
# **True means “may attend”**. PyTorch's `F.scaled_dot_product_attention` reads it the same way;
# `nn.MultiheadAttention` has masks in which True hides.
#
# A hidden key must get the weight 0, and the others share the whole. Weights come from
# exponentials, so the score of a hidden key must be one whose exponential is 0: minus infinity.

# %%
mask = torch.tensor([[False, True, True]])  # key 1, the best, is hidden
scores = (attention_scores(query, key) / 2).masked_fill(~mask, -inf)
print("scores ", scores[0].tolist())
print("weights", [round(w, 3) for w in scores.softmax(dim=-1)[0].tolist()])
_, weights = scaled_dot_product_attention(query, key, value, mask)
print("course ", [round(w, 3) for w in weights[0].tolist()])

# %% [markdown] prediction="softmax-of-nothing"
# A query may attend to nothing at all: its row of the mask is False throughout, and all its scores
# are minus infinity. What does the softmax make of that row?
#
# - Zeros
# - Equal weights, 1/n each
# - NaN
# - An error

# %%
nothing = torch.tensor([[False, False, False]])
minus_infinity = (scores.masked_fill(~nothing, -inf)).softmax(dim=-1)
large_number = (scores.masked_fill(~nothing, -1e9)).softmax(dim=-1)
output, weights = scaled_dot_product_attention(query, key, value, nothing)
print("filled with -inf:", minus_infinity[0].tolist())
print("filled with -1e9:", [round(w, 2) for w in large_number[0].tolist()])
print("the course's:    ", weights[0].tolist(), "output", output[0].tolist())
print("PyTorch's output:", F.scaled_dot_product_attention(query, key, value, nothing)[0].tolist())
reveal("softmax-of-nothing", 2 if minus_infinity.isnan().all() else 0)

# %% [markdown]
# **What was seen.** Three ways, three answers. With minus infinity the softmax divides 0 by 0. With
# a large negative number all scores are equal, so the query gets the mean of the values that it may
# not see. The third answer is a convention: a query that may attend to nothing gets zeros. This
# course follows it, and so does PyTorch's `F.scaled_dot_product_attention` since version 2.5.
#
# Paint the mask yourself. Hide a whole row, and change what hidden scores become: the three answers
# above are the three settings of that control. Leave the other rules off: chapter 04 comes to
# causal masks and padding, chapter 10 to windows.

# %%
MaskExplorer(n_query=4, n_key=4, causal=False)

# %% [markdown]
# **A mask for a batch.** Sequences of a batch have different lengths, so each needs a mask of its
# own. Its shape is then (b, 1, j): an axis of size 1 in the place of $i$, so that broadcasting
# gives every query of a sequence the same row. `masked_fill` and `&` broadcast as `+` does.

# %%
vectors = torch.ones(2, 3, 4)  # (b, n, d_k): two sequences of three equal tokens
open_keys = torch.tensor([[True, True, True], [True, True, False]])  # (b, j): the second is shorter
_, weights = scaled_dot_product_attention(vectors, vectors, vectors, open_keys[:, None])
print("mask", tuple(open_keys[:, None].shape), "weights", tuple(weights.shape))
print("a query of each:", [[round(w, 2) for w in rows[0].tolist()] for rows in weights])

# %% [markdown] question="mask-fill"
# Before the softmax, the scores of hidden keys are set to 0. What happens?
#
# - [ ] Hidden keys get the weight 0
#   The softmax takes exponentials, and the exponential of 0 is 1.
# - [x] Hidden keys still get weight, sometimes more than open ones
#   A score of 0 stands for “no match either way”. It beats every open key with a negative score.
# - [ ] The weights no longer sum to one
#   They do, since a softmax always divides by its sum. The sum contains the hidden keys, though.
# - [ ] Nothing changes, because the mask is boolean
#   The scores change. They change to a number that hides nothing.

# %% [markdown]
# Now write it. In the exercise, a slider below the check lets you watch your own function respond.
#
# {{exercise: scaled_dot_product_attention}}

# %% [markdown]
# ## What does saturation do to the gradient?
#
# **How does a weight answer when a score is nudged?** With two keys the larger weight is
# $p = 1 / (1 + e^{-(s_1 - s_2)})$, and its derivative by its own score is $p\,(1 - p)$. By hand,
# with the weights from above:
#
# | scores | $p$ | $p\,(1 - p)$ |
# |---|---|---|
# | (0, 0) | 0.5 | 0.25 |
# | (1, 0) | 0.73 | |
# | (8, 0) | 0.9997 | |
#
# For $n$ keys there is a derivative for each pair, the **Jacobian** of the softmax:
#
# $$\frac{\partial p_i}{\partial s_j} = p_i\,(\delta_{ij} - p_j)
# \qquad \delta_{ij} = 1 \text{ if } i = j \text{, else } 0$$
#
# (Here $i$ and $j$ both count keys: the $n$ weights belong to one query.) Each row sums to 0:
# moving all scores together changes nothing. And where one weight is 1 and the others 0, every
# entry is 0.

# %%
for scores in ([0.0, 0.0], [1.0, 0.0], [8.0, 0.0]):
    p = torch.tensor(scores).softmax(dim=-1)
    rows = [[round(entry, 4) for entry in row] for row in softmax_jacobian(p).tolist()]
    print(f"scores {scores}: p = {p[0]:.4f}, Jacobian {rows}")

# %% [markdown]
# The root of the sum of its squared entries says in one number how much the weights move when
# scores are nudged. Follow it from $d_k = 1$ to 1024, for 1024 random queries with 16 keys each.

# %% [markdown] prediction="median-jacobian"
# Without the scale, from d_k = 1 to 1024: what happens to the size of the Jacobian of a *typical*
# query (the median)?
#
# - It grows: gradients explode.
# - It stays within a factor of 2.
# - It shrinks by a factor between 2 and 100.
# - It shrinks by more than a factor of 100.

# %%
sizes = {"median, no scale": [], "mean, no scale": [], "median, scaled": []}
for d_k in WIDTHS:
    query, key = random_vectors(d_k)
    scores = attention_scores(query, key).double()
    plain, scaled = (jacobian_sizes((c * scores).softmax(dim=-1)) for c in (1, 1 / sqrt(d_k)))
    for name, size in zip(sizes, (plain.median(), plain.mean(), scaled.median())):
        sizes[name].append(size.item())
shrunk = sizes["median, no scale"][0] / sizes["median, no scale"][-1]
reveal("median-jacobian", 3 if shrunk > 100 else 2 if shrunk > 2 else 1 if shrunk > 0.5 else 0)

# %%
for name, size in sizes.items():
    shown = [f"{s:.0e} at {d_k}" for d_k, s in list(zip(WIDTHS, size))[::2]]
    print(f"{name:16}", ", ".join(shown))
line_plot(
    WIDTHS, sizes, log_x=True, log_y=True, x_label="d_k", y_label="size of the Jacobian",
    title="The typical gradient of the softmax vanishes",
    alt="With the scale the size stays level. Without it the mean falls slowly and the median falls "
    "by several orders of magnitude.",
)

# %% [markdown]
# **What was seen.** Without the scale the Jacobian of the typical query vanishes: the paper's
# suspicion holds. The mean falls far more slowly, so a few queries still have a lot. Which ones?
# Sort them by the **margin**, the lead of the best score over the second.

# %%
query, key = random_vectors(256)
scores = attention_scores(query, key).double()  # no scale
best, second = scores.topk(2, dim=-1).values.unbind(-1)
size = jacobian_sizes(scores.softmax(dim=-1))
for margin in (1, 2, 4):
    close = best - second < margin
    print(f"margin below {margin}: {close.double().mean():.0%} of the queries, "
          f"{size[close].sum() / size.sum():.0%} of the sum of all sizes")

# %% [markdown]
# One third of the queries, those with a margin below 4, have nearly all of it. Beyond that margin
# the second key has at most $e^{-4} = 0.02$ times the weight of the first.
#
# **What arrives at the query?** The Jacobian is about scores. What is trained lies one step further
# back, in the vectors. By the chain rule
#
# $$\frac{\partial p}{\partial q} = \text{scale} \cdot \frac{\partial p}{\partial s}\, K,$$
#
# and the keys in $K$ are long vectors, about $\sqrt{d_k}$. The scale takes that length off again;
# without the scale it stays. So one factor shrinks and the other grows. Which wins?

# %% [markdown] prediction="query-gradient-at-64"
# d_k = 64: for what share of the queries is ∂p/∂q *larger* without the scale than it is for the
# median query with the scale?
#
# number: 0 … 1, within 0.1

# %%
gradient = {}
for d_k in (64, 256, 1024):
    query, key = (vectors.double() for vectors in random_vectors(d_k))
    for name, scale in (("no scale", 1), ("scaled", 1 / sqrt(d_k))):
        weights = (scale * attention_scores(query, key)).softmax(dim=-1)
        gradient[d_k, name] = query_gradient_sizes(weights, key, scale).flatten().sort().values

# %%
larger = {}
for d_k in (64, 256, 1024):
    plain, usual = gradient[d_k, "no scale"], gradient[d_k, "scaled"].median()
    larger[d_k] = (plain > usual).double().mean().item()
    print(f"d_k = {d_k:4}: median {plain.median():.1g} without the scale, {usual:.1g} with it; "
          f"without it {(plain < usual / 10).double().mean():.0%} lie below a tenth of the latter, "
          f"{larger[d_k]:.0%} above it, and the largest is {plain[-1]:.1f}")
reveal("query-gradient-at-64", larger[64])

# %%
share = torch.linspace(0, 1, 1024)  # of the queries, the smallest gradient first
line_plot(
    share, {name: gradient[256, name] for name in ("no scale", "scaled")}, log_y=True,
    x_label="share of the queries", y_label="size of ∂p/∂q",
    title="d_k = 256: alike with the scale, next to nothing or much without it",
    alt="With the scale the sorted sizes form a flat line. Without it they climb from far below a "
    "millionth on the left to many times the flat line on the right, crossing it.",
)

# %% [markdown]
# **What was seen.** It depends on the width, and on the query. At $d_k = 64$ the typical query gets
# a *larger* gradient without the scale; at 256 and 1024 a smaller one. At every width the queries
# are treated less alike without it: the share that gets less than a tenth grows from 22 % to 45 %
# and 63 %, while the largest gradients grow too. With the scale the three widths have the same
# median.

# %% [markdown] question="gradient-at-one-hot"
# A row of weights is (1, 0, 0), to the last digit, and the key that it chose is wrong. What does
# the gradient say about the scores of this row?
#
# - [ ] Lower the first score: its key is wrong
#   It should say so, but every entry p_i(δ_ij − p_j) is 0 here, however large the loss is.
# - [ ] Raise the other two, by equal amounts
#   Their entries are p_i(…) with p_i = 0.
# - [x] Nothing
#   All entries of the Jacobian are 0, so no error from behind gets through to the scores.
# - [ ] It is NaN
#   The Jacobian is a finite product of finite numbers. It is 0, quietly.

# %% [markdown]
# Do not take the formula on trust: in the next exercise you measure the gradient by nudging scores,
# one at a time. In the optional one you write the whole Jacobian.
#
# {{exercise: softmax_gradient}}
#
# {{exercise: softmax_jacobian}}

# %% [markdown]
# ## Does training need the scale?
#
# **At $d_k = 256$ nearly half of the queries start with less than a tenth of the usual gradient.
# Does that matter?** Only a training run can tell. The smallest task that needs a look-up: eight
# pairs of a key symbol and a value symbol, then one of the keys again. What was its value?
#
# The model is one attention head, learnt value vectors, and a linear layer that reads the answer
# off the head's output. Each of the 16 key symbols has a query vector and a key vector of $d_k$
# numbers, standard normal at the start, so that the first scores have variance $d_k$ as derived. To
# answer, it has to learn that the query of a symbol and the key of the same symbol belong together.
#
# Everything is equal but the scale: the first vectors, the batches, 200 steps of Adam. Three seeds
# for each setting. Right means right on sequences that training never draws. There are eight value
# symbols, so a blind guess is right once in eight.

# %% [markdown] prediction="widths-that-train-without-scale"
# *Without* the scale: at which widths do all three runs answer at least 90 % right?
#
# - At none of 4, 64, 256
# - At 4 only
# - At 4 and 64
# - At all three

# %%
settings, widths = LookUpSettings(lr=0.03, steps=200), (4, 64, 256)
scaled = [lookup_accuracies(d_k, 1 / sqrt(d_k), settings=settings) for d_k in widths]
plain = [lookup_accuracies(d_k, 1.0, settings=settings) for d_k in widths]

# %% tags=["nbval-ignore-output"]
for d_k, with_scale, without in zip(widths, scaled, plain):
    print(f"d_k = {d_k:3}, share of right answers in three runs:",
          "with the scale", [round(a, 2) for a in with_scale],
          "without it", [round(a, 2) for a in without])

# %%
reveal("widths-that-train-without-scale", sum(min(runs) >= 0.9 for runs in plain))

# %% tags=["nbval-ignore-output"]
line_plot(
    widths, {"scaled": torch.tensor(scaled).T, "no scale": torch.tensor(plain).T}, log_x=True,
    x_label="d_k", y_label="share of right answers", y_limits=(0, 1.05),
    title="Look-up after 200 steps of Adam, three seeds",
    alt="With the scale all runs are near 1 at every width. Without it they are near 1 at width 4 "
    "and clearly below at 64 and 256.",
)

# %% [markdown]
# **What was seen.** At $d_k = 4$ Adam learns the task without any scale. At 64 and 256 all three
# runs end between 70 % and 85 %, far above a guess and below what the scale reaches. What have they
# learnt instead? Each row below shows how one of the 16 symbols, as a query, spreads its weight
# over all 16 keys, after training. A model that has solved the task has a diagonal.

# %% tags=["nbval-ignore-output"]
symbols = torch.arange(1, 17, device=pick_device())
names = [str(symbol) for symbol in symbols.tolist()]
runs = [train_lookup(256, scale, seed=0, settings=settings) for scale in (1 / 16, 1.0)]
head_maps(
    torch.stack([run.model.choices(symbols) for run in runs]), titles=["scaled", "no scale"],
    row_labels=names, column_labels=names, row_axis="asked symbol", column_axis="key symbol",
    alt="Scaled: a clean diagonal. No scale: part of the diagonal, and other rows with a single "
    "bright cell beside it.",
)

# %% [markdown]
# Without the scale most symbols have found their key. The others give everything to a wrong one. Is
# there a gradient with which to leave it? Take the gradient of the loss on 1000 test sequences, and
# print the length of what arrives at the query vector of each such symbol. (The mean over the 16
# query vectors of the untrained model stands first, to compare.)

# %% tags=["nbval-ignore-output"]
test = settings.task(0).test_set(1000, pick_device())
fresh = [fresh_lookup(256, scale, seed=0, settings=settings) for scale in (1 / 16, 1.0)]
before, after = (loss_gradients(model, test)["query.weight"][symbols].norm(dim=-1)
                 for model in (fresh[1], runs[1].model))
print(f"before training {before.mean():.0e} on average")
for symbol, chosen in zip(symbols, symbols[runs[1].model.choices(symbols).argmax(dim=-1)]):
    if symbol != chosen:
        print(f"symbol {symbol:2} looks at {chosen:2}: {after[symbol - 1]:.0e}")

# %% [markdown]
# Again it depends. Of the five symbols that look at the wrong key, one gets as much gradient as
# before training, and another less than a billionth of it. A nearly one-hot row of weights *can*
# lose its gradient altogether; it need not. And the whole model? Here is its gradient in parts, at
# the start and at the end:

# %% tags=["nbval-ignore-output"]
for name, start, run in zip(("scaled", "no scale"), fresh, runs):
    print(f"{name}: the whole gradient has norm {max(run.history.gradient_norm):.2f} at most")
    for when, model in (("at the start", start), ("at the end", run.model)):
        parts = {part: g.norm() for part, g in loss_gradients(model, test).items()}
        print(f"  {when:12}", ", ".join(f"{part} {norm:.4f}" for part, norm in parts.items()))

# %% [markdown]
# **What was seen.** Nothing explodes: the largest norm is about 1. (Every step of this course's
# training cuts a gradient that is longer than 1 to length 1, **gradient clipping**; the norms are
# those before the cut.) Most of each norm belongs to the read-out. Query and key, the part that has
# to learn, get about ten times *more* without the scale at the start. So the vanishing of the
# typical gradient is not the whole story: the sum over all symbols is larger, and it is shared out
# unevenly.
#
# **Is it the missing division, or the variance at the start?** These can be told apart. Leave the
# scale out, and make the first vectors smaller instead: with entries of standard deviation
# $d_k^{-1/4}$, every term of the sum has variance $1/d_k$, and the scores start with variance 1.

# %% [markdown] prediction="small-start-without-scale"
# d_k = 256, no scale anywhere, small vectors at the start. How many of three runs reach 90 %?
#
# - None: a scale is needed.
# - Some
# - All three

# %% tags=["nbval-ignore-output"]
small_start = lookup_accuracies(256, 1.0, start_std=256**-0.25, settings=settings)
print("no scale, small start:", [round(accuracy, 2) for accuracy in small_start])
reached = sum(accuracy >= 0.9 for accuracy in small_start)
reveal("small-start-without-scale", {0: 0, 3: 2}.get(reached, 1))

# %% [markdown]
# So here it was the variance at the start, and not the division as such. The division is a
# convenient way to set it: whatever the width, entries of variance 1 give scores of variance 1.
#
# **“$\sqrt{d_k}$ must be exact.”** Then half of it, twice it, or $d_k$ in its place should fail.

# %% [markdown] prediction="inexact-scale"
# d_k = 64, where the runs without a scale failed. The scores are divided by √d_k / 2, by 2 √d_k, or
# by d_k. How many of these three divisors miss 90 % in any of three runs?
#
# - None
# - One
# - Two
# - All three

# %% tags=["nbval-ignore-output"]
divisors = {"√d_k / 2": 4, "2 √d_k": 16, "d_k": 64}
inexact = {name: lookup_accuracies(64, 1 / c, settings=settings) for name, c in divisors.items()}
for name, accuracies in inexact.items():
    print(f"divided by {name:8}:", [round(accuracy, 2) for accuracy in accuracies])
reveal("inexact-scale", sum(min(accuracies) < 0.9 for accuracies in inexact.values()))

# %% [markdown]
# Here the rule is forgiving. These divisors start the scores with a standard deviation of 2, of 1/2
# and of 1/8. You have seen the largest of the three above: random vectors of width 4 have it
# without a scale, and the largest of 16 weights is then 0.42. None of the three is saturated.
#
# **And more steps?** Adam divides each gradient by a running measure of its own size, so even a
# small gradient moves the weights by a full step, as long as it is not nothing. Give the runs
# without the scale four times as many steps.

# %% tags=["nbval-ignore-output"]
longer = LookUpSettings(lr=0.03, steps=800)
for d_k, before in zip(widths[1:], plain[1:]):
    after = lookup_accuracies(d_k, 1.0, settings=longer)
    print(f"d_k = {d_k}, no scale, 200 steps:", [round(a, 2) for a in before])
    print(f"d_k = {d_k}, no scale, 800 steps:", [round(a, 2) for a in after])

# %% [markdown]
# More steps help each of the six runs. Not all of them reach 90 % with four times as many.
#
# **What to take with you, and no more.** For entries of variance 1, the scale gives the first
# scores variance 1 at every width. With it, the three widths of this experiment train alike. Adam
# can learn without it: here at $d_k = 4$ within 200 steps, at 64 and 256 later and in part, and at
# 256 within 200 steps when the first scores were made small in another way. This was one small
# task, one optimizer, one learning rate. Elsewhere, measure again.

# %% [markdown] question="scale-necessity"
# A colleague's model trains well with d_k = 8, and you see that the scale is missing. What follows?
#
# - [ ] Something else must be wrong too, since attention cannot train without the scale
#   You saw Adam train without it at d_k = 4.
# - [x] At this width it may do no harm; it should be there before anyone widens the heads
#   The first scores have variance 8 in place of 1. In the lesson Adam learnt with 4, and at 64 and
#   256 it did not reach the same accuracy within the same budget.
# - [ ] Nothing: the scale never matters to Adam
#   At 64 and 256 it decided whether the task was learnt in time.
# - [ ] The gradients have exploded, but clipping has hidden it
#   Even at d_k = 256 the largest norm that you saw before clipping was about 1.

# %% [markdown]
# ## Numerics: three ways to lose the result
#
# **Large scores.** You know this one from chapter 02: the exponential of a score above 88.7 is
# infinite in float32, and taking the largest score off first cures it. Scores grow when training
# makes queries and keys longer. The scale does not prevent it; the stable softmax has to bear it.

# %%
query, key = random_vectors(64, sets=1)
scores = 1000 * attention_scores(query, key) / 8  # vectors a good thirty times as long
as_written = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
for name, weights in (("as written", as_written), ("torch.softmax", scores.softmax(dim=-1))):
    print(f"{name:13}: NaN in {weights.isnan().any(dim=-1).sum()} of 16 rows")

# %% [markdown]
# **Half precision.** The largest float16 is 65 504. Two vectors of 64 entries, all of them 40, have
# the dot product $64 \cdot 40 \cdot 40 = 102\,400$. Divided by $\sqrt{64} = 8$, it is 12 800.

# %% [markdown] prediction="float16-order"
# In exact arithmetic (q·k)/8 and (q/8)·k are the same. In float16?
#
# - Both are 12 800.
# - (q·k)/8 is infinite, (q/8)·k is 12 800.
# - (q·k)/8 is 12 800, (q/8)·k is infinite.
# - Both are infinite.

# %%
q, k = torch.full((1, 64), 40.0).half(), torch.full((2, 64), 40.0).half()  # float16
late, early = (q @ k.mT) / 8, (q / 8) @ k.mT
print("divide after: ", late[0].tolist(), "-> weights", late.softmax(dim=-1)[0].tolist())
print("divide before:", early[0].tolist(), "-> weights", early.softmax(dim=-1)[0].tolist())
print("bfloat16, divide after:", ((q.bfloat16() @ k.bfloat16().mT) / 8)[0].tolist())
reveal("float16-order", int(late.isinf().all()) + 2 * int(early.isinf().all()))

# %% [markdown]
# **What was seen.** Once a score is infinite, dividing does not bring it back, and the softmax of
# infinities is NaN. So divide first: it costs nothing, and it is what the course's function does.
# bfloat16 has the range of float32, but only two to three digits.
#
# **Rows without keys, once more.** You saw that a softmax over nothing but minus infinity is NaN.
# Replacing NaN by 0 afterwards gives a finite output. What of the gradient? There are two ways to
# hide a key, adding −∞ to its score or filling it in, and two places to replace NaN.

# %%
def hidden(scores, mask, how):
    """The scores with minus infinity where the mask is False."""
    added, filled = scores + torch.where(mask, 0.0, -inf), scores.masked_fill(~mask, -inf)
    return added if how == "add" else filled


def cleaned_afterwards(query, key, value, mask, how, place):
    """The output of attention that lets NaN arise, and replaces it in the weights or at the end."""
    weights = hidden(query @ key.mT / sqrt(query.shape[-1]), mask, how).softmax(dim=-1)
    weights = weights.nan_to_num() if place == "weights" else weights
    return (weights @ value).nan_to_num()


mask = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
for how in ("add", "fill"):
    for place in ("output", "weights"):
        vectors = (*random_vectors(4, sets=1, n=3), random_vectors(4, sets=1, n=3, seed=1)[0])
        inputs = [vector[0].requires_grad_() for vector in vectors]  # query, key, value: (3, 4)
        first = cleaned_afterwards(*inputs, mask, how, place)[0]  # the first query may see all
        gradients = torch.autograd.grad(first.sum(), inputs)
        lost = [name for name, g in zip(("query", "key", "value"), gradients) if g.isnan().any()]
        print(f"{how:4} -inf, replace NaN in the {place:7}: NaN in the gradient of", lost or "none")

# %% [markdown]
# **What was seen.** The first query is healthy: it may see every key, and its output is finite.
# Still three of the four ways send back NaN, for NaN times 0 is NaN; one step later the weights
# behind it are NaN too. The fourth way is safe: `masked_fill` passes no gradient to the scores that
# it has filled, and the values are multiplied by weights that have been cleaned. The surest way is
# not to let NaN arise: give the empty row any finite scores before the softmax, and zero weights
# after it. That is what the course's function does.

# %% [markdown] question="nan-in-the-gradient"
# The output has no NaN, the loss has none, and after one step weights are NaN. Which of these can
# be the cause?
#
# - [ ] The learning rate was a little too high
#   Then the loss climbs over several steps, through large numbers.
# - [x] NaN arose inside and was replaced before the loss
#   The gradient runs back through the place where it arose. There 0 times NaN is NaN.
# - [ ] A score was very negative
#   Its exponential is 0, and so is its gradient: finite.
# - [ ] The softmax was saturated
#   Then gradients are 0, not NaN.

# %% [markdown]
# The last exercise gives you an attention function that runs, and has six faults. You fix them one
# after another.
#
# {{exercise: repaired_attention}}

# %% [markdown]
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | no scale | nothing at small $d_k$; slow learning at large $d_k$; entropy near 0 at the start |
# | the root of another size: `d_model`, the number of keys, the number of heads | silent. Take keys whose dot products with the query are 1 and 0: the logarithm of the ratio of their weights *is* the scale |
# | the scale behind the softmax, or on the output | rows of weights sum to less than one; with values of 1 the output is not 1 |
# | the softmax over the queries | no error at any size; with values of 1 the output is not 1 |
# | an axis counted from the left | right for one sequence, wrong for a batch |
# | the mask the other way round | put 1 000 000 into the hidden values and see whether it comes out |
# | hidden scores filled with 0 or a small number | the same test |
# | an empty row | NaN, or the mean of what may not be seen; look at the gradient, too |
# | `query /= …` | the caller's tensor has changed; a second call gives another result |
# | the division after the product, in float16 | infinity, then NaN |
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): section 3.2.1; its
#   footnote has the argument about the variance.
# - Luong, Pham and Manning, “Effective Approaches to Attention-based Neural Machine Translation”,
#   2015 (arXiv 1508.04025): the dot product as a score, before there was a scale.
# - Kingma and Ba, “Adam: A Method for Stochastic Optimization”, 2015 (arXiv 1412.6980): the step
#   that does not depend on the scale of the gradient.
# - Yang et al., “Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter
#   Transfer”, 2022 (arXiv 2203.03466): divides by $d_k$, for a good reason, when widths are to be
#   compared.
# - Henry et al., “Query-Key Normalization for Transformers”, 2020 (arXiv 2010.04245), and Zhai et
#   al., “Stabilizing Transformer Training by Preventing Attention Entropy Collapse”, 2023
#   (arXiv 2303.06296): what is done when scores grow *during* training.

# %% [markdown] part="exercises"
# Five exercises: you measure how widely attention is spread (3.1), write the function of this
# chapter (3.2) and watch it respond to a slider, measure the gradient of the softmax (3.3), write it
# as a formula (3.4, optional), and fix an attention function with six faults (3.5).
#
# In all of them “(\*b, …)” stands for any number of leading axes, none included: batch, heads.
# Count axes from the right and they take care of themselves. No answer may change its inputs.

# %% part="exercises"
from math import inf, sqrt

import torch
from einops import einsum

from attn_course.experiments.ch03_views import own_attention_view

# %% [markdown] exercise="attention_entropy"
# `attention_entropy(weights)` measures how widely each row of weights is spread:
#
# $$H(p) = -\sum_j p_j \log p_j$$
#
# - `weights`: float tensor (\*b, j). Each row, along the last axis, holds the weights of one query.
# - Returns a tensor (\*b): one entropy for each row, in nats (natural logarithm).
# - A weight of exactly 0 counts for nothing: $0 \log 0 = 0$. A row of zeros, of a query that may
#   attend to nothing, has entropy 0.
# - The entropy must be usable in training: where weights are 0, the gradient that reaches the
#   scores behind them must be finite and right. A loss may one day contain it.
#
# ```python
# attention_entropy(torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))  # tensor([1.0397, 0.0000])
# ```

# %% exercise="attention_entropy" source="attn_course.attention"

# %% [markdown] exercise="scaled_dot_product_attention"
# `scaled_dot_product_attention(query, key, value, mask=None)` is the function of this chapter:
#
# $$\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# - `query` (\*b, i, d_k), `key` (\*b, j, d_k), `value` (\*b, j, d_v): float tensors.
# - `mask`: None, or a boolean tensor in which **True means “may attend”**. It is (i, j), or has as
#   many axes as the scores, each of full size or 1, such as (b, 1, j).
# - Returns the pair `(output, weights)`: (\*b, i, d_v) and (\*b, i, j).
# - A query that may attend to nothing gets zeros, as output and as weights, and the gradients of
#   the other queries stay finite.
# - Scores in the thousands must come out finite. What happens in float16 costs nothing here; the
#   check will tell you.
#
# ```python
# q, k = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
# v = torch.tensor([[1.0], [0.0]])
# scaled_dot_product_attention(q, k, v)                                    # output [[0.8044]]
# scaled_dot_product_attention(q, k, v, torch.tensor([[False, True]]))     # output [[0.0]]
# scaled_dot_product_attention(q, k, v, torch.tensor([[False, False]]))    # output [[0.0]]
# ```

# %% exercise="scaled_dot_product_attention"
def scaled_dot_product_attention(query, key, value, mask=None):
    """Return softmax(query keyᵀ / √d_k) value, (*b, i, d_v), and the weights, (*b, i, j)."""
    ### BEGIN SOLUTION
    # divide first: in half precision the dot products of long vectors overflow
    scores = einsum(query / sqrt(query.shape[-1]), key, "... i d, ... j d -> ... i j")
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)
        # the softmax of a row of -inf is NaN, in its gradient too: open the row, clear it after
        weights = scores.masked_fill(~(mask | empty), -inf).softmax(dim=-1)
        weights = weights.masked_fill(empty, 0.0)
    return einsum(weights, value, "... i j, ... j d -> ... i d"), weights
    ### END SOLUTION


# %% [markdown] part="exercises"
# **Your own function, on a slider.** One query and 16 random keys. The bars are the weights that
# your function gives, the circles those of the course's. Change $d_k$; hide keys; at 0 open keys
# the query may attend to nothing. The view asks for your function by its name: change its cell, run
# that cell, and the next move of a slider shows the new version. Try it once without the division.

# %% part="exercises"
own_attention_view(lambda *inputs: scaled_dot_product_attention(*inputs))

# %% [markdown] exercise="softmax_gradient"
# `softmax_gradient(scores, index, eps=1e-5)` measures how one weight answers to each of the scores,
# by nudging them. With $p(s)$ the weight at `index` and $e_m$ the step of size 1 along score $m$,
# entry $m$ of the result is the two-sided difference quotient
#
# $$\frac{p(s + \varepsilon e_m) - p(s - \varepsilon e_m)}{2 \varepsilon}$$
#
# - `scores`: float tensor (n,). `index`: a whole number, 0 … n − 1. `eps` is $\varepsilon$,
#   positive. (The course's version refuses another `eps`, as its docstring says; yours need not.)
# - Returns a float64 tensor (n,). A float32 keeps seven digits, and the two numbers that you
#   subtract agree in most of them: compute in float64, whatever the dtype of `scores`.
#
# The point is to measure. But the check looks at the numbers only: whatever gives the derivative to
# eight digits passes.
#
# ```python
# softmax_gradient(torch.tensor([1.0, 0.0]), index=0)  # tensor([ 0.1966, -0.1966],
# dtype=torch.float64)
# ```

# %% exercise="softmax_gradient" source="attn_course.attention"

# %% [markdown] exercise="softmax_jacobian"
# `softmax_jacobian(weights)` holds all derivatives at once:
#
# $$J_{ij} = \frac{\partial p_i}{\partial s_j} = p_i\,(\delta_{ij} - p_j)$$
#
# - `weights`: float tensor (\*b, n). These are the weights $p = \mathrm{softmax}(s)$ already, not
#   the scores.
# - Returns a tensor (\*b, n, n): for each row of weights its own matrix.
#
# ```python
# softmax_jacobian(torch.tensor([0.75, 0.25]))  # [[0.1875, -0.1875], [-0.1875, 0.1875]]
# ```

# %% exercise="softmax_jacobian" source="attn_course.attention"

# %% [markdown] exercise="repaired_attention"
# The function below is meant to do what exercise 3.2 asked for: the same arguments, the same
# results, the same treatment of masks and of queries that may attend to nothing. It runs, and on a
# single sequence without a mask its output even looks sensible. It has **six faults**.
#
# Run the check, read which fault it names, fix it, check again. Change as few lines as you can.
# Before you look at the message, guess: which line would you suspect?

# %% exercise="repaired_attention"
def repaired_attention(query, key, value, mask=None):
    """Return softmax(query keyᵀ / √d_k) value and its weights; True in the mask: may attend."""
    ### BEGIN SOLUTION
    query = query / sqrt(query.shape[-1])
    scores = query @ key.mT
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        empty = ~mask.any(dim=-1, keepdim=True)
        weights = scores.masked_fill(~(mask | empty), -inf).softmax(dim=-1)
        weights = weights.masked_fill(empty, 0.0)
    return weights @ value, weights
    ### STUB
    # query /= sqrt(value.shape[-1])
    # scores = query @ key.mT
    # if mask is not None:
    #     scores = scores.masked_fill(mask, -1e9)
    # exponentials = scores.exp()
    # weights = exponentials / exponentials.sum(dim=1, keepdim=True)
    # return weights @ value, weights
    ### END SOLUTION
