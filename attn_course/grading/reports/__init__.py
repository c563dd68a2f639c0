"""Reports: grades.json and all that is made from it, for instructors, students and platforms."""
