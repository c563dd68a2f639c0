"""The tasks: right answers by slow oracles, and a test set that training never draws."""

import hashlib
import urllib.request
from collections import Counter
from datetime import date, datetime
from io import BytesIO

import numpy as np
import pytest
import torch
from babel.dates import format_date

from attn_course.tasks import (
    IGNORE,
    START,
    Text,
    bracket_task,
    copy_task,
    date_task,
    k_back_task,
    latest_write_task,
    mask_tokens,
    next_token_targets,
    prose,
    recall_task,
    reverse_task,
    shift_right,
    sort_task,
    staircase_task,
    text,
    text_file,
    tiny_shakespeare,
)
from attn_course.tasks.base import is_test

TASKS = {
    "copy": lambda **kw: copy_task(6, 3, **kw),
    "reverse": lambda **kw: reverse_task(6, 3, **kw),
    "sort": lambda **kw: sort_task(6, 3, **kw),
    "k back": lambda **kw: k_back_task(6, 2, 3, **kw),
    "brackets": lambda **kw: bracket_task(10, 2, **kw),
    "recall": lambda **kw: recall_task(3, num_keys=4, num_values=2, **kw),
    "latest write": lambda **kw: latest_write_task(4, num_keys=2, num_values=2, **kw),
    "staircase": lambda **kw: staircase_task(2, num_items=3, num_keys=4, num_values=2, **kw),
    "dates": lambda **kw: date_task(("en", "zh"), **kw),
}


def rows(tensor):
    return {tuple(row) for row in tensor.flatten(1).tolist()}


@pytest.fixture(params=TASKS)
def make(request):
    return TASKS[request.param]


# kills: a split by order of drawing, by position in a table or by seed
def test_training_never_draws_a_test_example(make):
    tested = rows(make().test_set(20).inputs)
    trained = set()
    for seed in (0, 1):
        task = make(seed=seed)
        for step in range(40):
            trained |= rows(task.train_batch(step, 100).inputs)
    assert len(tested) == 20  # all different
    assert not tested & trained
    assert len(trained) > 20


def test_the_same_seed_and_step_give_the_same_batch(make):
    task, again, other = make(seed=5), make(seed=5), make(seed=6)
    again.train_batch(0, 7)  # what ran before changes nothing
    for mine, theirs in zip(task.train_batch(3, 16), again.train_batch(3, 16), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(task.train_batch(3, 16).inputs, other.train_batch(3, 16).inputs)
    assert not torch.equal(task.train_batch(3, 16).inputs, task.train_batch(4, 16).inputs)
    assert torch.equal(task.batches(16)(3).inputs, task.train_batch(3, 16).inputs)
    assert torch.equal(task.test_set(5).inputs, again.test_set(5).inputs)


def test_ids_stay_in_the_stated_range(make):
    task = make()
    inputs, targets = task.train_batch(0, 500)
    assert inputs.dtype == targets.dtype == torch.int64
    assert len(inputs) == len(targets) == 500
    assert inputs.min() >= 0
    assert inputs.max() == task.vocab_size - 1
    asked = targets[targets != IGNORE]
    assert asked.min() >= 0
    assert asked.max() == task.num_classes - 1


@pytest.mark.parametrize("name", sorted(TASKS.keys() - {"dates"}))
def test_more_test_examples_than_exist_are_refused(name):
    task = TASKS[name]()
    with pytest.raises(ValueError, match=rf"{task.num_examples} different test examples .* only"):
        task.test_set(task.num_examples)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_the_share_of_the_test_is_as_asked(share):
    for task in (copy_task(8), sort_task(20, 3), date_task(("en",))):
        inputs, targets = task.draw(20_000, np.random.default_rng(0))
        decisive = targets if task.split_on == "targets" else inputs
        assert is_test(decisive, share).mean() == pytest.approx(share, abs=0.015)


def test_all_of_a_small_test_set_can_be_had():
    task = sort_task(4, 6, test_share=0.25)
    assert len(task.test_set(250).inputs) == 250
    with pytest.raises(ValueError, match="only"):
        task.test_set(450)  # a quarter of 1296 is 324


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: copy_task(0), "n=0"),
        (lambda: copy_task(4, 1), "num_symbols=1"),
        (lambda: copy_task(1, 4), "only 4 different"),
        (lambda: copy_task(4, test_share=0), "test_share=0"),
        (lambda: k_back_task(4, 0), "k=0"),
        (lambda: k_back_task(4, 4), "n=4 must be at least 5"),
        (lambda: bracket_task(7), "n=7 is odd"),
        (lambda: recall_task(5, num_keys=4), "num_keys=4 must be at least 5"),
        (lambda: recall_task(5, distance=5), r"distance=5 is not in 0…4"),
        (lambda: latest_write_task(1), "n=1"),
        (lambda: staircase_task(4, num_items=3), "num_items=3 must be at least 4"),
        (lambda: staircase_task(2, num_items=9, num_keys=8), "num_keys=8"),
        (lambda: date_task(()), "at least one language"),
        (lambda: date_task(("en", "klingon")), "klingon"),
        (lambda: copy_task(4).train_batch(0, 0), "batch_size=0"),
        (lambda: copy_task(4).train_batch(-1, 4), "step=-1"),
        (lambda: copy_task(4).test_set(0), "count=0"),
    ],
)
def test_impossible_tasks_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_very_long_sequences_are_no_obstacle():
    assert copy_task(2000).train_batch(0, 2).inputs.shape == (2, 2000)
    assert bracket_task(2000).train_batch(0, 2).inputs.shape == (2, 2000)


def test_copy_reverse_sort_and_k_back_by_hand():
    for task, rewrite in (
        (copy_task(6), lambda row: row),
        (reverse_task(6), lambda row: row[::-1]),
        (sort_task(6), sorted),
        (k_back_task(6, 2), lambda row: [IGNORE, IGNORE, *row[:-2]]),
    ):
        inputs, targets = task.train_batch(0, 50)
        assert targets.tolist() == [rewrite(row) for row in inputs.tolist()]
        assert inputs.min() == 1
        assert inputs.max() == 8


def test_shift_right_starts_with_the_start_token():
    targets = torch.tensor([[4, 5, 6], [7, 8, 9]])
    assert shift_right(targets).tolist() == [[START, 4, 5], [START, 7, 8]]
    assert shift_right(targets, 3).tolist() == [[3, 4, 5], [3, 7, 8]]


# kills: a stack that is not popped, kinds mixed up, brackets that stay open
def test_brackets_by_a_stack():
    inputs, targets = bracket_task(12, kinds=3).train_batch(0, 300)
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        stack, expected = [], []
        for bracket in row:
            if bracket <= 3:
                stack.append(bracket + 3)
            else:
                assert stack.pop() == bracket
            expected.append(stack[-1] if stack else START)
        assert not stack
        assert wanted == expected


def test_brackets_are_uniform_among_the_balanced():
    inputs = np.concatenate(
        [bracket_task(8, 1).draw(1000, np.random.default_rng(k))[0] for k in (0, 1)]
    )
    counts = Counter(map(tuple, inputs.tolist()))
    assert len(counts) == 14  # the Catalan number of 4
    assert max(counts.values()) < 1.6 * min(counts.values())


@pytest.mark.parametrize("distance", [None, 0, 3])
def test_recall_by_hand(distance):
    inputs, targets = recall_task(5, distance=distance, num_keys=9).train_batch(0, 200)
    asked_at = set()
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        keys, values, question = row[0:10:2], row[1:10:2], row[10]
        assert len(set(keys)) == 5
        assert all(1 <= key <= 9 for key in keys)
        assert all(10 <= value <= 17 for value in values)
        assert wanted == [IGNORE] * 10 + [values[keys.index(question)]]
        asked_at.add(4 - keys.index(question))
    assert asked_at == ({0, 1, 2, 3, 4} if distance is None else {distance})


# kills: the first write in place of the latest, a later write, values of another key
def test_latest_write_by_hand():
    inputs, targets = latest_write_task(20, num_keys=3, num_values=5).train_batch(0, 200)
    reads = 0
    for row, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        memory = {}
        for token, target in zip(row, wanted, strict=True):
            if token <= 15:
                memory[(token - 1) // 5] = (token - 1) % 5
                assert target == IGNORE
            else:
                reads += 1
                assert target == memory[token - 16]
    assert 0.35 < reads / inputs.numel() < 0.55


def test_staircase_by_hand():
    inputs, targets = staircase_task(3, num_items=4, num_keys=6, num_values=5).train_batch(0, 100)
    assert inputs.shape == (100, 5, 3)
    assert targets.shape == (100, 3)
    for items, wanted in zip(inputs.tolist(), targets.tolist(), strict=True):
        values = {key: value - 7 for key, value, nothing in items[:4] if nothing == 0}
        assert len(values) == 4
        asked = [question - 11 - 6 * slot for slot, question in enumerate(items[4])]
        assert len(set(asked)) == 3
        assert wanted == [values[key] for key in asked]


def test_staircase_with_one_question_leaves_a_slot_empty():
    inputs, targets = staircase_task(1, num_items=4).train_batch(0, 10)
    assert inputs.shape == (10, 5, 2)
    assert (inputs[:, -1, 1] == 0).all()
    assert targets.shape == (10, 1)


def test_dates_are_babels_and_their_targets_iso():
    task = date_task(("en", "de", "ar"))
    inputs, targets = task.train_batch(0, 300)
    languages = task.language_of(inputs)
    assert set(languages) == {"en", "de", "ar"}
    full = 0
    for row, wanted, language in zip(inputs, targets, languages, strict=True):
        day = date.fromisoformat(task.decode_target(wanted))
        written = task.decode(row)
        assert 1950 <= day.year <= 2049
        full += written == format_date(day, "full", locale=language)
        assert row.tolist() == task.encode(written, language)
    assert 20 < full < 100  # one pattern in seven


def test_english_dates_read_back_by_python():
    task = date_task(("en",))
    inputs, targets = task.train_batch(0, 200)
    read = 0
    for row, wanted in zip(inputs, targets, strict=True):
        written = task.decode(row)
        for pattern in ("%A, %B %d, %Y", "%B %d, %Y", "%b %d, %Y", "%m/%d/%Y", "%a, %b %d, %Y"):
            try:
                day = datetime.strptime(written, pattern).date()
            except ValueError:
                continue
            assert day.isoformat() == task.decode_target(wanted)
            read += 1
    assert read > 100


# kills: a split by what is written, which shows the same day in another language
def test_dates_are_split_by_day():
    task = date_task(("en", "de", "fr"))
    tested = {task.decode_target(row) for row in task.test_set(300).targets}
    trained = {
        task.decode_target(row) for step in range(30) for row in task.train_batch(step, 200).targets
    }
    assert len(trained) > 4000
    assert not tested & trained


def test_dates_refuse_what_they_cannot_encode():
    task = date_task(("en",))
    with pytest.raises(ValueError, match="'fr' is none of en"):
        task.encode("1 mars 2024", "fr")
    with pytest.raises(ValueError, match="'ä'"):
        task.encode("1 März 2024", "en")
    with pytest.raises(ValueError, match="more than"):
        task.encode("1" * 99, "en")


@pytest.mark.slow
def test_every_day_of_every_language_can_be_written():
    task = date_task()
    for seed in range(40):
        inputs, targets = task.draw(5000, np.random.default_rng(seed))
        assert inputs.max() < task.vocab_size
        assert targets.min() > START


def test_prose_is_english_split_by_topic():
    data = prose()
    assert len(data.train) > 200_000
    assert 0.07 < len(data.test) / (len(data.train) + len(data.test)) < 0.15
    paragraphs = {p.strip() for p in data.train.split("\n\n")}
    assert not paragraphs & {p.strip() for p in data.test.split("\n\n")}
    long_runs = {data.train[k : k + 50] for k in range(len(data.train) - 49)}
    shared = sum(data.test[k : k + 50] in long_runs for k in range(len(data.test) - 49))
    assert shared < 0.05 * len(data.test)  # 17 % in a random tail of the raw text
    assert prose(seed=9).test == data.test
    with pytest.raises(ValueError, match="test_share=1"):
        prose(test_share=1)


def test_windows_are_followed_by_the_next_character():
    data = Text("abc", "abcdefghij" * 5, "jihg" * 5)
    inputs, targets = data.train_batch(0, 8, 6)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    for row, following in zip(inputs, targets, strict=True):
        assert data.decode(row) + data.decode(following)[-1] in data.train
    assert data.vocab_size == 11
    assert torch.equal(data.batches(8, 6)(0).inputs, inputs)
    assert not torch.equal(data.batches(8, 6)(1).inputs, inputs)
    # the last window that fits is drawn, and the last character is predicted
    starts = {data.decode(row) for row in data.train_batch(0, 300, 48).inputs}
    assert starts == {data.train[0:48], data.train[1:49]}


def test_test_windows_cover_the_text_without_overlap():
    data = Text("abc", "abc", "abcabcabcab")
    inputs, targets = data.test_set(3)
    assert [data.decode(row) for row in inputs] == ["abc", "abc", "abc"]
    assert [data.decode(row) for row in targets] == ["bca", "bca", "bca"]
    assert len(data.test_set(3, count=2).inputs) == 2
    with pytest.raises(ValueError, match="4 test windows of 3 characters asked, abc has 3"):
        data.test_set(3, count=4)


def test_text_refuses_what_it_cannot_do():
    data = Text("mine", "abcabc", "abc")
    with pytest.raises(ValueError, match="mine has no character 'x'"):
        data.encode("ax")
    with pytest.raises(ValueError, match="n=6: a window needs 1 to 5"):
        data.train_batch(0, 1, 6)
    with pytest.raises(ValueError, match="n=3: a window needs 1 to 2"):
        data.test_set(3)
    with pytest.raises(ValueError, match="training text has only 1"):
        Text("mine", "a", "abc")


def test_a_file_of_your_own(tmp_path):
    path = tmp_path / "mine.txt"
    paragraphs = [f"Absatz {k}: größer als {k - 1}." for k in range(50)]
    path.write_text("\n\n".join([*paragraphs, paragraphs[0]]), encoding="utf-8")
    data = text_file(path, test_share=0.2)
    assert data.train.startswith("Absatz 0: größer")
    assert data.test.endswith("Absatz 49: größer als 48.")  # the repeated one is left out
    assert 0.15 < len(data.test) / len(data.train + data.test) < 0.25
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ValueError, match=r"mine\.txt cannot be read as UTF-8"):
        text_file(path)
    with pytest.raises(ValueError, match="cannot be read"):
        text_file(tmp_path / "absent.txt")
    path.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="only 0 characters"):
        text_file(path)


def test_shakespeare_is_fetched_once_and_checked(tmp_path, monkeypatch):
    plays = b"First Citizen:\nBefore we proceed any further, hear me speak.\n" * 9
    fetched = []

    def answer(url, timeout):
        fetched.append(url)
        return BytesIO(plays)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    with pytest.raises(ValueError, match="is not Tiny Shakespeare"):
        tiny_shakespeare(folder=tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(text, "SHAKESPEARE_SHA256", hashlib.sha256(plays).hexdigest())
    first = tiny_shakespeare(folder=tmp_path)
    second = tiny_shakespeare(folder=tmp_path)
    assert first.train + first.test == plays.decode() == second.train + second.test
    assert len(fetched) == 2
    (tmp_path / "tiny_shakespeare.txt").write_bytes(b"cut short")
    with pytest.raises(ValueError, match="delete it to fetch it again"):
        tiny_shakespeare(folder=tmp_path)


def test_without_a_network_the_offline_choice_is_named(tmp_path, monkeypatch):
    def unreachable(url, timeout):
        raise OSError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    with pytest.raises(ConnectionError, match=r"use prose\(\)"):
        tiny_shakespeare(folder=tmp_path)


def test_windows_of_a_text_are_followed_by_its_next_tokens():
    inputs, targets = next_token_targets(torch.arange(10, 18), 3)
    assert inputs.tolist() == [[10, 11, 12], [13, 14, 15]]
    assert targets.tolist() == [[11, 12, 13], [14, 15, 16]]
    # seven tokens end just where the second window's last target is
    assert next_token_targets(torch.arange(7), 3).targets.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert len(next_token_targets(torch.arange(6), 3).inputs) == 1
    for n in (0, 6, -2):
        with pytest.raises(ValueError, match=f"n={n}: .* 1 <= n < 6"):
            next_token_targets(torch.arange(6), n)
    with pytest.raises(ValueError, match=r"got shape \(2, 3\)"):
        next_token_targets(torch.ones(2, 3, dtype=torch.int64), 1)


def test_masked_tokens_follow_the_published_shares():
    ids = torch.randint(7, (300, 400), generator=torch.Generator().manual_seed(1))
    inputs, targets = mask_tokens(ids, 7, 9, 0.3, torch.Generator().manual_seed(2))
    chosen = targets != IGNORE
    assert torch.equal(targets[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert abs(chosen.double().mean() - 0.3) < 0.006
    hidden = inputs[chosen]
    assert abs((hidden == 9).double().mean() - 0.8) < 0.01
    # 10 % stay, and a seventh of the 10 % that are drawn come out as what they were
    assert abs((hidden == targets[chosen]).double().mean() - (0.1 + 0.1 / 7)) < 0.008
    drawn = hidden[(hidden != 9) & (hidden != targets[chosen])]
    assert set(drawn.tolist()) == set(range(7))
    # neighbours are chosen independently, in a row and below each other
    for pairs in (chosen[:, 1:] & chosen[:, :-1], chosen[1:] & chosen[:-1]):
        assert abs(pairs.double().mean() - 0.09) < 0.006


def test_masking_is_repeatable_and_leaves_its_input_alone():
    ids = torch.arange(12).reshape(3, 4)
    once, again = (
        mask_tokens(ids, 12, 12, generator=torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(once.inputs, again.inputs)
    assert torch.equal(ids, torch.arange(12).reshape(3, 4))
    assert mask_tokens(ids, 12, 12, 0.0).targets.eq(IGNORE).all()
    assert torch.equal(mask_tokens(ids, 12, 12, 1.0).targets, ids)
    with pytest.raises(ValueError, match=r"p=1\.5"):
        mask_tokens(ids, 12, 12, 1.5)
    with pytest.raises(ValueError, match="vocab_size=0"):
        mask_tokens(ids, 0, 12)
