"""What commands do once: look and plan, decide, observe, apply, make a lost journal again."""
