# ---
# jupyter:
#   attn_course:
#     title: "Multi-head attention"
#     reading_minutes: 60
#     exercise_minutes: 95
# ---

# %% [markdown]
# One attention gives a token one weighted mean of the others. What if it needs two things at once?
# **Multi-head attention** looks several times, side by side, each time through projections of its own,
# and mixes what it finds.
#
# ## What you will be able to do
#
# - Say what a single head cannot do, however wide it is, and show it with runs of your own.
# - Write multi-head attention from a blank page, and say where PyTorch's module keeps the same weights.
# - Recognise heads that are cut or joined wrongly although every shape is right.
# - Say what more heads cost and what they do not, down to the byte.
# - Say what W_o is for, and when it can be multiplied away.
# - Silence a head, measure what is lost, and say what that tells about its attention map.
#
# Axes: $b$ sequences, $h$ heads, $i$ queries, $j$ keys, $n$ tokens, $d$ the features of one head. Sizes:
# $d_\text{model}$, the number of heads $h$, and $d_k = d_\text{model} / h$.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("05")

# %% hide="input"
recall("05")

# %%
import inspect
from dataclasses import replace

import torch
from einops import einsum, rearrange

from attn_course import drawings
from attn_course.attention import scaled_dot_product_attention
from attn_course.efficient import chunked_attention
from attn_course.experiments.ch05 import (
    StaircaseSettings, ablation_costs, asked_items, attention_to_questions, key_lookup_accuracy,
    staircase, staircase_runs,
)
from attn_course.experiments.ch05_costs import kept_bytes, multiply_adds
from attn_course.experiments.ch05_textbook import TextbookAttention, outcome, same_weights
from attn_course.experiments.ch05_views import memory_view
from attn_course.explorers import HeadsExplorer
from attn_course.masks import causal_mask
from attn_course.memory import attention_memory
from attn_course.models import count_parameters
from attn_course.multihead import (
    MultiHeadAttention, ablate_heads, fuse_value_output, merge_heads, split_heads,
)
from attn_course.plots import heat_map, line_plot
from attn_course.self_attention import is_permutation_equivariant

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## Four questions at once
#
# **Can one attention answer more than one question?** On paper first. Two items, with the values 3 and 5.
# A token asks two questions: what is the value of the first item, and what is that of the second?
#
# | | weights | what comes out |
# |---|---|---|
# | one head, looks at the first | 1, 0 | 3 |
# | one head, looks at both | ½, ½ | 4 |
# | one head, values 5 and 3 instead | ½, ½ | 4 |
# | two heads, each looks at one | 1, 0 and 0, 1 | 3 and 5, side by side |
#
# The weights of a row sum to one, so a head that looks at both brings their mean. From 4 nobody can say
# which was the 3. Two heads bring two numbers.
#
# Now as an experiment. A sequence has eight items, each with a key and a value out of eight. One last
# position asks for *four* of the keys at once. Tokens are sums of embeddings, 48 features wide. There is
# one layer of attention, and one linear layer that reads all four answers from its output. A guess is
# right once in eight. Each run has 400 steps of training; a bar counts those of three runs together.

# %%
batch = staircase(StaircaseSettings(), seed=0).test_set(1)  # inputs (b, 9, 4 slots)
keys, values = batch.inputs[0, :-1, 0], batch.inputs[0, :-1, 1] - 9  # ids 9 … 16 are values 0 … 7
asked = asked_items(batch.inputs, 4)[0]
print("keys:        ", keys.tolist())
print("their values:", values.tolist())
print("asked for: keys", keys[asked].tolist(), "  right answers:", batch.targets[0].tolist())

# %% [markdown] prediction="lone-head-answers"
# A single head, 48 features wide: how many of the four questions will it answer rightly, on average?
# (Guessing alone gives 0.5.)
#
# number: 0 … 4, within 0.4

# %% [markdown] prediction="lone-head-choice"
# And which of the four questions will a lone head answer best?
#
# - All four equally well, none of them fully
# - One and the same in every run, and that nearly always
# - One of them nearly always, but not the same in every run

# %%
runs = {h: staircase_runs(StaircaseSettings(num_heads=h), name=f"h = {h}") for h in (1, 2, 3, 4)}

# %% tags=["nbval-ignore-output"]
for h, of_h in runs.items():
    for run in of_h:
        print(f"h = {h}, {48 // h:2} features each: {run.answered:.2f} answers; right, by question:",
              "  ".join(f"{share:4.0%}" for share in run.accuracy))
best = {int(run.accuracy.argmax()) for run in runs[1]}
one_each = all(run.accuracy.max() > 0.9 > run.accuracy.sort().values[-2] for run in runs[1])
reveal("lone-head-answers", sum(run.answered for run in runs[1]) / 3)
reveal("lone-head-choice", (2 if len(best) > 1 else 1) if one_each else 0)

# %% [markdown]
# **What was seen.** A staircase: each head answers one question, and the rest is guessed, which is right
# once in eight: $1 + 3/8$ is 1.4 for a lone head. Which question it takes differs from run to run. It is
# 48 features wide and could hold all four answers. A second head, at the same total width, brings a second
# answer.
#
# Four heads are enough for four questions. So are more heads better still? With $d_\text{model}$ fixed
# they become narrower.

# %% [markdown] prediction="forty-eight-heads"
# 48 heads with one feature each: how many of the four questions, after the same training?
#
# number: 0 … 4, within 0.5

# %%
for h in (8, 12, 24, 48):
    runs[h] = staircase_runs(StaircaseSettings(num_heads=h), name=f"h = {h}")
reveal("forty-eight-heads", sum(run.answered for run in runs[48]) / 3)

# %% tags=["nbval-ignore-output"]
for h in (8, 12, 24, 48):
    print(f"h = {h:2}, {48 // h} features each: answers in three runs",
          "  ".join(f"{run.answered:.2f}" for run in runs[h]))

# %%
line_plot(
    list(runs), {"right answers": [[of_h[s].answered for of_h in runs.values()] for s in range(3)]},
    log_x=True, x_label="heads h (each 48 / h features wide)", y_label="right answers of four",
    y_limits=(0, 4.2), title="Up to four, and down again",
    alt="Right answers of four questions rise in steps with the number of heads, reach four at four "
    "heads, stay there to twelve, and fall towards 48 heads, where each head has one feature.",
)

# %% [markdown]
# **Why down again?** A head with one feature has a score $q \cdot k$ of two single numbers: the keys lie
# on a line, and the query can only ask for “far right” or “far left”. Many such heads together could
# perhaps still do it. Do they, with more training? And does it help the lone head?

# %%
longer = {h: staircase_runs(StaircaseSettings(num_heads=h, steps=1000), name=f"h = {h}, 1000 steps")
          for h in (1, 24, 48)}

# %% tags=["nbval-ignore-output"]
for h, of_h in longer.items():
    for steps, of_steps in ((400, runs[h]), (1000, of_h)):
        print(f"h = {h:2}, {steps:4} steps: answers in three runs",
              "  ".join(f"{run.answered:.2f}" for run in of_steps))

# %% [markdown]
# So for 24 heads the fall was a matter of training: with 1000 steps they answer all four. 48 heads gain
# more than an answer and stay near three; whether they would arrive with still more steps, this does not
# tell. The lone head gains little. It cannot: one mean is all that its linear reader gets.
#
# **Is it heads that are needed, then?** Two things to try, with two questions and one head. Behind it, put
# a network of two layers that works on what the head brought (chapter 07). Or put two one-head
# layers one after the other, each adding its output to the token.

# %% [markdown] prediction="one-head-and-a-network"
# Two questions, one head, and a two-layer network behind it. How many answers?
#
# - About one (below 1.3 in each run), as before: a mean is a mean
# - More than that, but below 1.8 in each run
# - Both (above 1.8) in one run at least

# %%
two = StaircaseSettings(num_questions=2)
ways = {
    "2 questions, one head": replace(two, steps=800),
    "2 questions, one head, network": replace(two, d_ff=192, steps=800),
    "2 questions, two layers": replace(two, num_layers=2, steps=800),
    "4 questions, one head, network": StaircaseSettings(d_ff=192, steps=800),
}
around = {name: staircase_runs(settings, name=name) for name, settings in ways.items()}

# %% tags=["nbval-ignore-output"]
for name, of_way in around.items():
    print(f"{name:30}: answers in three runs", "  ".join(f"{run.answered:.2f}" for run in of_way))
most = max(run.answered for run in around["2 questions, one head, network"])
reveal("one-head-and-a-network", 2 if most > 1.8 else 1 if most > 1.3 else 0)

# %% [markdown]
# **What was seen.** The mean *can* be taken apart. Give one value eight times the weight of the other: with
# values 0 … 7, $\frac89 a + \frac19 b = \frac19 (8a + b)$ differs for each of the 64 pairs. A linear layer
# cannot read $a$ and $b$ from it, a network can. Of four questions the same network, with the same steps,
# answers between two and three. Two layers are two looks, one after the other.
#
# So “one head learns one relation” is a fact about one head *with a linear reader*. In a Transformer
# there are always a network and more layers. You are about to see what several heads cost.

# %% [markdown] question="lone-head-limit"
# Why does a lone head with a linear reader not answer four questions, even with 512 features?
#
# - [ ] 512 features are too few to hold the values of four items at once
#   Four values out of eight fit into a dozen numbers. Width is not what is missing.
# - [ ] It has not been trained long enough: each further question takes longer
#   With 1000 steps in place of 400 it gained less than half an answer. A linear reader gets one mean.
# - [ ] The softmax saturates, and no gradient is left for the other three
#   It should be sharp here. It is sharp on one item, that is the point.
# - [x] It brings one weighted mean of the values, whatever its width
#   All features are mixed by the same weights. From a mean the parts cannot be read linearly.

# %% [markdown]
# ## Cutting and joining
#
# **How do $h$ attentions run at once?** Not in a loop. Queries, keys and values are projected first, each by
# one matrix; then each *result* is cut into $h$ parts, and $h$ becomes an axis beside the batch. The
# attention of chapter 03 works on the last two axes and does not notice:
#
# $$(b, n, h \cdot d) \;\longrightarrow\; (b, h, n, d) \;\xrightarrow{\text{attend}}\; (b, h, n, d)
# \;\longrightarrow\; (b, n, h \cdot d)$$

# %% hide="input"
drawings.heads()

# %% [markdown]
# In einops the pattern says all of it. Two tokens, four features, two heads:

# %%
x = torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8]]])  # (b, n, d_model)
heads = rearrange(x, "b n (h d) -> b h n d", h=2)
print("head 0:", heads[0, 0].tolist(), "  head 1:", heads[0, 1].tolist())
print("joined:", rearrange(heads, "b h n d -> b n (h d)").tolist())

# %% [markdown]
# Head 0 has the first two features *of every token*. There are other ways to the same shape, and
# `x.view(b, h, n, d)` is the shortest.

# %% [markdown] prediction="wrong-split"
# `x.view(b, h, n, d)` of the same x, with two heads: what does head 0 hold?
#
# - Two features of every token
# - All features of the first tokens
# - A mixture that loses numbers

# %%
b, n, d_model = x.shape
print("view(b, h, n, d):  ", x.view(b, 2, n, 2).tolist())
print('"b n (d h)":       ', rearrange(x, "b n (d h) -> b h n d", h=2).tolist())
print("joined by view:    ", heads.reshape(b, n, d_model).tolist())
held = x.view(b, 2, n, 2)[0, 0].flatten().tolist()
reveal("wrong-split", 0 if held == [1, 2, 5, 6] else 1 if held == [1, 2, 3, 4] else 2)

# %% [markdown]
# A view counts the numbers off anew, in the order in which they lie in memory. To get $h$ in front of $n$
# the numbers must change places, and a view never moves any. Each of the wrong ways gives the right shape
# and raises nothing.
#
# **How do you catch it?** By what attention must do. Without a mask, shuffled tokens give shuffled
# outputs (chapter 04). And under a mask by which each token sees only itself, no output may depend on
# another token.

# %%
def through(split, merge):
    """Attention with 3 heads between the two, without any weights."""
    def layer(x, mask=None):
        q = split(x)
        return merge(scaled_dot_product_attention(q, q, q, mask)[0])
    return layer


cut = {"split_heads": lambda x: split_heads(x, 3), "view": lambda x: x.view(len(x), 3, -1, 4),
       "(d h)": lambda x: rearrange(x, "b n (d h) -> b h n d", h=3)}
join = {"merge_heads": merge_heads, "view": lambda x: x.reshape(len(x), -1, 12),
        "(d h)": lambda x: rearrange(x, "b h n d -> b n (d h)")}

# %%
torch.manual_seed(0)
x = torch.randn(2, 5, 12)
alone, other = torch.eye(5, dtype=torch.bool), torch.cat([x[:, :1], torch.randn(2, 4, 12)], dim=1)
for c, j in (("split_heads", "merge_heads"), ("view", "view"), ("split_heads", "view"),
             ("(d h)", "(d h)")):
    layer = through(cut[c], join[j])
    kept = torch.allclose(layer(x, alone)[:, 0], layer(other, alone)[:, 0])
    print(f"{c:11} then {j:11}: equivariant {is_permutation_equivariant(layer, x)!s:5}, "
          f"alone with itself {kept}")

# %% [markdown]
# Each test has its blind spot. Split *and* joined by view, a token alone with itself gives itself back:
# the two errors cancel. And the last pair, $(d\,h)$ both times, passes everything. It is right: the
# heads only own other features. It shows the day you load weights from elsewhere. Here heads lie
# one after the other, $(h\,d)$, as in `nn.MultiheadAttention`.

# %% [markdown]
# {{exercise: split_heads}}
#
# {{exercise: merge_heads}}

# %% [markdown]
# ## One projection, cut in slices
#
# The paper writes a projection for each head, $W_m^Q$ of shape $(d_\text{model}, d_k)$:
#
# $$\mathrm{head}_m = \mathrm{Attention}(X W_m^Q,\; X W_m^K,\; X W_m^V) \qquad
# \mathrm{MultiHead}(X) = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O$$
#
# Side by side these $h$ matrices are one of shape $(d_\text{model}, h\,d_k)$. So there is one product,
# and the head is a slice of its result.

# %%
torch.manual_seed(0)
attention, x = MultiHeadAttention(12, 3), torch.randn(1, 5, 12)
W_q, b_q = attention.W_q.weight.T, attention.W_q.bias  # nn.Linear stores (out, in)
whole = split_heads(attention.W_q(x), 3)[:, 2]  # project, then split, then take head 2
alone = x @ W_q[:, 8:12] + b_q[8:12]  # head 2's own columns
print("head 2 is a slice:", torch.allclose(whole, alone, atol=1e-6))

# %% [markdown]
# Note what a head reads: *all* features of the token, through its own columns. What is cut is
# the result. Two other things are seen in code:
#
# - **Cut first, project then.** A head reads only its part of the token.
# - **Project, and project again for each head.** Two linear maps in a row are one linear map,
#   $(X A) B = X (A B)$: parameters and time without effect.
#
# **Why three inputs?** In self-attention query, key and value are the same tokens. In **cross-attention**
# (chapter 08) the queries come from one sequence, the keys and values from another. A module that takes
# three inputs does both, and only with three different ones can a test tell whether keys were made from
# the queries by mistake.
#
# `nn.MultiheadAttention` has the same four matrices. Three of them lie in one parameter,
# `in_proj_weight`, on top of each other, each stored as (out, in):

# %%
torch.manual_seed(0)
theirs, query, memory = torch.nn.MultiheadAttention(12, 3, batch_first=True), *torch.randn(2, 1, 5, 12)
parts = zip(theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3))
for W, (weight, bias) in zip((attention.W_q, attention.W_k, attention.W_v), parts):
    W.load_state_dict({"weight": weight, "bias": bias})
attention.W_o.load_state_dict(theirs.out_proj.state_dict())
apart = (attention(query, memory, memory)[0] - theirs(query, memory, memory)[0]).abs().max()
print("in_proj_weight:", tuple(theirs.in_proj_weight.shape), f"  largest difference {apart:.3f}")

# %% [markdown]
# You have all the parts now. Write it from a blank page. The exercise's notebook then copies the weights of
# `nn.MultiheadAttention` into your module in this way and compares the two.

# %% [markdown] question="what-a-head-reads"
# d_model = 512, 8 heads. How many features of a token can head 3's query depend on?
#
# - [ ] 64: features 192 to 255
#   That is what comes out, after the projection. What goes in is not cut.
# - [ ] 64, but W_q chooses which
#   A column has a weight for every feature; it does not choose.
# - [x] 512: all of them
#   q = x W_q, and head 3's part of W_q are 64 whole columns, 512 numbers each.
# - [ ] 8
#   That is the number of heads.

# %% [markdown]
# {{exercise: MultiHeadAttention}}

# %% [markdown]
# ## What W_o is for
#
# **The heads already stand side by side. Why another matrix?** Silence one head, and see which features
# of the output notice: with $W^O$, and without it.

# %%
silent = ablate_heads(attention, [1])  # a copy in which head 1 adds nothing
with_W_o = (attention(x, x, x)[0] - silent(x, x, x)[0]).abs().amax(dim=(0, 1)) > 1e-6
q, k, v = (split_heads(W(x), 3) for W in (attention.W_q, attention.W_k, attention.W_v))
merged = merge_heads(scaled_dot_product_attention(q, k, v)[0])
v[:, 1] = 0.0  # head 1 has nothing to say
moved = (merged - merge_heads(scaled_dot_product_attention(q, k, v)[0])).abs().amax(dim=(0, 1)) > 1e-6
print("features that head 1 reaches, with W_o:   ", with_W_o.nonzero().flatten().tolist())
print("features that head 1 reaches, without it: ", moved.nonzero().flatten().tolist())

# %% [markdown]
# Without $W^O$ each head writes into features of its own. When the output is added to the tokens, as it
# will be from chapter 07 on, head 1 could change features 4 to 7 of a token and no others. With it, each
# head may write anywhere, and several into the same features.
#
# **And what is it not?** It is no non-linearity, and in the staircase nothing would be lost without it:
# a linear layer follows, and takes its place. In the same way it fuses with what stands before. Between
# $W^V$ and $W^O$ there is nothing but a weighted mean:
#
# $$\mathrm{Concat}(A_1 X W_1^V, \dots)\, W^O = \sum_m A_m X\, \underbrace{W_m^V W_m^O}_{M_m}$$
#
# where $W_m^V$ are $d_k$ columns of $W^V$ and $W_m^O$ are $d_k$ rows of $W^O$.

# %%
fused = fuse_value_output(attention.W_v.weight.T, attention.W_o.weight.T, num_heads=3)  # (h, 12, 12)
output, weights = attention(x, x, x)
by_fused = einsum(weights, x, fused, "b h i j, b j m, h m o -> b i o")
by_fused = by_fused + attention.W_o(attention.W_v.bias)  # weights sum to one: biases come through
print("the same output:", torch.allclose(output, by_fused, atol=1e-5))
print("rank of each fused matrix:", [int(torch.linalg.matrix_rank(M, rtol=1e-5)) for M in fused])
print("numbers in W_v and W_o:", 2 * 12 * 12, "  in the fused matrices:", fused.numel())

# %% [markdown]
# So a head does two separate things: $W_m^Q$ and $W_m^K$ say where to look, and the one matrix $M_m$
# says what to carry from there. Why then keep two matrices? Because of the rank. $M_m$ is
# $(d_\text{model}, d_\text{model})$, but all that it writes passes through $d_k$ numbers: its rank is
# $d_k$, and two thin factors are the cheap way to write such a matrix. With one head there is nothing to
# save, and one of the two is too many.
#
# See it move: the view below has weights set by hand for four heads. Change the number of heads, and
# switch some off.

# %%
HeadsExplorer()

# %% [markdown] question="output-projection-linear"
# Somebody says: “W_o brings the non-linearity into attention.” What do you answer?
#
# - [x] It is linear and fuses with W_v; what is not linear is the softmax
#   You saw the fused matrices give the same output. The weights, though, depend on x by way of an
#   exponential.
# - [ ] Right: without W_o the output would be a linear function of the tokens
#   W_o is a matrix product. Putting it in or leaving it out changes nothing about that.
# - [ ] It is linear, and so is attention as a whole, if the biases are zero
#   The weights are made from x as well: twice the input is not twice the output.
# - [ ] It does, but only together with its bias, which shifts the output
#   A bias shifts. That is affine, and no more.

# %% [markdown]
# {{exercise: fuse_value_output}}

# %% [markdown]
# ## What more heads cost
#
# **Eight heads instead of one: what gets larger?** Write down what multi-head attention holds, for one
# sequence of $n$ tokens.
#
# | | numbers | with $h$ heads |
# |---|---|---|
# | four projections | $4\,(d_\text{model}^2 + d_\text{model})$ | the same: the heads share $d_\text{model}$ |
# | queries, keys, values | $3\,n\,d_\text{model}$ | the same |
# | merged heads | $n\,d_\text{model}$ | the same |
# | attention weights | $h\,n^2$ | **$h$ times as many** |
#
# And the multiply-adds? Scores: $h$ heads, $n^2$ pairs, $d_k$ each: $n^2\,h\,d_k = n^2\,d_\text{model}$. Do
# not take the table's word for it. Let PyTorch count.

# %%
x = torch.randn(1, 64, 128)
for h in (1, 2, 8, 32):
    module = MultiHeadAttention(128, h)
    kept, by_table = kept_bytes(module, x, x, x), 4 * (4 * 64 * 128 + h * 64 * 64)  # 4 bytes a number
    print(f"h = {h:2}: {count_parameters(module):,} parameters, {multiply_adds(module, x, x, x):,} "
          f"multiply-adds, {kept:,} bytes kept for the backward pass; by the table {by_table:,}")

# %% [markdown] prediction="activations-ratio"
# d_model = 512, n = 2048. By what factor do the activations (everything in the table but the
# parameters) grow when one head becomes eight? “In proportion”, says many a text: 8.
#
# number: 1 … 8, within 0.5

# %%
lengths, base = [64, 128, 256, 512, 1024, 2048, 4096], {}
for h in (1, 2, 4, 8, 16):
    base[h] = [attention_memory(512, h, n).activations for n in lengths]
growth = {f"{h} heads": [a / one for a, one in zip(base[h], base[1])] for h in (2, 4, 8, 16)}
for n in (64, 512, 2048):
    x = torch.randn(1, n, 512)
    one, eight = (kept_bytes(MultiHeadAttention(512, h), x, x, x) for h in (1, 8))
    print(f"n = {n:4}: 8 heads hold {growth['8 heads'][lengths.index(n)]:.1f} times what one holds; "
          f"counted by PyTorch {eight / one:.1f}")
reveal("activations-ratio", eight / one)

# %%
line_plot(
    lengths, growth, log_x=True, x_label="length n", y_label="activations, relative to one head",
    title="Heads cost memory in long sequences only",
    alt="Four lines that start near 1 at length 64 and rise with the length, the more heads the "
    "higher; none reaches its number of heads.",
)

# %% [markdown]
# **What was seen.** Neither parameters nor multiply-adds depend on $h$. The memory for the weights does,
# and how much that matters depends on the length: $4 n d_\text{model}$ against $h n^2$. PyTorch's own
# count is the table's, to the byte.
#
# **Must the weights be held at all?** The output needs their sums only. Chunked attention (chapter 10)
# computes the same numbers piece by piece and never has all of them:

# %%
q, k, v = (torch.randn(1, 8, 1024, 16, requires_grad=True) for _ in range(3))
built = kept_bytes(lambda *x: scaled_dot_product_attention(*x)[0], q, k, v)
chunked = kept_bytes(lambda *x: chunked_attention(*x)[0], q, k, v)
same = torch.allclose(
    scaled_dot_product_attention(q, k, v)[0], chunked_attention(q, k, v)[0], atol=1e-5)
print(f"same output: {same}; weights built: {built / 2**20:.0f} MiB kept, in chunks: "
      f"{chunked / 2**20:.1f} MiB")

# %% [markdown]
# What then still grows with $h$ is one number for each query and head.
#
# **From which length on are the weights more than half of everything?** When $h\,n^2$ is larger than
# $4\,n\,d_\text{model}$, that is $n > 4\,d_\text{model} / h$ (leaving the parameters out). With
# $d_\text{model} = 512$ that is 2048 for one head, and 128 for sixteen. Move the sliders and compare.

# %%
memory_view()

# %% [markdown] question="heads-cost"
# d_model stays at 768. From 12 heads to 24: what doubles?
#
# - [ ] The parameters of W_q, W_k and W_v, but not those of W_o
#   Each head has half as many features, so all of them together have as many as before.
# - [x] The memory for the attention weights, if they are built
#   It is h · n · n numbers. A kernel that does not build them does not have it.
# - [ ] The multiply-adds of the scores, since there are twice as many
#   n · n pairs, h heads, d_k features each: h · d_k is d_model.
# - [ ] Nothing at all: the heads share what one head had
#   The weights (b, h, i, j) have h among their axes.

# %% [markdown]
# {{exercise: attention_memory}}

# %% [markdown]
# ## How narrow may a head be?
#
# **Heads cost so little, so why not many narrow ones?** You saw 48 heads of one feature answer fewer
# questions. How wide must a head be, and what does that depend on?
#
# One look-up among eight items, by one head. Its queries and keys are $d_k$ wide; the values are not
# narrowed. The items' keys are drawn from 8 different ones, or from 128.

# %% [markdown] prediction="keys-and-width"
# Which heads of width d_k will do (more than 80 % right, on average over three runs)?
#
# - The same for 8 and for 128 different keys: eight items are eight items
# - A narrower one for 8 different keys than for 128
# - A narrower one for 128 different keys than for 8

# %%
widths = [1, 2, 4]
accuracy = {f"{num_keys} different keys": key_lookup_accuracy(num_keys, widths) for num_keys in (8, 128)}

# %% tags=["nbval-ignore-output"]
for name, of_name in accuracy.items():
    for d_k, of_width in zip(widths, of_name.T.tolist()):
        print(f"{name:18}, d_k = {d_k}: right in three runs", "  ".join(f"{a:.2f}" for a in of_width))
few, many = (int((of_name.mean(dim=0) > 0.8).sum()) for of_name in accuracy.values())
reveal("keys-and-width", 1 if few > many else 0 if few == many else 2)

# %%
line_plot(
    widths, accuracy, log_x=True, x_label="d_k", y_label="held-out accuracy", y_limits=(0, 1.05),
    title="The more different keys, the wider the head",
    alt="With 8 different keys the accuracy is about a half at d_k = 1 and high from 2 on. With 128 "
    "keys it is lower at 1 and at 2, and high at 4.",
)

# %% [markdown]
# **What was seen.** There are eight items in both cases; what counts is the number of *different keys*. With
# 8, two features do on average, though one run of three stays just below 0.8. With 128 it takes four. Think
# of two features as a plane: eight keys can lie on a circle, and a query can point at each of them; a
# hundred and twenty-eight on the same circle lie close together.
#
# What do well-known models choose?
#
# | model | $d_\text{model}$ | heads | $d_k$ | |
# |---|---|---|---|---|
# | Transformer, base (2017) | 512 | 8 | 64 | |
# | Transformer, big (2017) | 1 024 | 16 | 64 | |
# | BERT, base / large (2018) | 768 / 1 024 | 12 / 16 | 64 | |
# | GPT-2, small / XL (2019) | 768 / 1 600 | 12 / 25 | 64 | |
# | GPT-3, 175B (2020) | 12 288 | 96 | 128 | |
# | T5, 11B (2019) | 1 024 | 128 | 128 | $h \cdot d_k$ is 16 times $d_\text{model}$ |
# | Llama 2, 7B (2023) | 4 096 | 32 | 128 | |
# | Llama 2, 70B (2023) | 8 192 | 64 | 128 | 8 heads of keys and values |
#
# As models grow, $h$ grows, and $d_k$ stays at 64 or 128. T5 shows that $h\,d_k = d_\text{model}$ is a habit
# and no law. In the last row, groups of eight query heads share one head of keys and values:
# **grouped-query attention**. If all query heads share a single one, it is **multi-query attention**. Both
# make the cache of chapter 10 smaller.

# %% [markdown] question="d-k-choice"
# A single look-up fails with d_k = 2 and works with d_k = 8. Which change would make d_k = 2 work?
#
# - [ ] Longer sequences
#   Length is not what a key's features are for.
# - [ ] Wider values, still one head
#   Values are what is carried. The look-up fails before, in the scores.
# - [ ] Scores without a scale
#   W_q and W_k can make scores as large as they like. Larger is not better separated.
# - [x] Fewer different keys
#   In a plane a handful of directions can be told apart, a hundred cannot.

# %% [markdown]
# ## What does a head do?
#
# **You have trained heads. Look inside.** The model with four heads answers all four questions. For each
# head: how much weight does it put, on average, on the item that question 1, 2, 3, 4 asks for?

# %%
chosen = runs[4][0].model
test = staircase(StaircaseSettings(), seed=0).test_set(500, pick_device())
heat_map(
    attention_to_questions(chosen, test), row_labels=[f"head {m}" for m in range(4)],
    column_labels=[f"question {q + 1}" for q in range(4)], row_axis="", column_axis="",
    title="Weight on the item asked for: four heads",
    alt="Each head has nearly all its weight in one column, and each column belongs to one head.",
)

# %% [markdown]
# Each took one question. Now the knife, as this chapter calls an **ablation**: silence one head after the
# other, by setting its rows of $W^O$ to zero, and measure what is answered. Do map and knife name the same
# question, in all three runs?

# %% tags=["nbval-ignore-output"]
for seed, run in enumerate(runs[4]):
    test = staircase(StaircaseSettings(), seed=seed).test_set(500, pick_device())
    map_, costs = attention_to_questions(run.model, test), ablation_costs(run.model, test)  # (h, q)
    print(f"run {seed}: heads look at questions", *(map_.argmax(dim=1) + 1).tolist(), "  silent, they cost",
          "  ".join(f"question {q + 1}: {c:.0%}" for c, q in zip(*costs.max(dim=1))))

# %% [markdown]
# They do, and the order differs from run to run. More than seven eighths cannot be lost: a guess is still
# right once in eight.

# %% [markdown] prediction="eight-heads-ablated"
# Now the model with eight heads, three runs. Take the heads that put more than half of their weight on
# the item of one question. When such a head is silenced, how much accuracy does its question lose?
#
# - More than 0.1, each time
# - Sometimes more than 0.5, sometimes less than 0.1
# - Less than 0.5, each time

# %%
looks, loses = [], []
for seed, run in enumerate(runs[8]):
    test = staircase(StaircaseSettings(), seed=seed).test_set(500, pick_device())
    weight, question = attention_to_questions(run.model, test).max(dim=1)
    cost = ablation_costs(run.model, test).gather(1, question[:, None])[:, 0]
    looks.append(weight)
    loses.append(cost)
looks, loses = torch.cat(looks), torch.cat(loses)
watching = loses[looks > 0.5]

# %% tags=["nbval-ignore-output"]
print("heads with more than half of their weight on one question:", len(watching), "in three runs")
print("what each costs its question, sorted:", "  ".join(f"{c:.2f}" for c in watching.sort().values))
much, little = bool((watching > 0.5).any()), bool((watching < 0.1).any())
reveal("eight-heads-ablated", 1 if much and little else 0 if much else 2)

# %% tags=["nbval-ignore-output"]
heat_map(
    torch.stack([looks, loses], dim=1)[:8], row_labels=[f"head {m}" for m in range(8)],
    column_labels=["map", "knife"], row_axis="", column_axis="largest weight; what is lost",
    value="share", limits=(0, 1), title="Eight heads, first run",
    alt="Several heads have a high value on the left, of which some have a low one on the right.",
)

# %% [markdown]
# **What can be read, and what cannot.**
#
# - With four heads for four questions map and knife say the same, and the heads can be named. The
#   task was made for that.
# - With eight, more heads watch a question than there are questions, and some can be silenced without loss;
#   perhaps because another brings the same value. A map says where a head looks. It does not say that what
#   it sees is needed.
# - The reverse is possible as well: a head without a clear map may carry a little of everything. To set it
#   to zero also takes away its mean, on which later layers may rely. Replacing it by that mean is a milder
#   cut, and can give another answer.
# - Real models have many heads, layers behind layers, and a network in each. Chapter 08 puts map and knife
#   side by side for a model that rewrites dates.

# %% [markdown] question="map-and-knife"
# In a trained model, head 5 attends to the subject of each verb, plain to see in its map. Silencing it
# changes no prediction. What follows?
#
# - [x] What it brings is not needed, or comes from elsewhere too
#   Another head or layer may bring the same. Silence several together to find out.
# - [ ] The map is wrong: a head that looks there would be missed
#   It shows truly where the head looks.
# - [ ] The head has learnt nothing, and its map is an accident
#   It finds subjects. That is something.
# - [ ] The model makes its predictions without the subjects
#   It may well get them by another way.

# %% [markdown]
# {{exercise: ablate_heads}}

# %% [markdown]
# ## A textbook module, read critically
#
# Below is multi-head attention in the style of many tutorials. It works in the case that it was written for.
# Read it slowly, as you would a colleague's. Where will it fail? Note at least three places before you go
# on. Two words first: **dropout** sets a random share of numbers, here a tenth of the weights, to zero while
# a module is in training mode, which is how it starts. `eval()` switches that off, `train()` on again.

# %%
print(inspect.getsource(TextbookAttention))

# %% [markdown] prediction="textbook-mask"
# 4 heads, 4 tokens, and a causal mask (i, j), of 4 by 4. What does the textbook's module make of it?
#
# - An error, since a mask needs three axes here
# - The right output
# - A wrong output, without an error

# %%
torch.manual_seed(0)
ours, textbook = MultiHeadAttention(16, 4), TextbookAttention(4, 16).eval()
same_weights(textbook, ours)
made = []
for n in (4, 6):
    x, mask = torch.randn(2, n, 16), causal_mask(n)
    said = outcome(textbook, x, x, x, mask).split(":")[0]
    right = said.startswith("finite") and torch.allclose(
        textbook(x, x, x, mask), ours(x, x, x, mask)[0], atol=1e-5)
    print(f"{n} tokens, mask ({n}, {n}): {said}; right: {right}")
    made.append(1 if right else 2 if said.startswith("finite") else 0)
reveal("textbook-mask", made[0])

# %%
x = torch.randn(2, 5, 16)
nothing = torch.zeros(1, 5, 5, dtype=torch.bool)
mean = textbook.out(textbook.v_linear(x)).mean(dim=1)  # of all values, hidden ones included
print("a query that may see nothing gets the mean of what it may not see:",
      torch.allclose(textbook(x, x, x, nothing)[:, 0], mean, atol=1e-5))
uneven = torch.randn(2, 9, 10)
print("d_model = 10, 3 heads:", outcome(TextbookAttention(3, 10), uneven, uneven, uneven).split(":")[0])
print("two calls of a fresh module agree:",
      torch.equal(textbook.train()(x, x, x), textbook(x, x, x)))
print("after them it holds weights, and their graph:", textbook.attn.grad_fn is not None)

# %%
torch.manual_seed(0)
ours, textbook = MultiHeadAttention(128, 1), TextbookAttention(1, 128).eval()
same_weights(textbook, ours)
ours, textbook, small = ours.half(), textbook.half(), torch.randn(1, 4, 128).half()
cases = ("with a mask", small, causal_mask(4)[None]), ("large inputs", 100 * small, None)
for name, x, mask in cases:
    print(f"float16, {name}: textbook {outcome(textbook, x, x, x, mask).split(':')[0].split(',')[0]}, "
          f"the course's {outcome(ours, x, x, x, mask).split(',')[0]}")

# %% [markdown]
# **What was seen**, line by line:
#
# | line | what it does |
# |---|---|
# | `mask.unsqueeze(1)` | right for (b, i, j); a mask (i, j) becomes (i, 1, j): an error, or, with as many heads as tokens, silently a mask of heads |
# | `masked_fill(…, -1e9)` | float16 ends at 65 504: an error; and an empty row becomes the mean of everything hidden |
# | `matmul(…) / sqrt(d_k)` | overflows in float16 before it is divided; divide `q` first |
# | `d_model // heads` | cuts off what is left over; the error comes later and speaks of shapes |
# | `dropout=0.1` | drops by default: two calls differ until somebody says `eval()` |
# | `self.attn = …` | keeps the last weights, with their graph, as long as the module lives |
#
# In float32, with a mask (b, i, j), a size that divides and no empty row, none of it shows after `eval()`.
# The check of exercise 5.3 tries your own module on masks of two, three and four axes, on empty rows and on
# sizes that do not divide. It judges what comes out, not how: a module that keeps its last weights passes,
# and what overflows in float16 costs no marks.
#
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | heads cut by `view` without a transposition | shapes right; not equivariant |
# | joined without moving $h$ back | a token alone with itself depends on others |
# | $(d\,h)$ for $(h\,d)$ | nothing shows, until weights are loaded |
# | scale $1/\sqrt{d_\text{model}}$ | wrong as soon as there are two heads |
# | keys made from `query`, values from `key` | unseen in self-attention |
# | tokens cut before they are projected | a head reads its part only; narrower weights |
# | $W^O$ forgotten, or heads averaged | shapes can be right; loaded weights give something else |
# | (b, i, j) mask against (b, h, i, j) | an error, but none when $b = h$ |
# | weights averaged over heads | the default of `nn.MultiheadAttention` when you ask for weights |
# | sequence first into batch first | sequences see each other; tokens do not |
# | $d_\text{model} / h$ rounded down | features lost, or a late error |
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): section 3.2.2; table 3 varies
#   the number of heads.
# - Michel, Levy and Neubig, “Are Sixteen Heads Really Better than One?”, 2019 (arXiv 1905.10650): heads
#   silenced after training.
# - Voita et al., “Analyzing Multi-Head Self-Attention”, 2019 (arXiv 1905.09418): some heads do a nameable
#   job, most can go.
# - Elhage et al., “A Mathematical Framework for Transformer Circuits”, 2021: the fused view of a head.
# - Bhojanapalli et al., “Low-Rank Bottleneck in Multi-head Attention Models”, 2020 (arXiv 2002.07028):
#   heads too narrow.
# - Ainslie et al., “GQA”, 2023 (arXiv 2305.13245): groups of query heads share keys and values.

# %% [markdown] part="exercises"
# Six exercises. You cut heads (5.1) and join them (5.2), write the module of this chapter from a blank
# page (5.3), compare it with PyTorch's, fuse values with outputs (5.4), account for its memory (5.5), and
# silence heads (5.6).
#
# All inputs are batch first. Heads lie one after the other in the features, $(h\,d)$. Masks are boolean,
# **True means “may attend”**. No answer may change its inputs.

# %% part="exercises"
from copy import deepcopy

import torch
from einops import einsum, rearrange
from torch import nn

from attn_course.attention import scaled_dot_product_attention
from attn_course.experiments.ch05_views import (
    compared_with_torch, own_heads_explorer, own_memory_view,
)
from attn_course.masks import lift_mask
from attn_course.memory import AttentionMemory

# %% [markdown] exercise="split_heads"
# `split_heads(x, num_heads)` cuts the features of each token into equal parts, one for each head.
#
# - `x`: float tensor (b, n, d_model). `num_heads`: a whole number, at least 1.
# - Returns (b, h, n, d) with $d = d_\text{model} / h$. Head $m$ holds the features $m d$ to
#   $m d + d - 1$ of every token.
# - A `d_model` that `num_heads` does not divide: raise a `ValueError` with both numbers.
#
# ```python
# x = torch.tensor([[[1., 2., 3., 4.], [5., 6., 7., 8.]]])
# split_heads(x, 2)  # [[[[1., 2.], [5., 6.]], [[3., 4.], [7., 8.]]]]
# split_heads(x, 3)  # ValueError
# ```

# %% exercise="split_heads"
def split_heads(x, num_heads):
    """Return the features of x (b, n, d_model), cut into heads: (b, h, n, d)."""
    ### BEGIN SOLUTION
    if x.shape[-1] % num_heads != 0:
        raise ValueError(f"d_model={x.shape[-1]} is not divisible by num_heads={num_heads}")
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)
    ### END SOLUTION


# %% [markdown] exercise="merge_heads"
# `merge_heads(x)` lays the heads of each token side by side again: the inverse of `split_heads`.
#
# - `x`: float tensor (b, h, n, d). Its numbers may lie in memory in any order.
# - Returns (b, n, h·d).
#
# ```python
# merge_heads(split_heads(x, 2))  # x
# ```

# %% exercise="merge_heads"
def merge_heads(x):
    """Return the heads x (b, h, n, d) side by side: (b, n, h d)."""
    ### BEGIN SOLUTION
    return rearrange(x, "b h n d -> b n (h d)")
    ### END SOLUTION


# %% [markdown] exercise="MultiHeadAttention"
# `MultiHeadAttention(d_model, num_heads)`, an `nn.Module`:
#
# $$\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h)\, W^O \qquad
# \mathrm{head}_m = \mathrm{Attention}(Q W_m^Q,\; K W_m^K,\; V W_m^V)$$
#
# - It has four parts, `self.W_q`, `self.W_k`, `self.W_v` and `self.W_o`, each
#   `nn.Linear(d_model, d_model)`, with its bias, and keeps `self.num_heads`. Nothing else is learnt, and
#   nothing is dropped. The check copies its own weights in by these names; heads lie in $(h\,d)$ order.
# - A `d_model` that `num_heads` does not divide: raise a `ValueError` with both numbers in `__init__`.
# - `forward(query, key, value, mask=None)`: float tensors (b, i, d_model), (b, j, d_model) and
#   (b, j, d_model), three different ones in general.
# - `mask`: None, or boolean: (i, j), (b, i, j) or (b, h, i, j), where b, h and i may be 1 for “the same
#   for all”. Two axes are always (i, j), three always (b, i, j).
# - Returns the pair `(output, weights)`: (b, i, d_model), and the weights of each head, (b, h, i, j).
# - A query that may attend to nothing gets weights of zero; its output is then the bias of $W^O$.
#
# You may use your `split_heads`, `merge_heads` and `scaled_dot_product_attention`, or the course's.
#
# ```python
# layer = MultiHeadAttention(12, 3)
# x, y = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
# output, weights = layer(x, y, y)  # (2, 5, 12) and (2, 3, 5, 7)
# ```

# %% exercise="MultiHeadAttention"
class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each with its part of the features, and W_o to mix them."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        ### BEGIN SOLUTION
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(self, query, key, value, mask=None):
        """Return the output (b, i, d_model) and the weights (b, h, i, j)."""
        ### BEGIN SOLUTION
        q = split_heads(self.W_q(query), self.num_heads)
        k = split_heads(self.W_k(key), self.num_heads)
        v = split_heads(self.W_v(value), self.num_heads)
        mask = None if mask is None else lift_mask(mask)  # (b, h, i, j), sizes of 1 for "all"
        output, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.W_o(merge_heads(output)), weights
        ### END SOLUTION


# %% [markdown] part="exercises"
# **With PyTorch's weights.** `nn.MultiheadAttention` holds the same four matrices. Here they are copied
# into your module, and both get the same inputs, and a mask.

# %% part="exercises"
compared_with_torch(lambda *sizes: MultiHeadAttention(*sizes))

# %% [markdown] part="exercises"
# **Your own module in the explorer.** Eight random tokens with 24 features. Look at the maps of its four
# heads, change their number, switch some off and see how far the output moves.

# %% part="exercises"
own_heads_explorer(lambda *sizes: MultiHeadAttention(*sizes))

# %% [markdown] exercise="fuse_value_output"
# `fuse_value_output(W_v, W_o, num_heads)` multiplies out, for each head, its part of $W^V$ and its part of
# $W^O$, so that
# $\mathrm{Concat}(A_1 X W_1^V, \dots)\, W^O = \sum_m A_m X M_m$.
#
# - `W_v`: float tensor (d_in, h·d). `W_o`: float tensor (h·d, d_out). Both are stored as (in, out), as in
#   the formula. (`nn.Linear` stores them as (out, in); the caller transposes them.)
# - Heads lie in $(h\,d)$ order.
# - Returns one tensor (h, d_in, d_out): $M_m = W_m^V W_m^O$ for each head.
# - Inner sizes that differ, or that `num_heads` does not divide: raise a `ValueError` with the numbers.
#
# ```python
# W_v, W_o = torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]])
# fuse_value_output(W_v, W_o, 1)  # [[[11.]]]
# fuse_value_output(W_v, W_o, 2)  # [[[3.]], [[8.]]]
# ```

# %% exercise="fuse_value_output"
def fuse_value_output(W_v, W_o, num_heads):
    """Return W_v (d_in, h d) and W_o (h d, d_out) multiplied head by head: (h, d_in, d_out)."""
    ### BEGIN SOLUTION
    if W_v.shape[1] != W_o.shape[0] or W_o.shape[0] % num_heads != 0:
        sizes = f"{tuple(W_v.shape)} and {tuple(W_o.shape)}"
        raise ValueError(f"W_v and W_o, {sizes}, do not fit together for num_heads={num_heads}")
    values = rearrange(W_v, "d_in (h d) -> h d_in d", h=num_heads)
    outputs = rearrange(W_o, "(h d) d_out -> h d d_out", h=num_heads)
    return einsum(values, outputs, "h d_in d, h d d_out -> h d_in d_out")
    ### END SOLUTION


# %% [markdown] exercise="attention_memory"
# `attention_memory(d_model, num_heads, n_query, n_key=None)` accounts for the memory of multi-head
# attention in one training step: one sequence, float32, weights built.
#
# - All four are whole numbers. Without `n_key` there are as many keys as queries.
# - Returns an `AttentionMemory(parameters=…, projected=…, merged=…, weights=…)`, which the first cell
#   imports. Its four numbers are **bytes**:
#   - `parameters`: the four projections with their biases;
#   - `projected`: queries, keys and values of all heads;
#   - `merged`: the heads' outputs side by side, which are the input of $W^O$;
#   - `weights`: the attention weights. (The scores before the softmax are not kept.)
# - A `d_model` that `num_heads` does not divide: raise a `ValueError` with both numbers.
#
# ```python
# attention_memory(4, 2, 3)
# # AttentionMemory(parameters=320, projected=144, merged=48, weights=72)
# ```

# %% exercise="attention_memory"
def attention_memory(d_model, num_heads, n_query, n_key=None):
    """Return the bytes that multi-head attention holds, by what they hold."""
    ### BEGIN SOLUTION
    if d_model % num_heads != 0:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
    n_key = n_query if n_key is None else n_key
    return AttentionMemory(
        parameters=4 * 4 * (d_model * d_model + d_model),
        projected=4 * (n_query + 2 * n_key) * d_model,
        merged=4 * n_query * d_model,
        weights=4 * num_heads * n_query * n_key,
    )
    ### END SOLUTION


# %% [markdown] part="exercises"
# **Your own account, on a slider.** Bars are what your function says, circles what the course's says, for
# $d_\text{model} = 512$. The view asks for your function by its name: change its cell, run that cell, and the
# next move of a slider shows the new version.

# %% part="exercises"
own_memory_view(lambda *sizes: attention_memory(*sizes))

# %% [markdown] exercise="ablate_heads"
# `ablate_heads(attention, heads)` silences heads: it returns a layer in which they add nothing to the
# output, and everything else is as before.
#
# - `attention`: a `MultiHeadAttention` as in exercise 5.3, yours or the course's: with `W_q`, `W_k`,
#   `W_v`, `W_o` (each `nn.Linear` with a bias) and `num_heads`.
# - `heads`: a list of head numbers, counted from 0. It may be empty, in any order, and name one twice.
# - Returns a **copy** of the layer that shares no weights with it. The layer that was given stays as it
#   is. The bias of `W_o` belongs to no head and stays.
# - A head that there is not, also one below 0: raise a `ValueError` that names it.
#
# ```python
# layer, x = MultiHeadAttention(4, 2), torch.randn(1, 3, 4)
# ablate_heads(layer, [0, 1])(x, x, x)[0]  # in every row: the bias of layer.W_o
# ablate_heads(layer, [2])                 # ValueError
# ```

# %% exercise="ablate_heads"
def ablate_heads(attention, heads):
    """Return a copy of the layer in which these heads add nothing to the output."""
    ### BEGIN SOLUTION
    missing = [head for head in heads if not 0 <= head < attention.num_heads]
    if missing:
        raise ValueError(f"heads are 0 … {attention.num_heads - 1}, there is no head {missing[0]}")
    ablated = deepcopy(attention)
    with torch.no_grad():
        # nn.Linear stores W_o as (out, in): what comes in from a head are its columns
        parts = ablated.W_o.weight.unflatten(1, (attention.num_heads, -1))  # (out, h, d), a view
        parts[:, list(heads)] = 0.0
    return ablated
    ### END SOLUTION
