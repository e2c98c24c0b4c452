"""A plan for the review of a change: comment, page, annotations, JUnit."""
