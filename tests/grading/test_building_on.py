"""What builds on an earlier answer is judged on its own, whatever became of the earlier one."""

import pytest

from attn_course.grading.intake.notebook import read_notebook
from attn_course.grading.intake.rebuild import rebuild
from attn_course.grading.judging.execute import execute
from attn_course.grading.settings import RunSettings
from attn_course.sentences import spoken
from tests.grading.notebooks import answer_cell, course, encoded, notebook, set_answer, solved
from tests.grading.test_hostile import pytestmark  # noqa: F401 (the same condition)

SETTINGS = RunSettings(timeout=60, total_timeout=300, seed=2)


def changed(chapter, **answers):
    """The solved chapter with other answers, each a pair of a text in it and its replacement."""
    nb = solved(chapter)
    for name, (right, wrong) in answers.items():
        source = "".join(answer_cell(nb, name)["source"])
        assert right in source
        nb = set_answer(nb, name, source.replace(right, wrong))
    return nb


def verdicts(nb, chapter):
    rebuilt = rebuild("anna", read_notebook(encoded(nb)), course()[chapter])
    return {v.exercise: v for v in execute(rebuilt, SETTINGS)}


def statuses(made):
    return {name: v.status for name, v in made.items() if v.status != "ok"}


def says_so(verdict, earlier):
    return any(f"`{earlier}` is the course's here" in spoken(note) for note in verdict.notes)


def test_classes_are_made_of_the_course_s_where_the_student_s_own_are_wrong():
    made = verdicts(
        changed(
            "08",
            DecoderBlock=("x, memory, memory, memory_mask", "x, memory, memory, mask"),
            Seq2Seq=("return self.head(x)", "return self.head(x)  # as it was"),
        ),
        "08",
    )
    assert statuses(made) == {"DecoderBlock": "wrong"}
    assert made["DecoderBlock"].mistake == "target-mask-on-memory"
    assert says_so(made["Seq2Seq"], "DecoderBlock")


def test_a_class_may_inherit_from_an_earlier_wrong_one():
    derived = """# Exercise 7.4: PreNormBlock
class PreNormBlock(EncoderBlock):
    def forward(self, x, mask=None):
        normed = self.norm_1(x)
        x = x + self.self_attention(normed, normed, normed, mask)[0]
        return x + self.feed_forward(self.norm_2(x))
"""
    nb = changed("07", EncoderBlock=("self.norm_1(x + ", "self.norm_1("))
    made = verdicts(set_answer(nb, "PreNormBlock", derived), "07")
    assert statuses(made) == {"EncoderBlock": "wrong"}
    assert made["EncoderBlock"].mistake
    assert says_so(made["PreNormBlock"], "EncoderBlock")


def test_helpers_of_an_answer_get_the_course_s_too():
    nb = changed("05", split_heads=("b h n d", "h b n d"), merge_heads=("(h d)", "(d h)"))
    cell = answer_cell(nb, "MultiHeadAttention")
    helpers = notebook("cut = lambda x, n: split_heads(x, n)", "joined = merge_heads")["cells"]
    place = nb["cells"].index(cell)
    nb["cells"][place:place] = helpers
    source = "".join(cell["source"])
    source = source.replace("split_heads", "cut").replace("merge_heads", "joined")
    made = verdicts(set_answer(nb, "MultiHeadAttention", source), "05")
    assert statuses(made) == {"split_heads": "wrong", "merge_heads": "wrong"}
    assert says_so(made["MultiHeadAttention"], "split_heads")


def test_the_course_s_answer_to_one_exercise_is_not_given_away_before_another_that_asks_for_it():
    nb = changed("03", scaled_dot_product_attention=(" / sqrt(query.shape[-1])", ""))
    mentions = "".join(answer_cell(nb, "softmax_gradient")["source"])
    mentions += "\n\nkeep = scaled_dot_product_attention\n"
    nb = set_answer(nb, "softmax_gradient", mentions)
    repaired = "# Exercise 3.5: repaired_attention\ndef repaired_attention(*inputs):\n"
    nb = set_answer(nb, "repaired_attention", repaired + "    return keep(*inputs)\n")
    made = verdicts(nb, "03")
    assert statuses(made) == {
        "scaled_dot_product_attention": "wrong",
        "repaired_attention": "wrong",
    }
    assert made["repaired_attention"].mistake == "no-scale"


@pytest.mark.parametrize("chapter", course())
def test_every_solution_stands_in_for_a_wrong_answer(chapter):
    from attn_course.checks import examine, get
    from attn_course.grading.judging.releases import stand_in

    rebuilt = rebuild("anna", read_notebook(encoded(solved(chapter))), course()[chapter])
    for cell in rebuilt.checks:
        namespace = {"__name__": "__main__"}
        exec(stand_in(rebuilt, cell.exercise), namespace)
        assert examine(namespace[cell.exercise], get(cell.exercise)).passed
