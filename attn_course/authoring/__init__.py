"""From one text per chapter to three notebooks: lesson, exercises and solutions."""
