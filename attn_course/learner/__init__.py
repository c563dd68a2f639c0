"""What accompanies a learner: progress, and the questions of the lessons."""
