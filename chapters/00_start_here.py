# ---
# jupyter:
#   attn_course:
#     title: "Start here"
#     reading_minutes: 60
#     exercise_minutes: 45
# ---

# %% [markdown]
# This course teaches attention and the Transformer. You will compute things, predict what comes
# out, write the missing code, and find faults. This chapter shows how the notebooks work. Then it
# goes from what a tensor is to a network that you train with your own code. You need Python and
# school mathematics.
#
# ## What you will be able to do
#
# - Work with the notebooks: choose a device, run a check and read its verdict, ask for a hint,
#   commit to a prediction.
# - Say the shape of a result before you run the line.
# - Write a matrix product as many dot products, and as a pattern.
# - Compute a softmax and a cross-entropy on paper, and write the second one as code.
# - Say when gradient descent arrives, overshoots or runs away.
# - Write one step of training, put it in a loop, and measure the result on points that the model
#   has never seen.
#
# Every later chapter opens with three questions on the chapters before it. This one is the first,
# so there is nothing to ask yet. The questions that you answer here come back in chapter 01, those
# that you missed first.

# %% hide="input"
course_map("00")

# %%
import platform

import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce
from torch import nn

from attn_course import primer
from attn_course.checks import examine, get
from attn_course.experiments.ch00 import descent_view, softmax_view, spirals, spirals_picture
from attn_course.plots import heat_map, line_plot
from attn_course.training import torch_threads

# %% [markdown]
# ## The machine
#
# A notebook is a list of **cells**. Press Shift+Enter to run the one you are in and go to the next.
# The cells share one Python process, the **kernel**: a variable from one cell is there in all that
# run after it, in whatever order you run them. When the state is confused, use *Kernel → Restart
# Kernel and Run All Cells*. The lessons are made so that this always works.
#
# This is what your cells run on:

# %% tags=["nbval-ignore-output"]
print(f"Python {platform.python_version()}, PyTorch {torch.__version__}")
print(f"{torch.get_num_threads()} CPU threads, CUDA: {torch.cuda.is_available()}")

# %% [markdown]
# If something is missing, a terminal tells you more: `attn-course doctor` prints a table of what
# the course needs and, for each problem, the line that fixes it.
#
# ## The device
#
# PyTorch computes on a **device**: the processor (CPU), or a graphics card. The buttons show which
# devices exist here. Those that do not are grey and say why.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# Cells that run after your choice follow it: they ask `pick_device()` where to put their numbers.
# The CPU is fast enough for this chapter, and it is the default. You can come back later, choose
# another device, and run the cells below it again.

# %%
print("Cells compute on:", pick_device().type)

# %% [markdown]
# ## Checks, hints, progress
#
# The exercises stand in a notebook of their own, `exercises/00_start_here.ipynb`, linked from where
# you need them. Each has a **check**. It calls what you wrote on small inputs and tells you whether
# the results are right. You can run it as often as you like; it gives no marks.
#
# Here is a check that passes. Exercise 0.1 asks for a function `dot_products`, and this is the
# course's version of it. (`examine` judges as `check` does and keeps no record: a pass goes
# into your progress only if the code is yours.)

# %%
examine(primer.dot_products, get("dot_products"))

# %% [markdown]
# And here is one that fails, on purpose. The function below multiplies number by number, a natural
# first try.


# %%
def number_by_number(a, b):
    return a * b


check(number_by_number, "dot_products")

# %% [markdown]
# **What was seen.** A verdict names one cause, the most likely one, and shows the smallest inputs
# that bring it out. Often the second half is the more useful: do that case on paper. The function
# is not called `dot_products`, so the name of the exercise was given as well. In the exercises you
# use the name that is asked for, and `check(dot_products)` is enough.
#
# If you are stuck, ask for a **hint**. The first is a nudge. Ask again for the second and the
# third, which nearly gives the answer.

# %%
hint("0.1")

# %% [markdown]
# Your **progress** is kept in one small file in the course's folder: what you passed, what you
# answered, what you predicted. It stands at the end of each notebook. Deleting the file loses the
# progress and nothing else.
#
# ## Tensors and shapes
#
# **What is a tensor?** Numbers in a block, with a *shape* that says how many there are along each
# *axis*. All of them have one type, the *dtype*, and live on one device.

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])  # two rows of three numbers
print("shape:", tuple(x.shape), " dtype:", x.dtype)
print("row 1:", x[1].tolist(), " column 2:", x[:, 2].tolist())
print("sum over axis 0:", x.sum(dim=0).tolist())
print("sum over axis 1:", x.sum(dim=1).tolist())
print("from row 0 column 2, from row 1 column 0:", x[[0, 1], [2, 0]].tolist())

# %% [markdown]
# The last line indexes with two lists, one for each axis: it picks one number for each pair.
# Tensors of whole numbers can stand in the place of the lists.
#
# Axes are counted from 0, and from the end as −1, −2, … The axis that you sum over is the one that
# *disappears*: from $(2, 3)$, `dim=0` leaves $(3,)$ and `dim=1` leaves $(2,)$. Say the shape of
# each result before you run the line. Many of the mistakes that the checks of this course know are
# axes or shapes that are not what their author thinks.
#
# **What if two shapes differ?** Here is your first prediction. Choose, say how sure you are, and
# commit. It is kept with your confidence, and the next cell shows what happens. A wrong prediction
# costs nothing, and it shows you where to look.

# %% [markdown] prediction="shape-of-a-broadcast-sum"
# `column` has shape (3, 1) and `row` has shape (4,). What is the shape of `column + row`?
#
# - (3, 4)
# - (3, 1)
# - (4,)
# - none: it raises an error

# %%
column = torch.tensor([[10.0], [20.0], [30.0]])  # (3, 1)
row = torch.tensor([1.0, 2.0, 3.0, 4.0])  # (4,)
total = column + row
print(total)
reveal("shape-of-a-broadcast-sum", str(tuple(total.shape)))

# %% [markdown]
# **Why.** Shapes are compared from the right. Where one of the two sizes is 1, or is missing, that
# tensor is repeated until the sizes agree: $(3, 1)$ and $(4,)$ both become $(3, 4)$. This is
# **broadcasting**. Two different sizes, neither of them 1, raise an error.
#
# Broadcasting saves writing, and it hides faults. Three predictions of shape $(3,)$ and their three
# targets, by accident of shape $(3, 1)$:

# %%
predicted = torch.tensor([1.0, 2.0, 3.0])  # (3,)
wanted = torch.tensor([[1.0], [2.0], [3.0]])  # (3, 1), the same numbers
errors = predicted - wanted
print(f"every prediction is right, and the mean squared error is {errors.square().mean():.2f}")
print("shape of the differences:", tuple(errors.shape))

# %% [markdown]
# Nothing was raised. Each prediction was compared with *each* target. Only the shape shows it.
#
# Now a question. Answer it before you read on; each option, right or wrong, explains itself.

# %% [markdown] question="silent-broadcast"
# Losses `a`, shape (n,), and weights `w`, shape (n, 1), are multiplied: `(a * w).mean()`. No error
# appears. What was averaged?
#
# - [ ] n products, each loss with its own weight
#   That needs equal shapes. Here they are compared from the right: n against 1, nothing against n.
# - [x] n² products, each loss with each weight
#   (n,) is read as (1, n); against (n, 1) both are stretched to (n, n). The number looks plausible,
#   which makes the fault hard to find.
# - [ ] n products, each loss with the first weight
#   The axis of size 1 of `w` is repeated along the columns, but its n rows are all used.
# - [ ] Nothing: shapes with different numbers of axes cannot be multiplied
#   They can: axes of size 1 are put in front of the shorter shape.

# %% [markdown]
# ## The matrix product is many dot products
#
# The **dot product** of two vectors with $d$ numbers each multiplies them number by number and adds
# up: $a \cdot b = \sum_{k=1}^{d} a_k b_k$. On paper,
# $(1, 2) \cdot (3, 1) = 1 \cdot 3 + 2 \cdot 1 = 5$.
#
# **What does it measure?** How far two vectors point the same way, times both lengths: it is
# positive for vectors that agree, zero at a right angle, negative for opposite ones. In chapter 02
# it will say how well a query fits a key. Attention computes it for *all* pairs of vectors, so the
# table of all pairs is worth a look of its own.
#
# Take three vectors as the rows of $a$, shape $(n, d) = (3, 2)$, and two as the rows of $b$, shape
# $(m, d) = (2, 2)$. Fill in the table of their dot products on paper, then run the cell:
#
# | | $b_0 = (1, 1)$ | $b_1 = (2, -1)$ |
# |---|---|---|
# | $a_0 = (1, 2)$ | $1 \cdot 1 + 2 \cdot 1 = 3$ | $1 \cdot 2 + 2 \cdot (-1) = 0$ |
# | $a_1 = (0, 1)$ | ? | ? |
# | $a_2 = (3, 0)$ | ? | ? |

# %%
a = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]])  # (n, d)
b = torch.tensor([[1.0, 1.0], [2.0, -1.0]])  # (m, d)
products = a @ b.T  # (n, m)
heat_map(
    products,
    row_labels=["a0", "a1", "a2"],
    column_labels=["b0", "b1"],
    limits=None,
    row_axis="row of a",
    column_axis="row of b",
    value="dot product",
    title="a @ b.T",
)

# %% [markdown]
# `@` is the **matrix product**. It takes *rows* of its first factor and *columns* of its second:
#
# $$(n, d) \text{ times } (d, m) \text{ gives } (n, m),$$
#
# and the size in the middle, $d$, must agree, for that is the axis that is summed over. The rows of
# $b$ are the columns of its transpose `b.T`, which is why it stands there. Without it:

# %%
try:
    torch.ones(3, 4) @ torch.ones(5, 4)
except RuntimeError as error:
    print(error)

# %% [markdown]
# Read this message as the rule above: in $(3, 4)$ times $(5, 4)$ the middle sizes are 4 and 5.

# %% [markdown] question="matrix-product-shape"
# `queries` has shape (6, 8) and `keys` has shape (10, 8), both with vectors as rows. Which line
# gives the dot product of every query with every key?
#
# - [ ] `queries @ keys`
#   (6, 8) times (10, 8): the middle sizes are 8 and 10, so this raises an error.
# - [x] `queries @ keys.T`
#   (6, 8) times (8, 10) gives (6, 10): a row for each query, a column for each key.
# - [ ] `queries * keys`
#   `*` multiplies number by number, and shapes (6, 8) and (10, 8) do not fit for that.
# - [ ] `queries.T @ keys`
#   (8, 6) times (10, 8): 6 and 10 do not agree. If they did, the sum would run over the rows.

# %% [markdown]
# {{exercise: dot_products}}

# %% [markdown]
# ## einops: the pattern is the documentation
#
# `b.T` says what is done. It does not say why, nor what the axes are. With four axes, as attention
# will have, `transpose(1, 2)` says nothing at all. The library **einops** lets you write the axes
# by name, and this course does so throughout. It uses three of its functions:
#
# - `einsum(a, b, "n d, m d -> n m")` multiplies; a name that is missing on the right is summed
#   over.
# - `rearrange(x, "n d -> d n")` moves, splits and joins axes; the numbers stay the same.
# - `reduce(x, "n d -> n", "mean")` removes axes by a mean, a sum, a maximum.

# %%
print("the pattern:", einsum(a, b, "n d, m d -> n m").tolist())
print("a @ b.T:    ", (a @ b.T).tolist())
print("mean of each row of a:", reduce(a, "n d -> n", "mean").tolist())
print("numbers 0 to 5, as two rows:", rearrange(torch.arange(6), "(n d) -> n d", n=2).tolist())

# %% [markdown]
# Brackets split or join: `"(n d) -> n d"` reads a row of $n \cdot d$ numbers as $n$ rows. That is
# how one vector becomes several heads in chapter 05. A pattern that does not fit raises an error,
# and the message repeats the pattern and the shape:

# %% tags=["nbval-ignore-output"]
try:
    rearrange(torch.arange(6), "(n d) -> n d", n=4)
except Exception as error:
    print(error)

# %% [markdown]
# **Transpose or reshape?** Both can turn a shape (2, 3) into (3, 2). Answer the question, then run
# the cell below it.

# %% [markdown] question="reshape-or-transpose"
# `x` has shape (2, 3). What do `x.T` and `x.reshape(3, 2)` have in common?
#
# - [ ] Everything: they are two ways to write one thing
#   For a matrix with more than one row and column the numbers stand in different places.
# - [x] The shape (3, 2), but not the places of the numbers
#   The transpose exchanges the axes. reshape counts through the numbers row by row and cuts them
#   anew. Swapping one for the other raises no error, here and in chapter 05.
# - [ ] Nothing: reshape gives (2, 3) again
#   reshape gives the shape it is told, here (3, 2).
# - [ ] The places of the numbers, but not the shape
#   It is the other way round.

# %%
x = torch.tensor([[1, 2, 3], [4, 5, 6]])
print("transposed:", rearrange(x, "n d -> d n").tolist())
print("reshaped:  ", x.reshape(3, 2).tolist())

# %% [markdown]
# ## Softmax: from scores to shares
#
# **A model gives a score to each of $C$ classes. How do scores become probabilities?** They may be
# negative and add up to anything. The **softmax** makes them positive with the exponential, then
# divides by the sum:
#
# $$p_c = \frac{e^{z_c}}{\sum_{c'} e^{z_{c'}}}, \qquad z, p \text{ of shape } (C,).$$
#
# The scores $z$ are called **logits**. On paper, with logits that make it easy,
# $z = (0, \ln 2, \ln 5)$: the exponentials are $1, 2, 5$, their sum is $8$, and
# $p = (\tfrac18, \tfrac28, \tfrac58)$. A larger logit gets more, every class gets something, and
# the sum is 1.

# %%
logits = torch.tensor([1.0, 2.0, 5.0]).log()  # (0, ln 2, ln 5)
probs = logits.exp() / logits.exp().sum()
print("as defined:", [f"{p:.3f}" for p in probs])
print("torch:     ", [f"{p:.3f}" for p in logits.softmax(dim=-1)])

# %% [markdown] prediction="largest-share-when-logits-double"
# The largest probability is 5/8 = 0.625. You double all three logits, to (0, 2 ln 2, 2 ln 5). How
# large is the largest probability now? (Paper helps: what is the exponential of 2 ln 5?)
#
# number: 0 … 1, within 0.04

# %%
doubled = (2 * logits).softmax(dim=-1)
print("probabilities:", [f"{p:.2f}" for p in doubled])
reveal("largest-share-when-logits-double", round(doubled.max().item(), 3))

# %% [markdown]
# **Why.** Doubling a logit squares its exponential: $1, 4, 25$. The ratio of two probabilities
# depends on the *difference* of their logits, $p_a / p_b = e^{z_a - z_b}$, and doubling doubles the
# differences. So the size of the logits decides how sharp the choice is. One divides them by a
# **temperature** $T$ to set it: below 1 it sharpens, above 1 it flattens.
#
# Move the sliders. Where does the temperature have to be for the three to be nearly equal? Does a
# class ever get exactly zero? What happens to classes 0 and 1 when you only move class 2?

# %%
softmax_view()

# %% [markdown]
# At temperature 5 the logits 0, 1, 2 give 0.27, 0.33, 0.40. In exact arithmetic no class gets 0,
# since no exponential is 0. When only class 2 moves, classes 0 and 1 share what is left, always in
# the ratio $1 : e$ at temperature 1.
#
# Since only differences count, the same number may be added to all logits. This is of use. The
# exponential of 1000 is larger than any float32 number, and the definition breaks:

# %%
large = torch.tensor([1000.0, 1001.0])
print("as defined:         ", (large.exp() / large.exp().sum()).tolist())
shifted = large - large.max()  # (−1, 0): the same differences
print("the largest removed:", [f"{p:.3f}" for p in shifted.exp() / shifted.exp().sum()])

# %% [markdown]
# Infinity divided by infinity is `nan`, *not a number*, and every sum that it enters becomes `nan`
# too. Ready-made versions subtract the largest logit first. Yours will have to.

# %% [markdown] question="seven-on-every-logit"
# You add 7 to every logit of a row. What happens to its softmax?
#
# - [x] Nothing
#   Each exponential is multiplied by e⁷, numerator and sum alike, and the factor cancels. Only the
#   differences between logits count.
# - [ ] All probabilities grow
#   They sum to 1 before and after, so they cannot all grow.
# - [ ] The largest grows and the others shrink
#   That is what multiplying the logits by a number above 1 does. Adding keeps their differences.
# - [ ] They come nearer to each other
#   That is what dividing the logits by a temperature above 1 does. Adding keeps their differences.

# %% [markdown]
# ## Cross-entropy: one number for how wrong
#
# **The model gives probabilities, and you know the right class. How wrong was it?** Take the
# probability of the right class, its logarithm, and a minus sign: $-\ln p_\text{right}$. If
# $p = 1$ this is 0. If $p$ is near 0 it grows without bound.

# %%
p = torch.linspace(0.005, 1, 200)
line_plot(
    p,
    {"-ln p": -p.log()},
    x_label="probability of the right class",
    y_label="loss in nats",
    y_limits=(0, 5.5),
    alt="It falls from above 5 near zero to 0 at one, steeply at first.",
)

# %% [markdown]
# The unit is the **nat**, because the logarithm is the natural one. With the probabilities
# $(\tfrac18, \tfrac28, \tfrac58)$ from above: if class 2 was right, the loss is
# $\ln \tfrac85 = 0.47$; if class 0 was right, it is $\ln 8 = 2.08$. Over a **batch** of $n$ rows
# the **cross-entropy** is the mean:
#
# $$L = -\frac1n \sum_{k=1}^{n} \ln p_{k,\,t_k}, \qquad
# \text{logits } (n, C), \quad \text{targets } t \; (n,), \text{ whole numbers from 0 to } C - 1.$$

# %%
batch = torch.stack([logits, logits])  # (n, C) = (2, 3): the same logits twice
targets = torch.tensor([2, 0])  # the right classes
each = F.cross_entropy(batch, targets, reduction="none")
print("losses:", [f"{loss:.2f}" for loss in each], f" mean: {each.mean():.2f}")

# %% [markdown] prediction="loss-of-a-blind-guess"
# A model knows nothing: it gives each of 10 classes the same logit. What is its cross-entropy?
#
# number: 0 … 10, within 0.2, nats

# %%
blind = F.cross_entropy(torch.zeros(4, 10), torch.tensor([3, 0, 9, 1]))
reveal("loss-of-a-blind-guess", round(blind.item(), 3))

# %% [markdown]
# **Why.** Equal logits mean $p = \tfrac1{10}$ for every class, and $-\ln \tfrac1{10} = \ln 10$. A
# new model whose logits are close together starts near $\ln C$, whatever the targets are. If your
# first loss is far above that, the model is sure of wrong things; if it is far below, it has seen
# the answers. It is the cheapest test in this course.
#
# A remark before you write it yourself. Put the softmax into the logarithm, and the exponential
# goes: $\ln p_c = z_c - \ln \sum_{c'} e^{z_{c'}}$. The probability itself is not needed, which
# matters, for it can be too small for float32:

# %%
far = torch.tensor([[200.0, 0.0]])  # class 1 is right, and the model is sure of class 0
print("log of the softmax:", -far.softmax(dim=-1)[0, 1].log().item())
print("ready-made:        ", F.cross_entropy(far, torch.tensor([1])).item())

# %% [markdown] question="blind-guess-loss"
# A classifier for 50 classes has just been created, and its loss on the first batch is about 3.9.
# What does that tell you?
#
# - [ ] It is broken: an untrained loss should be near 0
#   A loss near 0 means a probability near 1 for the right class. It cannot know that yet.
# - [x] It is as good as a blind guess, as it should be: ln 50 = 3.91
#   Equal probabilities of 1/50 give −ln(1/50) = ln 50. Near ln C is the normal start.
# - [ ] It is right in 3.9 % of cases
#   The loss is −ln of a probability, in nats, and no percentage.
# - [ ] Its learning rate is too high
#   No step has been taken yet, so the rate has had no influence.

# %% [markdown] question="confident-and-wrong"
# Two models are right on 99 of 100 examples. On the last one A gives the right class a probability
# of 0.1, B gives it 0.000001. How do their losses on this example compare?
#
# - [ ] They are equal: both are wrong once
#   That is how accuracy counts. The cross-entropy asks how probable the truth was.
# - [ ] B's is 100 000 times larger, like the probability is smaller
#   The logarithm turns factors into differences.
# - [x] B's is six times larger
#   −ln 0.1 = 2.3 and −ln 10⁻⁶ = 13.8. Each factor of ten costs another 2.3 nats, so one confident
#   error can outweigh many good answers.
# - [ ] A's is larger, because B is more certain
#   B is more certain of something false, and that is what costs.

# %% [markdown]
# {{exercise: cross_entropy}}

# %% [markdown]
# ## Gradient descent on one number
#
# **How does a model get better?** Its loss depends on numbers that may be changed, its
# **parameters**. The **gradient** says how fast the loss grows when a parameter grows. So go the
# other way, a little:
#
# $$x \leftarrow x - \eta \, \frac{dL}{dx}, \qquad \eta \text{ the learning rate}.$$
#
# One parameter is enough to see everything that can happen. Take $L(x) = (x - 3)^2$, smallest at
# $x = 3$, with the slope $2 (x - 3)$. On paper, from $x = 0$ with $\eta = 0.1$: the slope is $-6$,
# so $x$ becomes $0 + 0.6 = 0.6$. There the slope is $-4.8$, and $x$ becomes $1.08$.
#
# PyTorch finds slopes by itself. A tensor with `requires_grad` remembers what was computed from it;
# `backward()` goes back through these computations by the chain rule, which is called
# **backpropagation**, and leaves the slope in `.grad`.

# %%
x = torch.tensor(0.0, requires_grad=True)
for _ in range(4):
    loss = (x - 3) ** 2
    loss.backward()
    print(f"x = {x.item():.3f}   loss = {loss.item():.3f}   slope = {x.grad.item():.3f}")
    with torch.no_grad():  # the step itself is not to be remembered
        x -= 0.1 * x.grad
    x.grad = None  # forget the slope, or the next one is added to it

# %% [markdown] prediction="descent-at-rate-nine-tenths"
# The same from x = 0, with a learning rate of 0.9, nine times as large. What do the steps do?
#
# - They come nearer to 3 from one side, only faster
# - They jump over 3 each time, and still come nearer
# - They jump over 3 each time and get farther away

# %%
rate, x = 0.9, 0.0
visited = [x := x - rate * 2 * (x - 3) for _ in range(6)]
print("visited:", [round(value, 2) for value in visited])
from_three = [value - 3 for value in visited]  # the sign says on which side
jumps = from_three[0] * from_three[1] < 0
nearer = abs(from_three[-1]) < abs(from_three[0])
reveal("descent-at-rate-nine-tenths", (1 if nearer else 2) if jumps else 0)

# %% [markdown]
# **Why.** Look at the distance from 3. One step turns $x - 3$ into
#
# $$(x - 3) - 2 \eta (x - 3) = (1 - 2 \eta)(x - 3),$$
#
# so the distance is multiplied by $1 - 2\eta$, again and again. At $\eta = 0.1$ that is $0.8$:
# nearer, from one side. At $0.9$ it is $-0.8$: the other side each time, and nearer. At which rate
# does it arrive in one step? From which rate on does it run away? Work it out, then look:

# %%
descent_view()

# %% [markdown]
# At $\eta = 0.5$ the factor is 0: it arrives in one step. Above $\eta = 1$ the factor is below
# $-1$: it runs away.
#
# A loss with many parameters is steep in some directions and flat in others, and one rate has to do
# for all. Too small a rate crawls along the flat ones; too large a rate runs away along the steep
# ones. A loss that becomes `nan` after a few steps may have run away like this.

# %% [markdown] question="when-descent-diverges"
# Gradient descent on (x − 3)² multiplies the distance from 3 by 1 − 2η in each step. What happens
# at η = 1.2?
#
# - [ ] It arrives faster than at η = 0.5
#   At 0.5 the factor is 0: it arrives in one step, and nothing is faster.
# - [ ] It jumps over 3 each time and still arrives
#   It jumps over 3, but the factor is −1.4, so each jump ends farther away.
# - [x] It jumps over 3 each time, farther every time
#   1 − 2.4 = −1.4. The sign means the other side, and a size above 1 means farther away: it
#   diverges.
# - [ ] It bounces between two points
#   That is the factor −1, at η = 1.

# %% [markdown]
# One line above deserves a second look: `x.grad = None`. **What if it is left out?**

# %%
x = torch.tensor(0.0, requires_grad=True)
for call in (1, 2, 3):
    ((x - 3) ** 2).backward()  # x stays where it is
    print(f"after backward() no. {call}: x.grad = {x.grad.item():.0f}")

# %% [markdown]
# `backward()` *adds* to what is there. (It has to: a parameter that is used in two places gets two
# contributions.) Whoever does not empty the gradients before each step walks on the sum of all
# slopes so far. The next cell does that with the harmless rate 0.1:

# %%
paths = {}
for name in ("emptied", "never emptied"):
    x, paths[name] = torch.tensor(0.0, requires_grad=True), []
    for _ in range(40):
        ((x - 3) ** 2).backward()
        with torch.no_grad():
            x -= 0.1 * x.grad
        x.grad = None if name == "emptied" else x.grad
        paths[name].append(x.item())
line_plot(
    range(1, 41),
    paths,
    x_label="step",
    y_label="x",
    alt="Emptied, x rises to 3 and stays. Never emptied, it swings about 3 without settling.",
)

# %% [markdown]
# Nothing is raised, and x does move to 3 at first. Then it swings past it and back, and does not
# settle within the 40 steps shown.

# %% [markdown] question="gradients-add-up"
# You call `loss.backward()` in every step and never empty the gradients. What does the optimizer
# use in step 10?
#
# - [ ] The gradient of step 10
#   It would, if backward() replaced what is in `.grad`. It adds to it.
# - [x] The sum of the gradients of steps 1 to 10
#   backward() adds. Old gradients, from places where the parameters no longer are, keep pushing.
# - [ ] The mean of the gradients of steps 1 to 10
#   Nothing divides. The sum even grows with the number of steps.
# - [ ] Nothing: the second backward() raises an error
#   Each step builds a new graph, so nothing is raised, and the mistake stays silent.

# %% [markdown]
# ## Gradient descent on an nn.Module
#
# A model is an `nn.Module`: parameters, and a rule from inputs to outputs. The smallest useful one
# is a linear layer. It turns a row $x$ of $d$ numbers into $C$ logits, $z = x W + b$, with weights
# $W$ of shape $(d, C)$: *in* to *out*. Vectors are rows in this course. `nn.Linear` stores its
# weight the other way round, $(C, d)$, and multiplies with the transpose; the result is the same.

# %%
torch.manual_seed(0)
layer = nn.Linear(2, 3)  # 2 numbers in, 3 logits out
inputs, targets = torch.randn(5, 2), torch.tensor([0, 2, 1, 1, 0])
print({name: tuple(weight.shape) for name, weight in layer.named_parameters()})
by_hand = einsum(inputs, layer.weight, "n d, c d -> n c") + layer.bias
print(f"largest difference from the layer: {(by_hand - layer(inputs)).abs().max():.5f}")

# %% [markdown]
# Nine numbers in all, and each gets a gradient of its own: `.grad` has the shape of its parameter.
# For the cross-entropy one can say what flows back. The gradient with respect to the logits is
# $(p - \text{one-hot}) / n$: each probability, less 1 for the right class. What was too high is
# pushed down, and what should have been higher is pushed up.

# %%
z = layer(inputs)
z.retain_grad()
F.cross_entropy(z, targets).backward()
rule = (z.softmax(dim=-1) - F.one_hot(targets, 3)) / len(targets)
print("first row of z.grad:", [f"{g:.3f}" for g in z.grad[0]])
print("by the rule:        ", [f"{g:.3f}" for g in rule[0]])
print("shape of layer.weight.grad:", tuple(layer.weight.grad.shape))

# %% [markdown]
# Nobody moves the parameters one by one. An **optimizer** holds them all and knows how to step:
# `SGD` as above (stochastic gradient descent), or `Adam`, which divides the step of each parameter
# by a running measure of the size of its gradients. Its two methods are `step()`, which moves the
# parameters by what `.grad` holds, and `zero_grad()`, which empties it.

# %%
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
before = layer.weight.detach().clone()
optimizer.step()
print("the step:               ", [f"{s:.3f}" for s in (layer.weight - before)[0]])
print("−0.5 times the gradient:", [f"{-0.5 * g:.3f}" for g in layer.weight.grad[0]])
optimizer.zero_grad()
print("and now the gradient is:", layer.weight.grad)

# %% [markdown]
# These are all the parts of one step of training: a loss from the model's logits, `backward()`, the
# optimizer's `step()`, and `zero_grad()` somewhere. Which comes first, and where the fourth may
# stand, is exercise 0.3. Every model in this course, up to the language model of chapter 09, is
# trained by these few lines.
#
# One more thing that the exercise mentions. A module is in one of two modes: `model.train()` sets
# one, `model.eval()` the other, and `model.training` says which it is. Some layers compute
# something else in each, such as the dropout of chapter 05. The layers of this chapter do not.

# %% [markdown]
# {{exercise: training_step}}

# %% [markdown]
# ## A complete training loop
#
# **What can be learned by repeating that step?** Three spirals lie in the plane, 100 points each.
# Given a point, say on which spiral it lies. There is a second set, drawn anew: the **held-out**
# points. The model never trains on them.

# %%
train_points, train_targets = spirals(100, seed=0)  # (300, 2) and (300,)
test_points, test_targets = spirals(100, seed=1)
spirals_picture(train_points, train_targets)

# %% [markdown]
# Two models. The first is one linear layer: it can only cut the plane with straight lines. The
# second has a **hidden layer** of 32 numbers and a ReLU, which sets negative numbers to zero,
# between two linear layers. It can bend its borders.

# %% [markdown] prediction="accuracy-of-a-linear-model"
# On what share of the held-out points will the *linear* model be right? (A blind guess is right on
# one third.)
#
# number: 0.3 … 1, within 0.1

# %% [markdown]
# A module of your own is a class: `__init__` makes its parts, `forward` computes, and `model(x)`
# calls `forward`. `super().__init__()` comes first: from then on the module notices the parts that
# you give it, and `parameters()` finds theirs.


# %%
class TwoLayers(nn.Module):
    """Two linear layers with a ReLU between them: 2 numbers in, 3 logits out."""

    def __init__(self, hidden):
        super().__init__()
        self.first, self.second = nn.Linear(2, hidden), nn.Linear(hidden, 3)

    def forward(self, x):
        return self.second(self.first(x).relu())


# %%
def new_model(hidden, seed):
    torch.manual_seed(seed)
    model = TwoLayers(hidden) if hidden else nn.Linear(2, 3)
    return model.to(pick_device())


# %%
def accuracy(model, points, targets):
    with torch.no_grad():  # measuring needs no gradients
        chosen = model(points.to(pick_device())).argmax(dim=-1)
    return (chosen.cpu() == targets).double().mean().item()


# %% [markdown]
# And the loop. `primer.training_step` is the course's version of exercise 0.3. The budget is 300
# steps; every step sees all 300 points. (More points than fit into one step are cut into
# **mini-batches**, one for each step; once through all of them is an **epoch**. Here each step is
# an epoch.) Each model is trained from three different random starts, since one run may be luck.


# %%
def train(model, points, targets, steps=300):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    points, targets = points.to(pick_device()), targets.to(pick_device())
    with torch_threads(1):  # for small models more threads cost time
        return [primer.training_step(model, optimizer, points, targets) for _ in range(steps)]


# %%
models = {hidden: [new_model(hidden, seed) for seed in range(3)] for hidden in (0, 32)}
losses = {}
for hidden, runs in models.items():
    losses[hidden] = [train(model, train_points, train_targets) for model in runs]

# %%
line_plot(
    range(1, 301),
    {"linear": losses[0], "hidden layer of 32": losses[32]},
    x_label="step",
    y_label="loss (nats)",
    log_y=True,
    title="mean and range of three runs",
    alt="Both start near ln 3. The linear one levels off early, the other keeps falling.",
)

# %% tags=["nbval-ignore-output"]
held_out = {}
for hidden, name in ((0, "linear"), (32, "hidden layer of 32")):
    held_out[hidden] = [accuracy(model, test_points, test_targets) for model in models[hidden]]
    for when, step in (("first", 0), ("last", -1)):
        print(f"{name}, {when} loss:", [f"{run[step]:.3f}" for run in losses[hidden]])
    print(f"{name}, right on held-out points:", [f"{share:.2f}" for share in held_out[hidden]])
reveal("accuracy-of-a-linear-model", sum(held_out[0]) / 3)

# %%
spirals_picture(test_points, test_targets, models[32][0])

# %% [markdown]
# **What was seen.** Both models start near $\ln 3 = 1.10$, the loss of a blind guess. The linear
# one soon levels off, from every start at the same loss: no straight lines separate the spirals, so
# its best is not good. The loss of the other one keeps falling. In the picture its borders bend
# along the arms. Where there are no points, the borders are anywhere.
#
# **Why held-out points?** Because a model can learn its training points by heart. Train the same
# hidden layer on 8 points of each spiral instead of 100:

# %%
few_points, few_targets = spirals(8, seed=0)
few_models = [new_model(32, seed) for seed in range(3)]
few_losses = [train(model, few_points, few_targets) for model in few_models]

# %% tags=["nbval-ignore-output"]
print("last training loss:", [f"{run[-1]:.3f}" for run in few_losses])
sets = {"24 training points": (few_points, few_targets),
        "300 held-out points": (test_points, test_targets)}
for name, examples in sets.items():
    print(f"right on the {name}:", [f"{accuracy(model, *examples):.2f}" for model in few_models])

# %% [markdown]
# On the few points the training loss ends at least as low as on the many, 0.005 to 0.009 against
# 0.009 to 0.018, and the held-out points tell the two cases apart: 0.78 against 0.99. A model that
# does much better on its training points than on others **overfits**. So all results in this course
# are measured on examples that training has not seen. And this is a toy: two numbers in, three
# classes out. What carries over is the loop.

# %% [markdown] question="why-held-out"
# A model is right on all of its training points. What do you know about new points?
#
# - [ ] It will be right on them too
#   Only if it has found the rule. With few points, a model that has learned them by heart looks the
#   same.
# - [ ] It will be wrong on most of them
#   That does not follow either: in the lesson the model with many points did well on new ones.
# - [x] Nothing yet: that has to be measured on points it has not seen
#   Knowing by heart and having found the rule give the same training loss. Held-out points tell
#   them apart.
# - [ ] It was trained for too long
#   Possibly, possibly not. Training accuracy alone does not say.

# %% [markdown]
# ## Common mistakes
#
# - **Gradients not emptied.** `backward()` adds. The loss falls at first, then swings.
# - **The step in the wrong place.** Nothing is raised. What happens depends on the place of
#   `zero_grad()`, as the next cell shows for the first losses and the last of 20 steps.

# %%
def losses_in_order(*order):
    torch.manual_seed(0)
    model, found = nn.Linear(2, 3), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    parts = {"step": optimizer.step, "zero_grad": optimizer.zero_grad}
    for _ in range(20):
        found.append(F.cross_entropy(model(inputs), targets))
        for part in order:
            parts.get(part, found[-1].backward)()
    return [round(loss.item(), 2) for loss in (*found[:3], found[-1])]


for order in (("backward", "zero_grad", "step"), ("zero_grad", "step", "backward"),
              ("step", "zero_grad", "backward"), ("step", "backward")):
    print(" → ".join(order), losses_in_order(*order))

# %% [markdown]
# If the gradients are emptied between `backward()` and the next `step()`, nothing moves: the loss
# stays the same to the last digit. `step()`, `zero_grad()`, `backward()` moves by the gradient of
# the step before, one step late. Without `zero_grad()` the old gradients add up.
#
# - **The loss kept as a tensor.** A list of losses that still hold their graphs fills the memory.
#   `.item()` takes the number.
# - **A softmax before the cross-entropy.** `F.cross_entropy` wants logits and takes the softmax
#   itself. With probabilities for logits, the loss cannot come near zero, however sure and right
#   the model is. Measured, with three classes:

# %%
sure = torch.tensor([[50.0, 0.0, 0.0]])  # the model is certain of class 0, and class 0 is right
once = F.cross_entropy(sure, torch.tensor([0]))
twice = F.cross_entropy(sure.softmax(dim=-1), torch.tensor([0]))
print(f"logits: {once:.2f}   probabilities instead: {twice:.2f}")

# %% [markdown]
# - **The wrong axis.** `softmax(dim=0)` on $(n, C)$ lets the rows compete, not the classes. Nothing
#   is raised. Sum over the classes: each row must give 1.
# - **A silent broadcast.** $(n,)$ with $(n, 1)$ gives $(n, n)$. Print the shape.
# - **Ids of the wrong type.** Targets are whole numbers, `torch.int64`, from 0 to $C - 1$.
# - **One run.** A difference between two runs may be the random start. Three are a beginning.
#
# ## A last question

# %% [markdown] question="softmax-before-cross-entropy"
# Somebody's three-class model ends in a softmax and is trained with `F.cross_entropy`. Its loss
# falls from 1.10 and stops near 0.55, although nearly every answer is right. Why?
#
# - [ ] The learning rate is too small
#   Then it would still be falling, slowly. It stops at a floor.
# - [x] The softmax is taken twice, and the second one gets numbers between 0 and 1
#   The best it can get is (1, 0, 0), whose softmax gives the right class e/(e + 2) = 0.58, a loss
#   of 0.55. F.cross_entropy wants logits.
# - [ ] The three classes are not equally frequent
#   That changes the loss of a blind guess. It puts no floor under a model that is right.
# - [ ] It has learned the training points by heart
#   Then its training loss would go to 0. This one cannot.

# %% [markdown]
# ## How sure were you?
#
# Your predictions and confidences are kept. This is how often you were right at each level of
# confidence. If you say 90 % and are right in half of the cases, you know where to look twice. The
# list grows with the chapters.

# %%
_ = calibration()

# %% [markdown]
# ## Further reading
#
# - Ian Goodfellow, Yoshua Bengio and Aaron Courville, *Deep Learning*, 2016, chapters 2 to 6:
#   linear algebra, probability, numerical computation and feed-forward networks, at more length.
# - Alex Rogozhnikov, *Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation*,
#   2022.
# - Atılım Güneş Baydin, Barak Pearlmutter, Alexey Radul and Jeffrey Siskind, *Automatic
#   Differentiation in Machine Learning: a Survey*, 2018, arXiv 1502.05767: what `backward()` does.
# - Diederik Kingma and Jimmy Ba, *Adam: A Method for Stochastic Optimization*, 2015, arXiv
#   1412.6980.
# - Jeffrey Karpicke and Henry Roediger, *The Critical Importance of Retrieval for Learning*, 2008:
#   why the course keeps asking.
#
# Chapter 01 takes the loop from here and trains networks that read a sequence step by step. They
# forget, and you will measure how fast.

# %% [markdown] part="exercises"
# Three exercises, in the order of the lesson. Each check shows the smallest case that goes wrong,
# in numbers you can do on paper. The types in the signatures name the axes: `Float[Tensor, "n d"]`
# is a tensor of floating numbers of shape (n, d). They are documentation; nothing enforces them
# here.

# %% part="exercises"
import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce

# %% [markdown] exercise="dot_products"
# Write the dot product of every row of `a` with every row of `b`.
#
# - `a` has shape (n, d) and `b` has shape (m, d); n, m and d are at least 1 and may be anything,
#   equal ones included.
# - Return a tensor of shape (n, m). Entry (i, j) is the sum over k of `a[i, k] * b[j, k]`.
# - Loops, a matrix product or a pattern: all are fine. The inputs must stay as they are.
#
# With `a = [[1., 2.], [0., 1.], [3., 0.]]` and `b = [[1., 1.], [2., -1.]]` the result is
# `[[3., 0.], [1., -1.], [3., 6.]]`.

# %% exercise="dot_products" source="attn_course.primer"

# %% [markdown] exercise="cross_entropy"
# Write the cross-entropy of a batch, from logits.
#
# - `logits` has shape (n, classes): one row for each example. They are unnormalised scores, so the
#   softmax is yours to take, over the classes.
# - `targets` has shape (n,) and holds whole numbers (`torch.int64`) from 0 to classes − 1, the
#   right class of each row.
# - Return the **mean** over the rows of −ln p(target), in nats, as a tensor **without axes** (shape
#   `()`), through which gradients flow back to `logits`.
# - Logits of any size must give a finite, right loss: one of 1000, and rows far from each other,
#   will be tried. No small constant inside the logarithm: that changes the loss.
# - The inputs are always valid, and must stay as they are. (The course's version refuses a wrong
#   number of targets; yours need not.)
#
# With `logits = [[0, ln 2, ln 5], [0, ln 2, ln 5]]` and `targets = [2, 0]` the losses of the rows
# are ln(8/5) = 0.470 and ln 8 = 2.079, and the result is 1.275.

# %% exercise="cross_entropy" source="attn_course.primer"

# %% [markdown] exercise="training_step"
# Write one step of training.
#
# - `model(inputs)` gives logits of shape (n, classes). What the inputs look like is the model's
#   business. `targets` has shape (n,), right classes as whole numbers.
# - `optimizer` holds the model's parameters: any of `torch.optim`, with its own learning rate. It
#   is the one that steps.
# - The loss is the cross-entropy of the whole batch, the mean over its rows. Call the model
#   **once**, in the mode (train or eval) that it is in, and leave that mode as it is.
# - Your function is called again and again with the same model and optimizer. No step may be
#   influenced by the gradients of the steps before.
# - Return the loss from **before** the step, as a Python `float`.
#
# With a linear layer whose weight is `[[0.], [0.]]` and has no bias, `inputs = [[1.], [2.]]`,
# `targets = [0, 1]` and SGD with a learning rate of 1: both classes get p = 1/2, the loss is
# ln 2 = 0.693, and the weight becomes `[[-0.25], [0.25]]`.

# %% exercise="training_step" source="attn_course.primer"

# %% [markdown] part="exercises"
# ## Your own training loop
#
# Here is the shortest loop round your step, on the three spirals of the lesson. Run it once as it
# stands: expect a loss that falls from about 1.1 to below 0.05, and 0.99 of the held-out points.
# Then write your own in its place: batches of 50 points, in a new order each time
# (`torch.randperm`), and the share of held-out points that are right, printed every 50 steps. With
# that loop, find the smallest hidden layer that still gets nine of ten held-out points. There is no
# check for it; the numbers tell you.

# %% part="exercises"
from attn_course.experiments.ch00 import spirals, spirals_picture
from attn_course.training import torch_threads

points, targets = spirals(100, seed=0)
test_points, test_targets = spirals(100, seed=1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

# %% part="exercises" tags=["nbval-ignore-output"]
try:
    with torch_threads(1):
        losses = [training_step(model, optimizer, points, targets) for _ in range(300)]
    right = (model(test_points).argmax(dim=-1) == test_targets).double().mean().item()
    print(f"Loss {losses[0]:.2f} to {losses[-1]:.3f}, right on held-out points: {right:.2f}")
except NotImplementedError:
    print("Write training_step first; then this cell trains with it.")

# %% part="exercises"
spirals_picture(test_points, test_targets, model)
