"""What rounds tell history: who did what, when and why, and each thing once."""
