# ---
# jupyter:
#   attn_course:
#     title: "The RNN bottleneck"
#     reading_minutes: 45
#     exercise_minutes: 45
# ---

# %% [markdown]
# Before attention, sequences were read by recurrent networks: one token after another, with a
# memory of fixed size. Texts on attention say three things against them. They forget what is far
# away. Everything has to fit through one state. And they cannot be computed in parallel.
#
# All three can be measured, and this chapter does it. One of them turns out to hold for another
# reason than the usual one.
#
# ## What you will be able to do
#
# - Take one step of a recurrent network by hand, and write it as code.
# - Measure how far back a gradient reaches, and say why it fades.
# - Tell apart two things that are often mixed up: reaching far back, and holding much at once.
# - Compare two models on equal budgets, and say what the comparison shows and what it does not.
# - Say which part of the work has to wait, on any machine.
#
# Attention appears here as a black box that looks back. Chapter 02 opens it.
#
# Here is where you stand. Then come three questions on the chapter before.

# %% hide="input"
course_map("01")

# %% hide="input"
recall("01")

# %%
from dataclasses import replace

import torch
from einops import rearrange

from attn_course import drawings
from attn_course.attention import lookup
from attn_course.experiments.ch01 import (
    forward_milliseconds, gradient_curves, longest_chain, memory_view, rival_layers, step_milliseconds,
)
from attn_course.experiments.ch01_copying import (
    CopySettings, accuracy_by_length, accuracy_by_position, alignment_of, alignment_view,
    compare_copiers, comparison_table, encoder_gradients, kept_share, train_copier,
)
from attn_course.explorers import TrainingView
from attn_course.plots import line_plot
from attn_course.recurrent import RNNCell, rnn_step, run_rnn

# %% [markdown]
# **The device.** What this chapter trains and times runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## One step, by hand
#
# **How can a network with a fixed number of weights read a sequence of any length?** It reads one
# input at a time and keeps a **state**, a vector that it updates at each step. The same weights
# serve at every step.

# %% hide="input"
drawings.recurrence()

# %% [markdown]
# The plainest such network is Elman's, from 1990:
#
# $$h' = \tanh(x W_x + h W_h + b)$$
#
# | symbol | shape | what it is |
# |---|---|---|
# | $x$ | (b, d_in) | the input of this step; b sequences side by side |
# | $h$, $h'$ | (b, d_h) | the state before the step, and after it |
# | $W_x$ | (d_in, d_h) | what the input does to the state |
# | $W_h$ | (d_h, d_h) | what the old state does to the new one |
# | $b$ | (d_h,) | the bias |
#
# Vectors are rows and weights are stored as (in, out). `nn.Linear` and `nn.RNN` store the same
# matrices transposed, (out, in). The tanh bends every sum into the range from −1 to 1, so the state
# cannot grow without bound, however long the sequence is.
#
# **On paper.** Two features in, two in the state:
#
# $$x = (1,\ 0) \qquad h = (0.5,\ -0.5) \qquad b = (0.1,\ 0)$$
#
# $$W_x = \begin{pmatrix} 0.5 & -0.3 \\ 0.1 & 0.8 \end{pmatrix} \qquad
# W_h = \begin{pmatrix} 0.6 & 0.2 \\ -0.4 & 0.3 \end{pmatrix}$$
#
# Work out the first number of the new state: the first column of $W_x$, the first column of
# $W_h$, the first number of $b$. A few values of tanh: tanh 0.9 ≈ 0.72, tanh 1.0 ≈ 0.76,
# tanh 1.1 ≈ 0.80, tanh 1.2 ≈ 0.83.

# %% [markdown] prediction="first-number-of-the-state"
# What is the first number of the new state?
#
# number: -1 … 1, within 0.02

# %%
x, h, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, -0.5]]), torch.tensor([0.1, 0.0])
W_x, W_h = torch.tensor([[0.5, -0.3], [0.1, 0.8]]), torch.tensor([[0.6, 0.2], [-0.4, 0.3]])
new = rnn_step(x, h, W_x, W_h, b)
for name, part in {"x W_x": x @ W_x, "h W_h": h @ W_h, "new state": new}.items():
    print(f"{name:9}", [round(number, 2) for number in part[0].tolist()])
reveal("first-number-of-the-state", round(new[0, 0].item(), 2))

# %% [markdown]
# **What was seen.** Input and old state each contribute two numbers. Both are added to the bias,
# and the tanh is taken once, of the whole sum.
#
# **Why it is one sum.** Put $x$ and $h$ side by side in one row and $W_x$ on top of $W_h$, and the
# step is an ordinary layer with a tanh: $\tanh([x, h]\, W + b)$. It is recurrent because part of
# its input is its own last output.
#
# {{exercise: rnn_step}}

# %% [markdown]
# ## Many steps: what is left of the first input
#
# **The state is all that the network carries along. What remains in it of an input from long ago?**
# Reading $n$ inputs means $n$ steps, each from the state that the one before has left:
#
# $$h_t = \tanh(x_t W_x + h_{t-1} W_h + b) \qquad t = 1, \dots, n$$
#
# Whatever $n$ is, the last state has $d_h$ numbers.

# %%
torch.manual_seed(0)
W_x, W_h, b = torch.randn(3, 5), torch.randn(5, 5) / 5, torch.zeros(5)
for n in (4, 40, 400):
    states = run_rnn(torch.randn(1, n, 3), torch.zeros(1, 5), W_x, W_h, b)
    print(f"n = {n:3}: states {tuple(states.shape)}, the last one {tuple(states[:, -1].shape)}")

# %% [markdown]
# Now a test of memory. Take two sequences that differ in their **first** input and are equal from
# the second on. Let the same fresh network, of 32 features, read both. If it remembers the first
# input, the two states stay apart.

# %% [markdown] prediction="apart-after-20-steps"
# How far apart are the two states 20 steps after the input that differed, as a share of the
# distance right after it? (For the seed in which the share is largest.)
#
# - less than a thousandth
# - between a thousandth and a tenth
# - between a tenth and the whole
# - they are further apart

# %%
def states_apart(seed, n=25):
    torch.manual_seed(seed)
    cell, first = RNNCell(8, 32), torch.randn(1, n, 8)
    second = first.clone()
    second[:, 0] = torch.randn(8)  # another first input; all others are equal
    return rearrange((cell.run(first) - cell.run(second)).norm(dim=-1), "1 n -> n").detach()

apart = torch.stack([states_apart(seed) for seed in range(3)])  # (seeds, n)

# %% tags=["nbval-ignore-output"]
left = apart[:, 20] / apart[:, 0]  # (seeds,)
print("share left after 20 steps:", [f"{share:.0e}" for share in left])
print("as a factor for each step:", [f"{share ** (1 / 20):.2f}" for share in left])

# %%
reveal("apart-after-20-steps", sum(left.max().item() >= bound for bound in (1e-3, 0.1, 1)))
line_plot(
    range(25), {"distance of the two states": apart}, log_y=True, y_label="distance",
    x_label="steps after the input that differed", title="What is left of one input",
    alt="On a logarithmic scale a falling straight line: each step leaves about the same share of "
    "the distance. A band shows three seeds.",
)

# %% [markdown]
# **What was seen.** A straight line on a logarithmic axis: every step leaves about the same share
# of the difference, 0.50 to 0.54. Twenty times over, that is a few millionths.
#
# **Why.** The difference of the states goes through $W_h$ at every step, and then through the tanh,
# whose slope is at most 1. PyTorch draws each of the $32 \cdot 32$ weights of $W_h$ between
# $-1/\sqrt{32}$ and $1/\sqrt{32}$, so their variance is $1/96$, and a random vector comes out
# $\sqrt{32/96} = 0.58$ times as long. The tanh takes the rest.
#
# Nobody decided what to forget. The first input is gone because it came first.
#
# {{exercise: run_rnn}}

# %% [markdown]
# ## How far back a gradient reaches
#
# **These were random weights. Can training not make the network remember?** Training follows
# gradients. To learn that the first input matters, the gradient has to travel from the last state
# back to it, step by step. Taking it back through all steps is called **backpropagation through
# time**.
#
# **On paper.** Let everything be one number: $W_x = 1$, $W_h = 0.6$, no bias, inputs (1, 0, 0),
# $h_0 = 0$. The derivative of a step with respect to its old state is $W_h\,(1 - h_t^2)$, because
# $\tanh' = 1 - \tanh^2$.
#
# | step | $h_t$ | $\partial h_t / \partial h_{t-1} = 0.6\,(1 - h_t^2)$ |
# |---|---|---|
# | 1 | tanh 1 = 0.762 | (not needed: $h_0$ is fixed) |
# | 2 | tanh 0.457 = 0.428 | 0.490 |
# | 3 | tanh 0.257 = 0.251 | 0.562 |
#
# The first input enters with $\partial h_1 / \partial x_1 = 1 - 0.762^2 = 0.420$. The chain rule
# multiplies along the way: $0.562 \cdot 0.490 \cdot 0.420 = 0.116$. Each further step would add a
# factor of at most 0.6. Autograd agrees. It prints the derivatives with respect to all three
# inputs, and the first number is yours:

# %%
inputs = torch.tensor([[[1.0], [0.0], [0.0]]], requires_grad=True)  # (b, n, d_in) = (1, 3, 1)
one = torch.ones(1, 1)
run_rnn(inputs, 0 * one, one, 0.6 * one, torch.zeros(1))[:, -1].sum().backward()
print([round(number, 3) for number in inputs.grad.flatten().tolist()])

# %% [markdown]
# With vectors the factors are matrices, but the product stays: the gradient at distance $k$
# contains $k$ factors $W_h^\top$, $k + 1$ slopes of tanh and one $W_x^\top$. `gradient_by_distance`
# measures its length. Entry $k$ belongs to the input $k$ positions before the last one, so entry 0
# is the last input.
#
# Three readers of width 32, all fresh from their initialization:
#
# - a **vanilla RNN**, the step above;
# - a **GRU**, or gated recurrent unit (Cho et al., 2014), explained below;
# - **attention**, the black box: the last position looks back at all inputs and takes a weighted
#   mean.
#
# The GRU mixes a proposal $n$ with the old state $h$, feature by feature:
#
# $$z = \sigma(x W_{xz} + h W_{hz} + b_z) \qquad r = \sigma(x W_{xr} + h W_{hr} + b_r)$$
#
# $$n = \tanh(x W_{xn} + b_n + r \odot (h W_{hn} + c_n)) \qquad h' = (1 - z) \odot n + z \odot h$$
#
# $\sigma(s) = 1 / (1 + e^{-s})$ lies between 0 and 1, and $\odot$ multiplies number by number; all
# symbols are rows of $d_h$ numbers. $z$ is the **update gate**: where it is 1, the old state is
# kept as it is, with a derivative of 1. $r$ is the **reset gate**: how much of the old state the
# proposal sees. The older **LSTM** (long short-term memory, 1997) has three gates and a second
# state.

# %% [markdown] prediction="gradient-at-distance-20"
# You have seen what the fresh vanilla RNN keeps of a difference over 20 steps. Now its rival. In
# the fresh *GRU*: by how many powers of ten is the gradient at distance 20 smaller than at distance
# 0? (3 means a thousandth.)
#
# number: 0 … 10, within 1, powers of ten

# %%
curves = gradient_curves(n=48, d=32, seeds=range(3))  # for each reader (seeds, n)
line_plot(
    range(48), curves, log_y=True, x_label="distance k", y_label="length of the gradient",
    title="Gradient of the last output, before training",
    alt="On a logarithmic scale the vanilla RNN and the GRU fall in straight lines over many powers "
    "of ten, the GRU less steeply. Attention is level from distance 1 on.",
)

# %%
powers = {name: (curve[:, 0] / curve[:, 20]).log10() for name, curve in curves.items()}
for name, of_seeds in powers.items():
    print(f"{name:12} smaller at distance 20 by powers of ten:", [f"{p:.1f}" for p in of_seeds])
reveal("gradient-at-distance-20", powers["GRU"].mean().item())

# %%
for name, curve in curves.items():
    lengths = [f"{curve[:, k].mean():.2g} at {k}" for k in (0, 1, 47)]
    print(f"{name:12} mean length at distance k:", ", ".join(lengths))

# %% [markdown]
# **What was seen.** Both recurrent networks fall exponentially, the GRU more slowly. As PyTorch
# starts it, its update gates stand near one half, so each step keeps about half of the old state.
# Attention is level: 47 positions back is as near as one position back. (Distance 0 is larger
# because the last input is also the one that asks.)
#
# Look at the lengths as well. At distance 0 attention has the *smallest* gradient of the three: it
# takes a mean, so each of the 48 inputs gets a small share. Looking back does not make gradients
# large. It makes them independent of the distance.
#
# **Why.** From the last output back to the first input, the recurrent network has as many factors
# as there are steps. The way through attention has one weight and one sum, whatever the distance.
#
# **When does it fade, when does it explode?** In the next view $W_h$ is a rotation times a
# **gain**. Without the tanh a step would change lengths by exactly that factor, and the dashed line
# is the gain to the power of the distance. Move the gain first, with inputs of size 0. Then give it
# inputs. Why does the measured line never rise above the dashed one?

# %%
memory_view()

# %% [markdown]
# With no input the state stays 0, tanh has slope 1 there, and the dashed line is met: a gain below
# 1 vanishes, above 1 explodes. Inputs push the states away from 0, where the slope $1 - h^2$ is
# smaller than 1. That can only make the gradient shorter. So a gain of 1 does not hold the balance,
# and a gain that holds it for one size of inputs loses it for another. Against explosion there is a
# plain remedy, **gradient clipping**: a gradient longer than some bound is shortened to that bound
# before the step.
#
# {{exercise: gradient_by_distance}}

# %% [markdown]
# ## One state for everything
#
# **What does it cost to pass a whole sequence through one state?** The task: read $N$ symbols out
# of eight, then write them down again. Two models try it. With a **fixed state** the decoder gets the
# encoder's last state:

# %% hide="input"
drawings.recurrent_copying(attention=False)

# %% [markdown]
# With **attention** it may, besides, look back at all $N$ states of the encoder, at every step anew:

# %% hide="input"
drawings.recurrent_copying(attention=True)

# %% [markdown]
# Encoder and decoder are GRUs. The decoder writes one symbol at a time and reads back the one
# before.
#
# **Equal budgets.** Without that a comparison says little. Both models get
#
# - the same batches in the same order, the same number of steps, the same optimizer;
# - the same learning rate: of three that were tried, the one that suits the *fixed state* best at
#   $N = 8$;
# - as many weights, within two in a hundred: the fixed state gets a wider GRU for those that
#   attention spends on looking;
# - three seeds each.
#
# CPU-seconds are not equal, since looking costs something. The table shows them.
#
# **Two measures**, both on sequences that training never draws, position by position:
#
# - **told**: the model predicts each symbol with the true symbols before it given. It is trained
#   like this, too, which is called **teacher forcing**. This asks whether the information is still
#   there.
# - **alone**: it reads back its own output. This is how it would be used. One wrong symbol becomes
#   an input of all that follow.

# %% [markdown] prediction="fixed-state-at-32"
# N = 32: which share of the symbols does the fixed state get right, told what came before?
# (Guessing gets 1 in 8.)
#
# number: 0 … 1, within 0.1

# %% [markdown]
# The next two cells train 18 models, in about a minute of CPU time. The first cell takes the shorter lengths:

# %%
LENGTHS = (8, 16, 32)
runs = compare_copiers(LENGTHS[:2], seeds=(0, 1, 2))

# %%
runs += compare_copiers(LENGTHS[2:], seeds=(0, 1, 2))

# %% tags=["nbval-ignore-output"]
print(comparison_table(runs))  # seconds and shares are means over the three seeds

# %% tags=["nbval-ignore-output"]
told = {
    name: accuracy_by_length(runs, attention=attention, told=True)  # (seeds, lengths)
    for name, attention in {"fixed state": False, "attention": True}.items()
}
for name, shares in told.items():
    for n, of_seeds in zip(LENGTHS, shares.T):
        print(f"{name:11} told, N = {n:2}, each seed:", [f"{share:.2f}" for share in of_seeds])
reveal("fixed-state-at-32", told["fixed state"][:, -1].mean().item())

# %%
line_plot(
    LENGTHS, told, log_x=True, y_limits=(0, 1.05), x_label="N, the number of symbols",
    y_label="share right, told what came before", title="Copying on equal budgets",
    alt="Attention stays close to 1 for all three lengths. The fixed state falls steeply with N.",
)

# %%
by_position = {
    f"{name}, {'told' if told else 'alone'}": accuracy_by_position(
        runs, 32, attention=attention, told=told
    )
    for name, attention in {"fixed state": False, "attention": True}.items()
    for told in (True, False)
}

# %%
line_plot(
    range(32), by_position, y_limits=(0, 1.05), x_label="position that is written",
    y_label="share right", title="N = 32, position by position",
    alt="Attention, told: close to 1 everywhere. Attention, alone: falls slowly. Fixed state, told: "
    "far below, best at the start. Fixed state, alone: falls to guessing within a few symbols.",
)

# %% [markdown]
# **What was seen.** With attention the share is 0.99 or more at all three lengths. Through the
# fixed state it falls from 0.84 to 0.52 and 0.32 as $N$ doubles. Told what came before, the fixed
# state is best at the first symbols; alone, it is below 0.3 from the fifth symbol on. A guess gets
# 0.125.
#
# Attention alone is worse than attention told, too, and more so for longer sequences: 0.92 at
# $N = 32$. A comparison that reported only “told” would hide this.
#
# **Where does it look?** The weights with which the decoder looks back are an **alignment**: for
# each symbol that is written, which symbols were read. Nobody showed it the diagonal. Move the
# slider. (The eight symbols are shown as the letters a to h.)

# %%
looking = [run for run in runs if run.n == 16 and run.attention]
alignment_view(looking[0])

# %% [markdown]
# **When did it find the diagonal?** Train one more, for $N = 8$, and watch. The view keeps its
# alignment at moments of the run: go back through them, and compare with the loss at that moment.

# %% tags=["nbval-ignore-output"]
shown = looking[0].test.inputs[:1, :8]
view = TrainingView(lambda model: alignment_of(model, shown), [str(s) for s in shown[0].tolist()])
view

# %% tags=["nbval-ignore-output"]
_ = train_copier(8, attention=True, label="watched", on_step=view)

# %% tags=["nbval-ignore-output"]
places = torch.arange(16, device=looking[0].alignment.device)
best = [(run.alignment.argmax(dim=-1) == places).float().mean().item() for run in looking]
print("share of rows that look most at the place being written, N = 16, each seed:",
      [f"{share:.2f}" for share in best])

# %% [markdown]
# ## Was it forgetting?
#
# **Does the fixed state do badly because the GRU's gradient fades?** You have seen it fade before
# training. The trained models are still here, so look again: the gradient of the encoder's last
# state by distance, for the fixed state at $N = 32$, where it did worst.

# %% [markdown] prediction="gradient-after-training"
# Before training the longest of these 32 gradients is about a million times as long as the
# shortest. By how many powers of ten do they differ after training? (The mean of three seeds.)
#
# number: 0 … 8, within 0.5, powers of ten

# %%
failed = [run for run in runs if run.n == 32 and not run.attention]
reach = {when: encoder_gradients(failed, trained=when == "after training")
         for when in ("before training", "after training")}
line_plot(
    range(32), reach, log_y=True, x_label="distance k", y_label="length of the gradient",
    title="Gradient of the encoder's last state, fixed state, N = 32",
    alt="Before training a straight line that falls over several powers of ten. After training a "
    "nearly level line.",
)

# %% tags=["nbval-ignore-output"]
for when, lengths in reach.items():
    ratio = lengths.amax(dim=1) / lengths.amin(dim=1)  # (seeds,)
    first = lengths[:, -1] / lengths[:, 0]  # the first symbol against the last
    kept = [kept_share(run, trained=when == "after training") for run in failed]
    print(f"{when}: longest / shortest {[f'{r:.1g}' for r in ratio]}, "
          f"first / last symbol {[f'{r:.2g}' for r in first]}, "
          f"mean update gate {[f'{share:.2f}' for share in kept]}")
reveal("gradient-after-training", ratio.log10().mean().item())

# %% [markdown]
# **What was seen.** No longer: the 32 gradients are equal within a factor of 2 to 5, and the last
# state depends on the first symbol even more than on the last. The update gates have risen from 0.5
# to 0.88, so a step keeps most of the old state. And still the model copies badly.
#
# **Why, then?** Reach is not room. The state depends on every symbol, but all $N$ of them share its
# 50 numbers, and the decoder has to take them apart again, in order. With attention nothing has to
# be packed: each symbol has a state of its own, and the decoder learns where to look. That the
# packing is the difficulty is a guess. It can be tested a little.
#
# **Is there room at all?** Count. Each symbol is one of eight, 3 bits; 32 symbols are 96 bits. The
# state has 50 float32 numbers, 1 600 bits. If the room is there and only its use has to be learnt,
# more steps should help. Give the fixed state four times the steps, at $N = 8$ (one seed):

# %%
longer = replace(CopySettings(), steps=4 * CopySettings().steps)  # 1200
patient = train_copier(8, attention=False, settings=longer, label="four times the steps")

# %% tags=["nbval-ignore-output"]
hurried = next(run for run in runs if run.n == 8 and not run.attention)
print(comparison_table([hurried, patient]))

# %% [markdown]
# So this is what you have seen: a fixed state can hold a short sequence, but it has to *learn* the
# packing, and at $N = 8$ that took about four times the steps. On equal steps it gets less right
# the longer the sequence is. Looking back got 0.99 right at every length with 300 steps. What holds
# for real text, where much can be left out, no copying task tells. Chapter 09 compares the two on
# prose.

# %% [markdown]
# ## Steps that must wait
#
# **Computers have become faster mostly by doing more at the same time. What of a sequence can be
# done at the same time?** Step $t$ of the recurrence needs $h_{t-1}$. Computed as it is written, it
# has to wait, on any machine.
#
# PyTorch keeps a graph of each computation, so this can be counted: the longest chain of operations
# in which each needs the result of the one before.

# %% [markdown] prediction="chain-when-n-doubles"
# When the sequence becomes twice as long: how does the longest chain grow in attention, when all
# positions look back at all others?
#
# - it doubles, as in the recurrent network
# - it stays as it is
# - it becomes four times as long, since there are n² pairs

# %%
def chains(n):
    x = torch.randn(1, n, 8, requires_grad=True)
    return longest_chain(RNNCell(8, 8).run(x)), longest_chain(lookup(x, x, x)[0])

counted = {n: chains(n) for n in (8, 16, 32, 64)}
for n, (recurrent, attention) in counted.items():
    print(f"n = {n:2}: recurrent {recurrent:3}, attention {attention}")

# %%
growth = counted[64][1] / counted[32][1]
reveal("chain-when-n-doubles", {2: 0, 1: 1, 4: 2}[round(growth)])

# %% [markdown]
# **What was seen.** Four operations for each input, and three more, against a constant. Attention
# needs the inputs only, and they are all there.
#
# PyTorch counts a sum over $n$ terms as one operation. Taken in pairs, its chain grows as $\log n$.
# A recurrence *without* the tanh can be regrouped in the same way (Martin and Cundy 2018). With it
# there is no such regrouping, but there is another way: guess all states, correct all of them at
# the same time, and repeat until nothing changes, by Newton's method. DEER (Lim et al. 2024) and
# ParaRNN (Danieli et al. 2025) do this. Each round does at least the work of the plain loop. So the
# sentence that holds is: *as the formulas are written*, the recurrence waits $n$ times and
# attention does not.
#
# It says nothing about the amount of work. A GRU layer of width $d$ multiplies $6 d^2$ pairs of
# numbers for each position. An attention layer multiplies $4 d^2$ for its projections, and another
# $2 n d$, because every position meets all others:

# %%
d = 64
for n in (32, 64, 256, 1024):
    ratio = (4 * d**2 + 2 * n * d) / (6 * d**2)
    print(f"n = {n:4}: attention multiplies {ratio:.2f} times as much")

# %% [markdown]
# So which is faster? That depends on the machine. On the CPU one thread is used. Both are PyTorch's own
# layers, of width 64, with 8 sequences.

# %% [markdown] prediction="faster-at-1024"
# n = 1024, on the device that you have chosen: which takes less time for one pass forward?
#
# - the recurrent layer
# - the attention layer

# %% tags=["nbval-ignore-output"]
device, sizes = pick_device(), (32, 64, 128, 256, 512, 1024)
layers = rival_layers(64, device)
times = {
    name: [forward_milliseconds(layer, torch.randn(8, n, 64, device=device)) for n in sizes]
    for name, layer in layers.items()
}
line_plot(sizes, times, log_x=True, log_y=True, x_label="n", y_label="milliseconds",
          title=f"Time of one pass forward on {device.type}",
          alt="Two rising lines, one for each layer.")

# %% tags=["nbval-ignore-output"]
recurrent, attention = times.values()
for n, r, a in zip(sizes, recurrent, attention):
    print(f"n = {n:4}: recurrent {r:7.2f} ms, attention {a:7.2f} ms: {a / r:.2f} of it")
reveal("faster-at-1024",
       "the recurrent layer" if recurrent[-1] < attention[-1] else "the attention layer")

# %% [markdown]
# **What to look at.** On one CPU thread, attention is well ahead for short sequences, perhaps
# because its few large matrix products suit the processor better than the many small ones of the
# GRU. Its line is steeper to the right, as the $n^2$ pairs let you expect. Your table says whether
# the lines have crossed. If you have a GPU, choose it and run the two cells again. “Attention is
# faster” is not always true. That its steps need not wait is.
#
# **What does the device change?** One step of training of an attention layer, forward and backward, on
# every device that exists here. A GPU has to be told of each operation before it can begin, which takes
# its time whatever the size.

# %% tags=["nbval-ignore-output"]
sizes = [(16, 32), (128, 128), (512, 256)]
for device, times in step_milliseconds(sizes).items():
    print(f"{device:4}:", ", ".join(f"n = {n}, d = {d}: {t:.2f} ms" for (n, d), t in zip(sizes, times)))

# %% [markdown]
# With a GPU there is a second line. Is it ahead at the smallest size, too? Most models of this course
# are of that kind. That is why the CPU is the default, and why a GPU need not make a lesson any shorter.

# %% [markdown]
# ## Common mistakes
#
# - **Time and batch exchanged.** `nn.RNN` and `nn.GRU` expect (n, b, d) unless `batch_first=True`.
#   Given (b, n, d) they never complain, whatever the sizes; only an initial state that you pass in
#   must fit. They read across the batch.
# - **`view` to exchange axes.** `torch.stack(states).view(b, n, d)` has the right shape and mixes
#   sequences. `stack(…, dim=1)` or `rearrange` does it.
# - **Detaching the state between steps.** The values stay right and nothing is raised, and no
#   gradient reaches an input that lies further back than the last one.
# - **Judging by the start.** A gradient that fades before training need not fade after it.
# - **A weak baseline.** The same learning rate need not suit two models. Tune the one that you want
#   to beat.
# - **Measuring only with the truth given.** A model that writes reads its own output.
# - **Timing without care.** The first call sets things up; a GPU returns before it has finished; on
#   a shared machine take the shortest of several runs.

# %% [markdown]
# ## A short quiz

# %% [markdown] question="size-of-what-is-handed-on"
# An encoder with d_h = 50 has read 1 000 tokens. How many numbers does it hand on to a decoder that
# sees its last state only?
#
# - [ ] 1 000
#   There is no number for each token: each step writes over the state of the step before.
# - [x] 50
#   The state has d_h numbers, whatever has been read. That is the bottleneck.
# - [ ] 50 000
#   So many numbers are in all 1 000 states together. A decoder that looks back at all of them has
#   these; this one has the last.
# - [ ] It depends on the vocabulary
#   The vocabulary decides how tokens become inputs. The width of the state is chosen freely.

# %% [markdown] question="why-the-gradient-fades"
# Why does the gradient of a fresh vanilla RNN fall exponentially with the distance?
#
# - [ ] Float32 loses one digit at each step
#   Rounding is relative: it costs about the seventh digit of a number, at any size.
# - [ ] Older inputs are multiplied by smaller weights
#   All steps use the same weights. What differs is how often they are applied.
# - [ ] The mean over n positions divides by n
#   That gives a share of 1/n, the same for every distance. It is what attention does.
# - [x] At distance k it is a product of k matrices, each of which shortens a typical vector
#   Each step back multiplies by W_h and by the slope of tanh, which is at most 1.

# %% [markdown] question="reach-and-room"
# A trained GRU passes the gradient back over 32 steps nearly undiminished, and copies 32 symbols
# badly. Which explanation do the measurements of this chapter leave standing?
#
# - [ ] Its last state does not depend on the first symbols
#   Then the gradient to them would be small. After training it is not.
# - [x] It has not learnt to pack all symbols into one state so that they can be taken apart
#   The state depends on every symbol, it has bits enough, and at N = 8 four times the steps were
#   enough to learn it.
# - [ ] 50 numbers cannot hold 32 symbols of 8 kinds
#   32 symbols are 96 bits, and one float32 alone has 32.
# - [ ] It has fewer weights than the model with attention
#   It has slightly more: its GRU was made wider for that reason.

# %% [markdown] question="told-and-alone"
# A model is right nearly always when it is told the true symbols before, and less often alone. Why?
#
# - [ ] Alone, it is tested on harder sequences
#   The test sequences are the same.
# - [ ] Told, it sees the symbol that it has to predict
#   It sees those before it. The target is shifted right by one.
# - [x] Alone, one wrong symbol becomes part of what the next ones are predicted from
#   Errors have consequences then. Told, each position gets the true symbols before it.
# - [ ] Alone, its weights change while it writes
#   Nothing is trained during the test.

# %% [markdown] question="what-always-holds"
# Both are computed as their formulas are written. What can be said of attention, compared with
# recurrence, on every machine and at every length?
#
# - [ ] It takes less time
#   For long sequences on one CPU thread it may take more. Time depends on the machine.
# - [x] The chain of operations that wait for each other does not grow in proportion to n
#   It follows from what each operation needs, not from how fast it is done. (A sum of n terms taken
#   in pairs has a chain of log n.)
# - [ ] It multiplies fewer numbers
#   Only while n is small: its work for each position grows with n.
# - [ ] It has a larger gradient
#   At distance 0 it had the smallest. It is level, not large.

# %% [markdown]
# ## Further reading
#
# - Jeffrey L. Elman: *Finding Structure in Time* (1990). The step of this chapter.
# - Yoshua Bengio, Patrice Simard, Paolo Frasconi: *Learning Long-Term Dependencies with Gradient
#   Descent is Difficult* (1994). The product of Jacobians.
# - Sepp Hochreiter, Jürgen Schmidhuber: *Long Short-Term Memory* (1997). Gates against fading.
# - Razvan Pascanu, Tomas Mikolov, Yoshua Bengio: *On the Difficulty of Training Recurrent Neural
#   Networks* (2013), arXiv 1211.5063. Vanishing, exploding, clipping.
# - Kyunghyun Cho and others: *Learning Phrase Representations using RNN Encoder–Decoder* (2014),
#   arXiv 1406.1078. The GRU.
# - Ilya Sutskever, Oriol Vinyals, Quoc V. Le: *Sequence to Sequence Learning with Neural Networks*
#   (2014), arXiv 1409.3215. A whole sentence through one state, and the trick of reading it
#   backwards.
# - Dzmitry Bahdanau, Kyunghyun Cho, Yoshua Bengio: *Neural Machine Translation by Jointly Learning
#   to Align and Translate* (2015), arXiv 1409.0473. The decoder looks back.
# - Eric Martin, Chris Cundy: *Parallelizing Linear Recurrent Neural Nets Over Sequence Length*
#   (2018), arXiv 1709.04057. What becomes possible without the tanh.
# - Yi Heng Lim and others: *Parallelizing Non-Linear Sequential Models over the Sequence Length*
#   (2024), arXiv 2309.12252, and Federico Danieli and others: *ParaRNN: Unlocking Parallel Training
#   of Nonlinear RNNs for Large Language Models* (2025), arXiv 2510.21450. What is possible with it.
#
# In chapter 02 the black box is opened: who asks, what is found, and how a match becomes a weight.

# %% [markdown] part="exercises"
# Three exercises: one step of a recurrent network, a whole run, and the measurement of how far back
# a gradient reaches. Each stands by itself: a fault in one does not make the next one fail.
#
# All vectors are rows. Shapes: b sequences side by side, n positions, d_in features in, d_h in the
# state. Results have the dtype of the inputs. No answer may change its inputs, and gradients must
# find their way through.

# %% part="exercises"
import torch

# %% [markdown] exercise="rnn_step"
# `rnn_step(x, h, W_x, W_h, b)` takes one step:
#
# $$h' = \tanh(x W_x + h W_h + b)$$
#
# - `x`: (b, d_in), the inputs of this step. `h`: (b, d_h), the states before it.
# - `W_x`: (d_in, d_h), `W_h`: (d_h, d_h), stored as (in, out). `b`: (d_h,), one bias, the same for
#   every sequence.
# - Returns the new states, one tensor (b, d_h).
#
# ```python
# one = torch.ones(1, 1) rnn_step(one, 0.5 * one, 0.3 * one, 0.4 * one, torch.tensor([0.1]))  #
# tanh(0.6): tensor([[0.5370]])
# ```

# %% exercise="rnn_step" source="attn_course.recurrent"

# %% [markdown] exercise="run_rnn"
# `run_rnn(inputs, h0, W_x, W_h, b)` reads whole sequences, step by step:
#
# - `inputs`: (b, n, d_in), with n at least 1. `h0`: (b, d_h), the states before the first step; not
#   zero in general.
# - `W_x`, `W_h`, `b`: as in exercise 1.1.
# - Returns one tensor (b, n, d_h): at position t the state *after* input t has been read. `h0` is
#   not among them.
# - The gradient of every state must reach all inputs before it, h0 and the weights.
#
# You may call `rnn_step`, yours or the course's: the import below gives you the course's, and
# without it you would call your own.
#
# ```python
# one = torch.ones(1, 1)
# run_rnn(torch.tensor([[[1.0], [0.0]]]), 0 * one, one, 0.5 * one, torch.zeros(1))
# # tanh(1), then tanh(0.5 · tanh(1)): tensor([[[0.7616], [0.3634]]])
# ```

# %% exercise="run_rnn" source="attn_course.recurrent"

# %% [markdown] exercise="gradient_by_distance"
# `gradient_by_distance(run, inputs)` measures how strongly the last output depends on each input.
#
# - `run`: a function from inputs (b, n, d_in) to outputs (b, n, d_out), such as a recurrent
#   network. It does not mix the sequences of a batch, and it is differentiable.
# - `inputs`: (b, n, d_in), a float tensor that need not want gradients.
# - Returns a tensor (n,). Let $s$ be the **sum** of the features of the **last** output of a
#   sequence. Entry $k$ is the Euclidean length (over d_in) of $\partial s / \partial x$ at the
#   position $n - 1 - k$, **averaged over the batch**. So entry 0 belongs to the last input and
#   entry $n - 1$ to the first.
# - Calling it twice with the same arguments gives the same result twice.
#
# Use autograd. The sequences do not meet in `run`, so one backward pass serves the whole batch. Two
# things are remarked on, but cost nothing: gradients that are left behind on the weights of `run`,
# and inputs that come out of another computation.
#
# ```python
# def running_sum(x):
#     return x.cumsum(dim=1)
#
# def faded_sum(x):  # output i is the sum of x_j · 0.5^(i - j): what is k back counts 0.5^k
#     fade = 0.5 ** (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1]))
#     return torch.einsum("ij, bjd -> bid", fade.tril(), x)
#
# gradient_by_distance(running_sum, torch.randn(2, 3, 1))  # tensor([1., 1., 1.])
# gradient_by_distance(faded_sum, torch.randn(2, 3, 1))    # tensor([1.0000, 0.5000, 0.2500])
# ```

# %% exercise="gradient_by_distance" source="attn_course.recurrent"
