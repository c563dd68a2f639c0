"""What accompanies a learner: progress, hints, and the questions of the lessons."""
