"""Values that the page and its JSON show."""
