# ---
# jupyter:
#   attn_course:
#     title: "The Transformer block"
#     reading_minutes: 55
#     exercise_minutes: 65
# ---

# %% [markdown]
# Attention moves information between tokens. A model is made of many such moves, one after the other.
# Between them something has to keep what a token was, keep its numbers in range, and work on what it was
# told. That is the **block**: attention, a small network, and around each of them a **residual
# connection** and a norm.
#
# ## What you will be able to do
#
# - Write layer norm from its formula, and say what it looks at and what it must not look at.
# - Write the feed-forward layer, and test which tokens it lets a token see.
# - Put both together as a post-norm and as a pre-norm block, and load the weights of
#   `nn.TransformerEncoderLayer` into yours.
# - Say what depth, learning rate, warm-up and the first weights have to do with whether a stack trains.
# - Count the parameters and the multiply-adds of a block in your head.
#
# Axes: $b$ sequences, $n$ tokens, $d$ features. Sizes: $d_\text{model}$, and $d_\text{ff}$ for the hidden
# features of the feed-forward layer.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("07")

# %% hide="input"
recall("07")

# %%
import torch
from torch import nn

from attn_course import drawings
from attn_course.blocks import EncoderBlock, FeedForward, PreNormBlock
from attn_course.experiments.ch07 import (
    StackSettings, alike_after, at_the_start, block_multiply_adds, linear_sizes, stack_runs, task_of,
    train_stack,
)
from attn_course.experiments.ch07_views import norm_view, reach
from attn_course.explorers import TrainingView
from attn_course.models import count_parameters
from attn_course.multihead import MultiHeadAttention
from attn_course.norms import LayerNorm, layer_norm
from attn_course.plots import head_maps, line_plot

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## The residual stream
#
# **What would you lose if attention replaced a token?** The output of attention is a weighted mean of
# others. After it, nothing says what the token itself was, unless some head happens to look back at it.
# So the output is not put in the token's place. It is *added*:
#
# $$x \;\leftarrow\; x + \mathrm{sublayer}(x)$$
#
# On paper, with two features and two sublayers that write $(0.5, -1)$ and $(0, 3)$:
#
# | | $x$ |
# |---|---|
# | what comes in | $(1, 2)$ |
# | after the first | $(1.5, 1)$ |
# | after the second | $(1.5, 4) = (1, 2) + (0.5, -1) + (0, 3)$ |
#
# What comes out is what came in plus everything that was written on the way. That sum is called the
# **residual stream**. A sublayer with nothing to say writes zeros, and the token passes unchanged. Take
# six blocks whose norms stand beside the stream (we will come to where), collect what they write, and
# add it up:

# %%
torch.manual_seed(0)
blocks = [PreNormBlock(32, 4, 64) for _ in range(6)]
x = came_in = torch.randn(2, 8, 32)
written = []
for block in blocks:
    written.append(block(x) - x)
    x = x + written[-1]
print("in + all that was written = out:", torch.allclose(came_in + sum(written), x, atol=1e-5))
kept = torch.cosine_similarity(came_in, x, dim=-1).mean()
print(f"still in the stream: the mean cosine of in and out is {kept:.2f}")

# %% [markdown] prediction="alike-without-residual"
# Six blocks with fresh weights, eight different tokens. How alike are the tokens after the sixth block, if
# the residuals are taken out? As a number, the mean cosine between tokens: 0 is unrelated, 1 is the same.
#
# number: 0 … 1, within 0.1

# %%
post, pre = StackSettings(norm="post"), StackSettings(norm="pre")
bare = StackSettings(norm="pre", residual=False)
alike = {name: [at_the_start(settings, seed=seed).alike for seed in range(3)]
         for name, settings in (("with residual", pre), ("without", bare))}
reveal("alike-without-residual", sum(run[-1] for run in alike["without"]) / 3)

# %%
line_plot(
    range(7), alike, x_label="blocks passed", y_label="mean cosine between tokens", y_limits=(0, 1.05),
    title="Without residuals all tokens become one",
    alt="Both lines start near 0. Without residuals the similarity is near 1 after two or three blocks; "
    "with residuals it rises slowly and stays clearly below 1.",
)

# %% [markdown]
# **What was seen.** Without residuals the tokens are the same token after a few blocks. Attention with
# fresh weights is nearly a mean over all tokens (chapter 03), and a mean of means differs less and less
# from token to token. For stacks of attention alone this is proved (Dong et al. 2021); with a residual,
# what came in stays in the sum. How much that matters for training you will measure below.

# %% [markdown] question="residual-meaning"
# In the step x ← x + attention(x), attention writes zeros for some token. What is that token after the
# step?
#
# - [x] What it was before
#   x + 0. A sublayer that has nothing to say leaves the token alone.
# - [ ] Zero
#   That would be so if the output took the token's place. It is added.
# - [ ] The mean of the other tokens
#   That is what attention without a residual would make of it.
# - [ ] Half of what it was before
#   That would be the mean of x and 0. The residual is a sum.

# %% [markdown]
# ## Layer norm by hand
#
# **If every block adds, what keeps the numbers in range?** A norm. For one token, $x$ of shape $(d,)$:
#
# $$\mu = \frac1d \sum_k x_k \qquad \sigma^2 = \frac1d \sum_k (x_k - \mu)^2 \qquad
# \mathrm{LN}(x) = \gamma \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$
#
# The gain $\gamma$ and the bias $\beta$, both $(d,)$, are learned. They start at 1 and 0. On paper, for
# $x = (1, 3, 3, 9)$:
#
# | step | |
# |---|---|
# | mean | $\mu = 16 / 4 = 4$ |
# | centred | $(-3, -1, -1, 5)$ |
# | variance | $(9 + 1 + 1 + 25) / 4 = 9$, so $\sigma = 3$ |
# | divided | $(-1, -\tfrac13, -\tfrac13, \tfrac53)$ |
#
# Note what the variance is divided by: $d$, here 4. The *sample* variance would divide by 3 and give 12.

# %%
x = torch.tensor([1.0, 3.0, 3.0, 9.0])
ones, zeros = torch.ones(4), torch.zeros(4)
print("by the function:", [round(feature, 3) for feature in layer_norm(x, ones, zeros).tolist()])
print("torch.std says", round(x.std().item(), 2), "and with correction=0", x.std(correction=0).item())

# %% [markdown] prediction="norm-of-ten-x"
# What is the layer norm of 10 · x + 100, compared with that of x?
#
# - Ten times as large, and shifted
# - Ten times as large, not shifted
# - The same

# %%
moved, before = layer_norm(10 * x + 100, ones, zeros), layer_norm(x, ones, zeros)
print("of x:           ", [round(feature, 3) for feature in before.tolist()])
print("of 10 · x + 100:", [round(feature, 3) for feature in moved.tolist()])
reveal("norm-of-ten-x", 2 if torch.allclose(moved, before, atol=1e-4) else 0)

# %% [markdown]
# The norm throws two of the token's $d$ numbers away, its mean and its size. Move them with the
# sliders. Then make the scale small, and watch epsilon take over: a token with less variance than
# epsilon is no longer brought to size 1. Where epsilon stands, under the root, matters only there.

# %%
norm_view()

# %% [markdown]
# **Whose mean?** There are $b \cdot n \cdot d$ numbers, and several axes that a mean could go along. Take
# six tokens, and a table of 6 by 6 cells: a row for each output token, a column for each input token. How
# many cells are reached, in the sense that the output moves with that input?

# %%
tokens = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(1))
per_token = reach(lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True), tokens)
per_sentence = reach(lambda x: (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True), tokens)
print("cells reached, of 36, with a mean for each token:  ", int((per_token > 1e-6).sum()))
print("cells reached, of 36, with one for the sentence:   ", int((per_sentence > 1e-6).sum()))

# %% [markdown]
# With one mean for the sentence, each token depends on all, the later ones too. In a model that
# predicts the next token, that is a leak, past every mask. Layer norm takes the statistics of each token
# alone. (**Batch norm** goes along the batch: then what a sentence means depends on who else is in the
# batch.)
#
# **What today's models use.** Many leave the mean where it is and only divide by the size. That is
# **RMSNorm** (Zhang and Sennrich 2019), one sum less and no bias:
#
# $$\mathrm{RMSNorm}(x) = \gamma \cdot \frac{x}{\sqrt{\frac1d \sum_k x_k^2 + \epsilon}}$$
#
# On paper: $(1, 3, 3, 9)$ has the mean square $(1 + 9 + 9 + 81) / 4 = 25$, so it becomes
# $(0.2, 0.6, 0.6, 1.8)$. Llama uses it; you find it in `attn_course.norms`.

# %% [markdown] question="norm-axis"
# x is (b, n, d_model) = (32, 100, 512). How many means does layer norm compute?
#
# - [ ] 512
#   One for each feature, over batch and tokens: that is batch norm.
# - [ ] 32
#   One for each sequence: then every token would depend on the later ones.
# - [x] 3 200
#   One for each token, over its 512 features.
# - [ ] 1
#   A single one would tie all sequences of the batch together.

# %% [markdown]
# {{exercise: layer_norm}}

# %% [markdown]
# ## The feed-forward layer
#
# **Attention only mixes what is there. Who works on it?** The second sublayer, a network of two layers:
#
# $$\mathrm{FFN}(x) = \max(0,\; x W_1 + b_1)\, W_2 + b_2$$
#
# with $W_1$ of shape $(d_\text{model}, d_\text{ff})$, $W_2$ back, and $d_\text{ff}$ usually
# $4\, d_\text{model}$. A row of $x$ is a token, as everywhere.

# %% [markdown] prediction="who-sees-whom"
# Six tokens. In how many of the 36 cells (output token, input token) does the feed-forward layer let an
# input reach an output?
#
# number: 0 … 36, within 0.5

# %%
torch.manual_seed(0)
attention, network, norm = MultiHeadAttention(8, 2), FeedForward(8, 32), LayerNorm(8)
maps = torch.stack([
    reach(lambda x: attention(x, x, x)[0], tokens), reach(network, tokens), reach(norm, tokens),
])
print("cells reached by attention, feed-forward, norm:", (maps > 1e-6).sum(dim=(1, 2)).tolist())
reveal("who-sees-whom", int((maps[1] > 1e-6).sum()))

# %%
head_maps(
    maps / maps.amax(dim=(1, 2), keepdim=True), titles=["attention", "feed-forward", "norm"],
    row_axis="output token", column_axis="input token", value="share of the largest",
    alt="Three maps of 6 by 6. In the first, attention, all cells are filled. In the second, "
    "feed-forward, and the third, norm, only the diagonal is.",
)

# %% [markdown]
# **What was seen.** Only attention moves anything between tokens. Feed-forward and norm work on the
# diagonal: one and the same network is applied to each token alone, “per token”. So all that is *done*
# with what attention brought is done here, and it is the part with most of the parameters, as you will
# count.
#
# The $\max$ is not decoration. Leave it out, and $W_1$ and $W_2$ are one matrix, as two projections in a
# row always are (chapter 05):

# %%
W_1, W_2 = network.W_1.weight.T, network.W_2.weight.T
x = torch.randn(5, 8)
print("without max, one matrix does it:", torch.allclose(x @ W_1 @ W_2, x @ (W_1 @ W_2), atol=1e-5))
with_max = torch.relu(x @ W_1) @ W_2
print("with max, twice the input gives twice the output:",
      torch.allclose(torch.relu(2 * x @ W_1) @ W_2, 2 * with_max, atol=1e-4))
print("with max, minus the input gives minus the output:",
      torch.allclose(torch.relu(-x @ W_1) @ W_2, -with_max, atol=1e-4))

# %% [markdown]
# (Twice the input *does* give twice the output, as long as the biases are zero. A common test for
# linearity, and not enough.)
#
# **Why four times as wide?** The paper of 2017 gives no reason, but it varies the width at
# $d_\text{model} = 512$ (its table 3): $d_\text{ff} =$ 1024, 2048 and 4096 give 25.4, 25.8 and 26.2 BLEU,
# with 53, 65 and 90 million parameters. Wider is better and costs more; nothing singles out four. At an
# equal number of parameters the loss hardly depends on the ratio over a wide range (Kaplan et al. 2020,
# figure 5). Four is a habit inside that range.
#
# **Other functions than max.** $\max(0, z)$ is **ReLU**. **GELU** is smooth, $z \cdot \Phi(z)$, where
# $\Phi$ is the normal distribution function (BERT, GPT-2). **SwiGLU** multiplies two projections
# (Shazeer 2020; Llama):
#
# $$\mathrm{FFN}(x) = \big(\mathrm{SiLU}(x W_\text{gate}) \odot x W_1\big)\, W_2, \qquad
# \mathrm{SiLU}(z) = z / (1 + e^{-z})$$
#
# It has three matrices instead of two, so models that use it take two thirds of the width,
# $\tfrac83 d_\text{model}$, and have as many parameters as before.
#
# {{exercise: FeedForward}}

# %% [markdown]
# ## Dropout, in three places
#
# Many models drop numbers while they train, in three places: attention weights, hidden features of the
# feed-forward, and what each sublayer returns, before it is added. (The paper of 2017 names the last of
# these, and the sum of embeddings and positions.) This is **dropout**. Each number becomes zero with
# probability $p$, and those that stay are multiplied by $1 / (1 - p)$, so that the mean stays the same.
# In evaluation nothing is dropped.

# %%
torch.manual_seed(0)
drop = nn.Dropout(0.25)  # p is the share that is dropped
ones = torch.ones(100_000)
gone, kept = drop(ones).unique().tolist()
print(f"values in training:    {gone:.0f} and {kept:.3f}; 1 / 0.75 is {1 / 0.75:.3f}")
print(f"mean in training:      {drop(ones).mean():.2f}")
print("in evaluation:        ", drop.eval()(ones).unique().tolist())
print(f"F.dropout still drops: {(nn.functional.dropout(ones, 0.25) == 0).float().mean():.2f} of all")

# %% [markdown]
# Two things go wrong with it. Somebody forgets `model.eval()`, and the same sentence gets another answer
# each time. Or somebody calls `F.dropout(x, p)`, which does not know about `eval()` and drops always. All
# models of this chapter have $p = 0$: they are small and see each sequence about once.
#
# ## Where the norm stands
#
# **Norm and sum: which comes first?** The paper of 2017 normalises the sum (**post-norm**). Most models
# since 2019 normalise what goes into the sublayer (**pre-norm**):
#
# $$\text{post:}\quad x \leftarrow \mathrm{LN}(x + \mathrm{sublayer}(x)) \qquad\qquad
# \text{pre:}\quad x \leftarrow x + \mathrm{sublayer}(\mathrm{LN}(x))$$
#
# A block has two such steps, self-attention and feed-forward, each with a norm of its own. Silence all
# sublayers, so that they write zeros, and see what is left of each kind.

# %% [markdown] prediction="silenced-blocks"
# All sublayers write zeros. Which block then gives back exactly what it was given?
#
# - Both
# - Only the pre-norm block
# - Only the post-norm block
# - Neither

# %%
def silenced(block):
    """The block, with sublayers that write zeros."""
    for name, weight in block.named_parameters():
        if "W_o" in name or "W_2" in name:
            nn.init.zeros_(weight)
    return block


x = torch.randn(1, 4, 16)
untouched = {kind.__name__: torch.equal(silenced(kind(16, 2, 32))(x), x)
             for kind in (EncoderBlock, PreNormBlock)}
print(untouched)
reveal("silenced-blocks", {(True, True): 0, (False, True): 1, (True, False): 2}.get(
    tuple(untouched.values()), 3))

# %% [markdown]
# In pre-norm nothing stands in the stream. From the input to the output of a hundred blocks there is a
# way on which nothing is done but adding, and the gradient goes back along it. Its price: the sum grows
# from block to block, and the model needs one more norm at its end. In post-norm every block ends with a
# norm, so what comes out is always of size 1, and everything that passes, passes all norms.
#
# This is the whole block, from bottom to top. The thick line is the stream:

# %% hide="input"
drawings.block()

# %% [markdown]
# And so the package writes it, but for its cache: a residual step, and a `forward` that takes two of them.
#
# ```python
# class Residual(nn.Module):
#     def forward(self, x, sublayer):  # x: (b, n, d_model)
#         if self.order == "pre":
#             return x + self.dropout(sublayer(self.norm(x)))
#         return self.norm(x + self.dropout(sublayer(x)))
#
# class EncoderBlock(nn.Module):
#     def forward(self, x, mask=None):  # x: (b, n, d_model), in and out
#         x = self.around_self(x, lambda y: self.self_attention(y, y, y, mask)[0])
#         return self.around_feed_forward(x, self.feed_forward)
# ```
#
# In the exercises you write both orders out without the helper.
#
# PyTorch's block is the same thing. With its weights, ours must agree:

# %%
theirs = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
ours = EncoderBlock.from_torch(theirs)
mask = torch.ones(4, 4).tril().bool()
print("the same output:", torch.allclose(ours(x, mask), theirs(x, src_mask=~mask), atol=1e-5))
print("names there:", ", ".join(name for name, _ in theirs.named_children()))

# %% [markdown] question="pre-norm-residual"
# A pre-norm block is written as `x = norm(x); x = x + attention(x, x, x)[0]`. What is wrong?
#
# - [ ] Nothing: that is the formula, in two lines
#   In the formula the sum starts from x as it came in. Here x has been overwritten by then.
# - [ ] The keys and values should not be normalised
#   They should: all three come from the same normalised x.
# - [ ] The norm should come after the sum, not before it
#   That would be post-norm, which is another block and not a mistake.
# - [x] The residual starts from the normalised x
#   So the norm stands in the stream. Silence the attention, and the block returns norm(x) instead of x.

# %% [markdown]
# {{exercise: EncoderBlock}}
#
# {{exercise: PreNormBlock}}

# %% [markdown]
# ## Deep stacks at their start
#
# **Which of the two gets into trouble with depth, and what kind?** You will read that in deep
# post-norm stacks “the gradient vanishes”. Look at both, before the first step of training: the gradient
# of each block's weights, and how alike the tokens have become by the end. The stacks have 2, 6, 12 and
# 24 blocks, $d_\text{model} = 32$, and random weights of variance $2 / (d_\text{in} + d_\text{out})$
# (Xavier's rule, which the section on the first weights explains).

# %% [markdown] prediction="alike-post-norm"
# 24 post-norm blocks, fresh. How alike are the tokens at the end? (Mean cosine; with pre-norm it is
# measured after the norm at the end.)
#
# - Hardly: below 0.5
# - Clearly, but they can be told apart: 0.5 to 0.95
# - Practically the same token: above 0.95

# %% tags=["nbval-ignore-output"]
depths = [2, 6, 12, 24]
starts = {norm: {depth: [at_the_start(StackSettings(num_layers=depth, norm=norm), seed=seed)
                         for seed in range(3)] for depth in depths} for norm in ("post", "pre")}
alike = {norm: [[starts[norm][depth][seed].alike[-1] for depth in depths] for seed in range(3)]
         for norm in starts}
for norm, of in alike.items():
    print(f"{norm:4} mean cosine, three runs, depth 2 | 6 | 12 | 24: ",
          " | ".join("  ".join(f"{run[k]:.3f}" for run in of) for k in range(len(depths))))
lowest = min(run[-1] for run in alike["post"])
reveal("alike-post-norm", 2 if lowest > 0.95 else 1 if lowest > 0.5 else 0)

# %%
line_plot(
    depths, alike, log_x=True, x_label="blocks", y_label="mean cosine between tokens", y_limits=(0, 1.05),
    title="How alike the tokens are at the end",
    alt="Both lines rise with depth. Post-norm is above 0.9 at 6 blocks and practically 1 from 12 on; "
    "pre-norm stays below.",
)

# %% tags=["nbval-ignore-output"]
for norm in starts:
    of = starts[norm][24]
    ratios = "  ".join(f"{s.gradients[0] / s.gradients[-1]:.2f}" for s in of)
    sizes = "  ".join(f"{s.size[0]:.1f} → {s.size[-1]:.1f}" for s in of)
    print(f"{norm:4} 24 blocks, three runs. Gradient of the first block / of the last: {ratios}")
    print(f"     root mean square of the features, before the first block → after the last: {sizes}")

# %%
line_plot(
    range(24), {norm: [s.gradients for s in starts[norm][24]] for norm in starts}, log_y=True,
    x_label="block", y_label="gradient norm of its weights",
    title="Gradients before the first step, 24 blocks, three runs",
    alt="Both lines stay within a factor of about ten of each other. Post-norm has a wide band in the first "
    "blocks, from a tenth of the last block's gradient to as much; pre-norm falls slightly.",
)

# %% tags=["nbval-ignore-output"]
for norm in starts:
    firsts = ["  ".join(f"{s.gradients[0]:.2f}" for s in starts[norm][depth]) for depth in depths]
    print(f"{norm:4} gradient of the first block, depth 2 | 6 | 12 | 24: ", " | ".join(firsts))

# %% [markdown]
# **What was seen.** In post-norm the gradient of the first block may be less than a tenth of the last
# one's, and in another run as large. That is uneven, and depends on the draw, but it has not vanished, and
# Adam divides by the size of the gradient anyway. The other picture is the same in every run: from 12
# blocks on, the cosine between the tokens is above 0.99. In pre-norm the tokens grow alike too, more
# slowly, and the sum grows in size. (In post-norm the size falls: what comes in is a sum of two
# embeddings, of size about 1.4, and each norm brings it to 1.)
#
# So far this is the start. Does any of it decide whether a stack *trains*? That has to be tried.
#
# ## Who trains?
#
# The task: write eight symbols down in reverse. Take six blocks, 300 steps of Adam, three seeds each.
# “Cold” starts at the full rate at once; “warm” lets it rise over the first 100 steps, a **warm-up**.
# In both it falls to zero after that. Guessing gives one in eight, 12 or 13 %.

# %% [markdown] prediction="who-trains"
# Rate 0.008, six blocks. Which stacks reach 95 % in at least two of three runs?
#
# - Pre-norm cold and post-norm warm, not post-norm cold
# - All three: post-norm cold, post-norm warm, pre-norm cold
# - Pre-norm cold alone, not post-norm, even if warm
# - Post-norm warm alone, neither of the cold ones

# %%
ways = {
    "post, cold": StackSettings(norm="post"),
    "post, warm": StackSettings(norm="post", warmup=100),
    "pre, cold": StackSettings(norm="pre"),
    "post, cold, a quarter of the rate": StackSettings(norm="post", lr=2e-3, steps=400),
    "post, cold, two blocks": StackSettings(norm="post", num_layers=2),
}
runs = stack_runs(ways)

# %% tags=["nbval-ignore-output"]
trains = {name: sum(run.accuracy > 0.95 for run in of) for name, of in runs.items()}
for name, of in runs.items():
    print(f"{name:34}", "  ".join(f"{run.accuracy:.0%}" for run in of))
cold, warm, pre_cold = (trains[name] >= 2 for name in ("post, cold", "post, warm", "pre, cold"))
reveal("who-trains", {(False, True, True): 0, (True, True, True): 1, (False, False, True): 2}.get(
    (cold, warm, pre_cold), 3))
# %%
line_plot(
    range(15, 301, 15),
    {name: [torch.tensor(run.history.loss).view(-1, 15).mean(dim=1).tolist() for run in runs[name]]
     for name in ("post, cold", "post, warm", "pre, cold")},
    x_label="step", y_label="loss", title="Six blocks at a rate of 0.008",
    alt="Pre-norm falls to nearly zero first, post-norm with warm-up follows; post-norm without it "
    "stays high.",
)

# %% [markdown]
# **What was seen.** It is not depth alone, and not post-norm alone. Post-norm with six blocks trains with
# a warm-up, and with a smaller rate without one (given a third more steps); with two blocks it needs
# neither. Pre-norm takes the full rate at once. “Post-norm needs warm-up” is a sentence about a depth *and* a rate.
#
# Was it the likeness of the tokens? Look at them after the last block, before training and after it:

# %% tags=["nbval-ignore-output"]
for name in ("post, cold", "post, warm", "pre, cold"):
    before = [at_the_start(ways[name], seed=seed).alike[-1] for seed in range(3)]
    after = [alike_after(run, ways[name], seed=seed) for seed, run in enumerate(runs[name])]
    print(f"{name:10}: mean cosine between tokens, three runs: before",
          "  ".join(f"{cosine:.2f}" for cosine in before), "  after",
          "  ".join(f"{cosine:.2f}" for cosine in after))

# %% [markdown]
# The stack that does not train ends with all tokens alike, and the others have pulled them apart. But
# compare the first two rows: the cold and the warm post-norm stack start from the *same* weights, equally
# alike, and one trains. So the likeness at the start does not decide. At the end it is a mark of failure,
# and these figures do not say whether it is also its cause. Nor do the gradients at the start decide
# alone: they, too, are the same for both.
#
# **Why does a warm-up help?** That is not settled. Two things are known. Adam's first step moves every
# weight by the full rate, however small its gradient: it divides the gradient by its own size. In the
# first steps that size is estimated from a few batches, so the steps are noisy (Liu et al. 2020). And in
# post-norm the gradients of the last blocks are large at the start, which makes a large rate risky there,
# where pre-norm's shrink with depth (Xiong et al. 2020). Perhaps one of these is at work here; this
# chapter does not test it.
#
# Watch one that trains. Two blocks learn to reverse: in the map, query $i$ has to find key $7 - i$. The
# view keeps the maps at moments of the run. Go back through them, and compare with the loss.

# %% tags=["nbval-ignore-output"]
watched = StackSettings(norm="pre", num_layers=2)
symbols = task_of(watched, seed=0).test_set(1).inputs
view = TrainingView(symbols, [str(symbol) for symbol in symbols[0].tolist()])
view

# %% tags=["nbval-ignore-output"]
_ = train_stack(watched, seed=0, on_step=view)

# %% [markdown] prediction="without-residual-trains"
# Back to residuals. Pre-norm blocks *without* them, at half the rate: two blocks, and six. Which train?
#
# - Both
# - Two blocks do, six do not
# - Neither

# %% tags=["nbval-ignore-output"]
bare = {depth: StackSettings(norm="pre", residual=False, num_layers=depth, lr=4e-3) for depth in (2, 6)}
without = stack_runs({f"{depth} blocks without residuals": one for depth, one in bare.items()})
for name, of in without.items():
    print(f"{name}:", "  ".join(f"{run.accuracy:.0%}" for run in of))
two, six = (sum(run.accuracy > 0.95 for run in of) >= 2 for of in without.values())
reveal("without-residual-trains", 0 if two and six else 1 if two else 2)

# %% [markdown]
# *One cell away:* twelve post-norm blocks at 0.002 over 800 steps, with a warm-up of 300 and without: two
# to three minutes for the two on a slow CPU. An interrupted run goes on from its checkpoint. Remove the `#` to run it.

# %%
# for warmup in (0, 300):
#     deep = StackSettings(norm="post", num_layers=12, lr=2e-3, warmup=warmup, steps=800)
#     run = train_stack(deep, seed=0, checkpoint=f"twelve_blocks_{warmup}.pt")
#     print(f"warm-up {warmup}: {run.accuracy:.0%}")

# %% [markdown] question="warm-up-claim"
# Somebody writes: “Post-norm Transformers cannot be trained without warm-up.” What do your runs say?
#
# - [ ] They confirm it: without warm-up no post-norm stack trained
#   Post-norm with two blocks, and with six at a smaller rate, trained cold.
# - [ ] Warm-up makes no difference: the rate alone decides
#   At the larger rate it made the difference between training and not.
# - [x] It depends: six blocks at the larger rate needed it
#   Two blocks did not, nor six at a quarter of the rate. And pre-norm needed none at the larger one.
# - [ ] Post-norm cannot be trained, with it or without
#   It can: the model of 2017 was one.

# %% [markdown]
# ## The first weights
#
# **How large should the first weights be?** A feature after a matrix is a sum of $d$ products. If the
# entries have variance $v$, the features' variance is multiplied by $d \cdot v$ at each matrix. To leave
# it alone, $v = 1/d$. Xavier's rule, $v = 2 / (d_\text{in} + d_\text{out})$, is the middle way between that
# condition forwards and the same one backwards. Twelve matrices in a row, no norms:

# %%
sizes = {f"{factor} × Xavier": linear_sizes(factor, 12) for factor in (0.3, 1, 3)}
print("size after twelve matrices:", {name: f"{run[-1]:.0e}" for name, run in sizes.items()})
line_plot(
    range(13), sizes, log_y=True, x_label="matrices passed", y_label="size of the features",
    title="Twelve matrices in a row",
    alt="On a logarithmic scale three straight lines: with 3 times Xavier rising to half a million, "
    "with Xavier level, with 0.3 times falling to half a millionth.",
)

# %% [markdown]
# The factor is taken to the power of the depth: $3^{12}$ is 531 441. Now six real blocks, with their
# residuals and norms, and matrices that start too small or too large, three runs each.

# %% [markdown] prediction="first-weights"
# Weights ten times too small (0.1 × Xavier), six post-norm blocks, the full rate, no warm-up. With Xavier's
# weights this stack did not train. And now?
#
# - It does not train either: the signal dies
# - It trains

# %% tags=["nbval-ignore-output"]
factors = {
    "post, cold, 0.1 × Xavier": StackSettings(norm="post", start=0.1),
    "post, warm, 3 × Xavier": StackSettings(norm="post", start=3.0, warmup=100),
    "pre, cold, 3 × Xavier": StackSettings(norm="pre", start=3.0),
}
by_start = stack_runs(factors)
for name, of in by_start.items():
    print(f"{name:26}", "  ".join(f"{run.accuracy:.0%}" for run in of))
small = sum(run.accuracy > 0.95 for run in by_start["post, cold, 0.1 × Xavier"])
reveal("first-weights", 1 if small >= 2 else 0)

# %% [markdown]
# **What was seen.** The textbook picture, a signal that dies or explodes with depth, is that of the
# matrices without norms. With residual and norm, *too small* does no harm here: the sublayers write
# little at first, x passes them by, and the stack trains cold, where with Xavier's weights it needed a
# warm-up. *Too large* is what hurts: the warm-up did not save the post-norm stacks, and the pre-norm ones
# learned a part of the task only.
#
# So Xavier's rule is not sacred in a network with norms. GPT-2 starts with a standard deviation of 0.02,
# where the rule gives 0.036 for its 768 features, and divides the matrices that write into the stream by
# the root of the number of its residual steps (Radford et al. 2019).

# %% [markdown] question="start-too-small"
# Why does a stack with residuals not mind weights that are ten times too small?
#
# - [ ] The norm scales the weights up until they are as large as they should be
#   It scales features. The weights stay what they are until they are trained.
# - [ ] Adam ignores the size of the weights, so it makes no difference
#   True for its steps, but before the first step the signal has to come through, and it does.
# - [ ] Six blocks are too few for a factor of ten to matter
#   Without norm and residual, the factor of ten would already be a factor of a million.
# - [x] Little is written, and the stream carries x past it
#   Without residuals the small output would be all there is.

# %% [markdown]
# ## What a block costs
#
# **Where are the parameters?** With $d_\text{ff} = 4\,d$, writing $d$ for $d_\text{model}$:
#
# | part | parameters |
# |---|---|
# | attention: four matrices $d \times d$, four biases | $4 d^2 + 4 d$ |
# | feed-forward: $d \times 4d$ and back, two biases | $8 d^2 + 5 d$ |
# | two norms, gain and bias | $4 d$ |
# | together | $12 d^2 + 13 d$ |
#
# Each weight of a matrix is used once for each token: $12 d^2$ multiply-adds a token. Attention adds the
# scores and the weighted sums, $2 n d$ a token for $n$ tokens. (One multiply-add is two “FLOPs”.)

# %% [markdown] prediction="feed-forward-share"
# What share of the parameters of a block is in its feed-forward layer, for d_model = 512?
#
# number: 0 … 1, within 0.05

# %%
block = EncoderBlock(512, 8, 2048)
print("by the formula:", 12 * 512**2 + 13 * 512, "  counted:", count_parameters(block))
share = count_parameters(block.feed_forward) / count_parameters(block)
print(f"in the feed-forward layer: {share:.0%}")
reveal("feed-forward-share", share)

# %%
widths, lengths = [64, 128, 256, 512], (128, 1024)
counted = {f"n = {n}": [] for n in lengths}
agree = 0
for d in widths:
    for n in lengths:
        found = block_multiply_adds(d, n)
        counted[f"n = {n}"].append(found / n)
        agree += found == n * (12 * d * d + 2 * n * d)
print("PyTorch counts 12 d² + 2 n d multiply-adds a token in", agree, "of", len(widths) * len(lengths),
      "cases")

# %%
line_plot(
    widths, counted | {"12 d²": [12 * d * d for d in widths]}, log_x=True, log_y=True, x_label="d_model",
    y_label="multiply-adds a token", title="What a block computes",
    alt="Three lines rising with d_model. The line for n = 128 lies just above 12 d²; that for n = 1024 "
    "lies well above at small d_model and comes closer as d_model grows.",
)

# %% [markdown]
# **What was seen.** Width counts squared: twice $d_\text{model}$ is four times the block. The length
# enters by $2 n d$ alone, and reaches the size of the rest when $n = 6 d$. For $d_\text{model} = 512$ that is
# about 3 000 tokens: below, most of a block's multiply-adds are in plain matrix products, and two thirds
# of those in the feed-forward layer. (Multiply-adds are not seconds: chapter 10 measures time.)

# %% [markdown] question="where-cost"
# d_model = 1 024, n = 512. Where is most of the computing?
#
# - [ ] In the scores and weighted sums: attention is quadratic
#   2 n d against 12 d² a token: here about one part in twelve.
# - [x] In the matrices of the feed-forward layer
#   8 of the 12 d², for every token.
# - [ ] In the norms
#   A few operations a feature. They cost memory traffic, not multiply-adds.
# - [ ] In W_q, W_k, W_v and W_o
#   4 of the 12 d². The feed-forward has twice as many.

# %% [markdown]
# {{exercise: count_parameters}}

# %% [markdown]
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | variance divided by $d - 1$ | 13 % at width 4, a thousandth at 512; loaded weights disagree slightly |
# | epsilon added to $\sigma$, outside the root | only on very small features |
# | statistics over the sentence or the batch | the future leaks past the mask; a sentence depends on its batch |
# | no function between $W_1$ and $W_2$ | trains, as one matrix would |
# | residual from the normalised $x$ | silent; with zeros written the block is not the identity |
# | $x$ overwritten, then added to itself | silent; what the token was is gone |
# | pre-norm, but only the queries normalised | silent; scaling $x$ by ten changes what is written |
# | no norm after the last pre-norm block | logits grow with depth |
# | one norm object in both places | half the gains; the count of parameters tells |
# | blocks in a Python list, or `[block] * 6` | parameters missing, or six times the same block; count them |
# | a layer made inside `forward` | random in each call, never trained |
# | `x += …` on what the caller gave | an error in training, or silent damage |
# | `F.dropout` without `training=` | evaluation is random |
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): sections 3.1 and 3.3.
# - Ba, Kiros and Hinton, “Layer Normalization”, 2016 (arXiv 1607.06450).
# - He et al., “Deep Residual Learning for Image Recognition”, 2015 (arXiv 1512.03385).
# - Xiong et al., “On Layer Normalization in the Transformer Architecture”, 2020 (arXiv 2002.04745): post
#   and pre, and warm-up.
# - Dong, Cordonnier and Loukas, “Attention is not all you need”, 2021 (arXiv 2103.03404): tokens that
#   become one without residuals.
# - Liu et al., “On the Variance of the Adaptive Learning Rate and Beyond”, 2020 (arXiv 1908.03265): Adam's
#   first steps.
# - Zhang and Sennrich, “Root Mean Square Layer Normalization”, 2019 (arXiv 1910.07467); Shazeer, “GLU
#   Variants Improve Transformer”, 2020 (arXiv 2002.05202); Kaplan et al., “Scaling Laws for Neural Language
#   Models”, 2020 (arXiv 2001.08361).
# - Glorot and Bengio, “Understanding the difficulty of training deep feedforward neural networks”, 2010:
#   Xavier's rule, named after the first author's first name.
# - Elhage et al., “A Mathematical Framework for Transformer Circuits”, 2021: the residual stream.

# %% [markdown] part="exercises"
# Five exercises. You write layer norm (7.1) and the feed-forward layer (7.2), put both around your
# attention as the block of 2017 (7.3) and as that of today (7.4), load PyTorch's weights into them, and
# count parameters (7.5).
#
# All inputs are batch first. Masks are boolean, **True means “may attend”**. Nothing is dropped. No answer
# may change its inputs.

# %% part="exercises"
import torch
from torch import nn

from attn_course.experiments.ch07_views import compared_with_torch
from attn_course.multihead import MultiHeadAttention
from attn_course.norms import LayerNorm

# %% [markdown] exercise="layer_norm"
# `layer_norm(x, gain, bias, eps=1e-5)` normalises each token over its features:
#
# $$\gamma \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$
#
# - `x`: float tensor (…, d), with any number of axes before the last. `gain` and `bias`: (d,).
# - Mean and variance are those of one token, over the last axis. The variance is the biased one, divided
#   by $d$. Epsilon stands under the root.
# - Returns a tensor of the shape and dtype of `x`.
#
# ```python
# x = torch.tensor([[1., 3., 3., 9.]])
# layer_norm(x, torch.ones(4), torch.zeros(4))  # [[-1.0000, -0.3333, -0.3333, 1.6667]]
# ```

# %% exercise="layer_norm" source="attn_course.norms"

# %% [markdown] exercise="FeedForward"
# `FeedForward(d_model, d_ff)`, an `nn.Module`:
#
# $$\max(0,\; x W_1 + b_1)\, W_2 + b_2$$
#
# - It has two parts, `self.W_1 = nn.Linear(d_model, d_ff)` and `self.W_2 = nn.Linear(d_ff, d_model)`, with
#   their biases, and nothing else that is learnt. The check copies its own weights in by these names.
# - `forward(x)`: float tensor (…, d_model); returns the same shape. No residual, no norm, no dropout in
#   it: those belong to the block.
#
# ```python
# FeedForward(8, 32)(torch.randn(2, 5, 8)).shape  # (2, 5, 8)
# ```

# %% exercise="FeedForward"
class FeedForward(nn.Module):
    """Two projections with a ReLU between, for each token alone."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        ### BEGIN SOLUTION
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        ### END SOLUTION

    def forward(self, x):
        """Return each token of x (..., d_model), transformed."""
        ### BEGIN SOLUTION
        return self.W_2(torch.relu(self.W_1(x)))
        ### END SOLUTION


# %% [markdown] exercise="EncoderBlock"
# `EncoderBlock(d_model, num_heads, d_ff)`, an `nn.Module`: the post-norm block of 2017.
#
# $$x \leftarrow \mathrm{LN}_1(x + \mathrm{attention}(x, x, x)) \qquad
# x \leftarrow \mathrm{LN}_2(x + \mathrm{FFN}(x))$$
#
# - It has four parts: `self.self_attention`, a `MultiHeadAttention(d_model, num_heads)`;
#   `self.feed_forward`, a `FeedForward(d_model, d_ff)`; `self.norm_1` and `self.norm_2`, each an
#   `nn.LayerNorm(d_model)` or the course's `LayerNorm(d_model)`. Nothing else is learnt, nothing is shared,
#   nothing is dropped. The check puts its own parts in by these names.
# - `forward(x, mask=None)`: `x` (b, n, d_model), `mask` None or boolean as in exercise 5.3; hand it on to
#   the attention. The attention is called as `attention(query, key, value, mask)` and returns a pair
#   `(output, weights)`.
# - Returns one tensor (b, n, d_model).
#
# ```python
# EncoderBlock(8, 2, 32)(torch.randn(2, 5, 8)).shape  # (2, 5, 8)
# ```

# %% exercise="EncoderBlock"
class EncoderBlock(nn.Module):
    """Self-attention and feed-forward, each followed by norm(x + …)."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        ### END SOLUTION

    def forward(self, x, mask=None):
        """Return x (b, n, d_model) after both steps."""
        ### BEGIN SOLUTION
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm_1(x + attended)
        return self.norm_2(x + self.feed_forward(x))
        ### END SOLUTION


# %% [markdown] part="exercises"
# **With PyTorch's weights.** `nn.TransformerEncoderLayer` is the same block. Its weights are copied into
# yours, part by part, and both get the same input and the same causal mask.

# %% part="exercises"
compared_with_torch(lambda *sizes: EncoderBlock(*sizes), norm="post")

# %% [markdown] exercise="PreNormBlock"
# `PreNormBlock(d_model, num_heads, d_ff)`: the same four parts under the same names, the same `forward`, the
# other order.
#
# $$x \leftarrow x + \mathrm{attention}(y, y, y),\; y = \mathrm{LN}_1(x) \qquad
# x \leftarrow x + \mathrm{FFN}(\mathrm{LN}_2(x))$$
#
# - There is no norm at the end of the block: the model puts one after its last block.
#
# ```python
# block = PreNormBlock(8, 2, 32)
# # with sublayers that write zeros, block(x) is x
# ```

# %% exercise="PreNormBlock"
class PreNormBlock(nn.Module):
    """Self-attention and feed-forward, each as x + sublayer(norm(x))."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        ### END SOLUTION

    def forward(self, x, mask=None):
        """Return x (b, n, d_model) after both steps."""
        ### BEGIN SOLUTION
        y = self.norm_1(x)
        attended, _ = self.self_attention(y, y, y, mask)
        x = x + attended
        return x + self.feed_forward(self.norm_2(x))
        ### END SOLUTION


# %% part="exercises"
compared_with_torch(lambda *sizes: PreNormBlock(*sizes), norm="pre")

# %% [markdown] exercise="count_parameters"
# `count_parameters(model)` says how many numbers of a model are trained.
#
# - `model`: any `nn.Module`, with parts in parts.
# - Counts every number of every parameter, biases and gains included. What is not trained
#   (`requires_grad` is False) does not count, nor do buffers. A parameter that stands in several places
#   counts once.
# - Returns a whole number.
#
# ```python
# count_parameters(nn.Linear(3, 2))  # 8
# ```

# %% exercise="count_parameters" source="attn_course.models"
