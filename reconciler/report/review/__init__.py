"""A plan for the review of a change on a forge: comment, page, annotations and JUnit."""
