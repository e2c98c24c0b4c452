"""Files of a store on a disk: which are read, which are ignored, what was parsed before."""
