"""What is known of a learner: the progress file, and the questions that it has answers to."""
