# ---
# jupyter:
#   attn_course:
#     title: "Query, key, value"
#     reading_minutes: 50
#     exercise_minutes: 75
# ---

# %% [markdown]
# Chapter 01 ended with a black box: a decoder that may look back at all states of the encoder
# copies what a decoder with one state forgets. This chapter opens the box. Inside is a look-up,
# of the kind that a dictionary does, made soft.
#
# ## What you will be able to do
#
# - Turn a sentence into token ids, and the ids into vectors.
# - Write the soft look-up: a score for each key, a weight for each score, a weighted sum of values.
# - Say what query, key and value are each for, and why a token gets three vectors and not one.
# - Write both scores that attention began with, the additive one and the dot product, and find
#   query, key and value inside the model of chapter 01.
#
# Here is where you stand. Then come three questions on the chapters before.

# %% hide="input"
course_map("02")

# %% hide="input"
recall("02")

# %%
import torch
from einops import einsum, rearrange

from attn_course import drawings
from attn_course.attention import (
    additive_attention, attention_scores, embed, lookup, project_qkv, softmax,
)
from attn_course.experiments.ch02 import (
    HAND_SET_KEYS, SENTENCE, ending_with, keys_of, sentence_view, split_into_tokens, states_of,
    train_copying, vector,
)
from attn_course.explorers import AttentionViewer
from attn_course.plots import head_maps, heat_map, line_plot
from attn_course.tasks import shift_right

# %% [markdown]
# **The device.** What this chapter trains runs on the device that you choose here. After a new choice, run the
# cells below again. The numbers drawn are the same on every device; what is computed from them may differ in
# the last digits. On a CPU everything here fits the time stated above.

# %%
toggle = DeviceToggle()
toggle

# %% [markdown]
# ## From a word to a vector
#
# **A network multiplies matrices. How does a word get into one?** It has to become a vector first.
# This sentence goes with you through the chapter:
#
# > The animal didn't cross the street because it was too tired.

# %% [markdown] prediction="the-twice"
# “the” stands in the sentence twice, at positions 0 and 4. Every word becomes a vector by the usual
# first layer of a language model. Are the two vectors of “the” equal?
#
# - They are equal.
# - They differ, because the positions differ.
# - They differ, because the neighbours differ.

# %% [markdown]
# It takes three steps.
#
# 1. The sentence is split into **tokens**. Here these are words and punctuation marks; real models
#    learn to split into pieces of words (chapter 09).
# 2. Each different token has a number, its **id**, in a **vocabulary** of size $\text{vocab}$.
#    The id is a name. Id 8 is not twice id 4.
# 3. Each id picks one row of a table $E$ of shape $(\text{vocab}, d_\text{model})$. That row is
#    the token's **embedding**, a vector of $d_\text{model}$ numbers.

# %%
tokens = split_into_tokens(SENTENCE)
vocabulary = {token: number for number, token in enumerate(sorted(set(tokens)))}
ids = torch.tensor([vocabulary[token] for token in tokens])  # (n,)
print(SENTENCE)
print("  ".join(f"{token}={vocabulary[token]}" for token in tokens))

# %%
rng = torch.Generator().manual_seed(0)
d_model = 8
table = torch.randn(len(vocabulary), d_model, generator=rng)  # (vocab, d_model), random: untrained
x = embed(ids, table)  # (n, d_model)
print(f"ids {tuple(ids.shape)} and table {tuple(table.shape)} give x {tuple(x.shape)}")
reveal("the-twice", 0 if torch.equal(x[0], x[4]) else 1)

# %% [markdown]
# **What was seen.** The table knows the id and nothing else: neither where a token stands nor what
# stands beside it. What it learns from its neighbours it learns by attention, and its place has to
# be put in separately (chapter 06).
#
# **Why a table, if networks multiply matrices?** Write each id as a **one-hot** vector: zeros, and
# a single 1 at the place of the id. What is its product with the table?

# %% [markdown] question="embedding-is-a-product"
# The ids of a sentence are written as one-hot rows, (n, vocab), and multiplied with the table,
# (vocab, d_model). What is the result?
#
# - [ ] The mean of the rows, (d_model,)
#   Each token keeps a row of its own; nothing is averaged over tokens.
# - [ ] Columns of the table, (n, vocab)
#   The sum runs over vocab, so vocab is gone from the result. The 1 picks a row, not a column.
# - [x] The rows of the table that indexing by the ids gives, (n, d_model)
#   Each one-hot row has a single 1, which picks one row of the table. Indexing does the same
#   without multiplying by zeros.
# - [ ] The ids times the table, larger for larger ids
#   That would treat an id as a quantity. In a one-hot row the id is only a place.

# %%
one_hot = (ids[:, None] == torch.arange(len(vocabulary))).float()  # (n, vocab)
difference = (one_hot @ table - x).abs().max().item()
print(f"one-hot {tuple(one_hot.shape)} times table {tuple(table.shape)}")
print(f"largest difference from the rows: {difference:.1f}")

# %% [markdown]
# Indexing gives the same and spares the multiplications by zero. So the table is a weight like any
# other, and it is trained like any other. A gradient reaches the rows that were read, and no
# others:

# %%
weight = table.clone().requires_grad_()
embed(ids[:3], weight).square().sum().backward()
moved = weight.grad.abs().sum(dim=-1).nonzero().flatten().tolist()
print("ids read:", ids[:3].tolist(), " rows with a gradient:", moved)

# %% [markdown]
# {{exercise: embed}}

# %% [markdown]
# ## A dictionary that answers softly
#
# **How do you look something up?** In Python's dictionary by a key that must be equal:

# %%
legs = {"animal": 4.0, "table": 4.0, "spider": 8.0}
print("animal ->", legs["animal"])
try:
    legs["animals"]
except KeyError as error:
    print("animals -> KeyError:", error)

# %% [markdown]
# Three roles take part. You ask with a **query**. Each entry is found by its **key**. What you get
# is its **value**. The match is all or nothing, and so is the answer.
#
# Both can be made soft. Let there be a query $q$ of shape $(d_k,)$, keys of shape $(j, d_k)$ and
# values of shape $(j, d_v)$. (Shapes name their axes throughout this course: $i$ counts queries,
# $j$ keys, and $d$ with its index is a number of features.)
#
# 1. **Scores.** In place of “equal or not”, a number that says how well key $j$ matches the query:
#    the dot product $s_j = q \cdot k_j$.
# 2. **Weights.** The scores become positive numbers that sum to one:
#    $p_j = e^{s_j} / \sum_m e^{s_m}$.
# 3. **Weighted sum.** In place of one value, all of them, each as much as its key matches:
#    $o = \sum_j p_j v_j$.
#
# Every query now gets an answer. And every step has a gradient, so that what is asked, found
# and given can be learnt.
#
# **Three tokens by hand.** Take paper. The query is $q = (2, 1)$.
#
# | token | key $k_j$ | value $v_j$ | score $q \cdot k_j$ | $e^{s_j}$ | weight $p_j$ |
# |---|---|---|---|---|---|
# | animal | (1, 0) | (4, 0) | | | |
# | street | (0, 1) | (0, 8) | | | |
# | because | (0, 0) | (2, 2) | | | |
#
# Fill the three empty columns, with $e \approx 2.72$ and $e^2 \approx 7.39$. Then add up the three
# values, each times its weight. The next cell has the answer.

# %%
def shown(vector):
    """A vector with two decimals."""
    return "(" + ", ".join(f"{number:.2f}" for number in vector.tolist()) + ")"


query = torch.tensor([2.0, 1.0])  # (d_k,)
key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # (j, d_k): animal, street, because
value = torch.tensor([[4.0, 0.0], [0.0, 8.0], [2.0, 2.0]])  # (j, d_v)
scores = key @ query  # (j,)
weights = scores.exp() / scores.exp().sum()  # (j,)
for row in zip(("animal", "street", "because"), scores, scores.exp(), weights, strict=True):
    print("{:8} score {:.0f}   exp {:.2f}   weight {:.2f}".format(*row))
print("output", shown(weights @ value))

# %% [markdown]
# The output lies between the values, nearest to that of the best match. No entry is lost: even
# “because”, whose score is 0, gives its share, since $e^0 = 1$.

# %% [markdown] prediction="query-of-zeros"
# The query is now (0, 0): it asks for nothing. What is the output?
#
# - Zeros
# - NaN, or an error
# - The value of the first key
# - The plain mean of the three values

# %%
for length in (0.0, 1.0, 4.0, 16.0):  # query[None] puts an axis of size 1 in front: (1, d_k)
    output, weights = lookup(length * query[None], key, value)  # (1, d_v), (1, j)
    print(f"{length:2.0f} times q: weights {shown(weights[0])}   output {shown(output[0])}")
asks_nothing = lookup(torch.zeros(1, 2), key, value)[0][0]
reveal("query-of-zeros", 3 if torch.allclose(asks_nothing, value.mean(dim=0)) else 0)

# %% [markdown]
# **What was seen.** With a query of zeros, all scores are 0 and all weights equal. The longer the
# query becomes, the more the best key takes, until the output is its value alone. The hard
# dictionary is the limit of the soft one: the length of the query says how sharply it asks. Making
# the query $T$ times shorter divides all scores by $T$: it is a **temperature**, as in chapter 00.
#
# ## From scores to weights: the softmax
#
# Step 2 has a name, the **softmax**. It keeps the order of the scores, and it looks at their
# differences only:
#
# $$\frac{e^{s_j - c}}{\sum_m e^{s_m - c}} = \frac{e^{-c}\, e^{s_j}}{e^{-c} \sum_m e^{s_m}} = p_j
# \qquad \text{for every } c$$
#
# Two weights of a row therefore stand in the ratio $p_j / p_m = e^{s_j - s_m}$: a lead of 1 in
# score is a factor of $e$ in weight.

# %% [markdown] prediction="twice-as-long-a-key"
# Two keys point the way of the query. The first has a score of 2, the second is twice as long. How
# many times the weight of the first does the second get?
#
# number: 1 … 20, within 1

# %%
first, second = softmax(torch.tensor([2.0, 4.0]))
print(f"weights {first:.2f} and {second:.2f}")
reveal("twice-as-long-a-key", round((second / first).item(), 2))

# %% [markdown]
# **What can go wrong in it?** The exponential grows fast. A float32 holds numbers up to about
# $3 \cdot 10^{38}$; beyond them stands infinity.

# %% [markdown] prediction="first-infinite-exponential"
# Which is the first whole number whose exponential is infinite in float32?
#
# - 10
# - 89
# - 1 000
# - There is none: it only becomes imprecise.

# %%
first_infinite = next(s for s in range(2000) if torch.tensor(float(s)).exp().isinf())
print("exp is infinite from", first_infinite, "on")
reveal("first-infinite-exponential", {10: 0, 89: 1, 1000: 2}[first_infinite])

# %%
for row in ([1.0, 0.0, -1.0], [1000.0, 999.0, 998.0], [-1000.0, -1001.0, -1002.0]):
    scores = torch.tensor(row)
    as_written = scores.exp() / scores.exp().sum()
    print(f"{row}: as written {shown(as_written)}, largest moved to 0 {shown(softmax(scores))}")

# %% [markdown]
# **What was seen.** The three rows have the same differences, so they have the same weights. The
# formula as written gives ∞/∞ for the second and 0/0 for the third, and both are NaN.
#
# **Why the shift fixes it.** The softmax does not change when the same $c$ is taken from all scores
# of a row. Choose $c$ as the largest of them. Then no exponential is above 1, one of them is
# exactly 1, and their sum is at least 1: nothing overflows and nothing is divided by 0. Softmax
# functions of numerical libraries do this for you. You will write it once yourself.

# %% [markdown] question="softmax-shift"
# Three rows of scores: A = (1, 0), B = (1001, 1000), C = (2, 0). Which of them get the same weights
# from a stable softmax?
#
# - [ ] None: the scores all differ
#   The softmax looks at differences within a row only.
# - [ ] A and C: the second score is 0 in both
#   Their differences are 1 and 2, so the ratios of the weights are e and e².
# - [x] A and B
#   The difference is 1 in both. The 1000 that B has more gives every exponential the same factor,
#   and it cancels.
# - [ ] B and C: their larger scores are above 1
#   The size of a score says nothing by itself. Their differences are 1 and 2.

# %% [markdown]
# {{exercise: softmax}}

# %% [markdown]
# ## Matching: the dot product as a score
#
# **Which pairs match?** The dot product is $q \cdot k = |q|\,|k| \cos\theta$: large where the
# vectors point the same way, 0 where they are at right angles, negative where they point apart. All
# pairs of $i$ queries and $j$ keys at once are one matrix product:
#
# $$S = Q K^\top \qquad Q: (i, d_k) \quad K: (j, d_k) \quad S: (i, j) \quad
# S_{ij} = \sum_d Q_{id} K_{jd}$$
#
# Rows belong to queries, columns to keys. In code $K^\top$ is `K.mT`, which exchanges the last two
# axes and leaves all axes before them, such as a batch, alone. In a pattern of einops `...` stands
# for such leading axes: `rearrange(x, "... n d -> ... d n")` does what `x.mT` does.
#
# Give the tokens of the sentence vectors to see it. They are **set by hand**: the first axis says
# what lives, the second what is a place. Three tokens ask: “cross” for a place, “it” and “tired”
# for something alive. `vector` makes a vector from its angle in degrees, counted from the first
# axis, and its length.

# %%
asking = {"cross": vector(90, 4.0), "it": vector(5, 4.0), "tired": vector(0, 2.0)}
Q = torch.stack(list(asking.values()))  # (i, d_k) = (3, 2)
K = keys_of(tokens)  # (j, d_k) = (12, 2)
S = attention_scores(Q, K)  # (i, j) = (3, 12)
heat_map(
    S, row_labels=list(asking), column_labels=tokens, limits=None, value="score",
    title="Scores of three queries with twelve keys",
    alt="“cross” scores highest with “street”, “it” and “tired” with “animal”.",
)

# %% [markdown]
# Negative scores are no fault. After the softmax they are small weights, and a score of 0 says
# nothing by itself: it is what the others are that decides.

# %% [markdown] question="softmax-axis"
# The scores are (i, j), queries by keys. Over which axis does the softmax run?
#
# - [ ] Over i: for each key the weights of all queries sum to one
#   Then the output of a query depends on who else is asking, and a query can be left with nothing.
# - [x] Over j: for each query the weights of all keys sum to one
#   Each query shares out one whole among the keys, and its output is their weighted mean.
# - [ ] Over both: all weights together sum to one
#   Then the outputs become smaller the more queries there are.
# - [ ] It does not matter, since the scores are symmetric
#   They are (i, j) with different i and j here. Even where i = j nothing makes them symmetric.

# %% [markdown]
# {{exercise: attention_scores}}

# %% [markdown]
# ## Why three vectors: the projections
#
# **Each token has one embedding $x$. Why not use it as query, key and value alike?** Try it, on
# random embeddings: 200 sequences of 12 tokens, 16 features each.

# %% [markdown] prediction="whom-tokens-look-at"
# Every token's query and key are its own embedding, x. At which token do most tokens look most?
#
# - At themselves
# - At the first token
# - At no token in particular: one in twelve looks at itself

# %%
rng = torch.Generator().manual_seed(0)
x = torch.randn(200, 12, 16, generator=rng)  # (b, n, d_model)
W_q, W_k, W_v = (torch.randn(16, 4, generator=rng) / 4 for _ in range(3))  # (in, out)
q, k, v = project_qkv(x, W_q, W_k, W_v)  # three times (b, n, 4)
for name, part in (("x", x), ("query", q), ("key", k), ("value", v)):
    print(f"{name:5} {tuple(part.shape)}")

# %%
def share_on_itself(scores):
    """The share of tokens whose largest score is with themselves."""
    return (scores.argmax(dim=-1) == torch.arange(scores.shape[-1])).float().mean().item()

bare, projected = attention_scores(x, x), attention_scores(q, k)
for name, scores in (("q = k = x", bare), ("q = x W_q, k = x W_k", projected)):
    share, there, back = share_on_itself(scores), scores[0, 0, 1], scores[0, 1, 0]
    print(f"{name:22} look most at themselves: {share:4.0%}   "
          f"score of 0 with 1: {there:.1f}, of 1 with 0: {back:.1f}")
reveal("whom-tokens-look-at", 0 if share_on_itself(bare) > 0.5 else 2)

# %% [markdown]
# **What was seen.** A vector matches itself: $x \cdot x$ is the square of its length, and hardly
# any other token reaches that. And the scores are symmetric: the score of “it” with “animal” would
# always be that of “animal” with “it”.
#
# **Why the projections help.** Three learnt matrices give each token three parts to play:
#
# | | made by | says | shape |
# |---|---|---|---|
# | **query** | $q = x W_q$ | what I look for | $(n, d_k)$ |
# | **key** | $k = x W_k$ | what I am found by | $(n, d_k)$ |
# | **value** | $v = x W_v$ | what I give | $(n, d_v)$ |
#
# The score of $i$ with $j$ becomes $x_i W_q W_k^\top x_j^\top$. The matrix in the middle need not
# be symmetric, and it decides which features of one token call for which features of another.
# Query and key must be equally wide. The value may have any width.
#
# **And why is the value not the key?** Take the dictionary of legs. “animal” and “table” must be
# told apart when they are looked up, so their keys differ. What they give is the same, 4.

# %%
entry_keys = 4 * torch.eye(3)  # animal, table, spider: three keys at right angles
entry_values = torch.tensor([[4.0], [4.0], [8.0]])  # legs, (j, d_v) with d_v = 1
asked = 2 * torch.eye(3)[1:]  # for the table, then for the spider
print("value is legs:   ", [shown(row) for row in lookup(asked, entry_keys, entry_values)[0]])
print("value is the key:", [shown(row) for row in lookup(asked, entry_keys, entry_keys)[0]])

# %% [markdown]
# With the key as value you learn *which* entry was found, which you have asked for yourself. With a
# value of its own an entry can give anything, of any width.
#
# Tokens are **row vectors** throughout this course, so weights stand on the right and are stored as
# (in, out). Do you remember from chapter 00 how `nn.Linear` stores them?

# %% [markdown] question="linear-stores"
# You copy W_q, stored as (in, out) = (16, 16), into the `.weight` of `nn.Linear(16, 16)` without
# transposing. What happens?
#
# - [ ] An error: the shapes do not fit
#   They would not fit if in and out differed. At 16 and 16 they do.
# - [ ] Nothing: the layer gives x W_q
#   It gives x times the transpose of its weight, so it would have to hold W_q transposed.
# - [x] No error, and wrong queries
#   The layer multiplies by the transpose of what it stores. Square weights fit either way, so only
#   the numbers tell.
# - [ ] The layer transposes the weight when it is assigned
#   It is stored as it is given, (out, in) by its own convention.

# %%
layer = torch.nn.Linear(16, 4, bias=False)
apart = (layer(x) - x @ layer.weight.T).abs().max()
print("nn.Linear(16, 4).weight:", tuple(layer.weight.shape), " our W_q:", tuple(W_q.shape))
print(f"layer(x) and x @ weight.T differ by at most {apart:.4f}")

# %% [markdown]
# {{exercise: project_qkv}}

# %% [markdown]
# ## The whole look-up, on the sentence
#
# Everything so far, in one line: ids to embeddings, embeddings to queries, keys and values, and the
# look-up.

# %%
rng = torch.Generator().manual_seed(0)
E = torch.randn(len(vocabulary), 8, generator=rng)  # (vocab, d_model)
W_q, W_k, W_v = (torch.randn(8, d, generator=rng) / 8**0.5 for d in (4, 4, 3))
output, weights = lookup(*project_qkv(embed(ids, E), W_q, W_k, W_v))
print("output", tuple(output.shape), "weights", tuple(weights.shape))
print("“it” gives most weight to", tokens[weights[7].argmax()], f"{weights[7].max():.2f}",
      "and gets", shown(output[7]))

# %% [markdown]
# Here is how that output comes about. The thicker a line, the more of that value is in it:

# %% hide="input"
drawings.look_up(tokens, weights[7], asking=7)

# %% [markdown]
# The weights are random, so what “it” attends to here means nothing. Real weights are learnt from
# much text; you meet them in chapter 12. Here you play the training: the keys are set by hand
# again, and you set the query of “it”.
#
# 1. Turn the query until “it” takes most from “animal”.
# 2. Make it longer, then shorter. What happens at length 0?
# 3. Let the sentence end in “wide”. What does “it” mean now, and where must its query point?
# 4. Change a key in the cell, such as that of “because”, and run it again.

# %%
keys = {**HAND_SET_KEYS, "because": (-0.3, -0.35)}  # yours to change: (lives, is a place)
sentence_view(keys)

# %% [markdown]
# **What did not happen.** When you changed the last word, the query did not move by itself. You had
# to move it. Would $q = x W_q$ have moved it? Embed both sentences with one table, and compare the
# queries of “it”:

# %%
words = sorted({*ending_with("tired"), *ending_with("wide")})
rng = torch.Generator().manual_seed(1)
table, W_q = torch.randn(len(words), 8, generator=rng), torch.randn(8, 2, generator=rng)
queries = []
for ending in ("tired", "wide"):
    ids = torch.tensor([words.index(token) for token in ending_with(ending)])
    queries.append((embed(ids, table) @ W_q)[7])  # position 7 is “it”
    print(f"the query of “it” in the sentence that ends in “{ending}”:", shown(queries[-1]))

# %% [markdown]
# **Why.** The query is made of the token's own embedding, which knows nothing of the other words.
# Whatever $W_q$ is, one look-up asks the same for “it” in both sentences. For “it” to mean the
# animal here and the street there, it must first gather something from “tired” or “wide”, and
# ask again with what it has then. Transformers do that by stacking look-ups (chapters 04 and 07).
#
# The word attention invites comparison with what people do when they attend. That is an analogy;
# nothing here measures it.

# %% [markdown] prediction="shuffled-entries"
# You shuffle the twelve entries, each key together with its value. What happens to the look-up of
# “it”?
#
# - Output and weights both stay as they are.
# - The output stays; the weights are shuffled as the keys are.
# - The output changes too.

# %%
order = torch.randperm(12, generator=rng)
V = torch.randn(12, 3, generator=rng)  # (j, d_v)
it = vector(5, 4.0)[None]  # (1, d_k), the query of “it” again
output, weights = lookup(it, K, V)
shuffled_output, shuffled_weights = lookup(it, K[order], V[order])
print("output ", shown(output[0]), "after the shuffle", shown(shuffled_output[0]))
print("weights", shown(weights[0, :4]), "after the shuffle", shown(shuffled_weights[0, :4]))
print("the weights before, in the new order:", shown(weights[0, order[:4]]))
stay = [torch.allclose(*pair, atol=1e-5)
        for pair in ((output, shuffled_output), (weights, shuffled_weights))]
reveal("shuffled-entries", {(True, True): 0, (True, False): 1}.get(tuple(stay), 2))

# %% [markdown]
# A look-up sees a set of entries. “animal … street” and “street … animal” are the same to it.
# Chapter 04 takes this further, and chapter 06 puts the order in.

# %% [markdown] question="only-the-values"
# Queries and keys stay as they are, and all values are multiplied by 10. What changes?
#
# - [ ] The weights, which become sharper
#   Longer queries or keys do that. Values do not enter the scores.
# - [x] The output, which becomes 10 times as large; the weights stay
#   Values are read after the weights are settled: they decide what is given, not who is asked.
# - [ ] Weights and output
#   The weights come from query and key alone.
# - [ ] Nothing: the softmax normalises it away
#   The softmax normalises the scores. The values come after it.

# %% [markdown]
# {{exercise: lookup}}

# %% [markdown]
# ## Two ways to score
#
# The dot product is not how attention began. Bahdanau, Cho and Bengio scored with a small network:
#
# $$s_{ij} = w \cdot \tanh(q_i W_q + k_j W_k) \qquad
# W_q: (d_q, d_\text{hidden}) \quad W_k: (d_k, d_\text{hidden}) \quad w: (d_\text{hidden},)$$
#
# Query and key are projected to one width and added, hence **additive attention**. The tanh bends
# the sum, and $w$ makes a number of it. Softmax and weighted sum stay as they were. Scores by a dot
# product, with or without a matrix between the two, are called **multiplicative attention** (Luong
# and others).
#
# Query $i$ has to meet key $j$ for every pair, so there is a hidden vector for each pair.
# Broadcasting makes them: $(i, 1, d_\text{hidden})$ plus $(1, j, d_\text{hidden})$ is $(i, j,
# d_\text{hidden})$.

# %% [markdown] prediction="without-the-tanh"
# Leave the tanh out: the score is w · (q W_q + k W_k). What do the weights of two different queries
# look like?
#
# - They are opposite.
# - They are the same.
# - They are uniform: all keys get the same.

# %%
rng = torch.Generator().manual_seed(0)
q, k = torch.randn(4, 6, generator=rng), torch.randn(9, 5, generator=rng)  # (i, d_q), (j, d_k)
W_q, W_k = torch.randn(6, 7, generator=rng), torch.randn(5, 7, generator=rng)
w = torch.randn(7, generator=rng)
hidden = rearrange(q @ W_q, "i d -> i 1 d") + rearrange(k @ W_k, "j d -> 1 j d")  # (i, j, d_hidden)
without_tanh, with_tanh = softmax(hidden @ w), softmax(hidden.tanh() @ w)  # (i, j)

# %%
for name, weights in (("without tanh", without_tanh), ("with tanh", with_tanh)):
    apart = (weights - weights[:1]).abs().max().item()
    print(f"{name:12}: weights of different queries differ by up to {apart:.1f}")
alike = torch.allclose(without_tanh, without_tanh[:1].expand(4, 9), atol=1e-5)
reveal("without-the-tanh", 1 if alike else 0)

# %% [markdown]
# **Why.** Without the tanh the score is a sum of two numbers, $w \cdot q_i W_q$ and
# $w \cdot k_j W_k$. The first is the same for every key $j$, and the softmax does not see what all
# scores of a row have in common. The query cancels, and all queries get the same answer. Some
# nonlinear function must act on query and key together. (In a dot product they are multiplied,
# which needs no tanh.)
#
# **What does it cost?** The additive score keeps a hidden vector for every pair. Count the numbers
# for one sequence with $i = j = n$:

# %%
d_hidden = 64
for n in (8, 128, 1024):
    print(f"n = {n:4}: {n * n:9,} scores, {n * n * d_hidden:10,} numbers in the hidden vectors")
mib = 4 * n * n / 2**20  # of scores, at the largest n, in float32
print(f"at n = {n} in float32: {mib:.0f} MiB against {mib * d_hidden:.0f} MiB")

# %% [markdown]
# The dot product goes from vectors to scores in one matrix product, which processors are built for,
# and never holds the hidden vectors. It asks something in return: query and key must be equally
# wide and mean the same by each feature. Projections can learn that, and so, as you will see, can
# the states themselves.

# %% [markdown]
# {{exercise: additive_attention}}

# %% [markdown]
# ## The black box of chapter 01, opened
#
# The copying model has an encoder, which reads 8 random symbols, and a decoder, which writes them
# down again and looks back at every step. Where are query, key and value?
#
# - **query**: the decoder's state, after the symbols that it has written so far;
# - **keys** and **values**: the encoder's states, one for each symbol read, in both parts at once;
# - **output**: what was found there, which goes to the prediction together with the decoder's
#   state.
#
# Train it twice: with the additive score, as in chapter 01, and with the dot product of the states
# as they are. Both start from the same weights and see the same batches; three seeds each.

# %% [markdown] prediction="which-score-copies-sooner"
# After 50 steps of training, which of the two copies more symbols right?
#
# - The additive score, which has weights of its own
# - The dot product, which has none
# - Neither: they are within 5 % of each other

# %%
runs = {
    score: [train_copying(score, seed=seed) for seed in range(3)] for score in ("additive", "dot")
}
for score, (run, *_) in runs.items():
    own = sum(p.numel() for name, p in run.model.named_parameters() if name in ("W_q", "W_k", "w"))
    print(f"{score:8} score: {own} weights in the score itself")

# %% tags=["nbval-ignore-output"]
accuracies = {
    f"{score} score": [run.history.metrics["accuracy"] for run in of_score]
    for score, of_score in runs.items()
}
line_plot(
    runs["dot"][0].history.eval_steps, accuracies, x_label="training steps",
    y_label="symbols copied right", y_limits=(0, 1.05), title="Copying 8 symbols, three seeds",
    alt="Both scores come close to 1. The dot product is ahead at the first measurement.",
)

# %% tags=["nbval-ignore-output"]
measured = {name: torch.tensor(of_score) for name, of_score in accuracies.items()}  # (3, 5)
for name, shares in measured.items():
    for when, column in (("after 50 steps", 0), ("after 250", -1)):
        print(f"{name:14}, {when:14}:", [f"{share:.2f}" for share in shares[:, column]])
lead = (measured["dot score"] - measured["additive score"])[:, 0].mean().item()
reveal("which-score-copies-sooner", 1 if lead > 0.05 else (0 if lead < -0.05 else 2))

# %% [markdown]
# **What was seen.** Both scores learn to copy. On this task, at this width and learning rate, the
# dot product is ahead after 50 steps, and the lead does not last. That is one task; on
# translation, Britz and others measured a small lead of the additive score. What holds on every
# task is the cost that you counted above.
#
# **Now open it.** One test sequence, step by step. First the vectors that take part:

# %%
model, _, test = runs["additive"][0]
query, states = states_of(model, test)  # the decoder's states, the encoder's states
print("query  (b, i, d):", tuple(query.shape), " the decoder's states")
print("key    (b, j, d):", tuple(states.shape), " the encoder's states, which are the values too")

# %% [markdown]
# Then the scores: each decoder state beside each encoder state, through the tanh, weighed by $w$.

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    asked = rearrange(query[0] @ model.W_q, "i d -> i 1 d")
    offered = rearrange(states[0] @ model.W_k, "j d -> 1 j d")
    scores = einsum((asked + offered).tanh(), model.w, "i j d, d -> i j")
symbols = [str(symbol) for symbol in test.inputs[0].tolist()]
heat_map(
    scores, row_labels=symbols, column_labels=symbols, limits=None, value="score",
    row_axis="symbol to write", column_axis="symbol read", title="Scores",
    alt="The largest score of each row lies on the diagonal.",
)

# %% [markdown]
# Then the weights: one softmax for each row. They should be the alignment that the model gives out
# when it runs as a whole. And `additive_attention`, which you write in exercise 2.6, should give
# the same for all sequences at once, when it gets the model's own W_q, W_k and w.

# %%
with torch.no_grad():
    _, alignment = model(test.inputs, shift_right(test.targets))  # (b, i, j)
    found, weights = additive_attention(query, states, states, model.W_q, model.W_k, model.w)
pairs = {"softmax of these scores, model's alignment": (softmax(scores), alignment[0]),
         "the function's weights, model's alignment": (weights, alignment),
         "the function's output, weights times states": (found, weights @ states)}
for name, (one, other) in pairs.items():
    print(f"{name:44} largest difference {(one - other).abs().max():.4f}")

# %% tags=["nbval-ignore-output"]
dot_model, _, _ = runs["dot"][0]
dot_query, dot_states = states_of(dot_model, test)
with torch.no_grad():
    _, dot_weights = lookup(dot_query, dot_states, dot_states)
head_maps(
    torch.stack([weights[0], dot_weights[0]]), titles=["additive score", "dot product"],
    row_labels=symbols, column_labels=symbols,
    row_axis="symbol to write", column_axis="symbol read",
    alt="The two maps belong to the two scores, not to heads. In both most of the weight lies on "
    "the diagonal.",
)

# %% [markdown]
# Two other sequences, side by side. Point at a row, or move through it with the arrow keys: which
# symbols does a row look at when its own stands in the sequence twice?

# %% tags=["nbval-ignore-output"]
names = [[str(symbol) for symbol in row] for row in test.inputs[1:3].tolist()]
AttentionViewer([weights[1:2]], names[0], compare=([weights[2:3]], names[1]))

# %% tags=["nbval-ignore-output"]
repeated = (test.inputs[:, :, None] == test.inputs[:, None]).sum(dim=-1) > 1  # (b, n)
places = torch.arange(test.inputs.shape[1], device=test.inputs.device)
for name, of_score in (("additive", weights), ("dot", dot_weights)):
    own = (of_score.argmax(dim=-1) == places).float()  # (b, n)
    print(f"{name:8}: look most at their own place: {own.mean():.3f} of all rows, "
          f"{own[repeated].mean():.3f} of those whose symbol stands there more than once")

# %% [markdown]
# **What was seen.** To write symbol $i$ the decoder looks at the state that had just read symbol
# $i$. A row whose symbol stands in the sequence more than once looks at its own place too, and not
# at the other places of the same symbol: this look-up goes by place. Nobody told the model so. The
# alignment was learnt from the copying alone. The box of chapter 01 is a soft look-up, and you have
# seen every line of it.
#
# What a map of weights tells about *why* a model answers as it does is a harder question, for
# chapter 08.

# %% [markdown]
# ## Common mistakes
#
# - **Softmax over the wrong axis.** A softmax never changes a shape, so nothing raises an error,
#   whatever the sizes. Test with all values equal to one: then every output must be one.
# - **A transposed weight.** Square weights fit either way. Test with $d_k \ne d_\text{model}$.
# - **Key and value exchanged.** With equal widths no error tells you so. The key is matched, the
#   value is given.
# - **exp without the shift.** It works until the scores grow in training, then the loss is NaN.
# - **`keepdim` forgotten** where a row is divided by its sum: on a square matrix broadcasting lines
#   the sums up with the columns.
# - **An id used as a number.** Ids go into a table, never into arithmetic.
#
# ## Quiz

# %% [markdown] question="what-a-key-is-for"
# A token should be found by its part of speech and give its meaning. Which vectors carry the two?
#
# - [x] Part of speech in the key, meaning in the value
#   The key is what a query is matched with; the value is what is summed.
# - [ ] Part of speech in the value, meaning in the key
#   Then it would be found by its meaning, and what it gave would be its part of speech.
# - [ ] Both in the query
#   The query is what this token looks for in others. It says nothing about how it is found.
# - [ ] Both in the key, since the output is a sum of keys
#   The output is a sum of values. Keys are matched and then left behind.

# %% [markdown] question="dot-or-additive"
# The decoder's states are 64 wide, the encoder's 96. Which score takes them as they come?
#
# - [ ] The dot product
#   It sums over pairs of features, so query and key must have as many.
# - [x] The additive score
#   Its W_q is (64, d_hidden) and its W_k (96, d_hidden): it brings both to one width itself.
# - [ ] Both: broadcasting fills up the missing features
#   Broadcasting repeats axes of size 1. It does not make 96 features out of 64.
# - [ ] Neither: values and queries must be equally wide too
#   Values are summed, not matched. They may have any width.

# %% [markdown] question="score-of-zero"
# A key has a score of 0 with a query. How much weight does it get?
#
# - [ ] None
#   e⁰ is 1. Only a score of minus infinity gets no weight.
# - [ ] One half
#   That would be a sigmoid, which looks at one score alone. The softmax compares.
# - [ ] 1/n
#   Only if all other scores are 0 as well.
# - [x] It depends on the other scores
#   Its share is 1 divided by the sum of all exponentials: most of the whole if the others are very
#   negative, next to nothing if one is large.

# %% [markdown] question="query-knows"
# In one look-up over embeddings, what can the query of “it” depend on?
#
# - [ ] On the words before it
#   Their embeddings enter as keys and values, not into this query.
# - [ ] On all words of the sentence
#   After one look-up its output does; its query in that look-up does not.
# - [x] On the token “it” alone
#   q = x W_q, and x is the row of the table for “it”.
# - [ ] On its position
#   The table knows no positions. Chapter 06 adds them.

# %% [markdown]
# ## Further reading
#
# - Dzmitry Bahdanau, Kyunghyun Cho, Yoshua Bengio, *Neural Machine Translation by Jointly Learning
#   to Align and Translate*, 2015 (arXiv 1409.0473). The additive score is in its appendix A.1.2;
#   look at its alignment pictures.
# - Minh-Thang Luong, Hieu Pham, Christopher Manning, *Effective Approaches to Attention-based
#   Neural Machine Translation*, 2015 (arXiv 1508.04025). Section 3.1 compares scores, the dot
#   product among them.
# - Denny Britz, Anna Goldie, Minh-Thang Luong, Quoc Le, *Massive Exploration of Neural Machine
#   Translation Architectures*, 2017 (arXiv 1703.03906). Both scores measured side by side.
# - Alex Graves, Greg Wayne, Ivo Danihelka, *Neural Turing Machines*, 2014 (arXiv 1410.5401). Soft
#   look-up in a memory; section 3.3.1 addresses it by content.
# - Ashish Vaswani and others, *Attention Is All You Need*, 2017 (arXiv 1706.03762). Section 3.2 has
#   query, key and value, and the scale that chapter 03 adds.
# - Jakob Uszkoreit, *Transformer: A Novel Neural Network Architecture for Language Understanding*,
#   2017, on Google's research blog: the sentence of this chapter, with both its endings.

# %% [markdown] part="exercises"
# Six pieces of one mechanism, each of a few lines. Do them in order: the fifth is the third and the
# second put together, and the sixth changes one step of it. All inputs are float32 unless it says
# otherwise. Results must keep the gradient: what you write here is trained.
#
# Shapes stand in the signatures: in `Float[Tensor, "*b i d"]`, `*b` is any number of leading axes,
# such as batch and head, `i` counts queries and `d` is a number of features. In the text leading
# axes are written as “…”. Nothing in the checks depends on how you get there: a loop is as good
# as a pattern.

# %% part="exercises"
import torch
from einops import einsum, rearrange

# %% [markdown] exercise="embed"
# Write `embed(ids, table)`: replace each token id by its row of the table.
#
# - `ids`: whole numbers (int64) from 0 to vocab − 1, shape (…, n), any number of leading axes.
# - `table`: (vocab, d).
# - Returns the embeddings, (…, n, d). The table is left as it is.
#
# For `ids = [2, 0]` and `table = [[1., 2.], [3., 4.], [5., 6.]]` the result is
# `[[5., 6.], [1., 2.]]`.
#
# You need not look for ids outside the table. (The course's version does, and its docstring says
# so, because a negative id would quietly take a row from the table's end.)

# %% exercise="embed" source="attn_course.attention"

# %% [markdown] exercise="softmax"
# Write `softmax(scores, dim=-1)`: weights that are positive and sum to one along `dim`.
#
# - `scores`: floating numbers of any shape and any size, thousands included, positive or negative.
#   Some may be minus infinity, but never all of a row.
# - `dim`: the axis along which the weights sum to one; it may count from the left or, if negative,
#   from the right. By default the last.
# - Returns the weights, in the shape of the scores. The scores are left as they are.
#
# For `[0., 0.]` the result is `[0.5, 0.5]`, and for `[1000., 1000.]` too.
#
# Add nothing to the sum for safety: with the right shift there is nothing to guard against.

# %% exercise="softmax" source="attn_course.attention"

# %% [markdown] exercise="attention_scores"
# Write `attention_scores(query, key)`: the dot product of every query with every key.
#
# - `query`: (…, i, d). `key`: (…, j, d), with the same leading axes, any number of them.
# - Returns the scores, (…, i, j): rows for queries, columns for keys. No scale, no softmax.
#
# For `query = [[1., 2.]]` and `key = [[3., 4.], [0., 1.]]` the result is `[[11., 2.]]`.

# %% exercise="attention_scores" source="attn_course.attention"

# %% [markdown] exercise="project_qkv"
# Write `project_qkv(x, W_q, W_k, W_v)`: query, key and value of every token.
#
# - `x`: (…, n, d_model), each row a token.
# - `W_q`, `W_k`: (d_model, d_k). `W_v`: (d_model, d_v). Stored as (in, out), on the right of `x`.
#   No bias.
# - Returns three tensors, `(query, key, value)` in this order, of shapes (…, n, d_k), (…, n, d_k)
#   and (…, n, d_v).
#
# For `x = [[1., 2.]]`, `W_q = [[1.], [0.]]`, `W_k = [[0.], [1.]]` and `W_v = [[1.], [1.]]` the
# results are `[[1.]]`, `[[2.]]` and `[[3.]]`.

# %% exercise="project_qkv" source="attn_course.attention"

# %% [markdown] exercise="lookup"
# Write `lookup(query, key, value)`: the whole soft look-up.
#
# - `query`: (…, i, d_k). `key`: (…, j, d_k). `value`: (…, j, d_v). The leading axes are the same.
# - The scores are the dot products, with no scale (that is chapter 03's). The weights are their
#   softmax over the keys. Scores may be in the thousands.
# - Returns two tensors, `(output, weights)`: (…, i, d_v) and (…, i, j).
#
# For `query = [[0.]]`, `key = [[5.], [7.]]` and `value = [[2.], [4.]]` the output is `[[3.]]` and
# the weights are `[[0.5, 0.5]]`.

# %% exercise="lookup" source="attn_course.attention"

# %% [markdown] exercise="additive_attention"
# Write `additive_attention(query, key, value, W_q, W_k, w)`: the look-up with the score of Bahdanau
# and others, $s_{ij} = w \cdot \tanh(q_i W_q + k_j W_k)$.
#
# - `query`: (…, i, d_q). `key`: (…, j, d_k). `value`: (…, j, d_v). The leading axes are the same.
# - `W_q`: (d_q, d_hidden). `W_k`: (d_k, d_hidden). `w`: (d_hidden,). Stored as (in, out).
#   No bias, no scale.
# - The weights are the softmax of the scores over the keys. Scores may be in the thousands.
# - Returns two tensors, `(output, weights)`: (…, i, d_v) and (…, i, j).
#
# For `query = [[0.]]`, `key = [[0.], [0.]]`, `value = [[2.], [4.]]` and any weights the output is
# `[[3.]]` and the weights are `[[0.5, 0.5]]`.

# %% exercise="additive_attention" source="attn_course.attention"
