"""Running text, character by character: prose that every Python brings, or a file of your own."""

import hashlib
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attn_course.tasks.base import Batch, Device
from attn_course.tasks.language import next_token_targets

SHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


class Text:
    """Characters to predict, training and test kept apart.

    `train` and `test` are the texts, `alphabet` their characters; the id of a
    character is its place in it, from 1.
    """

    def __init__(self, name: str, train: str, test: str, *, seed: int = 0) -> None:
        """Number the characters; raise ValueError if a side is too short to learn from."""
        for side, text in (("training", train), ("test", test)):
            if len(text) < 2:
                raise ValueError(f"{name}: the {side} text has only {len(text)} characters")
        self.name, self.train, self.test, self.seed = name, train, test, seed
        self.alphabet = "".join(sorted(set(train) | set(test)))
        self._ids = {character: k for k, character in enumerate(self.alphabet, start=1)}
        self._train_ids, self._test_ids = self.encode(train), self.encode(test)

    @property
    def vocab_size(self) -> int:
        """The number of ids, START (0) included."""
        return len(self.alphabet) + 1

    def encode(self, text: str) -> Int[Tensor, " n"]:
        """Return the ids of `text`; raise ValueError for a character that it does not have."""
        unknown = set(text) - self._ids.keys()
        if unknown:
            raise ValueError(f"{self.name} has no character {min(unknown)!r}")
        return torch.tensor([self._ids[character] for character in text], dtype=torch.int64)

    def decode(self, ids: Int[Tensor, " n"]) -> str:
        """Return the text of `ids`, leaving out START."""
        return "".join(self.alphabet[int(i) - 1] for i in ids if i > 0)

    def train_batch(self, step: int, batch_size: int, n: int, device: Device = "cpu") -> Batch:
        """Return the windows of this step: n characters each and the n that follow one later.

        Raises:
            ValueError: if the training text is shorter than a window, or a size is below 1.
        """
        if step < 0 or batch_size < 1:
            raise ValueError(f"step={step} must be at least 0, batch_size={batch_size} at least 1")
        self._require_window(n, self._train_ids, "training")
        rng = np.random.default_rng((self.seed, step + 1))
        starts = rng.integers(len(self._train_ids) - n, size=batch_size)
        places = torch.from_numpy(starts)[:, None] + torch.arange(n)
        return Batch(self._train_ids[places], self._train_ids[places + 1]).to(device)

    def batches(self, batch_size: int, n: int, device: Device = "cpu") -> Callable[[int], Batch]:
        """Return `step -> training batch`, as `training.fit` takes it."""
        return lambda step: self.train_batch(step, batch_size, n, device)

    def test_set(self, n: int, count: int | None = None, device: Device = "cpu") -> Batch:
        """Return windows of n characters that cover the test text, or `count` of these, spread out.

        Raises:
            ValueError: if the test text is shorter than a window or has not that many.
        """
        self._require_window(n, self._test_ids, "test")
        windows = next_token_targets(self._test_ids, n)
        if count is not None:
            there_are = len(windows.inputs)
            if not 1 <= count <= there_are:
                raise ValueError(
                    f"{count} test windows of {n} characters asked, {self.name} has {there_are}"
                )
            spread = np.linspace(0, there_are - 1, count).round().astype(int)
            windows = Batch(*(side[torch.from_numpy(spread)] for side in windows))
        return windows.to(device)

    def _require_window(self, n: int, ids: Tensor, side: str) -> None:
        if not 1 <= n < len(ids):
            raise ValueError(
                f"n={n}: a window needs 1 to {len(ids) - 1} characters, "
                f"the {side} text of {self.name} has {len(ids)}"
            )


def prose(*, seed: int = 0, test_share: float = 0.1) -> Text:
    """Return the English prose of Python's language reference (`pydoc_data.topics`).

    Whole topics go to the test, and paragraphs that stand in several topics are
    kept once: a random tail of this text has long runs that training saw word
    for word. The text differs a little between Python versions.
    """
    from pydoc_data.topics import topics

    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share} must lie between 0 and 1")
    seen: set[str] = set()
    texts = {name: _without_repeats(topics[name], seen) for name in sorted(topics)}
    wanted = test_share * sum(map(len, texts.values()))
    held_out, size = set(), 0
    # in the order of a hash: neither the alphabet nor the seed picks the topics
    for name in sorted(texts, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if size < wanted:
            held_out.add(name)
            size += len(texts[name])
    train = "\n\n".join(texts[name] for name in texts if name not in held_out)
    test = "\n\n".join(texts[name] for name in texts if name in held_out)
    return Text("prose()", train, test, seed=seed)


def text_file(path: str | Path, *, seed: int = 0, test_share: float = 0.1) -> Text:
    """Return the text of a file of your own (UTF-8); its end is the test.

    Paragraphs (between empty lines) that repeat an earlier one are left out, so
    that the test holds none that training saw.

    Raises:
        ValueError: if the file cannot be read as UTF-8 text, or is too short to split.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as UTF-8 text: {error}") from error
    return _split_tail(str(path), _without_repeats(text, set()), seed, test_share)


def tiny_shakespeare(
    *, seed: int = 0, test_share: float = 0.1, folder: str | Path = ".attn_course_data"
) -> Text:
    """Return 1.1 MB of Shakespeare's plays, fetched once into `folder`; its end is the test.

    Raises:
        ConnectionError: without a network; `prose()` needs none.
        ValueError: if what was fetched is not the file that everybody uses.
    """
    path = Path(folder) / "tiny_shakespeare.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = _fetch(SHAKESPEARE_URL)
        _require_checksum(data, SHAKESPEARE_URL)
        half_written = path.with_suffix(".tmp")
        half_written.write_bytes(data)
        half_written.replace(path)
    data = path.read_bytes()
    _require_checksum(data, f"{path} (delete it to fetch it again)")
    return _split_tail("tiny_shakespeare()", data.decode("utf-8"), seed, test_share)


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.read()
    except OSError as error:
        raise ConnectionError(
            f"{url} cannot be fetched ({error}). Without a network use prose(), "
            "which every Python brings, or text_file(path) for a text of your own"
        ) from error


def _require_checksum(data: bytes, source: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != SHAKESPEARE_SHA256:
        raise ValueError(
            f"{source} is not Tiny Shakespeare: sha256 {found[:12]}… "
            f"instead of {SHAKESPEARE_SHA256[:12]}…, {len(data)} bytes"
        )


def _split_tail(name: str, text: str, seed: int, test_share: float) -> Text:
    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share} must lie between 0 and 1")
    cut = round(len(text) * (1 - test_share))
    return Text(name, text[:cut], text[cut:], seed=seed)


def _without_repeats(text: str, seen: set[str]) -> str:
    """Return `text` without the paragraphs that are in `seen`, and add its own to it."""
    kept = []
    for paragraph in text.split("\n\n"):
        if paragraph.strip() and paragraph.strip() not in seen:
            seen.add(paragraph.strip())
            kept.append(paragraph)
    return "\n\n".join(kept)
