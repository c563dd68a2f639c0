"""Intake: from a folder of downloads to what is run for each student and chapter.

The files are found with their students (`collect`), read (`notebook`), their answers recognised
(`answers`) and put into the instructor's chapter (`scaffold`, `rebuild`); `plan` says what is to
be graded and what became of every file. Nothing of a student's is run here.
"""
