"""The content of the page and its JSON as values, made from the last round and the journal."""
