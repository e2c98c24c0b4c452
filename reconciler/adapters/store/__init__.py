"""Files of a store on a disk: reading, ignore rules, and the parse cache."""
