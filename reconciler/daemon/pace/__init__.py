"""What is put off: clusters that are away, fights, changes that failed."""
