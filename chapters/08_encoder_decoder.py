# ---
# jupyter:
#   attn_course:
#     title: "Encoder and decoder"
#     reading_minutes: 55
#     exercise_minutes: 100
# ---

# %% [markdown]
# Until now every token has asked its own sequence. Here two sequences meet. One is given and complete,
# the *source*; the other is being written, the *target*. An **encoder** turns the source into vectors, a
# **decoder** writes the target token by token and looks back at them. This is the whole Transformer of
# 2017, and you train it: it learns to read dates as eleven languages write them, and to write them as
# `YYYY-MM-DD`.
#
# ## What you will be able to do
#
# - Write cross-attention, and say for each of its three projections which sequence it comes from.
# - Say what a decoder reads in training and what it reads when it writes, and why the target is
#   shifted.
# - Tell the three masks of an encoder–decoder apart, and leave padding out of the loss.
# - Decode greedily, say what a beam does and how its scores are corrected for length, and tell an error of
#   the search from an error of the model.
# - Compare with a recurrent network, and say what was attention's merit and what was not.
# - Test whether an attention map explains what a model does.
#
# Axes: $b$ sequences, $i$ positions of the target, $j$ positions of the source.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("08")

# %% hide="input"
recall("08")

# %%
import torch

from attn_course import drawings
from attn_course.attention import cross_attention
from attn_course.experiments.ch08 import (
    BEST, KINDS, lengths_of, padding_only_loss, shift_runs, train_dates, trimmed,
)
from attn_course.experiments.ch08_maps import (
    DIGITS, agreement, attention_map, cross_weights, knife, map_against_knife,
)
from attn_course.experiments.ch08_search import compare_search
from attn_course.experiments.ch08_views import DateReading, hiding_view
from attn_course.explorers import AttentionViewer
from attn_course.masks import causal_mask, combine_masks, padding_mask
from attn_course.models import Config, Seq2Seq, count_parameters
from attn_course.plots import heat_map, learning_curves
from attn_course.tasks import START, Batch, date_task, shift_right

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## The task
#
# Every language writes a date in ways of its own. Babel's locale data knows seven for each; here is one
# of each language, with what is to be written beside it.

# %%
task = date_task(seed=0)
first_of = {}
for source, target in zip(*task.train_batch(0, 100)):
    first_of.setdefault(task.language_of(source[None])[0], (source, target))
for language in task.languages:
    source, target = first_of[language]
    # between isolates, for Arabic runs from right to left
    print(f"{task.decode_target(target)}  {language}  \u2068{task.decode(source)}\u2069")

# %%
batch = task.train_batch(0, 6)
print(f"{task.vocab_size} source tokens, {task.num_classes} target tokens; sources padded to "
      f"{task.n_source}, the token of the language included")

# %% [markdown]
# Characters are the tokens. In front of each source stands a token for its language: without it
# `3/5/24` would mean two dates. Month names must be learnt in eleven languages and four scripts, the
# order of day and month by language, and the century of a year with two digits.
#
# The test holds out *dates*: no language shows one of the test dates in training. A model that has
# memorised which text belongs to which date gets nothing for it.

# %% [markdown]
# ## One sequence looks into another
#
# **A decoder is about to write the month. Where does it find it?** In the source, and attention is the
# way to look there. Nothing about attention changes. What changes is what the three projections are made
# from:
#
# $$Q = X W_q \qquad K = M W_k \qquad V = M W_v$$
#
# $X$ is $(n, d_\text{model})$, the decoder's tokens so far. $M$ is the **memory**, what the encoder made
# of the source, $(n_\text{source}, d_\text{model})$. The decoder asks, and the source is what it looks up.
# This is **cross-attention**.
#
# This is the way through the whole model. Encoder and decoder are stacks of blocks, and $M$ is the only
# thing that goes from one to the other:

# %% hide="input"
drawings.encoder_decoder()

# %% [markdown]
# In training the decoder reads the true target, all positions at once. When it writes, it reads what it
# has written, and goes round once for each token; $M$ is made once.
#
# **On paper.** One decoder token $x = (1, 0)$, a memory of two tokens $m_1 = (1, 0)$, $m_2 = (0, 1)$,
# $W_q = W_k = \begin{pmatrix}2 & 0\\0 & 2\end{pmatrix}$, and values of one feature,
# $W_v = \begin{pmatrix}10\\20\end{pmatrix}$. The query is $(2, 0)$, the keys are $(2, 0)$ and $(0, 2)$.
# Scores: $4/\sqrt 2 = 2.83$ and $0$. Weights: $e^{2.83} : 1$, which is 0.94 to 0.06. The output lies
# between 10 and 20: on which side? Work it out, then run.

# %%
x, memory = torch.tensor([[[1.0, 0.0]]]), torch.eye(2)[None]  # (1, 1, 2), (1, 2, 2)
W_q = W_k = 2 * torch.eye(2)
W_v = torch.tensor([[10.0], [20.0]])
output, weights = cross_attention(x, memory, W_q, W_k, W_v)
print(f"weights {weights[0, 0, 0]:.2f} and {weights[0, 0, 1]:.2f}, output {output.item():.1f}")

# %% [markdown] prediction="cross-shape"
# A decoder has written 4 characters, the source has 13. What is the shape of one sequence's
# cross-attention weights, queries first?
#
# - (4, 4)
# - (4, 13)
# - (13, 4)
# - (13, 13)

# %%
x, memory = torch.randn(1, 4, 8), torch.randn(1, 13, 8)
output, weights = cross_attention(x, memory, *torch.randn(3, 8, 8))
print("weights", tuple(weights.shape[1:]), "output", tuple(output.shape[1:]))
shapes = [(4, 4), (4, 13), (13, 4), (13, 13)]
reveal("cross-shape", shapes.index(tuple(weights.shape[1:])))

# %% [markdown]
# **What was seen.** One row for each token that asks, one column for each that is looked up. The output
# is as long as $X$: cross-attention adds to the decoder's tokens, and the two lengths need not agree.
#
# **What follows.** Keys and values depend on the source alone. While the decoder writes, they stay the
# same. There is no causal mask either: the source is complete before the first character is written.
# Only its padding is hidden.

# %% [markdown] question="cross-roles"
# In cross-attention of a translator from German to English, writing English, what are the keys made
# from?
#
# - [ ] From the English words written so far
#   Those ask: they make the queries.
# - [x] From the encoder's vectors of the German words
#   What is looked up is the source, so keys and values come from the memory.
# - [ ] From the embeddings of the German words
#   The encoder has been at work on them. Its output is what the decoder reads, in every layer.
# - [ ] Keys from the English, values from the German
#   Then a score would say how English matches English. A key must be of the thing that it opens.

# %% [markdown]
# {{exercise: cross_attention}}

# %% [markdown]
# ## Teacher forcing and the shift
#
# **What does the decoder read while it learns?** When it writes, it reads what it has written itself.
# At the start of training that is nonsense, and from nonsense little can be learnt. So in training it
# reads the *right* target, whatever it would have written: **teacher forcing**. All positions are then
# known at once, and one call under a causal mask trains them all.
#
# One detail decides. At position $t$ the decoder predicts target $t$, so what it reads there must end
# with target $t - 1$. The target is **shifted to the right**, and a start token fills the gap.

# %%
print("to predict:", task.decode_target(batch.targets[0]))
print("ids:       ", batch.targets[0].tolist())  # the hyphen is 1, the digit k is k + 2
print("is read:   ", shift_right(batch.targets)[0].tolist())

# %% [markdown] prediction="no-shift"
# Somebody forgets the shift: the decoder reads the very targets that it is to predict, under a causal
# mask that lets each position see itself. What will be seen after a short training?
#
# - The loss stays high, and it writes badly
# - The loss falls as usual, and it writes as usual
# - The loss falls faster than usual, and it writes no date right
# - An error: the lengths do not fit

# %%
runs = shift_runs(seeds=range(3))
told = all(run.loss < 0.1 and run.exact < 0.01 for run in runs[False])
reveal("no-shift", 2 if told else 1)

# %% tags=["nbval-ignore-output"]
for shifted, found in runs.items():
    print("shifted" if shifted else "not shifted",
          [f"loss {run.loss:.3f}, exact {run.exact:.1%}" for run in found])

# %% [markdown]
# **What was seen.** The one without the shift has learnt to copy what it reads. When it writes, there is
# nothing to copy. It is the leak of chapter 04 in another place, and again it is the good loss that
# gives it away.
#
# **The price of teacher forcing.** In training the model never sees its own mistakes. When it writes, one
# wrong character is read back, and the next is predicted from a text such as training never showed. This
# gap is called **exposure bias** (Ranzato et al. 2016). So accuracy per character under teacher forcing is
# no measure of writing. This chapter counts **exact match** of what the model writes alone: all ten
# characters right.

# %% [markdown] question="teacher-forcing"
# Validation loss under teacher forcing is excellent, but what the model writes is poor. Which of these
# cannot be the cause?
#
# - [ ] The target was not shifted
#   Then the loss is excellent because the answer is read. It can be the cause.
# - [ ] One mistake leads to the next when the model reads its own text
#   Teacher forcing hides just that. It can be the cause.
# - [ ] The decoding script builds its masks in another way than training does
#   A polarity that differs between the two is a well-known fault. It can be the cause.
# - [x] The model is too large for the data
#   Overfitting shows in the validation loss, teacher forcing or not. And that is excellent.

# %% [markdown]
# {{exercise: shift_right}}

# %% [markdown]
# ## Three masks
#
# **Is padding hidden?** Sources have different lengths, and a batch fills them up. Ask the model: put other
# characters into the padding, and see whether a logit moves.

# %% [markdown] prediction="pad-moves"
# The padded places of the sources are overwritten with random characters. Where must padding be hidden
# so that no logit moves?
#
# - In the encoder is enough: the decoder never sees characters
# - In cross-attention is enough: that is where the decoder reads
# - In both

# %%
torch.manual_seed(0)
model = Seq2Seq(task.vocab_size, task.num_classes, Config(d_model=32, num_layers=1)).eval()
source, target_in = batch.inputs, shift_right(batch.targets)
padding = source != START  # the sources are filled up with this id, 0
poisoned = torch.where(padding, source, torch.randint_like(source, 12, task.vocab_size))
moved = {}
for name, in_encoder, in_decoder in (
    ("encoder only", padding, None), ("cross-attention only", None, padding), ("both", padding, padding),
):
    before, after = (model.decode(target_in, model.encode(s, in_encoder), in_decoder).detach()
                     for s in (source, poisoned))
    moved[name] = not torch.allclose(before, after, atol=1e-4)
    print(f"{name:21}: a logit moves by up to {(after - before).abs().max():.2f}")
reveal("pad-moves", 2 if moved["encoder only"] and moved["cross-attention only"] else 0)

# %% [markdown]
# **Why.** The encoder's mask keeps real tokens from reading padding. Padding itself still gets a vector,
# and the decoder would read that. The other way round, real tokens have taken padding in before the
# decoder comes to them.
#
# **Who may see what?** An encoder–decoder attends in three places.
#
# | where | queries | keys | mask | shape |
# |---|---|---|---|---|
# | encoder | source | source | padding | $(b, 1, 1, j)$ |
# | decoder, to itself | target | target | causal | $(i, i)$ |
# | decoder, to the memory | target | source | padding *of the source* | $(b, 1, 1, j)$ |

# %%
lengths = torch.tensor([5, 3])
padding = padding_mask(lengths, 5)  # (b, j), True: a token
print("source padding, lifted:", combine_masks(padding=padding).int().tolist())
print("causal:", causal_mask(3).int().tolist())

# %% [markdown]
# The third row is the one that goes wrong: the causal mask belongs to the second, and gets there as well.
# With unequal lengths that raises an error. What it does with equal ones you will be asked below.
#
# **And the padding of the target?** It needs no mask. It stands *behind* the tokens, so the causal mask
# hides it from every one of them. What comes out at the padding itself is of no use, and the loss leaves
# it out (the next section).
#
# **The block.** A decoder block is the encoder block of chapter 07 with a step more. Each has its own
# residual and norm, in the paper's order:
#
# 1. $x \leftarrow \mathrm{norm}_1(x + \text{self-attention}(x))$, under the causal mask,
# 2. $x \leftarrow \mathrm{norm}_2(x + \text{cross-attention}(x, M))$, under the source's padding,
# 3. $x \leftarrow \mathrm{norm}_3(x + \text{feed-forward}(x))$.
#
# First it reads what has been written, then the source, then it works on both. Every decoder block reads
# the same memory, that of the *last* encoder block. In the model that you train below the norms stand
# before the sublayers (pre-norm), and one more norm ends each of the two stacks: so the memory is normed,
# once.

# %% [markdown] question="third-mask"
# Source and target both have 10 tokens. Cross-attention gets the causal mask by mistake. What happens?
#
# - [ ] An error: the mask does not fit the scores
#   The mask is (10, 10), and so are the scores.
# - [ ] Nothing changes, for the source has no future
#   The mask does not know that. It hides.
# - [x] It trains, but the source is only half read
#   While token t is written the model sees the first t tokens of the source. In some languages that is
#   where the answer stands. In others it is not.
# - [ ] The target leaks through the memory
#   The memory contains no target. Nothing leaks here; something is missing.

# %% [markdown]
# {{exercise: DecoderBlock}}

# %% [markdown]
# ## Padding in the loss
#
# **What may a model be praised for?** ISO dates are all ten characters long. Most targets are not: take
# the written dates as targets, as somebody would who translates the other way. A batch is padded to one
# width. At padding nothing is asked. If the loss counts it all the same, the model is praised for
# writing padding, which is easy.
#
# Make the laziest model there is. It knows where padding is, and nothing else: at every real character
# it guesses among all 130, which costs $\log 130$.

# %% [markdown] prediction="lazy-loss"
# Its loss at characters is log 130 ≈ 4.87. The dates are padded to 36. (How long they usually are you can
# judge by the list at the top of the chapter.) What is its mean loss over *all* positions?
#
# number: 0 … 5, within 0.4

# %%
written = lengths_of(task.test_set(500).inputs) - 1  # without the language token
print(f"the dates have {written.double().mean():.1f} characters on average")
for width in (36, 72):
    everywhere, tokens_only = padding_only_loss(written, width, vocab=130)
    print(f"padded to {width}: over all positions {everywhere:.1f}, over tokens {tokens_only:.1f}")
reveal("lazy-loss", padding_only_loss(written, 36, vocab=130)[0])

# %% [markdown]
# **What was seen.** Counting padding makes the lazy model look good, and the same model looks better
# still when the batch is padded wider. The loss over tokens does not care. Its denominator is the number
# of *tokens*, not of positions and not of sequences:
#
# $$L = -\frac{1}{\sum_{b,t} m_{bt}} \sum_{b,t} m_{bt} \log p(y_{bt} \mid y_{b,<t}, \text{source})$$
#
# with $m_{bt} = 1$ at tokens and 0 at padding. Each token counts alike, so a long sequence counts for
# more than a short one. That is a choice, and the usual one.

# %% [markdown] question="loss-average"
# A batch is cut into two halves to save memory; each half's mean loss over its tokens is taken, then the
# mean of the two. The halves have 100 and 900 tokens. How does that differ from the loss of the whole
# batch?
#
# - [ ] Not at all: both are means over all tokens
#   They would agree, if both halves had as many tokens.
# - [x] A token of the small half counts nine times as much
#   1/2 · 1/100 against 1/2 · 1/900. Add up sums and counts, and divide once.
# - [ ] It is twice as large, as there are two halves
#   Both are means. Neither grows with the number of halves.
# - [ ] Padding is counted, which the whole leaves out
#   It is left out in either.

# %% [markdown]
# {{exercise: masked_cross_entropy}}

# %% [markdown]
# ## Train it
#
# **Two encoder blocks, two decoder blocks, $d_\text{model} = 64$, four heads.** The blocks are pre-norm
# (chapter 07). A copy of the model is kept at an early moment;
# you will need it. The run takes less than a minute of CPU time.

# %% [markdown] prediction="exact-transformer"
# After 750 steps with 64 dates each: the share of *unseen* dates that come out right in all ten
# characters?
#
# number: 0 … 100, within 3, %

# %%
runs = {"Transformer": train_dates("Transformer", seed=0, early_step=200)}
transformer = runs["Transformer"]

# %% tags=["nbval-ignore-output"]
reveal("exact-transformer", 100 * transformer.exact)
for language, share in transformer.by_language.items():
    print(f"{language}: {share:6.1%}")
print(f"all: {transformer.exact:.1%}, {count_parameters(transformer.model):,} parameters, "
      f"{transformer.history.seconds[-1]:.0f} CPU-seconds")

# %%
learning_curves(
    {"Transformer": transformer.history}, metric="exact",
    alt="Exact match on unseen dates climbs steeply in the first half of training, then flattens near 1.",
)

# %% [markdown]
# **What was seen.** Most of the way is made in the first half of the run; the last few dates take the
# other half.
#
# Look at the languages in turn. Each has about ninety test dates, so one wrong date is about one percent,
# and which language is worst varies with the seed. This is one run; `docs/claims.md` has three seeds.
# %% [markdown]
# ## Writing: greedily, and with a beam
#
# **The model gives a distribution over the next character. Which one to write?** **Greedy decoding** takes
# the most likely one, reads it back, and goes on. It never looks ahead. That can miss the most likely
# text as a whole:

# %%
first = {"a": 0.5, "b": 0.4, "c": 0.1}
then = {"a": {"x": 0.4, "y": 0.3, "z": 0.3}, "b": {"x": 0.9, "y": 0.1}, "c": {"x": 1.0}}
greedy = max(first, key=first.get)
greedy += max(then[greedy], key=then[greedy].get)
texts = {a + b: p * q for a, p in first.items() for b, q in then[a].items()}
best = max(texts, key=texts.get)
print(f"greedy writes {greedy} with probability {texts[greedy]:.2f}; "
      f"the most likely text is {best} with {texts[best]:.2f}")

# %% [markdown]
# **Beam search** keeps the $k$ best prefixes instead of one. At each step it tries every continuation of
# each, and keeps the $k$ best of those, by the sum of their log-probabilities. With $k = 2$ it keeps
# “a” and “b” above, and finds the better text. With $k = 1$ it is greedy decoding.
#
# **When does it stop?** Dates have ten characters, so here ten are written. Other texts end where the model
# says so: every training target ends in a token of its own, **EOS** (end of sequence), which is learned
# like any other. Writing stops when it comes, or at a maximal length. A beam keeps a prefix that has ended
# as it is, and lets the others go on.
#
# Then texts of different lengths compete, and every further token lowers the probability: the sum of
# log-probabilities favours short texts. A **length penalty** corrects that. Wu et al. (2016) compare
#
# $$\frac{\log p(y \mid \text{source})}{\left((5 + |y|) / 6\right)^{\alpha}}$$
#
# with $|y|$ the number of tokens; the paper of 2017 uses it with a beam of 4 and $\alpha = 0.6$. On paper:
# log-probabilities of −4 for 5 tokens and −5 for 10 become $-4 / (10/6)^{0.6} = -2.94$ and
# $-5 / (15/6)^{0.6} = -2.89$. The sum prefers the short text, the corrected score the long one. The code is
# `attn_course.generation.beam_search`.
#
# Two kinds of error can now be told apart. If the right date has a *higher* probability than what was
# written, the search has missed it: a **search error**. If it has a lower one, no search helps: a
# **model error**.

# %% [markdown] prediction="beam-gain"
# Take the model as it was after 200 steps, when many dates are still wrong. How many more of the test
# dates does a beam of 4 get right than greedy decoding, in percentage points?
#
# number: -10 … 30, within 2

# %%
test = trimmed(task.test_set(500, pick_device()))
searched = {"after 200 steps": compare_search(transformer.early, test),
            "at the end": compare_search(transformer.model, test)}
early = searched["after 200 steps"]

# %% tags=["nbval-ignore-output"]
reveal("beam-gain", 100 * (early.beam - early.greedy))
for name, found in searched.items():
    print(f"{name}: greedy {found.greedy:.1%}, beam {found.beam:.1%}; the beam found a likelier text "
          f"for {found.likelier:.1%}.\n    Still wrong with the beam: {found.search_errors:.1%} by an "
          f"error of the search, {found.model_errors:.1%} by one of the model")

# %% [markdown]
# **What was seen.** For a few dates in a hundred the beam finds a likelier text, and it can gain no more
# than those. For every date that is still wrong the model gives what was written a higher probability than
# the truth: a wider search cannot help. At the end of the training hardly anything is left to be found.
# Beams are used where many good texts compete, as in translation. Here longer training gained far more
# than the search.

# %% [markdown] question="beam-errors"
# With a beam of 100 instead of 4, the translations of a good model get *worse*, though their probability
# rises. What does that say?
#
# - [ ] The search has a bug that grows with the beam
#   It does what it should: it finds more probable texts.
# - [x] To the model some bad texts are the most probable
#   A model error, which a narrow beam happened to hide: often very short texts.
# - [ ] Even a beam of 100 is too narrow for such a model
#   A wider one finds still more probable texts.
# - [ ] The probabilities of all texts do not sum to one
#   They do. That does not make the most probable text a good one.

# %% [markdown]
# {{exercise: greedy_decode}}
#
# Now your own model. The last exercise puts your parts together to a whole encoder–decoder. It runs on the
# same training function, and the exercise tells how.
#
# {{exercise: Seq2Seq}}
# %% [markdown]
# ## Against a GRU
#
# **Was it the Transformer, or was it attention?** Chapter 01 showed that a fixed state forgets. Is that
# what a recurrent network fails at here, too? Two rivals learn from the same batches:
#
# - a GRU that hands the decoder one state, and nothing else (as Sutskever et al. 2014, who used LSTMs),
# - a GRU that also looks back at all encoder states with additive attention (Bahdanau et al. 2015).
#
# A baseline that nobody has tuned is a straw man. All three were tried on the same grid of four learning
# rates and two clippings of the gradient, with one seed each; the grid is in `benchmarks/claims/ch08.py`,
# what came of it in `docs/claims.md`. The same rate and clipping turned out well for all three. The budgets
# are *not* equal: 750, 600 and 1000 steps, which take different times. The cell prints them; the
# Transformer gets most.

# %% [markdown] prediction="who-wins"
# Who writes how many of the unseen dates right? “Nearly all” means 97 % and more.
#
# - The Transformer nearly all; both GRUs are far behind
# - The Transformer and the GRU with attention nearly all; the GRU without is clearly behind
# - All three nearly all
# - The Transformer nearly all; the GRU without attention is ahead of the one with it

# %%
for kind in KINDS[1:]:
    runs[kind] = train_dates(kind, seed=0)
attending, bare = runs["GRU with attention"].exact, runs["GRU without"].exact
reveal("who-wins", 3 if bare > attending else 2 if bare >= 0.97 else 1 if attending >= 0.97 else 0)

# %% tags=["nbval-ignore-output"]
for kind, run in runs.items():
    worst = min(run.by_language, key=run.by_language.get)
    print(f"{kind:19}: {run.exact:6.1%}, worst language {worst} {run.by_language[worst]:.0%}, "
          f"{count_parameters(run.model):,} parameters, {BEST[kind].steps} steps, "
          f"{run.history.seconds[-1]:.0f} CPU-seconds, rate {BEST[kind].lr}, clip {BEST[kind].clip}")

# %%
long = task.test_set(1000).inputs
for number, language in enumerate(task.languages, start=1):
    print(f"{language}: {lengths_of(long[long[:, 0] == number]).double().mean() - 1:.1f}", end="  ")
print("characters a source, on average")

# %%
learning_curves(
    {kind: run.history for kind, run in runs.items()}, metric="exact",
    alt="The GRU with attention rises first, the Transformer reaches the same height later. The GRU "
    "without attention rises more slowly and ends below both.",
)

# %% [markdown]
# The curves count steps. Here they are by CPU time, seconds and exact match:

# %% tags=["nbval-ignore-output"]
for kind, run in runs.items():
    moments = zip(run.history.eval_steps, run.history.metrics["exact"], strict=True)
    print(f"{kind:19}", "  ".join(f"{run.history.seconds[step - 1]:.0f} s {share:.0%}" for step, share in moments))

# %% [markdown]
# **What was seen.** The Transformer was not needed for this: the GRU *with* attention gets as far, in fewer
# steps and less time. Perhaps because a recurrent network has the order of its inputs from the start, where
# the Transformer has to learn what positions mean; nothing here tests that. What a Transformer gains is
# that all positions are computed at once; on ten characters and one CPU thread that buys little. Chapter 10
# measures where it does.
#
# And the GRU without attention is no hopeless case. It is behind at this budget, and it had less time than
# the Transformer. Its curve is flat at the end, but so is every curve here: the learning rate falls to
# zero. Over its grid, one seed each, it reached from 77 to 95 %; over three seeds of this one setting from
# 86 to 95 % (`docs/claims.md`). So the setting moves it further than the distance that is left, chance
# moves it half as far, and one run tells little.
# “RNNs cannot translate without attention” would be the wrong lesson. Nor are long sources what it fails
# at most: compare the worst language of its row with the lengths. What makes that language hard for it this
# chapter does not find out.
#
# *One cell away:* twice the steps, a little more than a minute of CPU time. Remove the `#` to run it. If
# you stop it (■), it tells how far it has come; run the cell again, and it goes on from its checkpoint.

# %%
# from attn_course.experiments.ch08 import DateSettings
# longer = train_dates("GRU without", settings=DateSettings(steps=2000, lr=5e-3),
#                      checkpoint="gru_without_attention.pt")
# print(f"{longer.history.steps} steps: {longer.exact:.1%}")

# %% [markdown] question="fair-baseline"
# A paper reports 99 % for its model and 20 % for a GRU without attention, trained with the paper model's
# learning rate. What do you conclude?
#
# - [ ] The task cannot be done without attention
#   Perhaps. But a rate that suits one model can ruin another.
# - [ ] The GRU is too small, and needs to be wider
#   It may be. Nothing in the report tells.
# - [x] Little, until the baseline is tuned as well
#   Here the GRU without attention went from 77 to 95 % by learning rate and clipping, and from 86 to 95 %
#   by the seed alone.
# - [ ] The data is too easy to tell the two apart
#   Then the GRU would do better.

# %% [markdown]
# ## Map against knife
#
# **The model has just written a month. Does its attention map tell which characters it got that from?**
# Such maps are shown everywhere, and look convincing. There is a more direct question: *hide* a
# character, and see what becomes of the answer. The map is what the model looks at; the knife is what it
# needs.
#
# Type your birthday, in one of the languages above, and run the cells below.

# %%
birthday, language = "5 March 1998", "en"
reading = DateReading(transformer.model, task, birthday, language)
print(f"{birthday} is written as {len(reading.written)} characters")

# %% tags=["nbval-ignore-output"]
print(reading.written)

# %% tags=["nbval-ignore-output"]
heat_map(
    reading.map, row_labels=list(reading.written), column_labels=reading.characters,
    row_axis="written", column_axis="read", title="The map: cross-attention, mean of layers and heads",
    numbers=False,
    alt="For each character written, its weights over the characters read. The year's digits look at the "
    "year, the month at the month's name, the day at the day.",
)

# %% tags=["nbval-ignore-output"]
heat_map(
    reading.knife, row_labels=list(reading.written), column_labels=reading.characters,
    row_axis="written", column_axis="read", value="loss when hidden, nats", limits=None, numbers=False,
    title="The knife: what is lost when a character is hidden",
    alt="For each character written, how much log-probability it loses when one of the characters read "
    "is hidden. A few cells stand out, and many rows have none.",
)

# %% [markdown]
# The knife's numbers are differences of log-probability, in nats: how much less likely each character of
# the answer becomes. A hidden character is masked as padding is, in the encoder and in cross-attention.
# The colours reach to the largest loss, about 11 nats here, so that a loss of 1 is hard to see; the table
# below has the figures of one row. Look for rows in which nothing stands out: such a character of the
# answer can do without any single one of the source. Move the slider:

# %% tags=["nbval-ignore-output"]
hiding_view(reading)

# %% [markdown]
# The map above is a mean. Here are the heads that it is the mean of, with the characters read across and
# those written down. Do they look at the same things?

# %% tags=["nbval-ignore-output"]
AttentionViewer(reading.heads, list(reading.written), reading.characters)

# %% [markdown]
# Now one row in figures, that of the month's second digit. Map and knife need not point at the same
# character. A second cut says more about that: hide the character in cross-attention *only*, so that the
# encoder has still read it.

# %% tags=["nbval-ignore-output"]
print(f"“{reading.written[6]}”  map    knife   knife in cross-attention only")
for j, character in enumerate(reading.characters):
    print(f"{character:3}  {reading.map[6, j]:.2f}  {reading.knife[6, j]:6.2f}  {reading.late_knife[6, j]:6.2f}")

# %% [markdown]
# With “5 March 1998” the map is brightest at “a” and “c”. The knife finds a loss at “M”, which the map
# hardly shows. And if “M” is hidden from the decoder alone, nothing is lost: what the decoder needs of it
# has reached the memory's other vectors by way of the encoder. So “a” and “c” in the map are not the
# letters a and c, but the vectors at their places, which have read “M”, too.
#
# **One date is an anecdote.** Take 200 test dates and all eight digits of each. Two measures: in how many
# rows does the same character stand first in both? And how well do the two *orders* of all characters
# agree, by Spearman's rank correlation (1: the same order, 0: none)?

# %% [markdown] prediction="same-top"
# For how many of the digits is the character with the most attention also the one that hurts most when
# it is hidden?
#
# number: 0 … 100, within 8, %

# %% [markdown] prediction="rank-correlation"
# And the rank correlation over all characters of the source?
#
# number: -1 … 1, within 0.1

# %%
some = Batch(test.inputs[:200], test.targets[:200])
agreed = map_against_knife(transformer.model, some)

# %% tags=["nbval-ignore-output"]
reveal("same-top", 100 * agreed.same_top)
reveal("rank-correlation", agreed.rank)
print(f"digits that lose more than 0.1 nats by some cut: {agreed.needed:.0%}; "
      f"of those, same top: {agreed.same_top_needed:.0%}")

# %% tags=["nbval-ignore-output"]
visible = some.inputs != START
cut = knife(transformer.model, some.inputs, some.targets)[:, list(DIGITS)]
late = knife(transformer.model, some.inputs, some.targets, in_encoder=False)[:, list(DIGITS)]
mean_map = attention_map(transformer.model, some.inputs, some.targets)[:, list(DIGITS)]
found = agreement(mean_map, late, visible)
print(f"hidden in cross-attention only: same top {found.same_top:.0%}, rank {found.rank:.2f}")
for layer, of_layer in enumerate(cross_weights(transformer.model, some.inputs, some.targets)):
    for head in range(of_layer.shape[1]):
        found = agreement(of_layer[:, head][:, list(DIGITS)], cut, visible)
        print(f"layer {layer}, head {head} alone: same top {found.same_top:.0%}, rank {found.rank:.2f}")

# %% [markdown]
# **What was seen.** The brightest cell of a row is mostly the right one, and more so where something is
# needed at all. Many digits need no single character: the map shows bright cells for them just the
# same, for a softmax must put its weight somewhere. Below the first place the map says little: the order
# of the others has not much to do with what they are needed for. And “the map” is a choice. The mean over
# all layers and heads is one of several; single heads tell other stories, and each could be printed with
# the same confidence.
#
# **Why do they differ?** One reason you have seen with “March”: by the time the decoder looks, the encoder
# has mixed the characters. It is not the only one. Hidden in cross-attention alone, a character matters
# only by its own vector, the very thing that the map is about; the top then agrees a little more often, and
# the order no better. A weight says how much of a *value* is taken, not what the value holds or whether it
# changes the answer. And perhaps several vectors say the same, so that none of them is missed.
#
# **The knife is no oracle either.** It shows a text with a hole, such as training never had. It misses
# what stands there twice: hide one of two characters that say the same, and nothing is lost. To explain
# is to say what would have happened otherwise, and there are several otherwises.
#
# What a map does tell: where to look first. It is a hypothesis, and the knife is a test of it.

# %% [markdown] question="map-claims"
# An attention map shows 60 % of the weight on one word. Which sentence is supported by that alone?
#
# - [ ] The answer depends on this word: without it, it would be another
#   Its value may be small, or be cancelled later. Hide the word and see.
# - [ ] 60 % of the answer come from this word, 40 % from the others
#   A weight is a share of a mean of values in one head of one layer. An answer is not made of shares.
# - [x] In this head, 60 % of a weighted mean of values was its value
#   That, and no more. What the value held is another question.
# - [ ] The model thinks that this word matters more than all the others
#   The map is not made for you to read; nothing asks the model to make it tell.

# %% [markdown]
# ## Common mistakes
#
# | mistake | how it shows |
# |---|---|
# | queries from the memory, keys from the decoder | an output as long as the source; silent at equal lengths |
# | the target not shifted | loss near 0, no date right |
# | shifted twice, in the data and in the model | loss as if one token ahead had to be guessed |
# | causal mask on the memory | an error, but none at equal lengths; the source is half read |
# | padding hidden in the encoder only | change padding, and logits move |
# | padding hidden with the wrong polarity when writing | good loss, nonsense written |
# | padding counted in the loss | a loss that falls when batches are padded wider |
# | mean of the sequences' means | short sequences count for more |
# | gold tokens fed while testing | scores that no writing reaches |
# | only the last token read when writing, without a cache | the first character right, the rest not |
# | `eval()` forgotten when writing, or not undone after | noise; or a training that goes on without dropout |
# | the baseline not tuned | a victory over a learning rate |
# | a map taken for an explanation | until somebody cuts |
#
# ## Further reading
#
# - Vaswani et al., “Attention Is All You Need”, 2017 (arXiv 1706.03762): section 3.2.3 names the three
#   uses of attention.
# - Sutskever, Vinyals and Le, “Sequence to Sequence Learning with Neural Networks”, 2014 (arXiv
#   1409.3215), and Bahdanau, Cho and Bengio, “Neural Machine Translation by Jointly Learning to Align and
#   Translate”, 2015 (arXiv 1409.0473): the two rivals.
# - Williams and Zipser, “A Learning Algorithm for Continually Running Fully Recurrent Neural Networks”,
#   1989: where teacher forcing comes from.
# - Ranzato et al., “Sequence Level Training with Recurrent Neural Networks”, 2016 (arXiv 1511.06732):
#   exposure bias.
# - Wu et al., “Google's Neural Machine Translation System”, 2016 (arXiv 1609.08144): beam search with its
#   length penalty. Stahlberg and Byrne, “On NMT Search Errors and Model Errors”, 2019 (arXiv
#   1908.10090): the empty translation is often the likeliest.
# - Jain and Wallace, “Attention is not Explanation”, 2019 (arXiv 1902.10186), and Wiegreffe and Pinter,
#   “Attention is not not Explanation”, 2019 (arXiv 1908.04626): the dispute about maps.

# %% [markdown] part="exercises"
# Six exercises. You write cross-attention as a function (8.1), shift the targets (8.2), build the decoder's
# block (8.3), leave padding out of the loss (8.4), decode greedily (8.5), and put everything together
# (8.6).
#
# Every mask is boolean, and **True means “may attend”**, or “a token, no padding”. Sequences come batch
# first. No answer may change its inputs.

# %% part="exercises"
from math import sqrt

import torch
from torch import nn

from attn_course.blocks import DecoderBlock, EncoderBlock, FeedForward, LayerNorm
from attn_course.masks import causal_mask, combine_masks
from attn_course.multihead import MultiHeadAttention
from attn_course.positions import sinusoidal_encoding

# %% [markdown] exercise="cross_attention"
# `cross_attention(x, memory, W_q, W_k, W_v, padding=None)` lets one sequence look into another, with one
# head and without $W_o$:
#
# $$\mathrm{softmax}\!\left(\frac{(X W_q)(M W_k)^\top}{\sqrt{d_k}}\right) M W_v$$
#
# - `x`: float tensor (b, i, d_model), the tokens that ask. `memory`: (b, j, d_memory), what they look
#   into. The lengths i and j may differ, and so may the widths.
# - `W_q` (d_model, d_k), `W_k` (d_memory, d_k), `W_v` (d_memory, d_v): stored as (in, out), no biases.
# - `padding`: None, or boolean (b, j), True where the memory holds a token. Other keys are hidden from
#   every query.
# - Returns the pair `(output, weights)`: (b, i, d_v) and (b, i, j). If a memory is padding only, both are
#   zeros for that sequence. Gradients must reach x, memory and the three weights.
#
# ```python
# x, memory = torch.tensor([[[1.0]]]), torch.tensor([[[1.0], [3.0]]])
# one = torch.tensor([[1.0]])
# cross_attention(x, memory, one, one, one)
# # output [[[2.76]]], weights [[[0.12, 0.88]]]
# cross_attention(x, memory, one, one, one, torch.tensor([[True, False]]))
# # output [[[1.0]]], weights [[[1.0, 0.0]]]
# ```

# %% exercise="cross_attention" source="attn_course.attention"

# %% [markdown] exercise="shift_right"
# `shift_right(targets, start_token=0)` makes what a decoder reads from what it is to predict.
#
# - `targets`: integer tensor (b, n) with n ≥ 1.
# - Returns an integer tensor (b, n): the start token, then all targets but the last.
#
# ```python
# shift_right(torch.tensor([[5, 3, 8]]))      # [[0, 5, 3]]
# shift_right(torch.tensor([[5, 3, 8]]), 1)   # [[1, 5, 3]]
# ```

# %% exercise="shift_right" source="attn_course.tasks.base"

# %% [markdown] exercise="DecoderBlock"
# `DecoderBlock(d_model, num_heads, d_ff)` is the decoder's block in the paper's order, post-norm, an
# `nn.Module` without dropout.
#
# - Six parts, under these names: `self.self_attention` and `self.cross_attention`, each a
#   `MultiHeadAttention(d_model, num_heads)`; `self.feed_forward`, a `FeedForward(d_model, d_ff)`;
#   `self.norm_1`, `self.norm_2` and `self.norm_3`, each a `LayerNorm(d_model)` of its own. They are
#   imported above; your own from chapters 05 and 07 serve as well. The check puts parts with weights of
#   its own in their places, so the order in which you make them does not matter.
# - `forward(x, memory, mask=None, memory_mask=None)`: `x` is (b, n, d_model), `memory`
#   (b, n_memory, d_model). `mask` is for x looking at itself, `memory_mask` for x looking at the memory;
#   each is None or boolean, and goes to the attention as it comes.
# - Each of the three steps is $\mathrm{norm}(x + \text{sublayer}(x))$. Returns the output alone,
#   (b, n, d_model).
#
# An attention is called as `self.self_attention(query, key, value, mask)` and returns the pair
# `(output, weights)`.
#
# ```python
# block = DecoderBlock(8, 2, 16)
# block(torch.randn(3, 4, 8), torch.randn(3, 6, 8)).shape  # (3, 4, 8)
# ```

# %% exercise="DecoderBlock"
class DecoderBlock(nn.Module):
    """Self-attention, attention to a memory, feed-forward, each with a residual and a norm."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        ### BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
        ### END SOLUTION

    def forward(self, x, memory, mask=None, memory_mask=None):
        """Return x (b, n, d_model), informed by itself and by the memory (b, n_memory, d_model)."""
        ### BEGIN SOLUTION
        x = self.norm_1(x + self.self_attention(x, x, x, mask)[0])
        x = self.norm_2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm_3(x + self.feed_forward(x))
        ### END SOLUTION


# %% [markdown] exercise="masked_cross_entropy"
# `masked_cross_entropy(logits, targets, padding)` is the loss of a batch with padding.
#
# - `logits`: float tensor (b, n, vocab), unnormalised. `targets`: integer tensor (b, n), each a class from
#   0 to vocab − 1; at padding any of them may stand.
# - `padding`: boolean (b, n), True where the target is a token. It may be padded anywhere, and 0 is a
#   token like others. At least one place is True.
# - Returns one number, as a tensor of shape (): the mean of −log p(target) over all tokens of the batch,
#   each counted alike, in nats. The targets are already what each position is to predict: nothing is
#   shifted here.
#
# ```python
# logits = torch.tensor([[[0.0, 0.0], [0.0, 9.0]]])
# masked_cross_entropy(logits, torch.tensor([[0, 0]]), torch.tensor([[True, False]]))  # log 2 = 0.693
# ```

# %% exercise="masked_cross_entropy" source="attn_course.losses"

# %% [markdown] exercise="greedy_decode"
# `greedy_decode(model, source, start_token, max_len, padding=None)` writes the most likely token after
# each prefix.
#
# - `model`: an `nn.Module` with two methods. `model.encode(source, padding)` gives a memory;
#   `model.decode(target, memory, padding)` gives logits (b, n, vocab) for the token after each of
#   `target` (b, n). It keeps nothing between calls. You cannot look inside.
# - `source`: integer tensor (b, n_source). `padding`: None, or boolean (b, n_source), True at tokens; it
#   goes to both methods. What is padding is said by it alone, not by the ids.
# - Returns an integer tensor (b, max_len): what is written, *without* the start token. Always exactly
#   `max_len` tokens; no token ends the text.
# - The model runs in eval mode and without recording gradients, and is left in the mode in which it was,
#   training or not.
#
# ```python
# greedy_decode(model, source, 0, 10, source != 0)  # (b, 10)
# ```

# %% exercise="greedy_decode"
@torch.no_grad()
def greedy_decode(model, source, start_token, max_len, padding=None):
    """Return the tokens (b, max_len) that the model writes for each source (b, n_source)."""
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    memory = model.encode(source, padding)
    tokens = torch.full((len(source), 1), start_token, device=source.device)
    for _ in range(max_len):
        best = model.decode(tokens, memory, padding)[:, -1].argmax(dim=-1)
        tokens = torch.cat([tokens, best[:, None]], dim=1)
    model.train(training)
    return tokens[:, 1:]
    ### END SOLUTION


# %% [markdown] exercise="Seq2Seq"
# `Seq2Seq(source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers)`: the whole encoder–decoder,
# from your own parts. Two tables and the head are given, you write the rest:
#
# - `self.encoder_blocks` and `self.decoder_blocks`: each an `nn.ModuleList` of num_layers *different*
#   blocks, `EncoderBlock(d_model, num_heads, d_ff)` and `DecoderBlock(d_model, num_heads, d_ff)`, both
#   post-norm. The decoder block is yours from above, if it has passed; else delete its cell, and the
#   course's, which is imported at the top, takes its place. There is no further norm.
# - `embed(table, ids)`: the rows of the table times $\sqrt{d_\text{model}}$, plus the sinusoidal encoding
#   of positions 0, 1, …; (b, n) becomes (b, n, d_model).
# - `encode(source, padding=None)`: embed, then all encoder blocks. Returns the memory. `padding` is None or
#   boolean (b, n_source), True at tokens.
# - `decode(target, memory, padding=None)`: embed, then all decoder blocks with their two masks, then the
#   head. Returns logits (b, n, target_vocab) for *every* position. `target` is what the decoder reads, with
#   the start token already in front. `padding` is that of the source.
# - `forward(source, target, padding=None)`: both.
#
# An encoder block is called as `block(x, mask)`, a decoder block as `block(x, memory, mask, memory_mask)`.
# The check puts blocks, tables and a head with weights of its own in their places.
#
# ```python
# model = Seq2Seq(9, 7, 8, 2, 16, 2)
# model(torch.randint(9, (3, 5)), torch.randint(7, (3, 4))).shape  # (3, 4, 7)
# ```
#
# Once it has passed, train it on the dates of the lesson, with your own `greedy_decode` as its pen. It takes
# about a minute:
#
# ```python
# from attn_course.experiments.ch08 import DateSettings, train_dates
# run = train_dates(
#     Seq2Seq(142, 12, 64, 4, 256, 2),
#     writer=lambda model, source: greedy_decode(model, source, 0, 10, source != 0),
#     settings=DateSettings(steps=900, lr=2e-3, warmup=200),
# )
# print(run.exact, run.by_language)
# ```

# %% exercise="Seq2Seq"
class Seq2Seq(nn.Module):
    """Encoder and decoder: from source and target tokens to logits."""

    def __init__(self, source_vocab, target_vocab, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        for table in (self.source_embedding, self.target_embedding):
            nn.init.normal_(table.weight, std=1 / sqrt(d_model))  # embed() scales them to 1
        self.head = nn.Linear(d_model, target_vocab)
        ### BEGIN SOLUTION
        sizes, layers = (d_model, num_heads, d_ff), range(num_layers)
        self.encoder_blocks = nn.ModuleList(EncoderBlock(*sizes) for _ in layers)
        self.decoder_blocks = nn.ModuleList(DecoderBlock(*sizes) for _ in layers)
        ### END SOLUTION

    def embed(self, table, ids):
        """Return scaled embeddings plus positions, (b, n, d_model)."""
        ### BEGIN SOLUTION
        x = table(ids) * sqrt(table.embedding_dim)
        return x + sinusoidal_encoding(*x.shape[1:]).to(x)
        ### END SOLUTION

    def encode(self, source, padding=None):
        """Return the memory (b, n_source, d_model) of the source (b, n_source)."""
        ### BEGIN SOLUTION
        x, mask = self.embed(self.source_embedding, source), combine_masks(padding=padding)
        for block in self.encoder_blocks:
            x = block(x, mask)
        return x
        ### END SOLUTION

    def decode(self, target, memory, padding=None):
        """Return logits (b, n, target_vocab) for the token after each of target (b, n)."""
        ### BEGIN SOLUTION
        x = self.embed(self.target_embedding, target)
        mask, memory_mask = causal_mask(target.shape[1]), combine_masks(padding=padding)
        for block in self.decoder_blocks:
            x = block(x, memory, mask, memory_mask)
        return self.head(x)
        ### END SOLUTION

    def forward(self, source, target, padding=None):
        """Return the logits of target (b, n), given the source (b, n_source)."""
        ### BEGIN SOLUTION
        return self.decode(target, self.encode(source, padding), padding)
        ### END SOLUTION
