"""What the page and its JSON show, as values: made from the last round and the journal, before anybody draws them."""
