"""What the cells of a lesson call: questions, predictions, hints, and how far a learner is."""
