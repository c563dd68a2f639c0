"""Training: one loop for all experiments, and the parts that keep a run safe and seen."""

from attn_course.training.guard import TrainingDiverged
from attn_course.training.loop import StepInfo, fit, lr_factor, torch_threads
from attn_course.training.steps import History

__all__ = ["History", "StepInfo", "TrainingDiverged", "fit", "lr_factor", "torch_threads"]
