"""Every known-wrong version is killed, and by the test that is named for it.

The named test is run twice: as it stands it passes, with the wrong version in the place of
the right one it fails.
"""

from importlib import import_module

import pytest
import torch
from wrong_attention import ATTENTION
from wrong_blocks import BLOCKS
from wrong_functions import LOOKUP, PRIMER
from wrong_masks import MASKS
from wrong_multihead import MULTIHEAD
from wrong_positions import POSITIONS

KNOWN_WRONG = [*PRIMER, *LOOKUP, *ATTENTION, *MASKS, *MULTIHEAD, *POSITIONS, *BLOCKS]


def named(wrong):
    return f"{wrong.mistake} | {wrong.killed_by}"


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("wrong", KNOWN_WRONG, ids=named)
def test_a_wrong_version_is_killed_by_its_test(wrong, monkeypatch):
    module, test = wrong.killed_by.split(".")
    run = getattr(import_module(module), test)
    torch.manual_seed(0)
    run(**wrong.arguments)
    for name, version in wrong.versions().items():
        monkeypatch.setattr(f"attn_course.{name}", version)
    torch.manual_seed(0)
    with pytest.raises(wrong.error):
        run(**wrong.arguments)


def test_no_mistake_is_listed_twice():
    names = [(wrong.mistake, *wrong.replaces) for wrong in KNOWN_WRONG]
    assert len(set(names)) == len(names)
