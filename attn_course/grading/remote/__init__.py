"""Remote: calls between the trusted process and the student's kernel, as plain data.

All modules here import each other relatively and nothing else of the course: the student edition
carries copies of them, so that both ends of the line speak the same language.
"""
