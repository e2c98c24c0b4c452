"""The tables of a journal. Independent of the file that they are written into."""
